/* SPDX-License-Identifier: Apache-2.0
 *
 * Every event type becomes the record that shm.h describes, to the byte; what cannot be recorded is
 * refused with NULL and counted.
 */
#include "../handle.h"
#include "host.h"
#include "test.h"

static uint64_t tag_bits(void) { return (uint64_t)host_header()->tag << NCCLOTF2_TAG_SHIFT; }

static void *begin(void) {
  host_use_stub("ready", 0x7fff);
  /* A communicator before ours, so that index 0 is not right by accident. */
  host_init(0x1111, 2, 1);
  void *context = host_init(0x2222, 4, 3);
  EQUAL(host_mask, 0x7fff, "mask");
  return context;
}

#define PARENT ((void *)(uintptr_t)0x7001020304050607ULL)

/* Starts the event and compares its record with `want`, whose head needs only what differs from the
 * usual. */
static void expect(void *context, struct ncclotf2_descr_v6 descr, void *want, size_t size) {
  static uint64_t ticks_before;
  descr.parentObj = PARENT;
  uint64_t handle = (uint64_t)(uintptr_t)host_start(context, descr);
  const struct ncclotf2_record *got = reader_last();
  struct ncclotf2_record *head = want;
  unsigned type = (unsigned)__builtin_ctzll(descr.type);
  CHECK(handle, "type %u was refused", type);
  EQUAL(ncclotf2_handle_type(handle), type, "handle's type");
  CHECK(ncclotf2_handle_is_ours(tag_bits(), handle), "handle 0x%llx", (unsigned long long)handle);
  CHECK(got->ticks > ticks_before, "ticks do not grow");
  ticks_before = got->ticks;
  head->aux = 1;
  head->handle = handle;
  head->arg = (uint64_t)(uintptr_t)PARENT;
  host_same_record(got, want, size, NCCLOTF2_RECORD_START, type);
}

#define EXPECT(type, member, record, ...)                                  \
  do {                                                                     \
    struct ncclotf2_descr_v6 d = host_descr(type);                         \
    d.rank = 77;                                                           \
    member;                                                                \
    struct record want;                                                    \
    memset(&want, 0, sizeof want);                                         \
    __VA_ARGS__;                                                           \
    expect(context, d, &want, sizeof want);                                \
  } while (0)

