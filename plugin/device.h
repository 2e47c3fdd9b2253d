/* SPDX-License-Identifier: Apache-2.0
 *
 * Which GPU a communicator rank is on. NCCL and RCCL set the device on the thread that initializes the
 * communicator, so it is asked for in init and nowhere else (some callbacks run where calls of CUDA and HIP
 * are forbidden). The maker's library is used only if the program has loaded it.
 */
#ifndef NCCLOTF2_DEVICE_H
#define NCCLOTF2_DEVICE_H

#include "shm.h"

/* Fills in device, uuid, has_uuid and pci, as CUDA's driver knows them, or HIP's runtime if RCCL calls the plugin; device
 * is -1 if it cannot be known. */
void ncclotf2_device(struct ncclotf2_comm *comm, enum ncclotf2_library caller);

/* A function of the program's, or of a library that was opened privately (NULL: none); NULL if there is none. */
void *ncclotf2_symbol(void *library, const char *name);

#endif
