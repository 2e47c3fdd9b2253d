/* SPDX-License-Identifier: Apache-2.0
 *
 * Which GPU a communicator rank is on. NCCL sets the device on the thread that initialises the
 * communicator, so it is asked for in init and nowhere else (some callbacks run where CUDA calls
 * are forbidden). The driver library is used only if the program has loaded it.
 */
#ifndef NCCLOTF2_CUDA_H
#define NCCLOTF2_CUDA_H

#include "shm.h"

/* Fills in device, uuid, has_uuid and pci; device is -1 if it cannot be known. */
void ncclotf2_cuda_device(struct ncclotf2_comm *comm);

#endif
