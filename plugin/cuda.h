/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver library of CUDA, if the program has loaded it.
 */
#ifndef NCCLOTF2_CUDA_H
#define NCCLOTF2_CUDA_H

#include <stdbool.h>

/* The newest CUDA version that the driver knows, 1000 * major + 10 * minor; 0 if no driver is loaded. */
int ncclotf2_cuda_driver_version(void);

/* Whether the driver has been taken down at the end of the program: nothing of CUDA may be called any more. For one
 * thread at a time. */
bool ncclotf2_cuda_is_gone(void);

#endif