static void all_types(void) {
  void *context = begin();
  const uint64_t raw = (uint64_t)(uintptr_t)context;
  host_fill_free_chunks();
  EXPECT(NCCLOTF2_GROUP, (void)0, ncclotf2_record, (void)0);
  EXPECT(NCCLOTF2_PROXY_CTRL, (void)0, ncclotf2_record, (void)0);
  EXPECT(NCCLOTF2_GROUP_API, (d.groupApi.graphCaptured = 1, d.groupApi.groupDepth = 3), ncclotf2_group_api,
         want.head.flags = NCCLOTF2_FLAG_GRAPH, want.group_depth = 3);
  /* A bool that is neither 0 nor 1. */
  EXPECT(NCCLOTF2_GROUP_API, (d.groupApi.graphCaptured = 0x80, d.groupApi.groupDepth = -1), ncclotf2_group_api,
         want.head.flags = NCCLOTF2_FLAG_GRAPH, want.group_depth = -1);
  struct ncclotf2_descr_v6 names = host_descr(NCCLOTF2_COLL_API);
  names.collApi.func = "AllReduce";
  names.collApi.datatype = "ncclFloat32";
  host_start(context, names);
  names = host_descr(NCCLOTF2_COLL);
  names.coll.func = "Send";
  names.coll.datatype = "ncclInt8";
  names.coll.algo = "RING";
  names.coll.proto = ""; /* symmetric kernels since 2.31 */
  host_start(context, names);
  names = host_descr(NCCLOTF2_CE_COLL);
  names.ceColl.syncStrategy = "MC";
  host_start(context, names);

  const uint32_t all_reduce = host_string_id("AllReduce"), f32 = host_string_id("ncclFloat32"), i8 = host_string_id("ncclInt8"),
                 ring = host_string_id("RING"), none = host_string_id(""), mc = host_string_id("MC"), send = host_string_id("Send");
  EXPECT(NCCLOTF2_COLL_API,
         (d.collApi.func = "AllReduce", d.collApi.count = 1ULL << 40, d.collApi.datatype = "ncclFloat32",
          d.collApi.root = 5, d.collApi.stream = (void *)2, d.collApi.graphCaptured = 1),
         ncclotf2_coll_api, want.head.flags = NCCLOTF2_FLAG_GRAPH, want.count = 1ULL << 40, want.stream = 2,
         want.func = all_reduce, want.datatype = f32, want.root = 5);
  EXPECT(NCCLOTF2_P2P_API,
         (d.p2pApi.func = "Send", d.p2pApi.count = 12, d.p2pApi.datatype = "ncclInt8", d.p2pApi.stream = (void *)0x99),
         ncclotf2_coll_api, want.count = 12, want.stream = 0x99, want.func = send, want.datatype = i8, want.root = -1);
  EXPECT(NCCLOTF2_KERNEL_LAUNCH, d.kernelLaunch.stream = (void *)0x1234567890ULL, ncclotf2_kernel_launch,
         want.stream = 0x1234567890ULL);
  EXPECT(NCCLOTF2_COLL,
         (d.coll.seqNumber = 1ULL << 33, d.coll.func = "AllReduce", d.coll.sendBuff = (void *)0x1000,
          d.coll.recvBuff = (void *)0x2000, d.coll.count = 99, d.coll.root = -2, d.coll.datatype = "ncclInt8",
          d.coll.nChannels = 200, d.coll.nWarps = 16, d.coll.algo = "RING", d.coll.proto = "",
          d.coll.parentGroup = (void *)0x3000),
         ncclotf2_coll, want.seq = 1ULL << 33, want.count = 99, want.send_buff = 0x1000, want.recv_buff = 0x2000,
         want.parent_group = 0x3000, want.func = all_reduce, want.datatype = i8, want.algo = ring, want.proto = none,
         want.root = -2, want.rank = 77, want.nchannels = 200, want.nwarps = 16);
  EXPECT(NCCLOTF2_COLL, (void)0, ncclotf2_coll, want.rank = 77); /* names may be NULL */
  EXPECT(NCCLOTF2_P2P,
         (d.p2p.func = "Send", d.p2p.buff = (void *)0x4000, d.p2p.datatype = "ncclInt8", d.p2p.count = 7,
          d.p2p.peer = 3, d.p2p.nChannels = 9, d.p2p.parentGroup = (void *)0x5000),
         ncclotf2_p2p, want.count = 7, want.send_buff = 0x4000, want.parent_group = 0x5000, want.func = send,
         want.datatype = i8, want.peer = 3, want.rank = 77, want.nchannels = 9);
  EXPECT(NCCLOTF2_PROXY_OP,
         (d.proxyOp.pid = 4711, d.proxyOp.channelId = 63, d.proxyOp.peer = 6, d.proxyOp.nSteps = 32,
          d.proxyOp.chunkSize = 1 << 19, d.proxyOp.isSend = 1),
         ncclotf2_proxy_op, want.head.flags = NCCLOTF2_FLAG_SEND, want.context = raw, want.pid = 4711, want.peer = 6,
         want.nsteps = 32, want.chunk_size = 1 << 19, want.rank = 77, want.channel = 63);
  EXPECT(NCCLOTF2_PROXY_STEP, d.proxyStep.step = 41, ncclotf2_proxy_step, want.context = raw, want.step = 41,
         want.rank = 77);
  EXPECT(NCCLOTF2_KERNEL_CH, (d.kernelCh.channelId = 31, d.kernelCh.pTimer = 1700000000000000032ULL),
         ncclotf2_kernel_ch, want.ptimer = 1700000000000000032ULL, want.channel = 31);
  EXPECT(NCCLOTF2_CE_COLL,
         (d.ceColl.seqNumber = 5, d.ceColl.func = "AllReduce", d.ceColl.sendBuff = (void *)0x6000,
          d.ceColl.recvBuff = (void *)0x7000, d.ceColl.count = 8, d.ceColl.root = 1, d.ceColl.datatype = "ncclInt8",
          d.ceColl.syncStrategy = "MC", d.ceColl.intraBatchSync = 1, d.ceColl.batchSize = 10, d.ceColl.numBatches = 11,
          d.ceColl.ceSeqNum = 12, d.ceColl.stream = (void *)0x8000),
         ncclotf2_ce_coll, want.head.flags = NCCLOTF2_FLAG_COMPLETE, want.seq = 5, want.count = 8,
         want.send_buff = 0x6000, want.recv_buff = 0x7000, want.stream = 0x8000, want.func = all_reduce,
         want.datatype = i8, want.sync_strategy = mc, want.batch_size = 10, want.num_batches = 11, want.ce_seq = 12,
         want.root = 1, want.rank = 77);
  EXPECT(NCCLOTF2_CE_SYNC, (d.ceCollSync.isComplete = 1, d.ceCollSync.nRanks = 8), ncclotf2_ce_sync,
         want.head.flags = NCCLOTF2_FLAG_COMPLETE, want.nranks = 8, want.rank = 77);
  EXPECT(NCCLOTF2_CE_BATCH,
         (d.ceCollBatch.numOps = 6, d.ceCollBatch.totalBytes = 1ULL << 35, d.ceCollBatch.useIntraSync = 1),
         ncclotf2_ce_batch, want.head.flags = NCCLOTF2_FLAG_COMPLETE, want.bytes = 1ULL << 35, want.num_ops = 6,
         want.rank = 77);
}

