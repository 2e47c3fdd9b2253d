/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "gpu.h"
#include "label.h"

void kernel_relax(struct kernel *k, unsigned *spins)
{
  enum { SPIN = 200, DOZE = 2000 }; /* a processor has few cores: who waits long sleeps */
  const unsigned n = ++*spins;
  if (n % 64 == 0 && k->communicator->abort_flag && *k->communicator->abort_flag) {
    k->aborted = 1;
  } else if (n < SPIN) {
    sched_yield();
  } else {
    nanosleep(&(struct timespec){0, n < DOZE ? 20000 : 100000}, NULL);
  }
}

void *kernel_scratch(struct kernel *k, size_t bytes)
{
  if (bytes > k->scratch_bytes) {
    free(k->scratch);
    k->scratch_bytes = bytes + 4096;
    k->scratch = malloc(k->scratch_bytes);
  }
  return k->scratch;
}

static void __attribute__((noreturn)) too_many(const struct kernel *k)
{
  fprintf(stderr, "realnccl: a batch of more works of type %d than fit\n", (int)k->type);
  abort();
}

static void take_works(struct kernel *k, const struct batch *b)
{
  const struct arguments *a = &k->arguments;
  const size_t bytes = work_bytes((enum work_type)b->type);
  for (unsigned i = 0; i < 64; i++) {
    if (!(b->works >> i & 1)) continue;
    if ((size_t)(k->works + 1) * bytes > sizeof k->storage) too_many(k);
    for (size_t o = 0; o < bytes; o += 16) { /* the buffer is a ring, in pieces of 16 bytes */
      const size_t at = b->base + i * bytes + o;
      memcpy(k->storage + (size_t)k->works * bytes + o, a->in_block ? a->block + at : a->buffer + (at & a->buffer_mask), 16);
    }
    k->works++;
  }
}

static void take_batch(struct kernel *k, int index)
{
  const struct batch *batches = k->arguments.batches;
  k->works = 0;
  for (const struct batch *b;; index += b->next_jump) {
    b = &batches[index];
    k->type = (enum work_type)b->type;
    k->function = b->function;
    k->next = b->next_jump ? index + b->next_jump : -1;
    take_works(k, b);
    if (!b->next_extends) return;
  }
}

static const struct function *emulated(unsigned number)
{
  const struct function *f = function(number);
  if (f && (f->algorithm == RING || f->algorithm == TREE || f->algorithm == NO_ALGORITHM)) return f;
  fprintf(stderr, "realnccl: kernel %s (%u) is not emulated: set NCCL_ALGO to Ring,Tree\n",
          f ? f->name : "of an unknown function", number);
  abort();
}

static void run_batch(struct kernel *k)
{
  const struct function *f = emulated(k->function);
  const uint64_t first = k->counter;
  k->parts = f->collective != SEND_RECV;
  stamp_begin(k);
  if (f->collective == SEND_RECV) {
    run_p2p(k);
  } else if (f->collective == ALL_GATHER_V) {
    run_broadcasts(k, f);
  } else {
    for (int i = 0; i < k->works && !k->aborted; i++) {
      const struct work_collective w = work_collective(k->storage + (size_t)i * work_bytes(k->type));
      run_collective(k, f, &w, i == k->works - 1);
    }
  }
  stamp_end(k);
  truth_batch(k, f, k->parts > 1 ? raw_ns() : k->done, first);
}

static void *run_channel(void *argument)
{
  struct kernel *k = argument;
  for (int next = k->next; next >= 0 && !k->aborted; next = k->next) {
    take_batch(k, next);
    run_batch(k);
  }
  *k->channel.work_counter = k->counter;
  free(k->scratch);
  free(k);
  return NULL;
}

static struct kernel *channel_begin(int device, const struct arguments *a, unsigned launch, const char *label, int number,
                                    int batch, long slice_delay_us)
{
  struct kernel *k = calloc(1, sizeof *k);
  k->label = label;
  k->launch = launch;
  k->device = device;
  k->number = number;
  k->arguments = *a;
  k->communicator = a->communicator;
  k->channel = channel(a->communicator, number);
  k->counter = *k->channel.work_counter;
  k->slice_delay_us = slice_delay_us;
  k->next = batch;
  return k;
}

const char *gpu_label(const void *arguments) { return label_of(*(const void *const *)arguments); /* it comes first */ }

/* Which NCCL it is, is looked up with the first launch. */
static const void *first_kernel;

static void find_library(void)
{
  functions_find(first_kernel);
  layout_find(first_kernel);
}

void gpu_run(int device, const void *kernel, const void *block, unsigned grid, const char *label)
{
  enum { STACK = 256 << 10 };
  static pthread_once_t found = PTHREAD_ONCE_INIT;
  pthread_t threads[CHANNELS];
  pthread_attr_t attributes;
  unsigned n = 0;
  const void *none = NULL;
  __atomic_compare_exchange_n(&first_kernel, &none, kernel, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  pthread_once(&found, find_library);
  const struct arguments a = arguments_of(block);
  layout_check(&a);
  static unsigned launches;
  const unsigned launch = __atomic_fetch_add(&launches, 1, __ATOMIC_RELAXED);
  const long slice_delay_us = disturb(device);
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK);
  for (int c = 0; c < CHANNELS; c++) {
    if (!has_channel(&a, c)) continue;
    pthread_create(&threads[n], &attributes, run_channel, channel_begin(device, &a, launch, label, c, (int)n, slice_delay_us));
    n++;
  }
  pthread_attr_destroy(&attributes);
  if (n != grid) fprintf(stderr, "realnccl: a grid of %u blocks, but %u channels\n", grid, n);
  for (unsigned i = 0; i < n; i++) pthread_join(threads[i], NULL);
}
