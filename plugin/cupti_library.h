/* SPDX-License-Identifier: Apache-2.0
 *
 * Which libcupti is used, and its functions.
 */
#ifndef NCCLOTF2_CUPTI_LIBRARY_H
#define NCCLOTF2_CUPTI_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "cupti_abi.h"

/* Finds the library and takes its functions. Two copies of CUPTI in one process fight over the driver, so one that is
 * mapped already is always the one; else NCCL_OTF2_CUPTI_LIBRARY, what lies beside the file `nccl` as wheels have it,
 * what the loader knows, by the CUDA version of the driver downwards, and the usual folders of the toolkit. It is never
 * closed. `path` gets its name; `why` one line if there is none (false), or if it is another one than the setting
 * names, else "". */
bool ncclotf2_cupti_library(const char *nccl, struct cupti_functions *functions, char *path, size_t path_size, char *why,
                            size_t why_size);

#endif