static void net_plugins(void) {
  void *context = begin();
  const uint64_t raw = (uint64_t)(uintptr_t)context;
  host_fill_free_chunks();
  struct ncclotf2_net_ib ib = {.type = 1,
                               .qp = {.device = 2, .wr_id = 0xabcdef0123ULL, .opcode = 4, .qpNum = 555, .length = 1 << 20}};
  EXPECT(NCCLOTF2_NET_PLUGIN, (d.netPlugin.id = 0x10001, d.netPlugin.data = &ib), ncclotf2_net_plugin,
         want.data = (uintptr_t)d.netPlugin.data, want.head.flags = NCCLOTF2_FLAG_KNOWN_NET, want.net_id = 0x10001, want.context = raw, want.length = 1 << 20,
         want.wr_id = 0xabcdef0123ULL, want.device_or_fd = 2, want.opcode = 4, want.qp = 555, want.rank = 77);
  struct ncclotf2_net_socket out = {.type = 1, .sock = {.fd = 12, .op = 0, .length = 4096}};
  EXPECT(NCCLOTF2_NET_PLUGIN, (d.netPlugin.id = 0x20001, d.netPlugin.data = &out), ncclotf2_net_plugin,
         want.data = (uintptr_t)d.netPlugin.data, want.head.flags = NCCLOTF2_FLAG_KNOWN_NET | NCCLOTF2_FLAG_SEND, want.net_id = 0x20001, want.context = raw,
         want.length = 4096, want.device_or_fd = 12, want.rank = 77);
  struct ncclotf2_net_socket in = {.type = 1, .sock = {.fd = 13, .op = 1, .length = 8}};
  EXPECT(NCCLOTF2_NET_PLUGIN, (d.netPlugin.id = 0x20001, d.netPlugin.data = &in), ncclotf2_net_plugin,
         want.data = (uintptr_t)d.netPlugin.data, want.head.flags = NCCLOTF2_FLAG_KNOWN_NET, want.net_id = 0x20001, want.context = raw, want.length = 8,
         want.device_or_fd = 13, want.opcode = 1, want.rank = 77);
  /* Nothing is read where the layout is not known: other ids, other versions, other kinds, no data. */
  EXPECT(NCCLOTF2_NET_PLUGIN, (d.netPlugin.id = 0x30001, d.netPlugin.data = (void *)8), ncclotf2_net_plugin,
         want.data = (uintptr_t)d.netPlugin.data, want.net_id = 0x30001, want.context = raw, want.rank = 77);
  EXPECT(NCCLOTF2_NET_PLUGIN, (d.netPlugin.id = 0x10002, d.netPlugin.data = (void *)8), ncclotf2_net_plugin,
         want.data = (uintptr_t)d.netPlugin.data, want.net_id = 0x10002, want.context = raw, want.rank = 77);
  EXPECT(NCCLOTF2_NET_PLUGIN, (d.netPlugin.id = (1LL << 32 | 0x10001), d.netPlugin.data = (void *)8),
         ncclotf2_net_plugin, want.data = (uintptr_t)d.netPlugin.data, want.net_id = (1LL << 32 | 0x10001), want.context = raw, want.rank = 77);
  EXPECT(NCCLOTF2_NET_PLUGIN, (d.netPlugin.id = 0x10001, d.netPlugin.data = NULL), ncclotf2_net_plugin,
         want.data = (uintptr_t)d.netPlugin.data, want.net_id = 0x10001, want.context = raw, want.rank = 77);
  ib.type = 9;
  EXPECT(NCCLOTF2_NET_PLUGIN, (d.netPlugin.id = 0x10001, d.netPlugin.data = &ib), ncclotf2_net_plugin,
         want.data = (uintptr_t)d.netPlugin.data, want.net_id = 0x10001, want.context = raw, want.rank = 77);
}

