/* SPDX-License-Identifier: Apache-2.0
 *
 * The hooks by which the host plays a GPU: what a library that stands for CUPTI (--gpu) exports as `replay_gpu`. The host has
 * none of its own; for the tests there is tests/fakecupti.
 */
#ifndef REPLAY_HOST_GPU_H
#define REPLAY_HOST_GPU_H

#include <stdint.h>

/* A kernel to be. Times are ns on CUPTI's clock (gpu_hooks.now); start 0: `end` is how long it
 * takes from now on. */
struct gpu_kernel {
  uint32_t device, stream;
  const char *name;
  uint64_t start, end;
  uint64_t event, handle; /* for the truth file: what launches it, as the program and as the profiler call it; else 0 */
};

/* Memory that is allocated (operation 1) or released (2); `kind` as CUPTI numbers them. */
struct gpu_memory {
  uint32_t operation, kind;
  uint64_t address, bytes;
  uint64_t time; /* ns on CUPTI's clock */
};

struct gpu_hooks {
  /* A call that launches a kernel, on this thread: of the driver (domain 1), or of the runtime (2), of which a client that
   * asks for calls of the driver hears nothing (so it is on an H200 with CUPTI 13.0). Returns the correlation id. Between
   * capture_begin and capture_end of this thread it makes a node of a graph instead, and no kernel. */
  uint32_t (*launch)(int domain, uint32_t cbid, const struct gpu_kernel *kernel);
  void (*capture_begin)(void);
  uint32_t (*capture_end)(void); /* a graph */
  uint32_t (*instantiate)(uint32_t graph); /* an executable graph, whose nodes have ids of their own */
  /* Launches an executable graph; `times`: start and end of each of its kernels. */
  uint32_t (*graph_launch)(int domain, uint32_t cbid, uint32_t exec, const struct gpu_kernel *kernels, uint32_t count);
  uint32_t (*call)(int domain, uint32_t cbid); /* any other call */
  /* MEMCPY, MEMSET, SYNCHRONIZATION, MEMORY2, or a kind that the library does not know. */
  void (*activity)(int kind, uint32_t stream, uint64_t bytes, uint64_t start, uint64_t end);
  uint64_t (*now)(void);
  void (*synchronize)(void); /* returns when all kernels so far have ended */
  void (*advance)(int64_t ns); /* moves CUPTI's clock */
  /* So far: records of a kind in buffers that came back and can be read; buffers that came back and cannot be read to
   * their end; buffers that have not come back; ids on this thread's CUSTOM2 stack. */
  uint64_t (*delivered)(int kind);
  uint64_t (*unreadable)(void);
  uint64_t (*outstanding)(void);
  uint64_t (*depth)(void);
  void (*memory)(const struct gpu_memory *memory);
};

#endif
