/* SPDX-License-Identifier: Apache-2.0 */
/* Code generated from plugin/api/generate/table.go by make generate; DO NOT EDIT. */
/* The compiler holds the declarations to the published sizes and offsets. */
#include "api_versions.h"
#include "shm.h"

#define SIZE(type, size) _Static_assert(sizeof(type) == (size) && _Alignof(type) == 8, #type)
#define AT(v, m, o, s) \
  _Static_assert(offsetof(struct ncclotf2_descr_v##v, m) == (o) && sizeof(((struct ncclotf2_descr_v##v *)0)->m) == (s), #m)

/* v2.23.4-1 src/include/nccl_profiler.h */
SIZE(struct ncclotf2_descr_v1, 120);
SIZE(struct ncclotf2_plugin_v1, 48);
AT(1, type, 0, 1); AT(1, parentObj, 8, 8); AT(1, rank, 16, 4); AT(1, coll.name, 24, 8); AT(1, coll.commHash, 32, 8);
AT(1, coll.seqNumber, 40, 8); AT(1, coll.func, 48, 1); AT(1, coll.sendBuff, 56, 8); AT(1, coll.recvBuff, 64, 8);
AT(1, coll.count, 72, 8); AT(1, coll.root, 80, 4); AT(1, coll.datatype, 84, 1); AT(1, coll.op, 88, 4);
AT(1, coll.trafficBytes, 96, 8); AT(1, coll.nMaxChannels, 104, 1); AT(1, coll.nWarps, 105, 1); AT(1, coll.algo, 106, 1);
AT(1, coll.proto, 107, 1); AT(1, coll.isCollnet, 108, 4); AT(1, coll.isNvls, 112, 4); AT(1, p2p.name, 24, 8);
AT(1, p2p.commHash, 32, 8); AT(1, p2p.func, 40, 1); AT(1, p2p.buff, 48, 8); AT(1, p2p.datatype, 56, 1);
AT(1, p2p.count, 64, 8); AT(1, p2p.peer, 72, 4); AT(1, proxyOp.pid, 24, 4); AT(1, proxyOp.channelId, 28, 1);
AT(1, proxyOp.peer, 32, 4); AT(1, proxyOp.nSteps, 36, 4); AT(1, proxyOp.chunkSize, 40, 4); AT(1, proxyOp.isSend, 44, 4);
AT(1, proxyStep.step, 24, 4);

/* v2.24.3-1 src/include/nccl_profiler.h */
SIZE(struct ncclotf2_descr_v2, 128);
SIZE(struct ncclotf2_plugin_v2, 48);
AT(2, type, 0, 1); AT(2, parentObj, 8, 8); AT(2, rank, 16, 4); AT(2, coll.name, 24, 8); AT(2, coll.commHash, 32, 8);
AT(2, coll.seqNumber, 40, 8); AT(2, coll.func, 48, 8); AT(2, coll.sendBuff, 56, 8); AT(2, coll.recvBuff, 64, 8);
AT(2, coll.count, 72, 8); AT(2, coll.root, 80, 4); AT(2, coll.datatype, 88, 8); AT(2, coll.trafficBytes, 96, 8);
AT(2, coll.nMaxChannels, 104, 1); AT(2, coll.nWarps, 105, 1); AT(2, coll.algo, 112, 8); AT(2, coll.proto, 120, 8);
AT(2, p2p.name, 24, 8); AT(2, p2p.commHash, 32, 8); AT(2, p2p.func, 40, 8); AT(2, p2p.buff, 48, 8);
AT(2, p2p.datatype, 56, 8); AT(2, p2p.count, 64, 8); AT(2, p2p.peer, 72, 4); AT(2, proxyOp.pid, 24, 4);
AT(2, proxyOp.channelId, 28, 1); AT(2, proxyOp.peer, 32, 4); AT(2, proxyOp.nSteps, 36, 4);
AT(2, proxyOp.chunkSize, 40, 4); AT(2, proxyOp.isSend, 44, 4); AT(2, proxyStep.step, 24, 4);

/* v2.26.2-1 src/include/plugin/profiler/profiler_v3.h */
SIZE(struct ncclotf2_descr_v3, 120);
SIZE(struct ncclotf2_plugin_v3, 48);
AT(3, type, 0, 1); AT(3, parentObj, 8, 8); AT(3, rank, 16, 4); AT(3, coll.name, 24, 8); AT(3, coll.commHash, 32, 8);
AT(3, coll.seqNumber, 40, 8); AT(3, coll.func, 48, 8); AT(3, coll.sendBuff, 56, 8); AT(3, coll.recvBuff, 64, 8);
AT(3, coll.count, 72, 8); AT(3, coll.root, 80, 4); AT(3, coll.datatype, 88, 8); AT(3, coll.nMaxChannels, 96, 1);
AT(3, coll.nWarps, 97, 1); AT(3, coll.algo, 104, 8); AT(3, coll.proto, 112, 8); AT(3, p2p.name, 24, 8);
AT(3, p2p.commHash, 32, 8); AT(3, p2p.func, 40, 8); AT(3, p2p.buff, 48, 8); AT(3, p2p.datatype, 56, 8);
AT(3, p2p.count, 64, 8); AT(3, p2p.peer, 72, 4); AT(3, proxyOp.pid, 24, 4); AT(3, proxyOp.channelId, 28, 1);
AT(3, proxyOp.peer, 32, 4); AT(3, proxyOp.nSteps, 36, 4); AT(3, proxyOp.chunkSize, 40, 4); AT(3, proxyOp.isSend, 44, 4);
AT(3, proxyStep.step, 24, 4); AT(3, kernelCh.channelId, 24, 1); AT(3, netPlugin.id, 24, 8);
AT(3, netPlugin.data, 32, 8);

/* v2.27.3-1 src/include/plugin/profiler/profiler_v4.h */
SIZE(struct ncclotf2_descr_v4, 104);
SIZE(struct ncclotf2_plugin_v4, 48);
AT(4, type, 0, 1); AT(4, parentObj, 8, 8); AT(4, rank, 16, 4); AT(4, coll.seqNumber, 24, 8); AT(4, coll.func, 32, 8);
AT(4, coll.sendBuff, 40, 8); AT(4, coll.recvBuff, 48, 8); AT(4, coll.count, 56, 8); AT(4, coll.root, 64, 4);
AT(4, coll.datatype, 72, 8); AT(4, coll.nChannels, 80, 1); AT(4, coll.nWarps, 81, 1); AT(4, coll.algo, 88, 8);
AT(4, coll.proto, 96, 8); AT(4, p2p.func, 24, 8); AT(4, p2p.buff, 32, 8); AT(4, p2p.datatype, 40, 8);
AT(4, p2p.count, 48, 8); AT(4, p2p.peer, 56, 4); AT(4, p2p.nChannels, 60, 1); AT(4, proxyOp.pid, 24, 4);
AT(4, proxyOp.channelId, 28, 1); AT(4, proxyOp.peer, 32, 4); AT(4, proxyOp.nSteps, 36, 4);
AT(4, proxyOp.chunkSize, 40, 4); AT(4, proxyOp.isSend, 44, 4); AT(4, proxyStep.step, 24, 4);
AT(4, kernelCh.channelId, 24, 1); AT(4, kernelCh.pTimer, 32, 8); AT(4, netPlugin.id, 24, 8);
AT(4, netPlugin.data, 32, 8);

/* v2.28.3-1 src/include/plugin/profiler/profiler_v5.h */
SIZE(struct ncclotf2_descr_v5, 112);
SIZE(struct ncclotf2_plugin_v5, 48);
AT(5, type, 0, 8); AT(5, parentObj, 8, 8); AT(5, rank, 16, 4); AT(5, coll.seqNumber, 24, 8); AT(5, coll.func, 32, 8);
AT(5, coll.sendBuff, 40, 8); AT(5, coll.recvBuff, 48, 8); AT(5, coll.count, 56, 8); AT(5, coll.root, 64, 4);
AT(5, coll.datatype, 72, 8); AT(5, coll.nChannels, 80, 1); AT(5, coll.nWarps, 81, 1); AT(5, coll.algo, 88, 8);
AT(5, coll.proto, 96, 8); AT(5, coll.parentGroup, 104, 8); AT(5, p2p.func, 24, 8); AT(5, p2p.buff, 32, 8);
AT(5, p2p.datatype, 40, 8); AT(5, p2p.count, 48, 8); AT(5, p2p.peer, 56, 4); AT(5, p2p.nChannels, 60, 1);
AT(5, p2p.parentGroup, 64, 8); AT(5, proxyOp.pid, 24, 4); AT(5, proxyOp.channelId, 28, 1); AT(5, proxyOp.peer, 32, 4);
AT(5, proxyOp.nSteps, 36, 4); AT(5, proxyOp.chunkSize, 40, 4); AT(5, proxyOp.isSend, 44, 4);
AT(5, proxyStep.step, 24, 4); AT(5, kernelCh.channelId, 24, 1); AT(5, kernelCh.pTimer, 32, 8);
AT(5, netPlugin.id, 24, 8); AT(5, netPlugin.data, 32, 8); AT(5, groupApi.graphCaptured, 24, 1);
AT(5, groupApi.groupDepth, 28, 4); AT(5, collApi.func, 24, 8); AT(5, collApi.count, 32, 8);
AT(5, collApi.datatype, 40, 8); AT(5, collApi.root, 48, 4); AT(5, collApi.stream, 56, 8);
AT(5, collApi.graphCaptured, 64, 1); AT(5, p2pApi.func, 24, 8); AT(5, p2pApi.count, 32, 8);
AT(5, p2pApi.datatype, 40, 8); AT(5, p2pApi.stream, 48, 8); AT(5, p2pApi.graphCaptured, 56, 1);
AT(5, kernelLaunch.stream, 24, 8);

/* v2.29.2-1 src/include/plugin/profiler/profiler_v6.h */
SIZE(struct ncclotf2_descr_v6, 112);
SIZE(struct ncclotf2_plugin_v6, 48);
AT(6, type, 0, 8); AT(6, parentObj, 8, 8); AT(6, rank, 16, 4); AT(6, coll.seqNumber, 24, 8); AT(6, coll.func, 32, 8);
AT(6, coll.sendBuff, 40, 8); AT(6, coll.recvBuff, 48, 8); AT(6, coll.count, 56, 8); AT(6, coll.root, 64, 4);
AT(6, coll.datatype, 72, 8); AT(6, coll.nChannels, 80, 1); AT(6, coll.nWarps, 81, 1); AT(6, coll.algo, 88, 8);
AT(6, coll.proto, 96, 8); AT(6, coll.parentGroup, 104, 8); AT(6, p2p.func, 24, 8); AT(6, p2p.buff, 32, 8);
AT(6, p2p.datatype, 40, 8); AT(6, p2p.count, 48, 8); AT(6, p2p.peer, 56, 4); AT(6, p2p.nChannels, 60, 1);
AT(6, p2p.parentGroup, 64, 8); AT(6, proxyOp.pid, 24, 4); AT(6, proxyOp.channelId, 28, 1); AT(6, proxyOp.peer, 32, 4);
AT(6, proxyOp.nSteps, 36, 4); AT(6, proxyOp.chunkSize, 40, 4); AT(6, proxyOp.isSend, 44, 4);
AT(6, proxyStep.step, 24, 4); AT(6, kernelCh.channelId, 24, 1); AT(6, kernelCh.pTimer, 32, 8);
AT(6, netPlugin.id, 24, 8); AT(6, netPlugin.data, 32, 8); AT(6, groupApi.graphCaptured, 24, 1);
AT(6, groupApi.groupDepth, 28, 4); AT(6, collApi.func, 24, 8); AT(6, collApi.count, 32, 8);
AT(6, collApi.datatype, 40, 8); AT(6, collApi.root, 48, 4); AT(6, collApi.stream, 56, 8);
AT(6, collApi.graphCaptured, 64, 1); AT(6, p2pApi.func, 24, 8); AT(6, p2pApi.count, 32, 8);
AT(6, p2pApi.datatype, 40, 8); AT(6, p2pApi.stream, 48, 8); AT(6, p2pApi.graphCaptured, 56, 1);
AT(6, kernelLaunch.stream, 24, 8); AT(6, ceColl.seqNumber, 24, 8); AT(6, ceColl.func, 32, 8);
AT(6, ceColl.sendBuff, 40, 8); AT(6, ceColl.recvBuff, 48, 8); AT(6, ceColl.count, 56, 8); AT(6, ceColl.root, 64, 4);
AT(6, ceColl.datatype, 72, 8); AT(6, ceColl.syncStrategy, 80, 8); AT(6, ceColl.intraBatchSync, 88, 1);
AT(6, ceColl.batchSize, 92, 4); AT(6, ceColl.numBatches, 96, 4); AT(6, ceColl.ceSeqNum, 100, 4);
AT(6, ceColl.stream, 104, 8); AT(6, ceCollSync.isComplete, 24, 1); AT(6, ceCollSync.nRanks, 28, 4);
AT(6, ceCollBatch.numOps, 24, 4); AT(6, ceCollBatch.totalBytes, 32, 8); AT(6, ceCollBatch.useIntraSync, 40, 1);

/* v2.31.2-1 src/include/plugin/profiler/profiler_v7.h */
SIZE(struct ncclotf2_descr_v7, 136);
SIZE(struct ncclotf2_plugin_v7, 48);
AT(7, type, 0, 8); AT(7, parentObj, 8, 8); AT(7, rank, 16, 4); AT(7, coll.seqNumber, 24, 8); AT(7, coll.func, 32, 8);
AT(7, coll.sendBuff, 40, 8); AT(7, coll.recvBuff, 48, 8); AT(7, coll.count, 56, 8); AT(7, coll.root, 64, 4);
AT(7, coll.datatype, 72, 8); AT(7, coll.nChannels, 80, 1); AT(7, coll.nWarps, 81, 1); AT(7, coll.algo, 88, 8);
AT(7, coll.proto, 96, 8); AT(7, coll.parentGroup, 104, 8); AT(7, coll.kernelVariant, 112, 8);
AT(7, coll.isSymColl, 120, 1); AT(7, coll.userTag, 128, 8); AT(7, p2p.func, 24, 8); AT(7, p2p.buff, 32, 8);
AT(7, p2p.datatype, 40, 8); AT(7, p2p.count, 48, 8); AT(7, p2p.peer, 56, 4); AT(7, p2p.nChannels, 60, 1);
AT(7, p2p.parentGroup, 64, 8); AT(7, p2p.userTag, 72, 8); AT(7, proxyOp.pid, 24, 4); AT(7, proxyOp.channelId, 28, 1);
AT(7, proxyOp.peer, 32, 4); AT(7, proxyOp.nSteps, 36, 4); AT(7, proxyOp.chunkSize, 40, 4); AT(7, proxyOp.isSend, 44, 4);
AT(7, proxyStep.step, 24, 4); AT(7, kernelCh.channelId, 24, 1); AT(7, kernelCh.pTimer, 32, 8);
AT(7, netPlugin.id, 24, 8); AT(7, netPlugin.data, 32, 8); AT(7, groupApi.graphCaptured, 24, 1);
AT(7, groupApi.groupDepth, 28, 4); AT(7, collApi.func, 24, 8); AT(7, collApi.count, 32, 8);
AT(7, collApi.datatype, 40, 8); AT(7, collApi.root, 48, 4); AT(7, collApi.stream, 56, 8);
AT(7, collApi.graphCaptured, 64, 1); AT(7, collApi.userTag, 72, 8); AT(7, p2pApi.func, 24, 8);
AT(7, p2pApi.count, 32, 8); AT(7, p2pApi.datatype, 40, 8); AT(7, p2pApi.stream, 48, 8);
AT(7, p2pApi.graphCaptured, 56, 1); AT(7, p2pApi.userTag, 64, 8); AT(7, kernelLaunch.stream, 24, 8);
AT(7, ceColl.seqNumber, 24, 8); AT(7, ceColl.func, 32, 8); AT(7, ceColl.sendBuff, 40, 8); AT(7, ceColl.recvBuff, 48, 8);
AT(7, ceColl.count, 56, 8); AT(7, ceColl.root, 64, 4); AT(7, ceColl.datatype, 72, 8); AT(7, ceColl.syncStrategy, 80, 8);
AT(7, ceColl.intraBatchSync, 88, 1); AT(7, ceColl.batchSize, 92, 4); AT(7, ceColl.numBatches, 96, 4);
AT(7, ceColl.ceSeqNum, 100, 4); AT(7, ceColl.stream, 104, 8); AT(7, ceColl.userTag, 112, 8);
AT(7, ceCollSync.isComplete, 24, 1); AT(7, ceCollSync.nRanks, 28, 4); AT(7, ceCollBatch.numOps, 24, 4);
AT(7, ceCollBatch.totalBytes, 32, 8); AT(7, ceCollBatch.useIntraSync, 40, 1); AT(7, kernelPhase.channelId, 24, 1);
AT(7, kernelPhase.phaseId, 25, 1); AT(7, kernelPhase.phaseName, 32, 8); AT(7, kernelPhase.pTimer, 40, 8);

SIZE(union ncclotf2_state_args_v1, 16);
SIZE(union ncclotf2_state_args, 8);
_Static_assert(offsetof(union ncclotf2_state_args_v1, proxyOp.steps) == 8, "steps");
SIZE(struct ncclotf2_coll, 128);
SIZE(struct ncclotf2_p2p, 96);
SIZE(struct ncclotf2_proxy_op, 64);
SIZE(struct ncclotf2_proxy_step, 64);
SIZE(struct ncclotf2_kernel_ch, 64);
SIZE(struct ncclotf2_net_plugin, 96);
SIZE(struct ncclotf2_group_api, 64);
SIZE(struct ncclotf2_coll_api, 96);
SIZE(struct ncclotf2_kernel_launch, 64);
SIZE(struct ncclotf2_ce_coll, 128);
SIZE(struct ncclotf2_ce_sync, 64);
SIZE(struct ncclotf2_ce_batch, 64);
SIZE(struct ncclotf2_kernel_phase, 64);
SIZE(struct ncclotf2_net_ib, 40);
SIZE(struct ncclotf2_net_socket, 24);
_Static_assert(offsetof(struct ncclotf2_net_ib, qp.device) == 8, "qp.device");
_Static_assert(offsetof(struct ncclotf2_net_ib, qp.wr_id) == 16, "qp.wr_id");
_Static_assert(offsetof(struct ncclotf2_net_ib, qp.opcode) == 24, "qp.opcode");
_Static_assert(offsetof(struct ncclotf2_net_ib, qp.qpNum) == 28, "qp.qpNum");
_Static_assert(offsetof(struct ncclotf2_net_ib, qp.length) == 32, "qp.length");
_Static_assert(offsetof(struct ncclotf2_net_socket, sock.fd) == 8, "sock.fd");
_Static_assert(offsetof(struct ncclotf2_net_socket, sock.op) == 12, "sock.op");
_Static_assert(offsetof(struct ncclotf2_net_socket, sock.length) == 16, "sock.length");
