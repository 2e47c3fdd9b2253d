/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU beside the calls: kernels that are launched, captured and replayed on a library that stands for CUPTI (gpu.h).
 * What is to be played is a text made by package replay (kernels.go), private to the two.
 */
#ifndef REPLAY_HOST_KERNELS_H
#define REPLAY_HOST_KERNELS_H

#include "program.h"

/* Reads the file and loads the library; what is wrong ends the process. `recorded`: times are the recorded ones; else each kernel
 * runs from its launch on, for as long as it took (`paced`), or 20 us at most. */
void kernels_begin(const struct program *program, const char *path, const char *library, bool recorded, bool paced);

/* What follows a call, on the thread that has made it; handles: of events, as the plugin gave them. Nothing without
 * kernels_begin. */
void kernels_play(uint32_t call, void *const *handles);

/* Returns when all kernels have ended. */
void kernels_wait(void);

#endif
