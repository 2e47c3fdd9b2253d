/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU beside the calls: kernels that are launched, captured and replayed on a fake CUPTI. What is to be played is
 * a text made by package replay (kernels.go), private to the two.
 */
#ifndef FAKENCCL_KERNELS_H
#define FAKENCCL_KERNELS_H

#include "program.h"

/* Reads the file and loads fakecupti/libcupti.so.12 beside this program; what is wrong ends the process. `recorded`: times
 * are the recorded ones; else each kernel runs from its launch on, for as long as it took (`paced`), or 20 us at most. */
void kernels_begin(const struct program *program, const char *path, bool recorded, bool paced);

/* What follows a call, on the thread that has made it; handles: of events, as the plugin gave them. Nothing without
 * kernels_begin. */
void kernels_play(uint32_t call, void *const *handles);

/* Returns when all kernels have ended. */
void kernels_wait(void);

#endif
