/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL's callbacks as records. One decoder serves all versions: from v4 on the members that versions
 * share lie at the same offsets (asserted in abi_check.c), so each is read as the newest, and never
 * beyond what it has; vtable_v1.c … vtable_v3.c bring what differs into that form.
 *
 * Handles, contexts, buffers and streams are values and never dereferenced. What is dereferenced:
 * the descriptor, the state's argument, the names (once per thread and address), and the data of
 * a net plugin whose layout is published.
 */
#ifndef NCCLOTF2_EVENT_H
#define NCCLOTF2_EVENT_H

#include "abi.h"
#include "abi_v7.h"
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

/* startEvent in a forked child: counted, as far as that is possible. */
ncclotf2_result ncclotf2_start_inactive(uint64_t type);

/* startEvent refused for the given enum ncclotf2_loss. */
ncclotf2_result ncclotf2_start_lost(uint8_t *base, unsigned loss, unsigned type);

/* startEvent that is not simply to be recorded: of a type that nobody wants (NCCL starts parents of
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

/* Which chunks a record of a type may go to: when memory runs out, what says least goes first. */
static const uint8_t ncclotf2_class_of[NCCLOTF2_TYPES] = {
    [NCCLOTF2_GROUP] = NCCLOTF2_CLASS_OPERATION,
    [NCCLOTF2_COLL] = NCCLOTF2_CLASS_OPERATION,
    [NCCLOTF2_P2P] = NCCLOTF2_CLASS_OPERATION,
    [NCCLOTF2_PROXY_OP] = NCCLOTF2_CLASS_CHANNEL,
    [NCCLOTF2_PROXY_STEP] = NCCLOTF2_CLASS_STEP,
    [NCCLOTF2_PROXY_CTRL] = NCCLOTF2_CLASS_CONTROL,
    [NCCLOTF2_KERNEL_CH] = NCCLOTF2_CLASS_CHANNEL,
    [NCCLOTF2_NET_PLUGIN] = NCCLOTF2_CLASS_STEP,
    [NCCLOTF2_GROUP_API] = NCCLOTF2_CLASS_OPERATION,
    [NCCLOTF2_COLL_API] = NCCLOTF2_CLASS_OPERATION,
    [NCCLOTF2_P2P_API] = NCCLOTF2_CLASS_OPERATION,
    [NCCLOTF2_KERNEL_LAUNCH] = NCCLOTF2_CLASS_OPERATION,
    [NCCLOTF2_CE_COLL] = NCCLOTF2_CLASS_OPERATION,
    [NCCLOTF2_CE_SYNC] = NCCLOTF2_CLASS_CHANNEL,
    [NCCLOTF2_CE_BATCH] = NCCLOTF2_CLASS_CHANNEL,
    [NCCLOTF2_KERNEL_PHASE] = NCCLOTF2_CLASS_CHANNEL,
};

/* Records by type: their size in bytes. */
static const uint8_t ncclotf2_start_bytes[NCCLOTF2_TYPES] = {
    [NCCLOTF2_GROUP] = sizeof(struct ncclotf2_record),
    [NCCLOTF2_COLL] = sizeof(struct ncclotf2_coll),
    [NCCLOTF2_P2P] = sizeof(struct ncclotf2_p2p),
    [NCCLOTF2_PROXY_OP] = sizeof(struct ncclotf2_proxy_op),
    [NCCLOTF2_PROXY_STEP] = sizeof(struct ncclotf2_proxy_step),
    [NCCLOTF2_PROXY_CTRL] = sizeof(struct ncclotf2_record),
    [NCCLOTF2_KERNEL_CH] = sizeof(struct ncclotf2_kernel_ch),
    [NCCLOTF2_NET_PLUGIN] = sizeof(struct ncclotf2_net_plugin),
    [NCCLOTF2_GROUP_API] = sizeof(struct ncclotf2_group_api),
    [NCCLOTF2_COLL_API] = sizeof(struct ncclotf2_coll_api),
    [NCCLOTF2_P2P_API] = sizeof(struct ncclotf2_coll_api),
    [NCCLOTF2_KERNEL_LAUNCH] = sizeof(struct ncclotf2_kernel_launch),
    [NCCLOTF2_CE_COLL] = sizeof(struct ncclotf2_ce_coll),
    [NCCLOTF2_CE_SYNC] = sizeof(struct ncclotf2_ce_sync),
    [NCCLOTF2_CE_BATCH] = sizeof(struct ncclotf2_ce_batch),
    [NCCLOTF2_KERNEL_PHASE] = sizeof(struct ncclotf2_kernel_phase),
};