static void expect_unit(uint64_t handle, unsigned kind, unsigned type, uint32_t aux, uint64_t arg, unsigned flags) {
  const struct ncclotf2_record *got = reader_last();
  struct ncclotf2_record want = {.ticks = got->ticks,
                                 .kind = (uint8_t)kind,
                                 .type = (uint8_t)type,
                                 .units = 1,
                                 .flags = (uint8_t)flags,
                                 .aux = aux,
                                 .handle = handle,
                                 .arg = arg};
  CHECK(memcmp(got, &want, sizeof want) == 0,
        "kind %u type %u units %u flags %u aux %u handle 0x%llx arg %llu; want kind %u type %u flags %u aux %u arg %llu",
        got->kind, got->type, got->units, got->flags, got->aux, (unsigned long long)got->handle,
        (unsigned long long)got->arg, kind, type, flags, aux, (unsigned long long)arg);
}

static uint64_t records_so_far(void) {
  struct reader *reader = calloc(1, sizeof *reader);
  reader->keep = true;
  uint64_t count = reader_drain(reader, NULL, NULL);
  free(reader);
  return count;
}

/* By state: the argument that it defines (0 none, 8 all eight bytes, 4 the first four). */
static const uint8_t argument_bytes[] = {0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 4, 4, 4, 4, 4, 4, 0, 8, 8, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0};

static void states_and_stops(void) {
  void *context = begin();
  host_fill_free_chunks();
  for (unsigned type = 0; type <= NCCLOTF2_CE_BATCH; type++) {
    void *handle = host_start(context, host_descr(type));
    CHECK(handle, "type %u refused", type);
    for (int state = 0; state < 32; state++) {
      /* Exactly what the state defines may be read; the rest lies on no page. */
      union ncclotf2_state_args args = {.kernelCh = {0xfedcba9876543210ULL}};
      unsigned bytes = argument_bytes[state];
      EQUAL(ncclProfiler_v6.recordEventState(handle, state, bytes ? &args : (void *)8), 0, "recordEventState");
      expect_unit((uint64_t)(uintptr_t)handle, NCCLOTF2_RECORD_STATE, type, (uint32_t)state,
                  bytes == 8 ? 0xfedcba9876543210ULL : bytes == 4 ? 0x76543210 : 0, bytes ? NCCLOTF2_FLAG_HAS_ARG : 0);
      EQUAL(ncclProfiler_v6.recordEventState(handle, state, NULL), 0, "recordEventState");
      expect_unit((uint64_t)(uintptr_t)handle, NCCLOTF2_RECORD_STATE, type, (uint32_t)state, 0, 0);
    }
    /* States that no version knows. */
    for (unsigned i = 0; i < 3; i++) {
      static const int unknown[] = {32, -1, 0x7fffffff};
      ncclProfiler_v6.recordEventState(handle, unknown[i], (void *)8);
      expect_unit((uint64_t)(uintptr_t)handle, NCCLOTF2_RECORD_STATE, type, (uint32_t)unknown[i], 0, 0);
    }
    EQUAL(ncclProfiler_v6.stopEvent(handle), 0, "stopEvent");
    expect_unit((uint64_t)(uintptr_t)handle, NCCLOTF2_RECORD_STOP, type, 0, 0, 0);
    /* Doubled stops and late states are recorded too: what they mean is not decided here. */
    ncclProfiler_v6.stopEvent(handle);
    expect_unit((uint64_t)(uintptr_t)handle, NCCLOTF2_RECORD_STOP, type, 0, 0, 0);
  }
  uint64_t before = records_so_far();
  ncclProfiler_v6.stopEvent(NULL);
  ncclProfiler_v6.recordEventState(NULL, 22, (void *)8);
  EQUAL(records_so_far(), before, "records after NULL handles");
  EQUAL(host_header()->foreign, 0, "foreign");
}

static void foreign_handles(void) {
  void *context = begin();
  void *handle = host_start(context, host_descr(NCCLOTF2_COLL));
  uint64_t before = records_so_far(), foreign = 0;
  const uint64_t strange[] = {
      0x7fffdeadbeefULL,                                            /* a pointer */
      (uint64_t)(uintptr_t)handle ^ 1ULL << NCCLOTF2_TAG_SHIFT,     /* another process */
      (uint64_t)(uintptr_t)context,                                 /* a context is no event */
      ~0ULL, 1};
  for (unsigned i = 0; i < sizeof strange / sizeof *strange; i++) {
    union ncclotf2_state_args args = {.kernelCh = {1}};
    ncclProfiler_v6.stopEvent((void *)(uintptr_t)strange[i]);
    EQUAL(host_header()->foreign, ++foreign, "foreign after stop");
    ncclProfiler_v6.recordEventState((void *)(uintptr_t)strange[i], 22, &args);
    EQUAL(host_header()->foreign, ++foreign, "foreign after state");
  }
  EQUAL(records_so_far(), before, "records");
}

