/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REALNCCL_EMU_H
#define REALNCCL_EMU_H
#include <stddef.h>
#include <stdint.h>
/* run one kernel launch to completion on the calling thread (+ helpers) */
void emu_run_kernel(int device, const void *args, size_t bytes, unsigned grid);
uint64_t emu_globaltimer(int device);
#endif
