/* SPDX-License-Identifier: Apache-2.0
 *
 * A libcupti without a GPU. It exports the functions of CUPTI's activity API that a client of one subscriber needs, with
 * the behaviour of the releases from CUDA 11.8 to 13.4, and hooks by which a program plays the calls that the driver
 * would trace. Everything is global to the process, as in the real one. Two things are stricter than there: what would
 * be a deadlock or a crash in some release ends the process with a line on stderr, and so does a buffer that is not
 * aligned or handed out twice.
 *
 * Set by the environment when it is loaded:
 *
 *   FAKECUPTI_VERSION=N         what cuptiGetVersion says, and which records there are (default 22, CUDA 12.4)
 *   FAKECUPTI_NO_DRIVER=1       as on a machine without a GPU
 *   FAKECUPTI_BUSY=1            another client has subscribed
 *   FAKECUPTI_CLOCK=host        stamps are on the clock that the program exports as ncclotf2_host_clock
 *   FAKECUPTI_FIRST=N           the first correlation id
 *   FAKECUPTI_WORKER=1          full buffers are given back by a thread; else by the launch that filled them
 *   FAKECUPTI_SHUFFLE=1         kernel records have buffers of their own, and buffers come back newest first
 *   FAKECUPTI_SWIFT=1           external ids are pushed and popped without a system call, and so in forked children, too
 *   FAKECUPTI_TRUTH=FILE        at the end: a JSON line per kernel, and one of counts (see truth.c); %p is the pid
 *   FAKECUPTI_FAULTS=LIST       of NAME or NAME:N, separated by commas:
 *     zero:N        every N-th kernel has no times      reversed:N  … ends before it starts
 *     early:N       … starts before its launch          drop:N      … is dropped, and counted
 *     unknown:N     every N-th buffer has a record of an unknown kind in its middle
 *     truncated:N   every N-th buffer ends within a record
 *     stranger      each flush gives back a buffer that nobody handed out
 *     clock:N       from the N-th flush on another client's clock is in force, 10^14 ns ahead
 *     slow:MS       a forced flush takes that long       slower:MS   so does each
 *     late:MS       a buffer comes back only so long after the client has unsubscribed
 *     enable:KIND   this kind is refused, with 35        flush       flushes fail, with 999
 *     subscribe:N   subscriptions are refused, with N    callbacks:N  … the registration of callbacks is
 */
#ifndef FAKECUPTI_H
#define FAKECUPTI_H

#include <stdint.h>

/* A kernel to be. Times are ns on CUPTI's clock (fakecupti_now); start 0: `end` is how long it
 * takes from now on. */
struct fakecupti_kernel {
  uint32_t device, stream;
  const char *name;
  uint64_t start, end;
  uint64_t event, handle; /* for the truth file: what launches it, as the program and as the profiler call it; else 0 */
};

/* Memory that is allocated (operation 1) or released (2); `kind` as CUPTI numbers them. */
struct fakecupti_memory {
  uint32_t operation, kind;
  uint64_t address, bytes;
  uint64_t time; /* ns on CUPTI's clock */
};

struct fakecupti_hooks {
  /* A call that launches a kernel, on this thread: of the driver (domain 1) or of the runtime (2), within which a call of
   * the driver follows. Returns the correlation id. Between capture_begin and capture_end of this thread it makes a node
   * of a graph instead, and no kernel. */
  uint32_t (*launch)(int domain, uint32_t cbid, const struct fakecupti_kernel *kernel);
  void (*capture_begin)(void);
  uint32_t (*capture_end)(void); /* a graph */
  uint32_t (*instantiate)(uint32_t graph); /* an executable graph, whose nodes have ids of their own */
  /* Launches an executable graph; `times`: start and end of each of its kernels. */
  uint32_t (*graph_launch)(int domain, uint32_t cbid, uint32_t exec, const struct fakecupti_kernel *kernels, uint32_t count);
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
  void (*memory)(const struct fakecupti_memory *memory);
};

/* Exported as `fakecupti`. */
extern const struct fakecupti_hooks fakecupti;

#endif