static void contexts(void) {
  void *context = begin();
  const uint64_t ours = (uint64_t)(uintptr_t)context;
  const uint64_t other_process = ours ^ 1ULL << NCCLOTF2_TAG_SHIFT;
  const uint64_t foreign[] = {other_process, 0, 0x7fff12345678ULL, (uint64_t)(uintptr_t)host_start(context, host_descr(0))};
  for (unsigned i = 0; i < sizeof foreign / sizeof *foreign; i++) {
    CHECK(host_start((void *)(uintptr_t)foreign[i], host_descr(NCCLOTF2_PROXY_OP)), "refused");
    const struct ncclotf2_proxy_op *op = reader_last();
    EQUAL(op->head.aux, NCCLOTF2_NONE, "communicator");
    EQUAL(op->context, foreign[i], "raw context");
    CHECK(host_start((void *)(uintptr_t)foreign[i], host_descr(NCCLOTF2_PROXY_STEP)), "refused");
    EQUAL(((const struct ncclotf2_proxy_step *)reader_last())->context, foreign[i], "raw context of the step");
    CHECK(host_start((void *)(uintptr_t)foreign[i], host_descr(NCCLOTF2_NET_PLUGIN)), "refused");
    EQUAL(((const struct ncclotf2_net_plugin *)reader_last())->context, foreign[i], "raw context of the net event");
  }
  /* One of ours that does not exist: a communicator beyond the table. */
  CHECK(!host_start((void *)(uintptr_t)(ours + 1), host_descr(NCCLOTF2_COLL)), "recorded");
  EQUAL(host_header()->lost[NCCLOTF2_LOSS_COMM][NCCLOTF2_COLL], 1, "lost");
  /* Finalized, and still used: a shared proxy does that. */
  ncclProfiler_v6.finalize(context);
  CHECK(host_start(context, host_descr(NCCLOTF2_PROXY_CTRL)), "refused after finalize");
  EQUAL(((const struct ncclotf2_record *)reader_last())->aux, 1, "communicator after finalize");
}

static void unwanted_types(void) {
  host_use_stub("ready", 1u << NCCLOTF2_COLL | 1u << NCCLOTF2_KERNEL_PHASE);
  void *context = host_init(0x1, 2, 0);
  for (unsigned type = 0; type < 16; type++) {
    void *handle = host_start(context, host_descr(type));
    CHECK((type == NCCLOTF2_COLL) == (handle != NULL), "type %u", type);
    EQUAL(host_header()->filtered[type], type != NCCLOTF2_COLL, "filtered");
  }
  struct ncclotf2_descr_v6 d = host_descr(0);
  static const uint64_t strange[] = {0, 3, 1ULL << 16, 1ULL << 63, ~0ULL, 1ULL << 32 | 2};
  for (unsigned i = 0; i < sizeof strange / sizeof *strange; i++) {
    d.type = strange[i];
    CHECK(!host_start(context, d), "type 0x%llx was recorded", (unsigned long long)strange[i]);
  }
  /* An event that was recorded is stopped whatever is wanted by then. */
  void *handle = host_start(context, host_descr(NCCLOTF2_COLL));
  __atomic_store_n(&host_header()->record_mask, 0, __ATOMIC_RELAXED);
  CHECK(!host_start(context, host_descr(NCCLOTF2_COLL)), "recorded while nothing is wanted");
  ncclProfiler_v6.stopEvent(handle);
  expect_unit((uint64_t)(uintptr_t)handle, NCCLOTF2_RECORD_STOP, NCCLOTF2_COLL, 0, 0, 0);
}

