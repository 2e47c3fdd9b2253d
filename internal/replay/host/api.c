/* SPDX-License-Identifier: Apache-2.0 */
/* Code generated from plugin/api/generate/table.go by make generate; DO NOT EDIT. */
#include "layouts.h"

const struct event_info event_info[TYPE_COUNT] = {
  [TYPE_GROUP] = {
    .name = "Group", .implied_by = 0xdf,
  },
  [TYPE_COLL] = {
    .name = "Coll", .implied_by = 0xda, .needed_parent = true,
    .fields = { { "seqNumber", FIELD_U64 }, { "func", FIELD_FUNC }, { "sendBuff", FIELD_POINTER },
    { "recvBuff", FIELD_POINTER }, { "count", FIELD_U64 }, { "root", FIELD_I32 }, { "datatype", FIELD_DATATYPE },
    { "nChannels", FIELD_U8 }, { "nWarps", FIELD_U8 }, { "algo", FIELD_ALGO }, { "proto", FIELD_PROTO },
    { "parentGroup", FIELD_HANDLE }, { "kernelVariant", FIELD_STRING }, { "isSymColl", FIELD_BOOL },
    { "userTag", FIELD_U64 }, { "name", FIELD_STRING }, { "commHash", FIELD_U64 }, { "trafficBytes", FIELD_U64 },
    { "op", FIELD_U32 }, { "isCollnet", FIELD_I32 }, { "isNvls", FIELD_I32 }, { NULL, FIELD_NONE } }
  },
  [TYPE_P2P] = {
    .name = "P2p", .implied_by = 0xdc, .needed_parent = true,
    .fields = { { "func", FIELD_FUNC }, { "buff", FIELD_POINTER }, { "datatype", FIELD_DATATYPE },
    { "count", FIELD_U64 }, { "peer", FIELD_I32 }, { "nChannels", FIELD_U8 }, { "parentGroup", FIELD_HANDLE },
    { "userTag", FIELD_U64 }, { "name", FIELD_STRING }, { "commHash", FIELD_U64 }, { NULL, FIELD_NONE } }
  },
  [TYPE_PROXY_OP] = {
    .name = "ProxyOp", .implied_by = 0x98,
    .fields = { { "pid", FIELD_I32 }, { "channelId", FIELD_U8 }, { "peer", FIELD_I32 }, { "nSteps", FIELD_I32 },
    { "chunkSize", FIELD_I32 }, { "isSend", FIELD_I32 }, { "commHash", FIELD_U64 }, { "opCount", FIELD_I64 },
    { "traceFuncIdx", FIELD_I32 }, { "traceProtocol", FIELD_I32 }, { "tracePattern", FIELD_I32 },
    { "traceTotalBytes", FIELD_U32 }, { "proxyNbytes", FIELD_U32 }, { "rawProxyNsteps", FIELD_I32 },
    { NULL, FIELD_NONE } }
  },
  [TYPE_PROXY_STEP] = {
    .name = "ProxyStep", .implied_by = 0x90, .needed_parent = true,
    .fields = { { "step", FIELD_I32 }, { NULL, FIELD_NONE } }
  },
  [TYPE_PROXY_CTRL] = {
    .name = "ProxyCtrl", .implied_by = 0x20,
  },
  [TYPE_KERNEL_CH] = {
    .name = "KernelCh", .implied_by = 0x40,
    .fields = { { "channelId", FIELD_U8 }, { "pTimer", FIELD_U64 }, { NULL, FIELD_NONE } }
  },
  [TYPE_NET_PLUGIN] = {
    .name = "NetPlugin", .implied_by = 0x80, .called_on_null = true,
    .fields = { { "id", FIELD_I64 }, { "data", FIELD_NET_DATA }, { NULL, FIELD_NONE } }
  },
  [TYPE_GROUP_API] = {
    .name = "GroupApi", .implied_by = 0x7fdf,
    .fields = { { "graphCaptured", FIELD_BOOL }, { "groupDepth", FIELD_I32 }, { NULL, FIELD_NONE } }
  },
  [TYPE_COLL_API] = {
    .name = "CollApi", .implied_by = 0x72da, .stale_slot = true,
    .fields = { { "func", FIELD_STRING }, { "count", FIELD_U64 }, { "datatype", FIELD_STRING }, { "root", FIELD_I32 },
    { "stream", FIELD_POINTER }, { "graphCaptured", FIELD_BOOL }, { "userTag", FIELD_U64 }, { NULL, FIELD_NONE } }
  },
  [TYPE_P2P_API] = {
    .name = "P2pApi", .implied_by = 0x4dc,
    .fields = { { "func", FIELD_STRING }, { "count", FIELD_U64 }, { "datatype", FIELD_STRING },
    { "stream", FIELD_POINTER }, { "graphCaptured", FIELD_BOOL }, { "userTag", FIELD_U64 }, { NULL, FIELD_NONE } }
  },
  [TYPE_KERNEL_LAUNCH] = {
    .name = "KernelLaunch", .implied_by = 0x800,
    .fields = { { "stream", FIELD_POINTER }, { NULL, FIELD_NONE } }
  },
  [TYPE_CE_COLL] = {
    .name = "CeColl", .implied_by = 0x7000,
    .fields = { { "seqNumber", FIELD_U64 }, { "func", FIELD_STRING }, { "sendBuff", FIELD_POINTER },
    { "recvBuff", FIELD_POINTER }, { "count", FIELD_U64 }, { "root", FIELD_I32 }, { "datatype", FIELD_STRING },
    { "syncStrategy", FIELD_STRING }, { "intraBatchSync", FIELD_BOOL }, { "batchSize", FIELD_U32 },
    { "numBatches", FIELD_U32 }, { "ceSeqNum", FIELD_U32 }, { "stream", FIELD_POINTER }, { "userTag", FIELD_U64 },
    { NULL, FIELD_NONE } }
  },
  [TYPE_CE_SYNC] = {
    .name = "CeSync", .implied_by = 0x2000, .needs_parent = true,
    .fields = { { "isComplete", FIELD_BOOL }, { "nRanks", FIELD_I32 }, { NULL, FIELD_NONE } }
  },
  [TYPE_CE_BATCH] = {
    .name = "CeBatch", .implied_by = 0x4000, .needs_parent = true,
    .fields = { { "numOps", FIELD_I32 }, { "totalBytes", FIELD_U64 }, { "useIntraSync", FIELD_BOOL },
    { NULL, FIELD_NONE } }
  },
  [TYPE_KERNEL_PHASE] = {
    .name = "KernelPhase", .implied_by = 0x8000,
    .fields = { { "channelId", FIELD_U8 }, { "phaseId", FIELD_U8 }, { "phaseName", FIELD_STRING },
    { "pTimer", FIELD_U64 }, { NULL, FIELD_NONE } }
  },
  [TYPE_PROXY_DIAG] = { .name = "ProxyDiag", .implied_by = PROXY_DIAG_BIT },
  [TYPE_OTHER] = { .name = "?", .fields = { { "type", FIELD_U64 } } },
};

