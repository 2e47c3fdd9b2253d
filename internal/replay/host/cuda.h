/* SPDX-License-Identifier: Apache-2.0
 *
 * The few functions of the CUDA driver that a profiler plugin asks about its GPU, answered by this
 * host in the driver's place. Exported, so dlsym(RTLD_DEFAULT, …) finds them as it would find those
 * of a loaded libcuda.
 */
#ifndef REPLAY_HOST_CUDA_H
#define REPLAY_HOST_CUDA_H

#include <stdbool.h>

/* absent: every function answers CUDA_ERROR_NOT_INITIALIZED. */
void cuda_begin(bool absent);

/* The calling thread's current device. */
void cuda_set_device(int device);

#endif
