/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL's callbacks as records. One decoder serves all versions: from v4 on the members that versions
 * share lie at the same offsets (plugin/api says so, and a test of it), so each is read as the newest, and never
 * beyond what it has; vtable_early.inc brings what differs before into that form.
 *
 * Handles, contexts, buffers and streams are values and never dereferenced. What is dereferenced:
 * the descriptor, the state's argument, the names (once per thread and address), and the data of
 * a net plugin whose layout is published.
 */
#ifndef NCCLOTF2_EVENT_H
#define NCCLOTF2_EVENT_H

#include "abi.h"
#include "api_versions.h"
#include "clock.h"
#include "cupti.h"
#include "handle.h"
#include "intern.h"
#include "mask.h"
#include "ring.h"
#include "scorep.h"
#include "session.h"
#include "shm.h"
#include "window.h"

/* What a version is, as the callbacks need it: constants, for the compiler. */
struct ncclotf2_api {
  unsigned version;
  uint32_t known; /* event types */
};

/* stopEvent, the same in all versions; recordEventState of v1 … v3, v4 … v6 and v7. */
ncclotf2_result ncclotf2_stop(void *eHandle);
ncclotf2_result ncclotf2_state_v1(void *eHandle, int eState, union ncclotf2_state_args_v1 *eStateArgs);
ncclotf2_result ncclotf2_state_v4(void *eHandle, int eState, union ncclotf2_state_args *eStateArgs);
ncclotf2_result ncclotf2_state_v7(void *eHandle, int eState, union ncclotf2_state_args *eStateArgs);

/* Counts a startEvent in a forked child, if the memory is still mapped there. */
ncclotf2_result ncclotf2_start_inactive(uint64_t type);

/* Counts a refused startEvent as lost for a reason (enum ncclotf2_loss), and marks the reason as to be reported. */
ncclotf2_result ncclotf2_count_lost_start(uint8_t *base, unsigned loss, unsigned type);

/* startEvent that is not simply to be recorded: of an unwanted type (NCCL starts parents of
 * wanted types unasked), outside the window, or with nothing recorded any more. Returns whether it is
 * to be recorded after all; if not, *eHandle is what NCCL gets. */
bool ncclotf2_start_unusual(uint8_t *base, struct ncclotf2_call call, void **eHandle);

/* Record mode: what *eHandle held before the start of an event whose record follows; `at` has room for
 * both. */
void ncclotf2_record_before(uint8_t *base, void *at, uint64_t handle, uint64_t before, uint64_t ticks);

/* Counts what the callback that began at `ticks` has cost. */
void ncclotf2_measure(uint8_t *base, enum ncclotf2_callback callback, unsigned type, uint64_t ticks);

/* Whether the parent of an event of this type was refused. NCCL (2.28 and later) emits the steps of
 * a ProxyOp that got no handle all the same, and net events of steps; without the op they belong to
 * nothing. A NULL parent means that only if such a parent was ever refused: with its type not
 * recorded, or before the first refusal, it is NCCL's own and the event is recorded. */
bool ncclotf2_parent_refused(const struct ncclotf2_header *header, unsigned type);

/* What a network plugin's own descriptor holds, where its layout is published. */
static inline void ncclotf2_fill_net(struct ncclotf2_net_plugin *record, const ncclotf2_descr *d) {
  const int64_t id = d->netPlugin.id;
  const void *data = d->netPlugin.data;
  if (!data) return;
  if (id == NCCLOTF2_NET_ID_IB && ((const struct ncclotf2_net_ib *)data)->type == 1) {
    const struct ncclotf2_net_ib *ib = data;
    record->length = ib->qp.length;
    record->wr_id = ib->qp.wr_id;
    record->device_or_fd = ib->qp.device;
    record->opcode = ib->qp.opcode;
    record->qp = ib->qp.qpNum;
    record->head.flags = NCCLOTF2_FLAG_KNOWN_NET;
  } else if (id == NCCLOTF2_NET_ID_SOCKET && ((const struct ncclotf2_net_socket *)data)->type == 1) {
    const struct ncclotf2_net_socket *socket = data;
    record->length = socket->sock.length;
    record->device_or_fd = socket->sock.fd;
    record->opcode = socket->sock.op;
    record->head.flags =
        NCCLOTF2_FLAG_KNOWN_NET | (socket->sock.op == NCCLOTF2_SOCKET_SEND ? NCCLOTF2_FLAG_SEND : 0);
  }
}