const char *const state_names[STATE_COUNT + 1] = {
  "ProxyOpSendPosted", "ProxyOpSendRemFifoWait", "ProxyOpSendTransmitted", "ProxyOpSendDone", "ProxyOpRecvPosted",
  "ProxyOpRecvReceived", "ProxyOpRecvTransmitted", "ProxyOpRecvDone", "ProxyStepSendGPUWait", "ProxyStepSendWait",
  "ProxyStepRecvWait", "ProxyStepRecvFlushWait", "ProxyStepRecvGPUWait", "ProxyCtrlIdle", "ProxyCtrlActive",
  "ProxyCtrlSleep", "ProxyCtrlWakeup", "ProxyCtrlAppend", "ProxyCtrlAppendEnd", "ProxyOpInProgress",
  "ProxyStepSendPeerWait", "NetPluginUpdate", "KernelChStop", "GroupStartApiStop", "GroupEndApiStart", "CeCollStart",
  "CeCollComplete", "CeSyncStart", "CeSyncComplete", "CeBatchStart", "CeBatchComplete", "KernelPhaseStop", "?",
};

const struct layout layouts[VERSION_COUNT] = {
  { 7, 31, "ncclProfiler_v7", 136, 8, 8, INIT_V5, 0xffff, 31, false, {
    [TYPE_COLL] = { [COLL_seqNumber] = 24, [COLL_func] = 32, [COLL_sendBuff] = 40, [COLL_recvBuff] = 48,
    [COLL_count] = 56, [COLL_root] = 64, [COLL_datatype] = 72, [COLL_nChannels] = 80, [COLL_nWarps] = 81,
    [COLL_algo] = 88, [COLL_proto] = 96, [COLL_parentGroup] = 104, [COLL_kernelVariant] = 112, [COLL_isSymColl] = 120,
    [COLL_userTag] = 128 },
    [TYPE_P2P] = { [P2P_func] = 24, [P2P_buff] = 32, [P2P_datatype] = 40, [P2P_count] = 48, [P2P_peer] = 56,
    [P2P_nChannels] = 60, [P2P_parentGroup] = 64, [P2P_userTag] = 72 },
    [TYPE_PROXY_OP] = { [PROXY_OP_pid] = 24, [PROXY_OP_channelId] = 28, [PROXY_OP_peer] = 32, [PROXY_OP_nSteps] = 36,
    [PROXY_OP_chunkSize] = 40, [PROXY_OP_isSend] = 44 },
    [TYPE_PROXY_STEP] = { [PROXY_STEP_step] = 24 },
    [TYPE_KERNEL_CH] = { [KERNEL_CH_channelId] = 24, [KERNEL_CH_pTimer] = 32 },
    [TYPE_NET_PLUGIN] = { [NET_PLUGIN_id] = 24, [NET_PLUGIN_data] = 32 },
    [TYPE_GROUP_API] = { [GROUP_API_graphCaptured] = 24, [GROUP_API_groupDepth] = 28 },
    [TYPE_COLL_API] = { [COLL_API_func] = 24, [COLL_API_count] = 32, [COLL_API_datatype] = 40, [COLL_API_root] = 48,
    [COLL_API_stream] = 56, [COLL_API_graphCaptured] = 64, [COLL_API_userTag] = 72 },
    [TYPE_P2P_API] = { [P2P_API_func] = 24, [P2P_API_count] = 32, [P2P_API_datatype] = 40, [P2P_API_stream] = 48,
    [P2P_API_graphCaptured] = 56, [P2P_API_userTag] = 64 },
    [TYPE_KERNEL_LAUNCH] = { [KERNEL_LAUNCH_stream] = 24 },
    [TYPE_CE_COLL] = { [CE_COLL_seqNumber] = 24, [CE_COLL_func] = 32, [CE_COLL_sendBuff] = 40, [CE_COLL_recvBuff] = 48,
    [CE_COLL_count] = 56, [CE_COLL_root] = 64, [CE_COLL_datatype] = 72, [CE_COLL_syncStrategy] = 80,
    [CE_COLL_intraBatchSync] = 88, [CE_COLL_batchSize] = 92, [CE_COLL_numBatches] = 96, [CE_COLL_ceSeqNum] = 100,
    [CE_COLL_stream] = 104, [CE_COLL_userTag] = 112 },
    [TYPE_CE_SYNC] = { [CE_SYNC_isComplete] = 24, [CE_SYNC_nRanks] = 28 },
    [TYPE_CE_BATCH] = { [CE_BATCH_numOps] = 24, [CE_BATCH_totalBytes] = 32, [CE_BATCH_useIntraSync] = 40 },
    [TYPE_KERNEL_PHASE] = { [KERNEL_PHASE_channelId] = 24, [KERNEL_PHASE_phaseId] = 25, [KERNEL_PHASE_phaseName] = 32,
    [KERNEL_PHASE_pTimer] = 40 }, } },
  { 6, 29, "ncclProfiler_v6", 112, 8, 8, INIT_V5, 0x7fff, 30, false, {
    [TYPE_COLL] = { [COLL_seqNumber] = 24, [COLL_func] = 32, [COLL_sendBuff] = 40, [COLL_recvBuff] = 48,
    [COLL_count] = 56, [COLL_root] = 64, [COLL_datatype] = 72, [COLL_nChannels] = 80, [COLL_nWarps] = 81,
    [COLL_algo] = 88, [COLL_proto] = 96, [COLL_parentGroup] = 104 },
    [TYPE_P2P] = { [P2P_func] = 24, [P2P_buff] = 32, [P2P_datatype] = 40, [P2P_count] = 48, [P2P_peer] = 56,
    [P2P_nChannels] = 60, [P2P_parentGroup] = 64 },
    [TYPE_PROXY_OP] = { [PROXY_OP_pid] = 24, [PROXY_OP_channelId] = 28, [PROXY_OP_peer] = 32, [PROXY_OP_nSteps] = 36,
    [PROXY_OP_chunkSize] = 40, [PROXY_OP_isSend] = 44 },
    [TYPE_PROXY_STEP] = { [PROXY_STEP_step] = 24 },
    [TYPE_KERNEL_CH] = { [KERNEL_CH_channelId] = 24, [KERNEL_CH_pTimer] = 32 },
    [TYPE_NET_PLUGIN] = { [NET_PLUGIN_id] = 24, [NET_PLUGIN_data] = 32 },
    [TYPE_GROUP_API] = { [GROUP_API_graphCaptured] = 24, [GROUP_API_groupDepth] = 28 },
    [TYPE_COLL_API] = { [COLL_API_func] = 24, [COLL_API_count] = 32, [COLL_API_datatype] = 40, [COLL_API_root] = 48,
    [COLL_API_stream] = 56, [COLL_API_graphCaptured] = 64 },
    [TYPE_P2P_API] = { [P2P_API_func] = 24, [P2P_API_count] = 32, [P2P_API_datatype] = 40, [P2P_API_stream] = 48,
    [P2P_API_graphCaptured] = 56 },
    [TYPE_KERNEL_LAUNCH] = { [KERNEL_LAUNCH_stream] = 24 },
    [TYPE_CE_COLL] = { [CE_COLL_seqNumber] = 24, [CE_COLL_func] = 32, [CE_COLL_sendBuff] = 40, [CE_COLL_recvBuff] = 48,
    [CE_COLL_count] = 56, [CE_COLL_root] = 64, [CE_COLL_datatype] = 72, [CE_COLL_syncStrategy] = 80,
    [CE_COLL_intraBatchSync] = 88, [CE_COLL_batchSize] = 92, [CE_COLL_numBatches] = 96, [CE_COLL_ceSeqNum] = 100,
    [CE_COLL_stream] = 104 },
    [TYPE_CE_SYNC] = { [CE_SYNC_isComplete] = 24, [CE_SYNC_nRanks] = 28 },
    [TYPE_CE_BATCH] = { [CE_BATCH_numOps] = 24, [CE_BATCH_totalBytes] = 32, [CE_BATCH_useIntraSync] = 40 }, } },
  { 5, 28, "ncclProfiler_v5", 112, 8, 8, INIT_V5, 0xfff, 24, false, {
    [TYPE_COLL] = { [COLL_seqNumber] = 24, [COLL_func] = 32, [COLL_sendBuff] = 40, [COLL_recvBuff] = 48,
    [COLL_count] = 56, [COLL_root] = 64, [COLL_datatype] = 72, [COLL_nChannels] = 80, [COLL_nWarps] = 81,
    [COLL_algo] = 88, [COLL_proto] = 96, [COLL_parentGroup] = 104 },
    [TYPE_P2P] = { [P2P_func] = 24, [P2P_buff] = 32, [P2P_datatype] = 40, [P2P_count] = 48, [P2P_peer] = 56,
    [P2P_nChannels] = 60, [P2P_parentGroup] = 64 },
    [TYPE_PROXY_OP] = { [PROXY_OP_pid] = 24, [PROXY_OP_channelId] = 28, [PROXY_OP_peer] = 32, [PROXY_OP_nSteps] = 36,
    [PROXY_OP_chunkSize] = 40, [PROXY_OP_isSend] = 44 },
    [TYPE_PROXY_STEP] = { [PROXY_STEP_step] = 24 },
    [TYPE_KERNEL_CH] = { [KERNEL_CH_channelId] = 24, [KERNEL_CH_pTimer] = 32 },
    [TYPE_NET_PLUGIN] = { [NET_PLUGIN_id] = 24, [NET_PLUGIN_data] = 32 },
    [TYPE_GROUP_API] = { [GROUP_API_graphCaptured] = 24, [GROUP_API_groupDepth] = 28 },
    [TYPE_COLL_API] = { [COLL_API_func] = 24, [COLL_API_count] = 32, [COLL_API_datatype] = 40, [COLL_API_root] = 48,
    [COLL_API_stream] = 56, [COLL_API_graphCaptured] = 64 },
    [TYPE_P2P_API] = { [P2P_API_func] = 24, [P2P_API_count] = 32, [P2P_API_datatype] = 40, [P2P_API_stream] = 48,
    [P2P_API_graphCaptured] = 56 },
    [TYPE_KERNEL_LAUNCH] = { [KERNEL_LAUNCH_stream] = 24 }, } },
  { 4, 27, "ncclProfiler_v4", 104, 8, 1, INIT_V4, 0xff, 22, false, {
    [TYPE_COLL] = { [COLL_seqNumber] = 24, [COLL_func] = 32, [COLL_sendBuff] = 40, [COLL_recvBuff] = 48,
    [COLL_count] = 56, [COLL_root] = 64, [COLL_datatype] = 72, [COLL_nChannels] = 80, [COLL_nWarps] = 81,
    [COLL_algo] = 88, [COLL_proto] = 96 },
    [TYPE_P2P] = { [P2P_func] = 24, [P2P_buff] = 32, [P2P_datatype] = 40, [P2P_count] = 48, [P2P_peer] = 56,
    [P2P_nChannels] = 60 },
    [TYPE_PROXY_OP] = { [PROXY_OP_pid] = 24, [PROXY_OP_channelId] = 28, [PROXY_OP_peer] = 32, [PROXY_OP_nSteps] = 36,
    [PROXY_OP_chunkSize] = 40, [PROXY_OP_isSend] = 44 },
    [TYPE_PROXY_STEP] = { [PROXY_STEP_step] = 24 },
    [TYPE_KERNEL_CH] = { [KERNEL_CH_channelId] = 24, [KERNEL_CH_pTimer] = 32 },
    [TYPE_NET_PLUGIN] = { [NET_PLUGIN_id] = 24, [NET_PLUGIN_data] = 32 }, } },
  { 3, 26, "ncclProfiler_v3", 120, 16, 1, INIT_V1, 0xff, 18, false, {
    [TYPE_COLL] = { [COLL_seqNumber] = 40, [COLL_func] = 48, [COLL_sendBuff] = 56, [COLL_recvBuff] = 64,
    [COLL_count] = 72, [COLL_root] = 80, [COLL_datatype] = 88, [COLL_nChannels] = 96, [COLL_nWarps] = 97,
    [COLL_algo] = 104, [COLL_proto] = 112, [COLL_name] = 24, [COLL_commHash] = 32 },
    [TYPE_P2P] = { [P2P_func] = 40, [P2P_buff] = 48, [P2P_datatype] = 56, [P2P_count] = 64, [P2P_peer] = 72,
    [P2P_name] = 24, [P2P_commHash] = 32 },
    [TYPE_PROXY_OP] = { [PROXY_OP_pid] = 24, [PROXY_OP_channelId] = 28, [PROXY_OP_peer] = 32, [PROXY_OP_nSteps] = 36,
    [PROXY_OP_chunkSize] = 40, [PROXY_OP_isSend] = 44 },
    [TYPE_PROXY_STEP] = { [PROXY_STEP_step] = 24 },
    [TYPE_KERNEL_CH] = { [KERNEL_CH_channelId] = 24 },
    [TYPE_NET_PLUGIN] = { [NET_PLUGIN_id] = 24, [NET_PLUGIN_data] = 32 }, } },
  { 2, 24, "ncclProfiler_v2", 128, 16, 1, INIT_V1, 0x3f, 18, false, {
    [TYPE_COLL] = { [COLL_seqNumber] = 40, [COLL_func] = 48, [COLL_sendBuff] = 56, [COLL_recvBuff] = 64,
    [COLL_count] = 72, [COLL_root] = 80, [COLL_datatype] = 88, [COLL_nChannels] = 104, [COLL_nWarps] = 105,
    [COLL_algo] = 112, [COLL_proto] = 120, [COLL_name] = 24, [COLL_commHash] = 32, [COLL_trafficBytes] = 96 },
    [TYPE_P2P] = { [P2P_func] = 40, [P2P_buff] = 48, [P2P_datatype] = 56, [P2P_count] = 64, [P2P_peer] = 72,
    [P2P_name] = 24, [P2P_commHash] = 32 },
    [TYPE_PROXY_OP] = { [PROXY_OP_pid] = 24, [PROXY_OP_channelId] = 28, [PROXY_OP_peer] = 32, [PROXY_OP_nSteps] = 36,
    [PROXY_OP_chunkSize] = 40, [PROXY_OP_isSend] = 44 },
    [TYPE_PROXY_STEP] = { [PROXY_STEP_step] = 24 }, } },
  { 1, 23, "ncclProfiler_v1", 120, 16, 1, INIT_V1, 0x3f, 18, true, {
    [TYPE_COLL] = { [COLL_seqNumber] = 40, [COLL_func] = 48, [COLL_sendBuff] = 56, [COLL_recvBuff] = 64,
    [COLL_count] = 72, [COLL_root] = 80, [COLL_datatype] = 84, [COLL_nChannels] = 104, [COLL_nWarps] = 105,
    [COLL_algo] = 106, [COLL_proto] = 107, [COLL_name] = 24, [COLL_commHash] = 32, [COLL_trafficBytes] = 96,
    [COLL_op] = 88, [COLL_isCollnet] = 108, [COLL_isNvls] = 112 },
    [TYPE_P2P] = { [P2P_func] = 40, [P2P_buff] = 48, [P2P_datatype] = 56, [P2P_count] = 64, [P2P_peer] = 72,
    [P2P_name] = 24, [P2P_commHash] = 32 },
    [TYPE_PROXY_OP] = { [PROXY_OP_pid] = 24, [PROXY_OP_channelId] = 28, [PROXY_OP_peer] = 32, [PROXY_OP_nSteps] = 36,
    [PROXY_OP_chunkSize] = 40, [PROXY_OP_isSend] = 44 },
    [TYPE_PROXY_STEP] = { [PROXY_STEP_step] = 24 }, } },
};

