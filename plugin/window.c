/* SPDX-License-Identifier: Apache-2.0 */
#include "window.h"

#include "clock.h"
#include "measurement.h"
#include "ring.h"

#define BIT(type) (1u << NCCLOTF2_##type)

static bool inside(struct ncclotf2_comm *comm, uint64_t ordinal) {
  return ordinal >= __atomic_load_n(&comm->first, __ATOMIC_RELAXED) &&
         ordinal < __atomic_load_n(&comm->last, __ATOMIC_RELAXED) && ncclotf2_measurement_records();
}

/* ncclotf2_comm.recording */
enum { CALLS = 1, REPLAYS = 2 };

/* Records where recording of a communicator rank pauses or resumes. */
static void record_edge(uint8_t *base, uint32_t index, struct ncclotf2_comm *comm, uint64_t ordinal, bool replay, bool now) {
  const uint32_t before = __atomic_load_n(&comm->recording, __ATOMIC_RELAXED), bit = replay ? REPLAYS : CALLS;
  if (((before & bit) != 0) == now) return;
  const uint64_t ticks = ncclotf2_ticks();
  unsigned loss;
  struct ncclotf2_record *at = ncclotf2_reserve(base, sizeof *at, NCCLOTF2_CLASS_STOP, ticks, &loss);
  if (!at) return; /* the next call tries again */
  *at = (struct ncclotf2_record){.ticks = ticks,
                                 .kind = NCCLOTF2_RECORD_WINDOW_EDGE,
                                 .units = 1,
                                 .flags = (now ? NCCLOTF2_EDGE_INSIDE : 0) | (replay ? NCCLOTF2_EDGE_REPLAY : 0),
                                 .aux = index,
                                 .arg = ordinal};
  ncclotf2_commit(base, sizeof *at);
  ncclotf2_ticks_recorded(ticks);
  __atomic_fetch_xor(&comm->recording, bit, __ATOMIC_RELAXED); /* replays run on another thread */
}

/* ncclotf2_comm.fresh; a communicator's calls do not overlap. */
enum { FRESH = 1, CAPTURED = 2 };

static void set(uint32_t *bits, uint32_t bit, bool on) {
  uint32_t old = __atomic_load_n(bits, __ATOMIC_RELAXED);
  __atomic_store_n(bits, on ? old | bit : old & ~bit, __ATOMIC_RELAXED);
}

/* An operation that brings the counters forward. */
static bool counted(uint8_t *base, const struct ncclotf2_call *call, struct ncclotf2_comm *comm) {
  const bool now = inside(comm, call->ordinal);
  record_edge(base, call->comm, comm, call->ordinal, call->parent & NCCLOTF2_CAPTURED_BIT, now);
  if (now) set(&comm->fresh, FRESH, true);
  return now;
}

/* Where the communicator stands: at the next call, */
static bool standing(struct ncclotf2_comm *comm) {
  const uint64_t collectives = __atomic_load_n(&comm->collectives, __ATOMIC_RELAXED);
  return inside(comm, collectives ? collectives : __atomic_load_n(&comm->messages, __ATOMIC_RELAXED));
}

/* and at the next operation of a replayed graph, if it has captured any. */
static bool replaying(struct ncclotf2_comm *comm) {
  if (!(__atomic_load_n(&comm->fresh, __ATOMIC_RELAXED) & CAPTURED)) return false;
  const uint64_t collectives = __atomic_load_n(&comm->replayed, __ATOMIC_RELAXED);
  return inside(comm, collectives ? collectives : __atomic_load_n(&comm->replayed_messages, __ATOMIC_RELAXED));
}

/* A plan has no parent, and what is in it comes after it: it is recorded if calls were since the last
 * one, or if it may be a replay's. One too many is empty and is not shown. */
static bool plan(struct ncclotf2_comm *comm) {
  if (__atomic_load_n(&comm->fresh, __ATOMIC_RELAXED) & FRESH) {
    if (!standing(comm)) set(&comm->fresh, FRESH, false);
    return true;
  }
  return replaying(comm);
}

bool ncclotf2_window_admits(uint8_t *base, const struct ncclotf2_call *call) {
  if (call->comm == NCCLOTF2_NONE) return call->parent != 0; /* another process has decided */
  struct ncclotf2_comm *comm = ncclotf2_comm_at(base, call->comm);
  switch (call->bit) {
    case BIT(COLL_API):
    case BIT(P2P_API):
      if (!call->captured) return counted(base, call, comm);
      set(&comm->fresh, CAPTURED, true);
      return true; /* its replays decide for themselves */
    case BIT(GROUP_API):
      return call->captured || standing(comm);
    case BIT(GROUP):
      return call->api < 5 ? standing(comm) : plan(comm);
    case BIT(COLL):
    case BIT(P2P):
      if (call->api < 5 || call->parent & NCCLOTF2_CAPTURED_BIT) return counted(base, call, comm);
      return call->parent != 0;
    case BIT(PROXY_CTRL):
      return (__atomic_load_n(&comm->recording, __ATOMIC_RELAXED) &
              (__atomic_load_n(&comm->fresh, __ATOMIC_RELAXED) & CAPTURED ? CALLS | REPLAYS : CALLS)) != 0;
    default:
      return call->parent != 0;
  }
}
