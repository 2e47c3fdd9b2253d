/* SPDX-License-Identifier: Apache-2.0
 *
 * What the driver program calls a communicator, so that kernels can be told apart by it.
 */
#ifndef REALNCCL_LABEL_H
#define REALNCCL_LABEL_H

/* The label of a host communicator (ncclComm_t); NULL: it is about to end. Exported. */
void realnccl_label(const void *communicator, const char *label);

/* The label of the communicator that a kernel's arguments name by its device side; "" if there is none. Lives for ever. */
const char *label_of(const void *device_side);

#endif
