/* SPDX-License-Identifier: Apache-2.0
 *
 * Code that was compiled with calls of a tracing tool at the begin and end of each function.
 */
#ifndef NCCLOTF2_INSTRUMENTED_H
#define NCCLOTF2_INSTRUMENTED_H

#include <stdbool.h>

/* Whether the library or program that an address lies in has such code. Slow: looks through its relocations. */
bool ncclotf2_is_instrumented(const void *address);

#endif
