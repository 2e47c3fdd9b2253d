/* SPDX-License-Identifier: Apache-2.0
 *
 * Each version of the API with descriptors as its NCCL releases pass them: exactly as long as the version's,
 * at the end of readable memory, and with garbage in all that does not belong to the event: the shims between
 * releases leave it uninitialized.
 */
#include <pthread.h>

#include "../handle.h"
#include "../ring.h"
#include "host.h"
#include "test.h"

#define PARENT 0x7001020304050607ULL
#define GROUP 0x7009080706050403ULL
#define POINTER(value) ((void *)(uintptr_t)(value))

enum {
  RANK = 77,
  PEER = 5,
  CHANNEL = 63,
  CHANNELS = 24,
  WARPS = 16,
  ROOT = 3,
  STEP = 41,
  STEPS = 32,
  CHUNK = 1 << 19,
  PID = 4711,
  DEPTH = 2,
  PHASE = 7
};
#define SEQ (1ULL << 33)
#define COUNT (1ULL << 40)
#define BYTES (1ULL << 35)
#define SEND_BUFF 0x10000000ULL
#define RECV_BUFF 0x20000000ULL
#define STREAM 0x30000000ULL
#define USER_TAG 0xfedcba9876543210ULL
#define TIMER 1700000000000000032ULL
#define COMM_HASH 0x123456789abcdef0ULL
#define NET_DATA 0x50000000ULL /* of an unknown kind: a value */

/* ---- descriptors ---- */

#define SET_PROXY_OP(d)                                                                                        \
  ((d)->proxyOp.pid = PID, (d)->proxyOp.channelId = CHANNEL, (d)->proxyOp.peer = PEER, (d)->proxyOp.nSteps = STEPS, \
   (d)->proxyOp.chunkSize = CHUNK, (d)->proxyOp.isSend = 1)
#define SET_COLL(d)                                                                                                   \
  ((d)->coll.seqNumber = SEQ, (d)->coll.sendBuff = POINTER(SEND_BUFF), (d)->coll.recvBuff = POINTER(RECV_BUFF),       \
   (d)->coll.count = COUNT, (d)->coll.root = ROOT, (d)->coll.nWarps = WARPS)
#define SET_COLL_NAMES(d) \
  ((d)->coll.func = "AllReduce", (d)->coll.datatype = "ncclFloat32", (d)->coll.algo = "RING", (d)->coll.proto = "LL128")
#define SET_P2P(d) ((d)->p2p.buff = POINTER(SEND_BUFF), (d)->p2p.count = COUNT, (d)->p2p.peer = PEER)
#define SET_P2P_NAMES(d) ((d)->p2p.func = "Send", (d)->p2p.datatype = "ncclInt8")
#define SET_OWNER(d, member) ((d)->member.name = "tensor parallel", (d)->member.commHash = COMM_HASH)
#define SET_NET(d) ((d)->netPlugin.id = 0x30001, (d)->netPlugin.data = POINTER(NET_DATA))
#define SET_KERNEL_CH(d) ((d)->kernelCh.channelId = CHANNEL, (d)->kernelCh.pTimer = TIMER)
#define SET_CALLS(d)                                                                                                   \
  case NCCLOTF2_GROUP_API: (d)->groupApi.graphCaptured = 0x80, (d)->groupApi.groupDepth = DEPTH; break;               \
  case NCCLOTF2_COLL_API:                                                                                             \
    (d)->collApi.func = "AllReduce", (d)->collApi.count = COUNT, (d)->collApi.datatype = "ncclFloat32",              \
    (d)->collApi.root = ROOT, (d)->collApi.stream = POINTER(STREAM), (d)->collApi.graphCaptured = 0;                 \
    break;                                                                                                            \
  case NCCLOTF2_P2P_API:                                                                                              \
    (d)->p2pApi.func = "Send", (d)->p2pApi.count = COUNT, (d)->p2pApi.datatype = "ncclInt8",                         \
    (d)->p2pApi.stream = POINTER(STREAM), (d)->p2pApi.graphCaptured = 0x40;                                          \
    break;                                                                                                            \
  case NCCLOTF2_KERNEL_LAUNCH: (d)->kernelLaunch.stream = POINTER(STREAM); break
