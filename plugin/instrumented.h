/* SPDX-License-Identifier: Apache-2.0
 *
 * Code that was compiled with calls of a tracing tool at the begin and end of each function.
 */
#ifndef NCCLOTF2_INSTRUMENTED_H
#define NCCLOTF2_INSTRUMENTED_H

#include <stdbool.h>

/* Returns whether the library or program that contains an address was compiled with such instrumentation. Slow: searches its relocations. */
bool ncclotf2_is_instrumented(const void *address);

#endif
