/* SPDX-License-Identifier: Apache-2.0
 *
 * Which GPU a communicator rank is on. NCCL sets the device on the thread that initializes the
 * communicator, so it is asked for in init and nowhere else (some callbacks run where CUDA calls
 * are forbidden). The driver library is used only if the program has loaded it.
 */
#ifndef NCCLOTF2_CUDA_H
#define NCCLOTF2_CUDA_H

#include <stdbool.h>

#include "shm.h"

/* Fills in device, uuid, has_uuid and pci; device is -1 if it cannot be known. */
void ncclotf2_cuda_device(struct ncclotf2_comm *comm);

/* The newest CUDA version that the driver knows, 1000 * major + 10 * minor; 0 if no driver is loaded. */
int ncclotf2_cuda_driver_version(void);

/* Whether the driver has been taken down at the end of the program: nothing of CUDA may be called any more. For one
 * thread at a time. */
bool ncclotf2_cuda_is_gone(void);

#endif