static inline void ncclotf2_fill_net(struct ncclotf2_net_plugin *record, int64_t id, const void *data) {
  record->data = (uint64_t)(uintptr_t)data;
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

/* Writes the whole record, padding too: chunks are used again and keep their old bytes. `rank` is
 * taken only where NCCL sets it; members that the version lacks are not read. */
static inline __attribute__((always_inline)) void ncclotf2_fill(void *at, struct ncclotf2_record head, void *context,
                                                                const struct ncclotf2_descr_v7 *d, unsigned version) {
  struct ncclotf2_ring *ring = ncclotf2_ring;
  switch (head.type) {
    case NCCLOTF2_GROUP:
    case NCCLOTF2_PROXY_CTRL:
      *(struct ncclotf2_record *)at = head;
      break;
    case NCCLOTF2_GROUP_API:
      head.flags = d->groupApi.graphCaptured ? NCCLOTF2_FLAG_GRAPH : 0;
      *(struct ncclotf2_group_api *)at =
          (struct ncclotf2_group_api){.head = head, .group_depth = d->groupApi.groupDepth};
      break;
    case NCCLOTF2_COLL_API:
      head.flags = d->collApi.graphCaptured ? NCCLOTF2_FLAG_GRAPH : 0;
      *(struct ncclotf2_coll_api *)at = (struct ncclotf2_coll_api){
          .head = head,
          .count = d->collApi.count,
          .stream = ncclotf2_value(d->collApi.stream),
          .func = ncclotf2_intern(ring, d->collApi.func),
          .datatype = ncclotf2_intern(ring, d->collApi.datatype),
          .root = d->collApi.root,
          .user_tag = version >= 7 ? d->collApi.userTag : 0};
      break;
    case NCCLOTF2_P2P_API:
      head.flags = d->p2pApi.graphCaptured ? NCCLOTF2_FLAG_GRAPH : 0;
      *(struct ncclotf2_coll_api *)at = (struct ncclotf2_coll_api){
          .head = head,
          .count = d->p2pApi.count,
          .stream = ncclotf2_value(d->p2pApi.stream),
          .func = ncclotf2_intern(ring, d->p2pApi.func),
          .datatype = ncclotf2_intern(ring, d->p2pApi.datatype),
          .root = -1,
          .user_tag = version >= 7 ? d->p2pApi.userTag : 0};
      break;
    case NCCLOTF2_KERNEL_LAUNCH:
      *(struct ncclotf2_kernel_launch *)at =
          (struct ncclotf2_kernel_launch){.head = head, .stream = ncclotf2_value(d->kernelLaunch.stream)};
      if (__builtin_expect(__atomic_load_n(&ncclotf2_fast.cupti, __ATOMIC_ACQUIRE), 0)) ncclotf2_cupti_launch(head.handle);
      break;
    case NCCLOTF2_COLL:
      head.flags = version >= 7 && d->coll.isSymColl ? NCCLOTF2_FLAG_SYM : 0;
      /* Versions 1 to 3 tell the most channels that it may use. */
      if (version <= 3) head.flags = NCCLOTF2_FLAG_NO_CHANNELS;
      *(struct ncclotf2_coll *)at = (struct ncclotf2_coll){
          .head = head,
          .seq = d->coll.seqNumber,
          .count = d->coll.count,
          .send_buff = ncclotf2_value(d->coll.sendBuff),
          .recv_buff = ncclotf2_value(d->coll.recvBuff),
          .parent_group = version >= 5 ? ncclotf2_value(d->coll.parentGroup) : head.arg,
          .user_tag = version >= 7 ? d->coll.userTag : 0,
          .func = ncclotf2_intern(ring, d->coll.func),
          .datatype = ncclotf2_intern(ring, d->coll.datatype),
          .algo = ncclotf2_intern(ring, d->coll.algo),
          .proto = ncclotf2_intern(ring, d->coll.proto),
          .kernel_variant = version >= 7 ? ncclotf2_intern(ring, d->coll.kernelVariant) : 0,
          .root = d->coll.root,
          .rank = d->rank,
          .nchannels = d->coll.nChannels,
          .nwarps = d->coll.nWarps};
      break;
    case NCCLOTF2_P2P:
      /* NCCL 2.28 and later leave the number out when they adapt a v4 plugin; v1 … v3 have none. */
      head.flags = version <= 4 ? NCCLOTF2_FLAG_NO_CHANNELS : 0;
      *(struct ncclotf2_p2p *)at = (struct ncclotf2_p2p){
          .head = head,
          .count = d->p2p.count,
          .buff = ncclotf2_value(d->p2p.buff),
          .parent_group = version >= 5 ? ncclotf2_value(d->p2p.parentGroup) : head.arg,
          .user_tag = version >= 7 ? d->p2p.userTag : 0,
          .func = ncclotf2_intern(ring, d->p2p.func),
          .datatype = ncclotf2_intern(ring, d->p2p.datatype),
          .peer = d->p2p.peer,
          .rank = d->rank,
          .nchannels = version >= 5 ? d->p2p.nChannels : 0};
      break;
    case NCCLOTF2_PROXY_OP:
      head.flags = d->proxyOp.isSend ? NCCLOTF2_FLAG_SEND : 0;
      *(struct ncclotf2_proxy_op *)at = (struct ncclotf2_proxy_op){
          .head = head,
          .context = ncclotf2_value(context),
          .pid = d->proxyOp.pid,
          .peer = d->proxyOp.peer,
          .nsteps = d->proxyOp.nSteps,
          .chunk_size = d->proxyOp.chunkSize,
          .rank = d->rank,
          .channel = d->proxyOp.channelId};
      break;
    case NCCLOTF2_PROXY_STEP:
      *(struct ncclotf2_proxy_step *)at = (struct ncclotf2_proxy_step){
          .head = head, .context = ncclotf2_value(context), .step = d->proxyStep.step, .rank = d->rank};
      break;
    case NCCLOTF2_KERNEL_CH:
      *(struct ncclotf2_kernel_ch *)at = (struct ncclotf2_kernel_ch){
          .head = head, .ptimer = version >= 4 ? d->kernelCh.pTimer : 0, .channel = d->kernelCh.channelId};
      break;
    case NCCLOTF2_NET_PLUGIN: {
      struct ncclotf2_net_plugin record = {
          .head = head, .id = d->netPlugin.id, .context = ncclotf2_value(context), .rank = d->rank};
      ncclotf2_fill_net(&record, d->netPlugin.id, d->netPlugin.data);
      *(struct ncclotf2_net_plugin *)at = record;
      break;
    }
    case NCCLOTF2_CE_COLL:
      head.flags = d->ceColl.intraBatchSync ? NCCLOTF2_FLAG_COMPLETE : 0;
      *(struct ncclotf2_ce_coll *)at = (struct ncclotf2_ce_coll){
          .head = head,
          .seq = d->ceColl.seqNumber,
          .count = d->ceColl.count,
          .send_buff = ncclotf2_value(d->ceColl.sendBuff),
          .recv_buff = ncclotf2_value(d->ceColl.recvBuff),
          .stream = ncclotf2_value(d->ceColl.stream),
          .user_tag = version >= 7 ? d->ceColl.userTag : 0,
          .func = ncclotf2_intern(ring, d->ceColl.func),
          .datatype = ncclotf2_intern(ring, d->ceColl.datatype),
          .sync_strategy = ncclotf2_intern(ring, d->ceColl.syncStrategy),
          .batch_size = d->ceColl.batchSize,
          .num_batches = d->ceColl.numBatches,
          .ce_seq = d->ceColl.ceSeqNum,
          .root = d->ceColl.root,
          .rank = d->rank};
      break;
    case NCCLOTF2_CE_SYNC:
      head.flags = d->ceCollSync.isComplete ? NCCLOTF2_FLAG_COMPLETE : 0;
      *(struct ncclotf2_ce_sync *)at =
          (struct ncclotf2_ce_sync){.head = head, .nranks = d->ceCollSync.nRanks, .rank = d->rank};
      break;
    case NCCLOTF2_CE_BATCH:
      head.flags = d->ceCollBatch.useIntraSync ? NCCLOTF2_FLAG_COMPLETE : 0;
      *(struct ncclotf2_ce_batch *)at = (struct ncclotf2_ce_batch){
          .head = head, .bytes = d->ceCollBatch.totalBytes, .num_ops = d->ceCollBatch.numOps, .rank = d->rank};
      break;
    case NCCLOTF2_KERNEL_PHASE:
      *(struct ncclotf2_kernel_phase *)at = (struct ncclotf2_kernel_phase){
          .head = head,
          .ptimer = d->kernelPhase.pTimer,
          .name = ncclotf2_intern(ring, d->kernelPhase.phaseName),
          .channel = d->kernelPhase.channelId,
          .phase = d->kernelPhase.phaseId};
      break;
  }
}

/* Types that are calls of the application's. */
#define NCCLOTF2_CALLS (1u << NCCLOTF2_GROUP_API | 1u << NCCLOTF2_COLL_API | 1u << NCCLOTF2_P2P_API)

/* What comes before an event in the order of parents. */
static inline bool ncclotf2_needs_parent(unsigned type) {
  return (1u << type & (1u << NCCLOTF2_PROXY_STEP | 1u << NCCLOTF2_NET_PLUGIN | 1u << NCCLOTF2_KERNEL_PHASE)) != 0;
}

/* startEvent. *eHandle is written on every path: NCCL passes uninitialised and stale slots, and uses
 * what is in them afterwards. */
static inline __attribute__((always_inline)) ncclotf2_result
ncclotf2_start(void *context, void **eHandle, const struct ncclotf2_descr_v7 *d, struct ncclotf2_api api) {
  uint8_t *base = __atomic_load_n(&ncclotf2_fast.base, __ATOMIC_ACQUIRE);
  /* Before v5 the type is one byte, and nobody has set those behind it. */
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
    return ncclotf2_start_lost(base, NCCLOTF2_LOSS_COMM, type);
  if (__builtin_expect(!d->parentObj && ncclotf2_needs_parent(type), 0) && ncclotf2_parent_refused(header, type))
    return ncclotf2_start_lost(base, NCCLOTF2_LOSS_MEMORY, type);

  const unsigned bytes = ncclotf2_start_bytes[type];
  unsigned loss;
  const unsigned extra = __builtin_expect(before != 0, 0) ? sizeof(struct ncclotf2_record) : 0;
  uint8_t *at = ncclotf2_reserve(base, bytes + extra, ncclotf2_class_of[type], ticks, &loss);
  if (__builtin_expect(!at, 0)) return ncclotf2_start_lost(base, loss, type);
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