static void version_5(void) {
  host_use_stub("ready", 0xffff);
  void *context = NULL;
  char name[] = "tensor parallel";
  EQUAL(ncclProfiler_v5.init(&context, 0x55, &host_mask, name, 2, 8, 5, host_logger), 0, "init");
  memset(name, 'x', sizeof name - 1); /* NCCL does not keep it */
  const struct ncclotf2_comm *comm = ncclotf2_comm_at(ncclotf2_session.base, 0);
  EQUAL(comm->api_version, 5, "version");
  EQUAL(host_header()->api_version, 5, "version");
  EQUAL(comm->comm_id, 0x55, "id");
  EQUAL(comm->nnodes, 2, "nnodes");
  EQUAL(comm->nranks, 8, "nranks");
  EQUAL(comm->rank, 5, "rank");
  EQUAL(comm->init_tid, getpid(), "tid");
  EQUAL(comm->name, host_string_id("tensor parallel"), "name");
  /* The end of the page is the end of v5's descriptor. */
  for (unsigned type = 0; type < 16; type++) {
    struct ncclotf2_descr_v5 *d = malloc(sizeof *d);
    memset(d, 0, sizeof *d);
    d->type = 1ULL << type;
    d->parentObj = PARENT;
    void *handle = (void *)1;
    ncclProfiler_v5.startEvent(context, &handle, d);
    CHECK((type < NCCLOTF2_CE_COLL) == (handle != NULL), "type %u", type);
    if (handle) ncclProfiler_v5.stopEvent(handle);
    free(d);
  }
  EQUAL(ncclProfiler_v5.finalize(context), 0, "finalize");
}

static void names(void) {
  void *context = begin();
  static char text[300], twin[300];
  memset(text, 'n', sizeof text - 1);
  struct ncclotf2_descr_v6 d = host_descr(NCCLOTF2_COLL_API);
  d.collApi.func = text;
  d.collApi.datatype = strcpy(twin, "AllReduce");
  host_start(context, d);
  const struct ncclotf2_coll_api *api = reader_last();
  uint32_t long_id = api->func, id = api->datatype;
  const struct ncclotf2_string *string = ncclotf2_string_at(ncclotf2_session.base, (uint64_t)(long_id - 1) * 8);
  EQUAL(string->length, NCCLOTF2_STRING_MAX + 1, "length of a long name");
  EQUAL(strlen((const char *)string + 4), NCCLOTF2_STRING_MAX, "what is kept of it");
  /* The same text at another address is the same string. */
  d.collApi.datatype = "AllReduce";
  host_start(context, d);
  EQUAL(((const struct ncclotf2_coll_api *)reader_last())->datatype, id, "id of the twin");
  /* More addresses than a ring remembers, again and again: all are right, none is stored twice. */
  static char many[200][16];
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < 200; i++) {
      snprintf(many[i], sizeof many[i], "name %d", i);
      d.collApi.func = many[i];
      host_start(context, d);
      const struct ncclotf2_coll_api *got = reader_last();
      EQUAL(got->func, host_string_id(many[i]), many[i]);
    }
  /* The address means another text after libnccl was loaded anew. */
  d.collApi.datatype = twin;
  host_start(context, d);
  host_start(context, d);
  EQUAL(((const struct ncclotf2_coll_api *)reader_last())->datatype, id, "id of the twin");
  ncclProfiler_v6.finalize(context);
  ncclProfiler_v6.finalize((void *)((uintptr_t)context - 1));
  strcpy(twin, "Broadcast");
  context = host_init(0x3333, 2, 0);
  d.collApi.datatype = twin;
  host_start(context, d);
  EQUAL(((const struct ncclotf2_coll_api *)reader_last())->datatype, host_string_id("Broadcast"), "id after a new life");
  /* No room for more. */
  uint64_t used = host_header()->string_used;
  __atomic_store_n(&host_header()->string_used, NCCLOTF2_STRING_SIZE - 8, __ATOMIC_RELEASE);
  static char late[] = "a late one";
  d.collApi.func = late;
  CHECK(host_start(context, d), "refused");
  EQUAL(((const struct ncclotf2_coll_api *)reader_last())->func, 0, "id without room");
  __atomic_store_n(&host_header()->string_used, used, __ATOMIC_RELEASE);
  ncclProfiler_v6.finalize(context);
  CHECK(host_logged("names were not recorded"), "last line: %s", host_line);
}

TEST_MAIN({"every type of event becomes its record", all_types},
          {"net plugins are read where their layout is known", net_plugins},
          {"states and stops become one unit, with the argument the state defines", states_and_stops},
          {"handles of others are counted and ignored", foreign_handles},
          {"contexts of others are recorded as they are", contexts},
          {"types that nobody wants get NULL", unwanted_types},
          {"version 5 has no copy-engine events", version_5},
          {"names are stored once and follow their addresses", names})
