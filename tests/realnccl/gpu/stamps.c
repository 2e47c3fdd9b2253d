/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels write times into rings that the host's profiler thread polls, one entry per work that asks for it.
 */
#include "gpu.h"
#include "kernel.h"

static void stamp(struct kernel *k, struct stamps *ring)
{
  for (int i = 0; i < k->works; i++) {
    const uint64_t counter = k->counter + (uint64_t)i + 1;
    if (!work_is_stamped(k->type, k->storage, i)) continue;
    __atomic_store_n(&ring->slot[counter % STAMPS].time, gpu_clock(k->device), __ATOMIC_RELAXED);
    WRITE(&ring->slot[counter % STAMPS].counter, counter);
  }
}

void stamp_begin(struct kernel *k)
{
  stamp(k, &k->communicator->started[k->number]);
}

void stamp_end(struct kernel *k)
{
  stamp(k, &k->communicator->completed[k->number]);
  k->counter += (uint64_t)k->works;
}
