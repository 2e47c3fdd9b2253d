/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels write times into rings that the host's profiler thread polls, one entry per work that asks for it.
 */
#include "clock.h"
#include "gpu.h"
#include "kernel.h"

static uint64_t now(const struct kernel *k) { return gpu_clock(k->device) / stamp_unit_ns(); }

/* From 2.31 on also into a ring of phases, without whose counter the host takes no work for completed. */
static void stamp_phase(struct kernel *k, int i, int phase)
{
  struct phases *ring = phases_of(k->communicator, k->number);
  const uint64_t counter = k->counter + (uint64_t)i + 1;
  if (!ring) return;
  ring->slot[counter % STAMPS].time[phase] = now(k);
  if (phase == PHASE_STAMPS - 1) WRITE(&ring->slot[counter % STAMPS].counter, counter);
}

void stamp_within(struct kernel *k, int phase)
{
  for (int i = 0; i < k->works; i++)
    if (work_is_stamped(k->type, k->storage, i)) stamp_phase(k, i, phase);
}

static void stamp(struct kernel *k, struct stamps *ring, int phase)
{
  for (int i = 0; i < k->works; i++) {
    const uint64_t counter = k->counter + (uint64_t)i + 1;
    if (!work_is_stamped(k->type, k->storage, i)) continue;
    const uint64_t time = now(k);
    k->stamped_last = raw_ns(); /* whoever writes it may be kept from running before and after */
    if (!k->stamped_first) k->stamped_first = k->stamped_last;
    __atomic_store_n(&ring->slot[counter % STAMPS].time, time, __ATOMIC_RELAXED);
    WRITE(&ring->slot[counter % STAMPS].counter, counter);
    stamp_phase(k, i, phase);
  }
}

void stamp_begin(struct kernel *k) { stamp(k, &k->communicator->started[k->number], 0); }

void stamp_end(struct kernel *k)
{
  stamp(k, &k->communicator->completed[k->number], PHASE_STAMPS - 1);
  k->counter += (uint64_t)k->works;
}
