/* SPDX-License-Identifier: Apache-2.0 */
#include "events.h"

#define BIT(t) (1u << TYPE_##t)
#define CE (BIT(CE_COLL) | BIT(CE_SYNC) | BIT(CE_BATCH))
#define PROXY (BIT(PROXY_OP) | BIT(PROXY_STEP) | BIT(NET_PLUGIN))
#define TASK (PROXY | BIT(KERNEL_CH))

#define F(n, k, m) { n, FIELD_##k, offsetof(struct profiler_descr, m) }

/* Implied starts: NCCL 2.28–2.30, src/misc/profiler.cc and src/plugin/profiler.cc, one condition
 * per start function. */
const struct event_info event_info[TYPE_COUNT] = {
  [TYPE_GROUP] = { .name = "Group", .implied_by = BIT(GROUP) | BIT(COLL) | BIT(P2P) | TASK },
  [TYPE_COLL] = { .name = "Coll", .implied_by = BIT(COLL) | TASK, .fields = {
    F("seqNumber", U64, coll.seq), F("func", STRING, coll.func), F("sendBuff", POINTER, coll.send),
    F("recvBuff", POINTER, coll.recv), F("count", U64, coll.count), F("root", I32, coll.root),
    F("datatype", STRING, coll.datatype), F("nChannels", U8, coll.channels), F("nWarps", U8, coll.warps),
    F("algo", STRING, coll.algo), F("proto", STRING, coll.proto), F("parentGroup", HANDLE, coll.group) } },
  [TYPE_P2P] = { .name = "P2p", .implied_by = BIT(P2P) | TASK, .fields = {
    F("func", STRING, p2p.func), F("buff", POINTER, p2p.buff), F("datatype", STRING, p2p.datatype),
    F("count", U64, p2p.count), F("peer", I32, p2p.peer), F("nChannels", U8, p2p.channels),
    F("parentGroup", HANDLE, p2p.group) } },
  [TYPE_PROXY_OP] = { .name = "ProxyOp", .implied_by = PROXY, .fields = {
    F("pid", I32, proxy_op.pid), F("channelId", U8, proxy_op.channel), F("peer", I32, proxy_op.peer),
    F("nSteps", I32, proxy_op.steps), F("chunkSize", I32, proxy_op.chunk), F("isSend", I32, proxy_op.send) } },
  [TYPE_PROXY_STEP] = { .name = "ProxyStep", .implied_by = BIT(PROXY_STEP) | BIT(NET_PLUGIN), .fields = {
    F("step", I32, proxy_step.step) } },
  [TYPE_PROXY_CTRL] = { .name = "ProxyCtrl", .implied_by = BIT(PROXY_CTRL) },
  [TYPE_KERNEL_CH] = { .name = "KernelCh", .implied_by = BIT(KERNEL_CH), .fields = {
    F("channelId", U8, kernel_ch.channel), F("pTimer", U64, kernel_ch.ptimer) } },
  [TYPE_NET_PLUGIN] = { .name = "NetPlugin", .implied_by = BIT(NET_PLUGIN), .called_on_null = true, .fields = {
    F("id", I64, net_plugin.id), F("data", NET_DATA, net_plugin.data) } },
  [TYPE_GROUP_API] = { .name = "GroupApi",
    .implied_by = BIT(GROUP_API) | BIT(P2P_API) | BIT(COLL_API) | BIT(KERNEL_LAUNCH) | BIT(GROUP) | BIT(COLL) |
                  BIT(P2P) | TASK | CE, .fields = {
    F("graphCaptured", BOOL, group_api.captured), F("groupDepth", I32, group_api.depth) } },
  [TYPE_COLL_API] = { .name = "CollApi", .implied_by = BIT(COLL_API) | BIT(COLL) | TASK | CE, .stale_slot = true, .fields = {
    F("func", STRING, coll_api.func), F("count", U64, coll_api.count), F("datatype", STRING, coll_api.datatype),
    F("root", I32, coll_api.root), F("stream", POINTER, coll_api.stream), F("graphCaptured", BOOL, coll_api.captured) } },
  [TYPE_P2P_API] = { .name = "P2pApi", .implied_by = BIT(P2P_API) | BIT(P2P) | TASK, .fields = {
    F("func", STRING, p2p_api.func), F("count", U64, p2p_api.count), F("datatype", STRING, p2p_api.datatype),
    F("stream", POINTER, p2p_api.stream), F("graphCaptured", BOOL, p2p_api.captured) } },
  [TYPE_KERNEL_LAUNCH] = { .name = "KernelLaunch", .implied_by = BIT(KERNEL_LAUNCH), .fields = {
    F("stream", POINTER, kernel_launch.stream) } },
  [TYPE_CE_COLL] = { .name = "CeColl", .implied_by = CE, .fields = {
    F("seqNumber", U64, ce_coll.seq), F("func", STRING, ce_coll.func), F("sendBuff", POINTER, ce_coll.send),
    F("recvBuff", POINTER, ce_coll.recv), F("count", U64, ce_coll.count), F("root", I32, ce_coll.root),
    F("datatype", STRING, ce_coll.datatype), F("syncStrategy", STRING, ce_coll.strategy),
    F("intraBatchSync", BOOL, ce_coll.intra_batch), F("batchSize", U32, ce_coll.batch_size),
    F("numBatches", U32, ce_coll.batches), F("ceSeqNum", U32, ce_coll.ce_seq), F("stream", POINTER, ce_coll.stream) } },
  [TYPE_CE_SYNC] = { .name = "CeSync", .implied_by = BIT(CE_SYNC), .needs_parent = true, .fields = {
    F("isComplete", BOOL, ce_sync.complete), F("nRanks", I32, ce_sync.ranks) } },
  [TYPE_CE_BATCH] = { .name = "CeBatch", .implied_by = BIT(CE_BATCH), .needs_parent = true, .fields = {
    F("numOps", I32, ce_batch.ops), F("totalBytes", U64, ce_batch.bytes), F("useIntraSync", BOOL, ce_batch.intra) } },
};

const char *const state_names[STATE_COUNT] = {
  "ProxyOpSendPosted", "ProxyOpSendRemFifoWait", "ProxyOpSendTransmitted", "ProxyOpSendDone",
  "ProxyOpRecvPosted", "ProxyOpRecvReceived", "ProxyOpRecvTransmitted", "ProxyOpRecvDone",
  "ProxyStepSendGPUWait", "ProxyStepSendWait", "ProxyStepRecvWait", "ProxyStepRecvFlushWait",
  "ProxyStepRecvGPUWait", "ProxyCtrlIdle", "ProxyCtrlActive", "ProxyCtrlSleep", "ProxyCtrlWakeup",
  "ProxyCtrlAppend", "ProxyCtrlAppendEnd", "ProxyOpInProgress", "ProxyStepSendPeerWait",
  "NetPluginUpdate", "KernelChStop", "GroupStartApiStop", "GroupEndApiStart", "CeCollStart",
  "CeCollComplete", "CeSyncStart", "CeSyncComplete", "CeBatchStart", "CeBatchComplete",
};
