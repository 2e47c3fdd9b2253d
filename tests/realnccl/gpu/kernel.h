/* SPDX-License-Identifier: Apache-2.0
 *
 * One channel's part of one launch: what a thread block is to a kernel, one thread is here.
 */
#ifndef REALNCCL_KERNEL_H
#define REALNCCL_KERNEL_H

#include "layout.h"

#define READ(place) __atomic_load_n((place), __ATOMIC_ACQUIRE)
#define WRITE(place, value) __atomic_store_n((place), (value), __ATOMIC_RELEASE)

static inline size_t least(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t up(size_t n, size_t to) { return (n + to - 1) / to * to; }
static inline size_t parts(size_t n, size_t of) { return (n + of - 1) / of; }

struct kernel {
  int device, number; /* of the channel */
  unsigned launch;    /* number of the launch in this process */
  const char *label;  /* of the communicator */
  struct arguments arguments;
  struct communicator *communicator;
  struct channel channel;
  uint64_t counter; /* works that this channel has seen */
  int aborted;
  long slice_delay_us;
  char *scratch;
  size_t scratch_bytes;
  /* The batch at hand. */
  enum work_type type;
  unsigned function;
  int works, next; /* next: index of the batch after this, -1: none */
  int parts;            /* into which its threads are divided: these wait for each other only where another batch follows */
  uint64_t begun, done; /* when (CLOCK_MONOTONIC_RAW) it began, and when thread 0 had done its part; 0: it has not */
  char storage[16384] __attribute__((aligned(16)));
};

/* Waits a little; sets aborted where the communicator was. spins counts the calls of one wait. */
void kernel_relax(struct kernel *k, unsigned *spins);

#define WAIT_WHILE(k, condition) \
  for (unsigned spins_ = 0; !(k)->aborted && (condition);) kernel_relax((k), &spins_)

/* Memory of the thread's own; the call before this one's is given up. */
void *kernel_scratch(struct kernel *k, size_t bytes);

/* last: of the batch's works. */
void run_collective(struct kernel *k, const struct function *f, const struct work_collective *w, int last);
void run_broadcasts(struct kernel *k, const struct function *f);
void run_p2p(struct kernel *k);

/* What the library asked to be stamped of the batch at hand. Thread 0 stamps: before the batch; when it has done its own part of
 * the last batch, and after the whole of any other. The counter moves on with the batch's end. */
void stamp_begin(struct kernel *k);
void stamp_part(struct kernel *k);
void stamp_end(struct kernel *k);

/* Writes down what a batch did, and when it really ended (CLOCK_MONOTONIC_RAW, ns). first: the counter before it. */
void truth_batch(const struct kernel *k, const struct function *f, uint64_t end, uint64_t first);

/* Holds a launch up, or says how long its slices are to take more, where REALNCCL_SLOW wants it (us). */
long disturb(int device);

#endif