#define SET_COPY_ENGINE(d)                                                                                            \
  case NCCLOTF2_CE_COLL:                                                                                              \
    (d)->ceColl.seqNumber = SEQ, (d)->ceColl.func = "AllReduce", (d)->ceColl.sendBuff = POINTER(SEND_BUFF),          \
    (d)->ceColl.recvBuff = POINTER(RECV_BUFF), (d)->ceColl.count = COUNT, (d)->ceColl.root = ROOT,                   \
    (d)->ceColl.datatype = "ncclFloat32", (d)->ceColl.syncStrategy = "MC", (d)->ceColl.intraBatchSync = 1,           \
    (d)->ceColl.batchSize = 10, (d)->ceColl.numBatches = 11, (d)->ceColl.ceSeqNum = 12,                              \
    (d)->ceColl.stream = POINTER(STREAM);                                                                            \
    break;                                                                                                            \
  case NCCLOTF2_CE_SYNC: (d)->ceCollSync.isComplete = 1, (d)->ceCollSync.nRanks = 8; break;                          \
  case NCCLOTF2_CE_BATCH:                                                                                             \
    (d)->ceCollBatch.numOps = 6, (d)->ceCollBatch.totalBytes = BYTES, (d)->ceCollBatch.useIntraSync = 1;             \
    break

static void describe_v1(struct ncclotf2_descr_v1 *d, unsigned type) {
  switch (type) {
    case NCCLOTF2_COLL:
      SET_COLL(d), SET_OWNER(d, coll);
      d->coll.func = 4, d->coll.datatype = 7, d->coll.algo = 1, d->coll.proto = 1, d->coll.nMaxChannels = CHANNELS;
      break;
    case NCCLOTF2_P2P:
      SET_P2P(d), SET_OWNER(d, p2p);
      d->p2p.func = 6, d->p2p.datatype = 0;
      break;
    case NCCLOTF2_PROXY_OP: SET_PROXY_OP(d); break;
    case NCCLOTF2_PROXY_STEP: d->proxyStep.step = STEP; break;
    default: break;
  }
}

static void describe_v2(struct ncclotf2_descr_v2 *d, unsigned type) {
  switch (type) {
    case NCCLOTF2_COLL: SET_COLL(d), SET_COLL_NAMES(d), SET_OWNER(d, coll), d->coll.nMaxChannels = CHANNELS; break;
    case NCCLOTF2_P2P: SET_P2P(d), SET_P2P_NAMES(d), SET_OWNER(d, p2p); break;
    case NCCLOTF2_PROXY_OP: SET_PROXY_OP(d); break;
    case NCCLOTF2_PROXY_STEP: d->proxyStep.step = STEP; break;
    default: break;
  }
}

static void describe_v3(struct ncclotf2_descr_v3 *d, unsigned type) {
  switch (type) {
    case NCCLOTF2_COLL: SET_COLL(d), SET_COLL_NAMES(d), SET_OWNER(d, coll), d->coll.nMaxChannels = CHANNELS; break;
    case NCCLOTF2_P2P: SET_P2P(d), SET_P2P_NAMES(d), SET_OWNER(d, p2p); break;
    case NCCLOTF2_PROXY_OP: SET_PROXY_OP(d); break;
    case NCCLOTF2_PROXY_STEP: d->proxyStep.step = STEP; break;
    case NCCLOTF2_KERNEL_CH: d->kernelCh.channelId = CHANNEL; break;
    case NCCLOTF2_NET_PLUGIN: SET_NET(d); break;
    default: break;
  }
}

static void describe_v4(struct ncclotf2_descr_v4 *d, unsigned type) {
  switch (type) {
    case NCCLOTF2_COLL: SET_COLL(d), SET_COLL_NAMES(d), d->coll.nChannels = CHANNELS; break;
    case NCCLOTF2_P2P: SET_P2P(d), SET_P2P_NAMES(d); break; /* nChannels stays garbage, as NCCL leaves it */
    case NCCLOTF2_PROXY_OP: SET_PROXY_OP(d); break;
    case NCCLOTF2_PROXY_STEP: d->proxyStep.step = STEP; break;
    case NCCLOTF2_KERNEL_CH: SET_KERNEL_CH(d); break;
    case NCCLOTF2_NET_PLUGIN: SET_NET(d); break;
    default: break;
  }
}

#define SET_TASKS(d)                                                                        \
  case NCCLOTF2_COLL:                                                                       \
    SET_COLL(d), SET_COLL_NAMES(d), (d)->coll.nChannels = CHANNELS, (d)->coll.parentGroup = POINTER(GROUP); \
    break;                                                                                  \
  case NCCLOTF2_P2P:                                                                        \
    SET_P2P(d), SET_P2P_NAMES(d), (d)->p2p.nChannels = CHANNELS, (d)->p2p.parentGroup = POINTER(GROUP); \
    break;                                                                                  \
  case NCCLOTF2_PROXY_OP: SET_PROXY_OP(d); break;                                           \
  case NCCLOTF2_PROXY_STEP: (d)->proxyStep.step = STEP; break;                              \
  case NCCLOTF2_KERNEL_CH: SET_KERNEL_CH(d); break;                                         \
  case NCCLOTF2_NET_PLUGIN: SET_NET(d); break

static void describe_v5(struct ncclotf2_descr_v5 *d, unsigned type) {
  switch (type) {
    SET_TASKS(d);
    SET_CALLS(d);
    default: break;
  }
}

