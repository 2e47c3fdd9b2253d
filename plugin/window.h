/* SPDX-License-Identifier: Apache-2.0
 *
 * A window selects the operations to record by their ordinals on their communicator. All members of a
 * communicator count in the same way, so they record the same operations without communicating, however
 * far apart in time they are. Events that belong to an operation follow it: NCCL passes the handle of a call
 * to all events that the call causes, and a call that is not recorded has no handle.
 *
 * Two threads never call operations of one communicator at the same time (NCCL forbids it), so its
 * counters need no lock.
 */
#ifndef NCCLOTF2_WINDOW_H
#define NCCLOTF2_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "api_versions.h"
#include "session.h"
#include "shm.h"

/* The members of a startEvent that the decision needs. */
struct ncclotf2_call {
  uint64_t bit;     /* its type; may be an unknown one */
  uint64_t parent;
  uint64_t ordinal; /* of types in NCCLOTF2_COUNTED */
  uint32_t record_mask, comm, known;
  unsigned api;
  bool wanted;   /* its type is to be recorded */
  bool captured; /* by a CUDA graph, now */
};

/* The types that advance a communicator's counters: calls, and operations of replayed graphs; before v5 there
 * are no calls. */
#define NCCLOTF2_COUNTED(version)                                                                            \
  ((version) >= 5 ? 1u << NCCLOTF2_COLL_API | 1u << NCCLOTF2_P2P_API | 1u << NCCLOTF2_COLL | 1u << NCCLOTF2_P2P \
                  : 1u << NCCLOTF2_COLL | 1u << NCCLOTF2_P2P)

static inline __attribute__((always_inline)) bool ncclotf2_is_captured(uint64_t bit, const ncclotf2_descr *d,
                                                                       unsigned version) {
  if (version < 5) return false;
  return (bit == 1u << NCCLOTF2_COLL_API && d->collApi.graphCaptured) ||
         (bit == 1u << NCCLOTF2_P2P_API && d->p2pApi.graphCaptured) ||
         (bit == 1u << NCCLOTF2_GROUP_API && d->groupApi.graphCaptured);
}

static inline uint64_t ncclotf2_next_ordinal(uint64_t *counter) {
  uint64_t ordinal = __atomic_load_n(counter, __ATOMIC_RELAXED);
  __atomic_store_n(counter, ordinal + 1, __ATOMIC_RELAXED);
  return ordinal;
}

/* Counts an event of a counted type and returns its ordinal. */
static inline __attribute__((always_inline)) uint64_t
ncclotf2_count_call(uint8_t *base, uint32_t comm, uint64_t bit, const ncclotf2_descr *d, unsigned version) {
  if (__builtin_expect(comm == NCCLOTF2_NONE, 0)) return 0;
  struct ncclotf2_comm *entry = ncclotf2_comm_at(base, comm);
  const bool collective = (bit & (1u << NCCLOTF2_COLL_API | 1u << NCCLOTF2_COLL)) != 0;
  const bool task = (bit & (1u << NCCLOTF2_COLL | 1u << NCCLOTF2_P2P)) != 0;
  if (version >= 5 && task) { /* was counted as a call, unless it is replayed */
    if (!((uint64_t)(uintptr_t)d->parentObj & NCCLOTF2_CAPTURED_BIT)) return 0;
    if (collective) return ncclotf2_next_ordinal(&entry->replayed);
  } else {
    if (version >= 5 && ncclotf2_is_captured(bit, d, version)) return 0;
    if (collective) return ncclotf2_next_ordinal(&entry->collectives);
  }
  const bool replay = version >= 5 && task;
  const uint64_t message = ncclotf2_next_ordinal(replay ? &entry->replayed_messages : &entry->messages);
  const uint64_t collectives = __atomic_load_n(replay ? &entry->replayed : &entry->collectives, __ATOMIC_RELAXED);
  return collectives ? collectives : message;
}

/* Whether an event of a wanted or unwanted type lies inside its communicator's window; it may write a
 * record of its own, where one begins or ends. */
bool ncclotf2_window_admits(uint8_t *base, const struct ncclotf2_call *call);

#endif
