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

/* Of a collective: 1 when it begins to move data, 2 when it has. */
static void stamp_within(struct kernel *k, int phase)
{
  if (k->type != WORK_COLLECTIVE && k->type != WORK_REGISTERED) return;
  for (int i = 0; i < k->works; i++)
    if (work_is_stamped(k->type, k->storage, i)) stamp_phase(k, i, phase);
}

/* When the first and the last were taken; whoever takes them may be kept from running before and after. 0: none was. */
struct taken {
  uint64_t first, last;
};

static struct taken stamp(struct kernel *k, struct stamps *ring, int phase)
{
  struct taken taken = {0, 0};
  for (int i = 0; i < k->works; i++) {
    const uint64_t counter = k->counter + (uint64_t)i + 1;
    if (!work_is_stamped(k->type, k->storage, i)) continue;
    const uint64_t time = now(k);
    taken.last = raw_ns();
    if (!taken.first) taken.first = taken.last;
    __atomic_store_n(&ring->slot[counter % STAMPS].time, time, __ATOMIC_RELAXED);
    WRITE(&ring->slot[counter % STAMPS].counter, counter);
    stamp_phase(k, i, phase);
  }
  return taken;
}

void stamp_begin(struct kernel *k)
{
  const uint64_t begun = raw_ns();
  const struct taken taken = stamp(k, &k->communicator->started[k->number], 0);
  k->begun = taken.first ? taken.first : begun;
  k->done = 0;
  stamp_within(k, 1);
}

static void stamp_done(struct kernel *k)
{
  if (k->done) return;
  stamp_within(k, 2);
  const struct taken taken = stamp(k, &k->communicator->completed[k->number], PHASE_STAMPS - 1);
  k->done = taken.last ? taken.last : raw_ns();
}

void stamp_part(struct kernel *k)
{
  if (k->next < 0) stamp_done(k); /* else all threads meet first */
}

void stamp_end(struct kernel *k)
{
  stamp_done(k);
  k->counter += (uint64_t)k->works;
}