static void describe_v6(struct ncclotf2_descr_v6 *d, unsigned type) {
  switch (type) {
    SET_TASKS(d);
    SET_CALLS(d);
    SET_COPY_ENGINE(d);
    default: break;
  }
}

static void describe_v7(struct ncclotf2_descr_v7 *d, unsigned type) {
  switch (type) {
    SET_TASKS(d);
    SET_CALLS(d);
    SET_COPY_ENGINE(d);
    case NCCLOTF2_KERNEL_PHASE:
      d->kernelPhase.channelId = CHANNEL, d->kernelPhase.phaseId = PHASE, d->kernelPhase.phaseName = "wait peer",
      d->kernelPhase.pTimer = TIMER;
      break;
    default: break;
  }
  switch (type) { /* what this version added */
    case NCCLOTF2_COLL: d->coll.kernelVariant = "RailRing_LsaSTMC", d->coll.isSymColl = 2, d->coll.userTag = USER_TAG; break;
    case NCCLOTF2_P2P: d->p2p.userTag = USER_TAG; break;
    case NCCLOTF2_COLL_API: d->collApi.userTag = USER_TAG; break;
    case NCCLOTF2_P2P_API: d->p2pApi.userTag = USER_TAG; break;
    case NCCLOTF2_CE_COLL: d->ceColl.userTag = USER_TAG; break;
    default: break;
  }
}

/* ---- the versions, alike ---- */

struct version {
  unsigned api;
  uint32_t known; /* types */
  size_t descr, args;
  void *(*init)(uint64_t comm_id, const char *name, int nnodes, int nranks, int rank);
  void *(*start)(void *context, void *descr);
  void (*describe)(void *descr, unsigned type);
  void (*stop)(void *handle);
  void (*state)(void *handle, int state, void *args);
  void (*finalize)(void *context);
};

#define COMMON(n)                                                                                        \
  static void *start_v##n(void *context, void *descr) {                                                  \
    void *handle = POINTER(0xbadbadbadbadULL);                                                           \
    EQUAL(ncclProfiler_v##n.startEvent(context, &handle, descr), 0, "startEvent");                       \
    CHECK(handle != POINTER(0xbadbadbadbadULL), "*eHandle was not written");                             \
    return handle;                                                                                       \
  }                                                                                                      \
  static void describe_any_v##n(void *descr, unsigned type) { describe_v##n(descr, type); }              \
  static void stop_v##n(void *handle) { EQUAL(ncclProfiler_v##n.stopEvent(handle), 0, "stopEvent"); }    \
  static void state_v##n(void *handle, int state, void *args) {                                          \
    EQUAL(ncclProfiler_v##n.recordEventState(handle, state, args), 0, "recordEventState");               \
  }                                                                                                      \
  static void finalize_v##n(void *context) { EQUAL(ncclProfiler_v##n.finalize(context), 0, "finalize"); }

#define INIT_FIRST(n)                                                                              \
  static void *init_v##n(uint64_t comm_id, const char *name, int nnodes, int nranks, int rank) {   \
    (void)comm_id, (void)name, (void)nnodes, (void)nranks, (void)rank;                             \
    void *context = NULL;                                                                          \
    EQUAL(ncclProfiler_v##n.init(&context, &host_mask), 0, "init");                                \
    return context;                                                                                \
  }
#define INIT_LATER(n)                                                                              \
  static void *init_v##n(uint64_t comm_id, const char *name, int nnodes, int nranks, int rank) {   \
    void *context = NULL;                                                                          \
    EQUAL(ncclProfiler_v##n.init(&context, comm_id, &host_mask, name, nnodes, nranks, rank, host_logger), 0, "init"); \
    return context;                                                                                \
  }
static void *init_v4(uint64_t comm_id, const char *name, int nnodes, int nranks, int rank) {
  void *context = NULL;
  EQUAL(ncclProfiler_v4.init(&context, &host_mask, name, comm_id, nnodes, nranks, rank, host_logger), 0, "init");
  return context;
}
INIT_FIRST(1)
INIT_FIRST(2)
INIT_FIRST(3)
INIT_LATER(5)
INIT_LATER(6)
INIT_LATER(7)
COMMON(1)
COMMON(2)
COMMON(3)
COMMON(4)
COMMON(5)
COMMON(6)
COMMON(7)

