/* SPDX-License-Identifier: Apache-2.0
 *
 * A GPU played by threads of the processor: it takes the launches of NCCL's collective kernels and does what they do, data
 * included, against NCCL's own proxy threads and the kernels of other GPUs.
 */
#ifndef REALNCCL_GPU_H
#define REALNCCL_GPU_H

#include <stddef.h>
#include <stdint.h>

/* Runs one launch to its end: a thread for each of its channels. arguments: the kernel's parameter block, 16-byte aligned.
 * label: of its communicator, see gpu_label. */
void gpu_run(int device, const void *kernel, const void *arguments, unsigned grid, const char *label);

/* What the driver program calls the communicator of a launch, to be asked for while it is called. */
const char *gpu_label(const void *arguments);

/* A device's nanosecond clock (globaltimer): CLOCK_REALTIME moved by settings, in steps, so that nobody can take one for the
 * other. */
uint64_t gpu_clock(int device);

#endif
