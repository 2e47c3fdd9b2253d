/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REALNCCL_FUNCTIONS_RCCL_H
#define REALNCCL_FUNCTIONS_RCCL_H

#include "functions.h"
#include "symbols.h"

/* Calls back with every function that RCCL's library has (each may be NULL); returns one more than the highest number, 0: no
 * table was found. A number may come several times. */
size_t functions_of_rccl(const struct symbols *library, void (*each)(int number, struct function f));

#endif