#define VERSION(n, types, descr_bytes, args_bytes) \
  [n] = {n, types, descr_bytes, args_bytes, init_v##n, start_v##n, describe_any_v##n, stop_v##n, state_v##n, finalize_v##n}
/* Sizes as published, not as our headers have them. */
static const struct version versions[] = {
    VERSION(1, 0x003f, 120, 16), VERSION(2, 0x003f, 128, 16), VERSION(3, 0x00ff, 120, 16), VERSION(4, 0x00ff, 104, 8),
    VERSION(5, 0x0fff, 112, 8),  VERSION(6, 0x7fff, 112, 8),  VERSION(7, 0xffff, 136, 8),
};

/* A descriptor of the type, garbage but for what NCCL sets. The one-byte type is followed by garbage. */
static void *descriptor(const struct version *version, unsigned type) {
  uint8_t *d = host_guarded(version->descr);
  const uint64_t bit = 1ULL << type, parent = PARENT;
  const int rank = RANK;
  if (version->api <= 4)
    d[0] = (uint8_t)bit;
  else
    memcpy(d, &bit, sizeof bit);
  memcpy(d + 8, &parent, sizeof parent);
  memcpy(d + 16, &rank, sizeof rank);
  version->describe(d, type);
  return d;
}

static uint32_t id(const char *text) { return host_string_id(text); }

/* What the record of such a descriptor must be; returns its size. */
static size_t expected(void *at, unsigned api, unsigned type, uint64_t context) {
  const bool v5 = api >= 5, v7 = api >= 7;
  const uint64_t tag = v7 ? USER_TAG : 0;
#define RECORD(kind, ...)                                    \
  do {                                                       \
    const struct kind want = __VA_ARGS__;                    \
    memset(at, 0, sizeof want); /* padding, too, is nothing */ \
    memcpy(at, &want, sizeof want);                          \
    return sizeof want;                                      \
  } while (0)
  switch (type) {
    case NCCLOTF2_GROUP:
    case NCCLOTF2_PROXY_CTRL: RECORD(ncclotf2_record, {0});
    case NCCLOTF2_COLL:
      RECORD(ncclotf2_coll, {.head.flags = v7 ? NCCLOTF2_FLAG_SYM : api <= 3 ? NCCLOTF2_FLAG_NO_CHANNELS : 0,
                             .seq = SEQ, .count = COUNT, .send_buff = SEND_BUFF, .recv_buff = RECV_BUFF,
                             .parent_group = v5 ? GROUP : PARENT, .user_tag = tag, .func = id("AllReduce"),
                             .datatype = id("ncclFloat32"), .algo = id("RING"), .proto = id("LL128"),
                             .kernel_variant = v7 ? id("RailRing_LsaSTMC") : 0, .root = ROOT, .rank = RANK,
                             .nchannels = CHANNELS, .nwarps = WARPS});
    case NCCLOTF2_P2P:
      RECORD(ncclotf2_p2p, {.head.flags = api <= 4 ? NCCLOTF2_FLAG_NO_CHANNELS : 0, .count = COUNT, .send_buff = SEND_BUFF,
                            .parent_group = v5 ? GROUP : PARENT, .user_tag = tag, .func = id("Send"),
                            .datatype = id("ncclInt8"), .peer = PEER, .rank = RANK, .nchannels = v5 ? CHANNELS : 0});
    case NCCLOTF2_PROXY_OP:
      RECORD(ncclotf2_proxy_op, {.head.flags = NCCLOTF2_FLAG_SEND, .context = context, .pid = PID, .peer = PEER,
                                 .nsteps = STEPS, .chunk_size = CHUNK, .rank = RANK, .channel = CHANNEL});
    case NCCLOTF2_PROXY_STEP: RECORD(ncclotf2_proxy_step, {.context = context, .step = STEP, .rank = RANK});
    case NCCLOTF2_KERNEL_CH: RECORD(ncclotf2_kernel_ch, {.ptimer = api >= 4 ? TIMER : 0, .channel = CHANNEL});
    case NCCLOTF2_NET_PLUGIN:
      RECORD(ncclotf2_net_plugin, {.net_id = 0x30001, .context = context, .rank = RANK, .data = NET_DATA});
    case NCCLOTF2_GROUP_API: RECORD(ncclotf2_group_api, {.head.flags = NCCLOTF2_FLAG_GRAPH, .group_depth = DEPTH});
    case NCCLOTF2_COLL_API:
      RECORD(ncclotf2_coll_api, {.count = COUNT, .stream = STREAM, .user_tag = tag, .func = id("AllReduce"),
                                 .datatype = id("ncclFloat32"), .root = ROOT});
    case NCCLOTF2_P2P_API:
      RECORD(ncclotf2_coll_api, {.head.flags = NCCLOTF2_FLAG_GRAPH, .count = COUNT, .stream = STREAM, .user_tag = tag,
                                 .func = id("Send"), .datatype = id("ncclInt8"), .root = -1});
    case NCCLOTF2_KERNEL_LAUNCH: RECORD(ncclotf2_kernel_launch, {.stream = STREAM});
    case NCCLOTF2_CE_COLL:
      RECORD(ncclotf2_ce_coll, {.head.flags = NCCLOTF2_FLAG_COMPLETE, .seq = SEQ, .count = COUNT, .send_buff = SEND_BUFF,
                                .recv_buff = RECV_BUFF, .stream = STREAM, .user_tag = tag, .func = id("AllReduce"),
                                .datatype = id("ncclFloat32"), .sync_strategy = id("MC"), .batch_size = 10,
                                .num_batches = 11, .ce_seq = 12, .root = ROOT, .rank = RANK});
    case NCCLOTF2_CE_SYNC:
      RECORD(ncclotf2_ce_sync, {.head.flags = NCCLOTF2_FLAG_COMPLETE, .nranks = 8, .rank = RANK});
    case NCCLOTF2_CE_BATCH:
      RECORD(ncclotf2_ce_batch, {.head.flags = NCCLOTF2_FLAG_COMPLETE, .bytes = BYTES, .num_ops = 6, .rank = RANK});
    default:
      RECORD(ncclotf2_kernel_phase, {.ptimer = TIMER, .phase_name = id("wait peer"), .channel = CHANNEL, .phase = PHASE});
  }
}

/* By state, the bytes of the argument that are defined; those behind them are garbage. */
static unsigned argument_bytes(unsigned api, int state) {
  if (state >= 13 && state <= 18) return 4;      /* appendedProxyOps */
  if (api <= 3) return state >= 0 && state <= 7 ? 16 : 0;     /* transSize and steps */
  if ((state >= 8 && state <= 12) || (state >= 20 && state <= 22)) return 8;
  return api >= 7 && state == 31 ? 8 : 0;
}

static void check_states(const struct version *version, void *handle, unsigned type) {
  for (int state = -1; state <= 33; state++) {
    const unsigned bytes = argument_bytes(version->api, state);
    /* An argument that is not defined may be a dummy of garbage, or lie nowhere. */
    uint8_t *args = bytes ? host_guarded(version->args) : POINTER(8);
    struct ncclotf2_record want = {.aux = (uint32_t)state,
                                   .handle = (uint64_t)(uintptr_t)handle,
                                   .flags = bytes ? NCCLOTF2_FLAG_HAS_ARG : 0};
    if (bytes == 16) {
      const uint64_t size = BYTES;
      const int steps = 0x123456;
      memcpy(args, &size, 8);
      memcpy(args + 8, &steps, 4);
      want.aux |= 0x123456u << 8;
      want.arg = BYTES;
    } else if (bytes == 8) {
      const uint64_t value = TIMER;
      memcpy(args, &value, 8);
      want.arg = TIMER;
    } else if (bytes == 4) {
      const int ops = 9;
      memcpy(args, &ops, 4);
      want.arg = 9;
    }
    version->state(handle, state, args);
    host_same_record(reader_last(), &want, sizeof want, NCCLOTF2_RECORD_STATE, type);
    version->state(handle, state, NULL);
    want.arg = 0, want.flags = 0, want.aux = (uint32_t)state;
    host_same_record(reader_last(), &want, sizeof want, NCCLOTF2_RECORD_STATE, type);
  }
}

static void whole_version(unsigned api) {
  const struct version *version = &versions[api];
  host_use_stub("ready", 0xffff);
  char name[] = "tensor parallel";
  version->init(1, NULL, 1, 2, 0); /* so that index 0 is not right by accident */
  void *context = version->init(COMM_HASH, name, 2, 8, RANK);
  memset(name, 'x', sizeof name - 1); /* NCCL does not keep it */
  CHECK(context, "NULL context");
  EQUAL(host_mask, version->known, "mask");
  EQUAL(host_header()->api_version, api, "version");
  const struct ncclotf2_comm *comm = ncclotf2_comm_at(ncclotf2_session.base, 1);
  EQUAL(comm->api_version, api, "version of the communicator");
  EQUAL(comm->ready, api >= 4, "ready");
  host_fill_free_chunks();
  for (unsigned type = 0; type < NCCLOTF2_TYPES; type++) {
    if (api <= 4 && type >= 8) continue; /* cannot be said in one byte */
    void *handle = version->start(context, descriptor(version, type));
    if (!(version->known & 1u << type)) {
      CHECK(!handle, "type %u was recorded", type);
      EQUAL(host_header()->filtered[type], 1, "filtered");
      continue;
    }
    CHECK(handle, "type %u was refused", type);
    const uint64_t value = (uint64_t)(uintptr_t)handle;
    const bool captured = type == NCCLOTF2_GROUP_API || type == NCCLOTF2_P2P_API;
    EQUAL(ncclotf2_handle_type(value), type, "type in the handle");
    CHECK(ncclotf2_handle_is_ours(ncclotf2_fast.tag_bits, value), "handle 0x%llx", (unsigned long long)value);
    EQUAL((value & NCCLOTF2_CAPTURED_BIT) != 0, captured, "captured");
    union {
      struct ncclotf2_record head;
      uint8_t bytes[128];
    } want;
    const size_t size = expected(&want, api, type, (uint64_t)(uintptr_t)context);
    want.head.aux = 1;
    want.head.handle = value;
    want.head.arg = PARENT;
    host_same_record(reader_last(), &want, size, NCCLOTF2_RECORD_START, type);
    check_states(version, handle, type);
    version->stop(handle);
    struct ncclotf2_record stop = {.handle = value};
    host_same_record(reader_last(), &stop, sizeof stop, NCCLOTF2_RECORD_STOP, type);
  }
  EQUAL(comm->ready, 1, "ready");
  EQUAL(comm->comm_id, COMM_HASH, "id");
  EQUAL(comm->rank, RANK, "rank");
  EQUAL(comm->nranks, api >= 4 ? 8 : 0, "nranks");
  EQUAL(comm->nnodes, api >= 4 ? 2 : 0, "nnodes");
  EQUAL(comm->name, id("tensor parallel"), "name");
  EQUAL(comm->init_tid, getpid(), "tid");
  version->finalize(context);
  CHECK(comm->final_ticks, "not finalized");
}

#define WHOLE(n) \
  static void whole_v##n(void) { whole_version(n); }
WHOLE(1)
WHOLE(2)
WHOLE(3)
WHOLE(4)
WHOLE(5)
WHOLE(6)
WHOLE(7)

/* ---- types that are none ---- */

static void strange_types(void) {
  host_use_stub("ready", 0xffff);
  void *context = versions[7].init(1, NULL, 1, 2, 0);
  static const uint64_t strange[] = {0, 3, 0x0202, 1ULL << 16, 1ULL << 17, 1ULL << 31, 1ULL << 32, 1ULL << 63, ~0ULL, 1ULL << 32 | 2};
  uint64_t refused = 0;
  for (unsigned api = 5; api <= 7; api++)
    for (unsigned i = 0; i < sizeof strange / sizeof *strange; i++) {
      uint8_t *d = host_guarded(versions[api].descr);
      memcpy(d, &strange[i], sizeof *strange);
      CHECK(!versions[api].start(context, d), "v%u: type 0x%llx was recorded", api, (unsigned long long)strange[i]);
      refused++;
    }
  for (unsigned api = 1; api <= 4; api++) {
    static const uint8_t bytes[] = {0, 3, 0xff, 0xc0};
    for (unsigned i = 0; i < sizeof bytes; i++) {
      uint8_t *d = host_guarded(versions[api].descr);
      d[0] = bytes[i];
      CHECK(!versions[api].start(context, d), "v%u: type 0x%x was recorded", api, bytes[i]);
      refused++;
    }
  }
  uint64_t filtered = 0;
  for (unsigned type = 0; type < NCCLOTF2_TYPES; type++) filtered += host_header()->filtered[type];
  EQUAL(filtered, refused, "filtered");
}

/* RCCL's v6 of 2026: a longer proxyOp, 24 bytes of state argument, bit 15 and state 31 of its own. */
static void rccl_v6(void) {
  enum { LONGER = 112 + 40 };
  host_use_stub("ready", 0xffff);
  void *context = versions[6].init(1, NULL, 1, 2, 0);
  EQUAL(host_mask, 0x7fff, "mask");
  uint8_t *descr = host_guarded(LONGER);
  memcpy(descr, descriptor(&versions[6], NCCLOTF2_PROXY_OP), 48);
  void *handle = versions[6].start(context, descr);
  CHECK(handle, "refused");
  struct ncclotf2_proxy_op want;
  expected(&want, 6, NCCLOTF2_PROXY_OP, (uint64_t)(uintptr_t)context);
  want.head.handle = (uint64_t)(uintptr_t)handle;
  want.head.arg = PARENT;
  host_same_record(reader_last(), &want, sizeof want, NCCLOTF2_RECORD_START, NCCLOTF2_PROXY_OP);

  const uint64_t bit = 1ULL << 15;
  memcpy(descr, &bit, sizeof bit);
  const void *before = reader_last();
  CHECK(!versions[6].start(context, descr), "proxy diagnostics were taken for kernel phases");
  EQUAL(host_header()->filtered[15], 1, "filtered");
  CHECK(reader_last() == before, "recorded");
  /* Its update of such an event goes with the handle NULL. */
  versions[6].state(NULL, 31, host_guarded(24));
  CHECK(reader_last() == before, "recorded");
  EQUAL(host_header()->null_handles, 1, "NULL handles");
  /* On an event of ours the value is nothing that v6 knows: no argument is taken from it. */
  versions[6].state(handle, 31, host_guarded(24));
  struct ncclotf2_record state = {.aux = 31, .handle = (uint64_t)(uintptr_t)handle};
  host_same_record(reader_last(), &state, sizeof state, NCCLOTF2_RECORD_STATE, NCCLOTF2_PROXY_OP);
}

/* ---- v1's numbers ---- */

static const char *text_of(uint32_t string) {
  CHECK(string, "no string");
  return (const char *)ncclotf2_string_at(ncclotf2_session.base, (string - 1) * 8ULL) +
         offsetof(struct ncclotf2_string, bytes);
}

static void numbers(void) {
  static const char *const functions[] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce", "SendRecv", "Send", "Recv"};
  static const char *const algorithms[] = {"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
  static const char *const protocols[] = {"LL", "LL128", "SIMPLE"};
  static const char *const datatypes[] = {"ncclInt8", "ncclUint8", "ncclInt32", "ncclUint32", "ncclInt64", "ncclUint64", "ncclFloat16",
                                          "ncclFloat32", "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
#define IS(table, number, string)                                                                            \
  CHECK(strcmp(text_of(string), (number) < sizeof table / sizeof *table ? table[number] : "Unknown") == 0, \
        #table " %u is %s", number, text_of(string))
  host_use_stub("ready", 0x3f);
  void *context = versions[1].init(0, NULL, 0, 0, 0);
  for (unsigned number = 0; number < 256; number++) {
    struct ncclotf2_descr_v1 *d = descriptor(&versions[1], NCCLOTF2_COLL);
    d->coll.func = d->coll.algo = d->coll.proto = d->coll.datatype = (uint8_t)number;
    CHECK(versions[1].start(context, d), "refused");
    const struct ncclotf2_coll *coll = reader_last();
    IS(functions, number, coll->func);
    IS(algorithms, number, coll->algo);
    IS(protocols, number, coll->proto);
    IS(datatypes, number, coll->datatype);
    d = descriptor(&versions[1], NCCLOTF2_P2P);
    d->p2p.func = d->p2p.datatype = (uint8_t)number;
    CHECK(versions[1].start(context, d), "refused");
    const struct ncclotf2_p2p *p2p = reader_last();
    IS(functions, number, p2p->func);
    IS(datatypes, number, p2p->datatype);
  }
}

/* ---- communicators that say who they are later ---- */

static unsigned count_inits(uint32_t comm) {
  const struct ncclotf2_record *list[64];
  const size_t count = reader_own(list, 64);
  CHECK(count <= 64, "%zu records", count);
  unsigned inits = 0;
  for (size_t i = 0; i < count; i++) inits += list[i]->kind == NCCLOTF2_RECORD_INIT && list[i]->aux == comm;
  return inits;
}

static void set_owner(unsigned api, void *descr, unsigned type, uint64_t hash, const char *name) {
  (void)api, (void)type; /* name and hash lie at the same place in all three, of both */
  memcpy((uint8_t *)descr + 24, &name, sizeof name);
  memcpy((uint8_t *)descr + 32, &hash, sizeof hash);
}

static void identified_later(unsigned api, unsigned type) {
  const struct version *version = &versions[api];
  host_use_stub("ready", 0xff);
  void *first = version->init(0, NULL, 0, 0, 0), *second = version->init(0, NULL, 0, 0, 0), *third = version->init(0, NULL, 0, 0, 0);
  uint8_t *base = ncclotf2_session.base;
  const struct ncclotf2_comm *comms = ncclotf2_comm_at(base, 0);
  EQUAL(host_header()->comm_used, 3, "communicators");
  EQUAL(host_lines, 0, "lines without a logger");
  /* Whatever else comes first leaves it nameless, and is recorded. */
  static const unsigned others[] = {NCCLOTF2_GROUP, NCCLOTF2_PROXY_CTRL, NCCLOTF2_PROXY_OP};
  for (unsigned i = 0; i < sizeof others / sizeof *others; i++) {
    CHECK(version->start(second, descriptor(version, others[i])), "refused");
    EQUAL(((const struct ncclotf2_record *)reader_last())->aux, 1, "communicator");
    EQUAL(comms[1].ready, 0, "ready");
  }
  void *descr = descriptor(version, type);
  set_owner(api, descr, type, 0x77, "pipeline parallel");
  CHECK(version->start(second, descr), "refused");
  EQUAL(comms[1].ready, 1, "ready");
  EQUAL(comms[1].comm_id, 0x77, "id");
  EQUAL(comms[1].rank, RANK, "rank");
  EQUAL(comms[1].nranks, 0, "nranks");
  EQUAL(comms[1].name, id("pipeline parallel"), "name");
  EQUAL(comms[0].ready, 0, "the others");
  EQUAL(comms[2].ready, 0, "the others");
  const struct ncclotf2_record *list[64];
  const size_t count = reader_own(list, 64);
  EQUAL(list[count - 1]->kind, NCCLOTF2_RECORD_START, "the last record");
  EQUAL(list[count - 2]->kind, NCCLOTF2_RECORD_INIT, "the one before it");
  EQUAL(list[count - 2]->aux, 1, "communicator");
  EQUAL(count_inits(1), 1, "INIT records");
  /* The first one counts. */
  set_owner(api, descr, type, 0x88, "another");
  CHECK(version->start(second, descr), "refused");
  EQUAL(comms[1].comm_id, 0x77, "id");
  EQUAL(count_inits(1), 1, "INIT records");
  /* NCCL 2.27 and later know nothing of it. */
  set_owner(api, descr, type, 0, NULL);
  CHECK(version->start(first, descr), "refused");
  EQUAL(comms[0].ready, 1, "ready");
  EQUAL(comms[0].comm_id, 0, "id");
  EQUAL(comms[0].name, 0, "name");
  EQUAL(count_inits(0), 1, "INIT records");
  /* A communicator that never does anything, and contexts that are none. */
  version->finalize(third);
  CHECK(comms[2].final_ticks && !comms[2].ready, "the third one");
  static const uint64_t foreign[] = {0, 0x7fff12345678ULL};
  for (unsigned i = 0; i < 2; i++) {
    CHECK(version->start(POINTER(foreign[i]), descr), "refused");
    EQUAL(((const struct ncclotf2_record *)reader_last())->aux, NCCLOTF2_NONE, "communicator");
  }
  EQUAL(host_header()->comm_used, 3, "communicators");
}

static void identified_v1_coll(void) { identified_later(1, NCCLOTF2_COLL); }
static void identified_v1_p2p(void) { identified_later(1, NCCLOTF2_P2P); }
static void identified_v2_coll(void) { identified_later(2, NCCLOTF2_COLL); }
static void identified_v2_p2p(void) { identified_later(2, NCCLOTF2_P2P); }
static void identified_v3_coll(void) { identified_later(3, NCCLOTF2_COLL); }
static void identified_v3_p2p(void) { identified_later(3, NCCLOTF2_P2P); }

enum { CALLERS = 8, COMMS = 64 };
static void *contexts[COMMS];
static pthread_barrier_t barrier;

static void *identify_all(void *self) {
  const struct version *version = &versions[2];
  void *descr = descriptor(version, NCCLOTF2_COLL);
  for (unsigned i = 0; i < COMMS; i++) {
    set_owner(2, descr, NCCLOTF2_COLL, 1000 + (uintptr_t)self, NULL);
    const int rank = (int)(uintptr_t)self;
    memcpy((uint8_t *)descr + 16, &rank, sizeof rank);
    pthread_barrier_wait(&barrier);
    CHECK(version->start(contexts[i], descr), "refused");
  }
  return NULL;
}

static unsigned inits[COMMS];
static void count_init(uint32_t ring, const struct ncclotf2_record *record, void *unused) {
  (void)ring, (void)unused;
  if (record->kind == NCCLOTF2_RECORD_INIT) inits[record->aux]++;
}

static void identified_at_one_time(void) {
  host_use_stub("ready", 0x3f);
  for (unsigned i = 0; i < COMMS; i++) contexts[i] = versions[2].init(0, NULL, 0, 0, 0);
  pthread_barrier_init(&barrier, NULL, CALLERS);
  pthread_t threads[CALLERS];
  for (uintptr_t i = 0; i < CALLERS; i++) pthread_create(&threads[i], NULL, identify_all, (void *)i);
  for (unsigned i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
  struct reader *reader = calloc(1, sizeof *reader);
  reader_drain(reader, count_init, NULL);
  free(reader);
  for (unsigned i = 0; i < COMMS; i++) {
    const struct ncclotf2_comm *comm = ncclotf2_comm_at(ncclotf2_session.base, i);
    EQUAL(comm->ready, 1, "ready");
    EQUAL(inits[i], 1, "INIT records");
    EQUAL(comm->comm_id, 1000u + (unsigned)comm->rank, "id and rank are of different calls");
  }
}

TEST_MAIN({"version 1", whole_v1}, {"version 2", whole_v2}, {"version 3", whole_v3}, {"version 4", whole_v4},
          {"version 5", whole_v5}, {"version 6", whole_v6}, {"version 7", whole_v7},
          {"types that are none, or several, are refused", strange_types},
          {"RCCL's v6 is read as far as it is NCCL's", rccl_v6},
          {"version 1: numbers become names", numbers},
          {"version 1: a collective says whose it is", identified_v1_coll},
          {"version 1: a message says whose it is", identified_v1_p2p},
          {"version 2: a collective says whose it is", identified_v2_coll},
          {"version 2: a message says whose it is", identified_v2_p2p},
          {"version 3: a collective says whose it is", identified_v3_coll},
          {"version 3: a message says whose it is", identified_v3_p2p},
          {"of several that say so at one time one counts", identified_at_one_time})