static inline uint64_t ncclotf2_value(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

/* Its kernel is looked for from here on. */
static inline void ncclotf2_launch_filled(const struct ncclotf2_kernel_launch *record, const ncclotf2_descr *d) {
  (void)d;
  if (__builtin_expect(__atomic_load_n(&ncclotf2_fast.cupti, __ATOMIC_ACQUIRE), 0)) ncclotf2_cupti_launch(record->head.handle);
}

#include "api_fill.h"

/* Types that are calls of the application's. */
#define NCCLOTF2_CALLS (1u << NCCLOTF2_GROUP_API | 1u << NCCLOTF2_COLL_API | 1u << NCCLOTF2_P2P_API)

/* What comes before an event in the order of parents. */
static inline bool ncclotf2_needs_parent(unsigned type) {
  return (1u << type & (1u << NCCLOTF2_PROXY_STEP | 1u << NCCLOTF2_NET_PLUGIN | 1u << NCCLOTF2_KERNEL_PHASE)) != 0;
}

/* startEvent. *eHandle is written on every path: NCCL passes uninitialized and stale slots, and uses
 * what is in them afterwards. */
static inline __attribute__((always_inline)) ncclotf2_result
ncclotf2_start(void *context, void **eHandle, const ncclotf2_descr *d, struct ncclotf2_api api) {
  uint8_t *base = __atomic_load_n(&ncclotf2_fast.base, __ATOMIC_ACQUIRE);
  /* Before v5 the type is one byte, and the bytes after it are not set. */
  const uint64_t bit = api.version <= 4 ? *(const uint8_t *)&d->type : d->type;
  if (__builtin_expect(!base, 0)) {
    *eHandle = NULL;
    return ncclotf2_start_inactive(bit);
  }
  struct ncclotf2_header *header = ncclotf2_header_at(base);
  const uint32_t record_mask = __atomic_load_n(&header->record_mask, __ATOMIC_RELAXED);
  const uint64_t index = ncclotf2_value(context) ^ ncclotf2_fast.context_bits;
  uint32_t comm = NCCLOTF2_NONE; /* a context of another process (PXN) */
  if (__builtin_expect(index < __atomic_load_n(&header->comm_used, __ATOMIC_RELAXED), 1))
    comm = (uint32_t)index;
  const uint64_t ordinal =
      bit & NCCLOTF2_COUNTED(api.version) ? ncclotf2_count_call(base, comm, bit, d, api.version) : 0;

  const uint64_t before = record_mask & NCCLOTF2_RECORD_RAW ? ncclotf2_value(*eHandle) : 0;
  *eHandle = NULL;
  const uint64_t wanted = record_mask & api.known;
  if (__builtin_expect(!(bit & wanted) || (bit & (bit - 1)) ||
                           (record_mask & (NCCLOTF2_RECORD_WINDOW | NCCLOTF2_RECORD_FULL)) ||
                           __atomic_load_n(&ncclotf2_fast.measured, __ATOMIC_RELAXED), 0)) {
    struct ncclotf2_call call = {.bit = bit,
                                 .parent = ncclotf2_value(d->parentObj),
                                 .ordinal = ordinal,
                                 .record_mask = record_mask,
                                 .comm = comm,
                                 .known = api.known,
                                 .api = api.version,
                                 .wanted = (bit & wanted) && !(bit & (bit - 1)),
                                 .captured = ncclotf2_is_captured(bit, d, api.version)};
    if (!ncclotf2_start_unusual(base, call, eHandle)) return NCCLOTF2_SUCCESS;
  }

  if (api.version >= 7 && bit & NCCLOTF2_CALLS) ncclotf2_mask_look(base);
  const uint64_t ticks = ncclotf2_ticks();
  const unsigned type = (unsigned)__builtin_ctzll(bit);
  if (__builtin_expect(comm == NCCLOTF2_NONE && index < NCCLOTF2_CONTEXT_BIT, 0))
    return ncclotf2_count_lost_start(base, NCCLOTF2_LOSS_COMM, type);
  if (__builtin_expect(!d->parentObj && ncclotf2_needs_parent(type), 0) && ncclotf2_parent_refused(header, type))
    return ncclotf2_count_lost_start(base, NCCLOTF2_LOSS_MEMORY, type);

  const unsigned bytes = ncclotf2_start_bytes[type];
  unsigned loss;
  const unsigned extra = __builtin_expect(before != 0, 0) ? sizeof(struct ncclotf2_record) : 0;
  uint8_t *at = ncclotf2_reserve(base, bytes + extra, ncclotf2_class_of[type], ticks, &loss);
  if (__builtin_expect(!at, 0)) return ncclotf2_count_lost_start(base, loss, type);
  const uint64_t handle = ncclotf2_handle(ncclotf2_fast.tag_bits, type, ncclotf2_next_number()) |
                          (ncclotf2_is_captured(bit, d, api.version) ? NCCLOTF2_CAPTURED_BIT : 0);
  if (__builtin_expect(extra, 0)) {
    ncclotf2_record_before(base, at, handle, before, ticks);
    at += extra;
  }
  ncclotf2_fill(at,
                (struct ncclotf2_record){.ticks = ticks,
                                         .kind = NCCLOTF2_RECORD_START,
                                         .type = (uint8_t)type,
                                         .units = (uint8_t)(bytes / NCCLOTF2_UNIT),
                                         .aux = comm,
                                         .handle = handle,
                                         .arg = ncclotf2_value(d->parentObj)},
                context, d, api.version);
  ncclotf2_commit(base, bytes);
  ncclotf2_ticks_recorded(ticks);
  *eHandle = (void *)(uintptr_t)handle;
  if (__builtin_expect(handle % NCCLOTF2_COST_PERIOD == 0, 0))
    ncclotf2_measure(base, NCCLOTF2_CALLBACK_START, type, ticks);
  /* Last: what another tool does with it takes its own time, and the record is safe. */
  if (bit & NCCLOTF2_CALLS && __builtin_expect(__atomic_load_n(&ncclotf2_fast.scorep, __ATOMIC_ACQUIRE), 0))
    ncclotf2_scorep_started(base, (const struct ncclotf2_record *)(const void *)at);
  return NCCLOTF2_SUCCESS;
}

#endif