const struct layout layout_rccl_v6 =
  { 6, 29, "ncclProfiler_v6", 112, 24, 8, INIT_V5, 0x7fff | TYPE_BIT(PROXY_DIAG), 31, false, {
    [TYPE_COLL] = { [COLL_seqNumber] = 24, [COLL_func] = 32, [COLL_sendBuff] = 40, [COLL_recvBuff] = 48,
    [COLL_count] = 56, [COLL_root] = 64, [COLL_datatype] = 72, [COLL_nChannels] = 80, [COLL_nWarps] = 81,
    [COLL_algo] = 88, [COLL_proto] = 96, [COLL_parentGroup] = 104 },
    [TYPE_P2P] = { [P2P_func] = 24, [P2P_buff] = 32, [P2P_datatype] = 40, [P2P_count] = 48, [P2P_peer] = 56,
    [P2P_nChannels] = 60, [P2P_parentGroup] = 64 },
    [TYPE_PROXY_OP] = { [PROXY_OP_pid] = 24, [PROXY_OP_channelId] = 28, [PROXY_OP_peer] = 32, [PROXY_OP_nSteps] = 36,
    [PROXY_OP_chunkSize] = 40, [PROXY_OP_isSend] = 44, [PROXY_OP_commHash] = 48, [PROXY_OP_opCount] = 56,
    [PROXY_OP_traceFuncIdx] = 64, [PROXY_OP_traceProtocol] = 68, [PROXY_OP_tracePattern] = 72,
    [PROXY_OP_traceTotalBytes] = 76, [PROXY_OP_proxyNbytes] = 80, [PROXY_OP_rawProxyNsteps] = 84 },
    [TYPE_PROXY_STEP] = { [PROXY_STEP_step] = 24 },
    [TYPE_KERNEL_CH] = { [KERNEL_CH_channelId] = 24, [KERNEL_CH_pTimer] = 32 },
    [TYPE_NET_PLUGIN] = { [NET_PLUGIN_id] = 24, [NET_PLUGIN_data] = 32 },
    [TYPE_GROUP_API] = { [GROUP_API_graphCaptured] = 24, [GROUP_API_groupDepth] = 28 },
    [TYPE_COLL_API] = { [COLL_API_func] = 24, [COLL_API_count] = 32, [COLL_API_datatype] = 40, [COLL_API_root] = 48,
    [COLL_API_stream] = 56, [COLL_API_graphCaptured] = 64 },
    [TYPE_P2P_API] = { [P2P_API_func] = 24, [P2P_API_count] = 32, [P2P_API_datatype] = 40, [P2P_API_stream] = 48,
    [P2P_API_graphCaptured] = 56 },
    [TYPE_KERNEL_LAUNCH] = { [KERNEL_LAUNCH_stream] = 24 },
    [TYPE_CE_COLL] = { [CE_COLL_seqNumber] = 24, [CE_COLL_func] = 32, [CE_COLL_sendBuff] = 40, [CE_COLL_recvBuff] = 48,
    [CE_COLL_count] = 56, [CE_COLL_root] = 64, [CE_COLL_datatype] = 72, [CE_COLL_syncStrategy] = 80,
    [CE_COLL_intraBatchSync] = 88, [CE_COLL_batchSize] = 92, [CE_COLL_numBatches] = 96, [CE_COLL_ceSeqNum] = 100,
    [CE_COLL_stream] = 104 },
    [TYPE_CE_SYNC] = { [CE_SYNC_isComplete] = 24, [CE_SYNC_nRanks] = 28 },
    [TYPE_CE_BATCH] = { [CE_BATCH_numOps] = 24, [CE_BATCH_totalBytes] = 32, [CE_BATCH_useIntraSync] = 40 }, } };
