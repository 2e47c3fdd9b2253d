/* SPDX-License-Identifier: Apache-2.0
 *
 * The descriptors of all versions, with the names that NCCL's headers profiler_v1.h to profiler_v7.h
 * give the members (nMaxChannels of versions 1 to 3 is nChannels here). The offsets asserted below
 * them are those that a compiler gives for these headers.
 */
#include "layouts.h"

#define HEAD_U8 uint8_t type; void *parentObj; int rank;
#define HEAD_U64 uint64_t type; void *parentObj; int rank;

#define P2P_V2_MEMBERS \
  struct { const char *name; uint64_t commHash; const char *func; void *buff; const char *datatype; size_t count; int peer; } p2p;
#define P2P_V4_MEMBERS const char *func; void *buff; const char *datatype; size_t count; int peer; uint8_t nChannels;
#define COLL_V4_MEMBERS \
  uint64_t seqNumber; const char *func; const void *sendBuff; void *recvBuff; size_t count; int root; \
  const char *datatype; uint8_t nChannels, nWarps; const char *algo, *proto;
#define PROXY_OP_MEMBERS int pid; uint8_t channelId; int peer, nSteps, chunkSize, isSend;
#define PROXY_STEP_MEMBERS struct { int step; } proxyStep;
#define KERNEL_CH_V4_MEMBERS struct { uint8_t channelId; uint64_t pTimer; } kernelCh;
#define NET_PLUGIN_MEMBERS struct { int64_t id; void *data; } netPlugin;
#define GROUP_API_MEMBERS struct { bool graphCaptured; int groupDepth; } groupApi;
#define COLL_API_MEMBERS const char *func; size_t count; const char *datatype; int root; void *stream; bool graphCaptured;
#define P2P_API_MEMBERS const char *func; size_t count; const char *datatype; void *stream; bool graphCaptured;
#define KERNEL_LAUNCH_MEMBERS struct { void *stream; } kernelLaunch;
#define CE_COLL_MEMBERS \
  uint64_t seqNumber; const char *func; const void *sendBuff; void *recvBuff; size_t count; int root; \
  const char *datatype, *syncStrategy; bool intraBatchSync; uint32_t batchSize, numBatches, ceSeqNum; void *stream;
#define CE_PARTS_MEMBERS \
  struct { bool isComplete; int nRanks; } ceCollSync; struct { int numOps; size_t totalBytes; bool useIntraSync; } ceCollBatch;

struct descr_v1 {
  HEAD_U8
  union {
    struct {
      const char *name; uint64_t commHash, seqNumber; uint8_t func; const void *sendBuff; void *recvBuff; size_t count;
      int root; uint8_t datatype; uint32_t op; size_t trafficBytes; uint8_t nChannels, nWarps, algo, proto;
      int isCollnet, isNvls;
    } coll;
    struct { const char *name; uint64_t commHash; uint8_t func; void *buff; uint8_t datatype; size_t count; int peer; } p2p;
    struct { PROXY_OP_MEMBERS } proxyOp;
    PROXY_STEP_MEMBERS
  };
};

struct descr_v2 {
  HEAD_U8
  union {
    struct {
      const char *name; uint64_t commHash, seqNumber; const char *func; const void *sendBuff; void *recvBuff; size_t count;
      int root; const char *datatype; size_t trafficBytes; uint8_t nChannels, nWarps; const char *algo, *proto;
    } coll;
    P2P_V2_MEMBERS
    struct { PROXY_OP_MEMBERS } proxyOp;
    PROXY_STEP_MEMBERS
  };
};

struct descr_v3 {
  HEAD_U8
  union {
    struct {
      const char *name; uint64_t commHash, seqNumber; const char *func; const void *sendBuff; void *recvBuff; size_t count;
      int root; const char *datatype; uint8_t nChannels, nWarps; const char *algo, *proto;
    } coll;
    P2P_V2_MEMBERS
    struct { PROXY_OP_MEMBERS } proxyOp;
    PROXY_STEP_MEMBERS
    struct { uint8_t channelId; } kernelCh;
    NET_PLUGIN_MEMBERS
  };
};

struct descr_v4 {
  HEAD_U8
  union {
    struct { COLL_V4_MEMBERS } coll;
    struct { P2P_V4_MEMBERS } p2p;
    struct { PROXY_OP_MEMBERS } proxyOp;
    PROXY_STEP_MEMBERS
    KERNEL_CH_V4_MEMBERS
    NET_PLUGIN_MEMBERS
  };
};

struct descr_v5 {
  HEAD_U64
  union {
    GROUP_API_MEMBERS
    struct { COLL_API_MEMBERS } collApi;
    struct { P2P_API_MEMBERS } p2pApi;
    KERNEL_LAUNCH_MEMBERS
    struct { COLL_V4_MEMBERS void *parentGroup; } coll;
    struct { P2P_V4_MEMBERS void *parentGroup; } p2p;
    struct { PROXY_OP_MEMBERS } proxyOp;
    PROXY_STEP_MEMBERS
    KERNEL_CH_V4_MEMBERS
    NET_PLUGIN_MEMBERS
  };
};

struct descr_v6 {
  HEAD_U64
  union {
    GROUP_API_MEMBERS
    struct { COLL_API_MEMBERS } collApi;
    struct { P2P_API_MEMBERS } p2pApi;
    KERNEL_LAUNCH_MEMBERS
    struct { COLL_V4_MEMBERS void *parentGroup; } coll;
    struct { P2P_V4_MEMBERS void *parentGroup; } p2p;
    struct {
      PROXY_OP_MEMBERS
      /* RCCL's only: */
      uint64_t commHash; int64_t opCount; int32_t traceFuncIdx, traceProtocol, tracePattern;
      uint32_t traceTotalBytes, proxyNbytes; int rawProxyNsteps;
    } proxyOp;
    PROXY_STEP_MEMBERS
    KERNEL_CH_V4_MEMBERS
    NET_PLUGIN_MEMBERS
    struct { CE_COLL_MEMBERS } ceColl;
    CE_PARTS_MEMBERS
  };
};

struct descr_v7 {
  HEAD_U64
  union {
    GROUP_API_MEMBERS
    struct { COLL_API_MEMBERS uint64_t userTag; } collApi;
    struct { P2P_API_MEMBERS uint64_t userTag; } p2pApi;
    KERNEL_LAUNCH_MEMBERS
    struct { COLL_V4_MEMBERS void *parentGroup; const char *kernelVariant; bool isSymColl; uint64_t userTag; } coll;
    struct { P2P_V4_MEMBERS void *parentGroup; uint64_t userTag; } p2p;
    struct { PROXY_OP_MEMBERS } proxyOp;
    PROXY_STEP_MEMBERS
    KERNEL_CH_V4_MEMBERS
    NET_PLUGIN_MEMBERS
    struct { CE_COLL_MEMBERS uint64_t userTag; } ceColl;
    CE_PARTS_MEMBERS
    struct { uint8_t channelId, phaseId; const char *phaseName; uint64_t pTimer; } kernelPhase;
  };
};

#define SIZE(v, size) _Static_assert(sizeof(struct descr_v##v) == (size), "size of the descriptor of version " #v)
#define AT(v, member, offset) \
  _Static_assert(offsetof(struct descr_v##v, member) == (offset), "offset of " #member " in version " #v)
SIZE(1, 120); AT(1, type, 0); AT(1, parentObj, 8); AT(1, rank, 16);
AT(1, coll.name, 24); AT(1, coll.commHash, 32); AT(1, coll.seqNumber, 40); AT(1, coll.func, 48); AT(1, coll.sendBuff, 56);
AT(1, coll.recvBuff, 64); AT(1, coll.count, 72); AT(1, coll.root, 80); AT(1, coll.datatype, 84); AT(1, coll.op, 88);
AT(1, coll.trafficBytes, 96); AT(1, coll.nChannels, 104); AT(1, coll.nWarps, 105); AT(1, coll.algo, 106);
AT(1, coll.proto, 107); AT(1, coll.isCollnet, 108); AT(1, coll.isNvls, 112);
AT(1, p2p.name, 24); AT(1, p2p.commHash, 32); AT(1, p2p.func, 40); AT(1, p2p.buff, 48); AT(1, p2p.datatype, 56);
AT(1, p2p.count, 64); AT(1, p2p.peer, 72); AT(1, proxyOp.pid, 24); AT(1, proxyOp.channelId, 28); AT(1, proxyOp.peer, 32);
AT(1, proxyOp.nSteps, 36); AT(1, proxyOp.chunkSize, 40); AT(1, proxyOp.isSend, 44);
AT(1, proxyStep.step, 24);
SIZE(2, 128); AT(2, type, 0); AT(2, parentObj, 8); AT(2, rank, 16);
AT(2, coll.name, 24); AT(2, coll.commHash, 32); AT(2, coll.seqNumber, 40); AT(2, coll.func, 48); AT(2, coll.sendBuff, 56);
AT(2, coll.recvBuff, 64); AT(2, coll.count, 72); AT(2, coll.root, 80); AT(2, coll.datatype, 88); AT(2, coll.trafficBytes, 96);
AT(2, coll.nChannels, 104); AT(2, coll.nWarps, 105); AT(2, coll.algo, 112); AT(2, coll.proto, 120);
AT(2, p2p.name, 24); AT(2, p2p.commHash, 32); AT(2, p2p.func, 40); AT(2, p2p.buff, 48); AT(2, p2p.datatype, 56);
AT(2, p2p.count, 64); AT(2, p2p.peer, 72); AT(2, proxyOp.pid, 24); AT(2, proxyOp.channelId, 28); AT(2, proxyOp.peer, 32);
AT(2, proxyOp.nSteps, 36); AT(2, proxyOp.chunkSize, 40); AT(2, proxyOp.isSend, 44);
AT(2, proxyStep.step, 24);
SIZE(3, 120); AT(3, type, 0); AT(3, parentObj, 8); AT(3, rank, 16);
AT(3, coll.name, 24); AT(3, coll.commHash, 32); AT(3, coll.seqNumber, 40); AT(3, coll.func, 48); AT(3, coll.sendBuff, 56);
AT(3, coll.recvBuff, 64); AT(3, coll.count, 72); AT(3, coll.root, 80); AT(3, coll.datatype, 88); AT(3, coll.nChannels, 96);
AT(3, coll.nWarps, 97); AT(3, coll.algo, 104); AT(3, coll.proto, 112);
AT(3, p2p.name, 24); AT(3, p2p.commHash, 32); AT(3, p2p.func, 40); AT(3, p2p.buff, 48); AT(3, p2p.datatype, 56);
AT(3, p2p.count, 64); AT(3, p2p.peer, 72); AT(3, proxyOp.pid, 24); AT(3, proxyOp.channelId, 28); AT(3, proxyOp.peer, 32);
AT(3, proxyOp.nSteps, 36); AT(3, proxyOp.chunkSize, 40); AT(3, proxyOp.isSend, 44);
AT(3, proxyStep.step, 24); AT(3, kernelCh.channelId, 24); AT(3, netPlugin.id, 24); AT(3, netPlugin.data, 32);
SIZE(4, 104); AT(4, type, 0); AT(4, parentObj, 8); AT(4, rank, 16);
AT(4, coll.seqNumber, 24); AT(4, coll.func, 32); AT(4, coll.sendBuff, 40); AT(4, coll.recvBuff, 48); AT(4, coll.count, 56);
AT(4, coll.root, 64); AT(4, coll.datatype, 72); AT(4, coll.nChannels, 80); AT(4, coll.nWarps, 81); AT(4, coll.algo, 88);
AT(4, coll.proto, 96); AT(4, p2p.func, 24); AT(4, p2p.buff, 32); AT(4, p2p.datatype, 40); AT(4, p2p.count, 48);
AT(4, p2p.peer, 56); AT(4, p2p.nChannels, 60); AT(4, proxyOp.pid, 24); AT(4, proxyOp.channelId, 28); AT(4, proxyOp.peer, 32);
AT(4, proxyOp.nSteps, 36); AT(4, proxyOp.chunkSize, 40); AT(4, proxyOp.isSend, 44);
AT(4, proxyStep.step, 24); AT(4, kernelCh.channelId, 24); AT(4, kernelCh.pTimer, 32);
AT(4, netPlugin.id, 24); AT(4, netPlugin.data, 32);
SIZE(5, 112); AT(5, type, 0); AT(5, parentObj, 8); AT(5, rank, 16);
AT(5, groupApi.graphCaptured, 24); AT(5, groupApi.groupDepth, 28);
AT(5, collApi.func, 24); AT(5, collApi.count, 32); AT(5, collApi.datatype, 40); AT(5, collApi.root, 48);
AT(5, collApi.stream, 56); AT(5, collApi.graphCaptured, 64); AT(5, p2pApi.func, 24); AT(5, p2pApi.count, 32);
AT(5, p2pApi.datatype, 40); AT(5, p2pApi.stream, 48); AT(5, p2pApi.graphCaptured, 56);
AT(5, kernelLaunch.stream, 24); AT(5, coll.seqNumber, 24); AT(5, coll.func, 32); AT(5, coll.sendBuff, 40);
AT(5, coll.recvBuff, 48); AT(5, coll.count, 56); AT(5, coll.root, 64); AT(5, coll.datatype, 72); AT(5, coll.nChannels, 80);
AT(5, coll.nWarps, 81); AT(5, coll.algo, 88); AT(5, coll.proto, 96); AT(5, coll.parentGroup, 104);
AT(5, p2p.func, 24); AT(5, p2p.buff, 32); AT(5, p2p.datatype, 40); AT(5, p2p.count, 48); AT(5, p2p.peer, 56);
AT(5, p2p.nChannels, 60); AT(5, p2p.parentGroup, 64); AT(5, proxyOp.pid, 24); AT(5, proxyOp.channelId, 28);
AT(5, proxyOp.peer, 32); AT(5, proxyOp.nSteps, 36); AT(5, proxyOp.chunkSize, 40); AT(5, proxyOp.isSend, 44);
AT(5, proxyStep.step, 24); AT(5, kernelCh.channelId, 24); AT(5, kernelCh.pTimer, 32);
AT(5, netPlugin.id, 24); AT(5, netPlugin.data, 32);
SIZE(6, 112); AT(6, type, 0); AT(6, parentObj, 8); AT(6, rank, 16);
AT(6, groupApi.graphCaptured, 24); AT(6, groupApi.groupDepth, 28);
AT(6, collApi.func, 24); AT(6, collApi.count, 32); AT(6, collApi.datatype, 40); AT(6, collApi.root, 48);
AT(6, collApi.stream, 56); AT(6, collApi.graphCaptured, 64); AT(6, p2pApi.func, 24); AT(6, p2pApi.count, 32);
AT(6, p2pApi.datatype, 40); AT(6, p2pApi.stream, 48); AT(6, p2pApi.graphCaptured, 56);
AT(6, kernelLaunch.stream, 24); AT(6, coll.seqNumber, 24); AT(6, coll.func, 32); AT(6, coll.sendBuff, 40);
AT(6, coll.recvBuff, 48); AT(6, coll.count, 56); AT(6, coll.root, 64); AT(6, coll.datatype, 72); AT(6, coll.nChannels, 80);
AT(6, coll.nWarps, 81); AT(6, coll.algo, 88); AT(6, coll.proto, 96); AT(6, coll.parentGroup, 104);
AT(6, p2p.func, 24); AT(6, p2p.buff, 32); AT(6, p2p.datatype, 40); AT(6, p2p.count, 48); AT(6, p2p.peer, 56);
AT(6, p2p.nChannels, 60); AT(6, p2p.parentGroup, 64); AT(6, proxyOp.pid, 24); AT(6, proxyOp.channelId, 28);
AT(6, proxyOp.peer, 32); AT(6, proxyOp.nSteps, 36); AT(6, proxyOp.chunkSize, 40); AT(6, proxyOp.isSend, 44);
AT(6, proxyStep.step, 24); AT(6, kernelCh.channelId, 24); AT(6, kernelCh.pTimer, 32);
AT(6, netPlugin.id, 24); AT(6, netPlugin.data, 32); AT(6, ceColl.seqNumber, 24); AT(6, ceColl.func, 32);
AT(6, ceColl.sendBuff, 40); AT(6, ceColl.recvBuff, 48); AT(6, ceColl.count, 56); AT(6, ceColl.root, 64);
AT(6, ceColl.datatype, 72); AT(6, ceColl.syncStrategy, 80); AT(6, ceColl.intraBatchSync, 88); AT(6, ceColl.batchSize, 92);
AT(6, ceColl.numBatches, 96); AT(6, ceColl.ceSeqNum, 100); AT(6, ceColl.stream, 104);
AT(6, ceCollSync.isComplete, 24); AT(6, ceCollSync.nRanks, 28);
AT(6, ceCollBatch.numOps, 24); AT(6, ceCollBatch.totalBytes, 32); AT(6, ceCollBatch.useIntraSync, 40);
SIZE(7, 136); AT(7, type, 0); AT(7, parentObj, 8); AT(7, rank, 16);
AT(7, groupApi.graphCaptured, 24); AT(7, groupApi.groupDepth, 28);
AT(7, collApi.func, 24); AT(7, collApi.count, 32); AT(7, collApi.datatype, 40); AT(7, collApi.root, 48);
AT(7, collApi.stream, 56); AT(7, collApi.graphCaptured, 64); AT(7, collApi.userTag, 72);
AT(7, p2pApi.func, 24); AT(7, p2pApi.count, 32); AT(7, p2pApi.datatype, 40); AT(7, p2pApi.stream, 48);
AT(7, p2pApi.graphCaptured, 56); AT(7, p2pApi.userTag, 64); AT(7, kernelLaunch.stream, 24);
AT(7, coll.seqNumber, 24); AT(7, coll.func, 32); AT(7, coll.sendBuff, 40); AT(7, coll.recvBuff, 48); AT(7, coll.count, 56);
AT(7, coll.root, 64); AT(7, coll.datatype, 72); AT(7, coll.nChannels, 80); AT(7, coll.nWarps, 81); AT(7, coll.algo, 88);
AT(7, coll.proto, 96); AT(7, coll.parentGroup, 104); AT(7, coll.kernelVariant, 112); AT(7, coll.isSymColl, 120);
AT(7, coll.userTag, 128); AT(7, p2p.func, 24); AT(7, p2p.buff, 32); AT(7, p2p.datatype, 40); AT(7, p2p.count, 48);
AT(7, p2p.peer, 56); AT(7, p2p.nChannels, 60); AT(7, p2p.parentGroup, 64); AT(7, p2p.userTag, 72);
AT(7, proxyOp.pid, 24); AT(7, proxyOp.channelId, 28); AT(7, proxyOp.peer, 32); AT(7, proxyOp.nSteps, 36);
AT(7, proxyOp.chunkSize, 40); AT(7, proxyOp.isSend, 44); AT(7, proxyStep.step, 24);
AT(7, kernelCh.channelId, 24); AT(7, kernelCh.pTimer, 32); AT(7, netPlugin.id, 24); AT(7, netPlugin.data, 32);
AT(7, ceColl.seqNumber, 24); AT(7, ceColl.func, 32); AT(7, ceColl.sendBuff, 40); AT(7, ceColl.recvBuff, 48);
AT(7, ceColl.count, 56); AT(7, ceColl.root, 64); AT(7, ceColl.datatype, 72); AT(7, ceColl.syncStrategy, 80);
AT(7, ceColl.intraBatchSync, 88); AT(7, ceColl.batchSize, 92); AT(7, ceColl.numBatches, 96); AT(7, ceColl.ceSeqNum, 100);
AT(7, ceColl.stream, 104); AT(7, ceColl.userTag, 112); AT(7, ceCollSync.isComplete, 24); AT(7, ceCollSync.nRanks, 28);
AT(7, ceCollBatch.numOps, 24); AT(7, ceCollBatch.totalBytes, 32); AT(7, ceCollBatch.useIntraSync, 40);
AT(7, kernelPhase.channelId, 24); AT(7, kernelPhase.phaseId, 25); AT(7, kernelPhase.phaseName, 32);
AT(7, kernelPhase.pTimer, 40);
AT(6, proxyOp.commHash, 48); AT(6, proxyOp.opCount, 56); AT(6, proxyOp.traceFuncIdx, 64); AT(6, proxyOp.traceProtocol, 68);
AT(6, proxyOp.tracePattern, 72); AT(6, proxyOp.traceTotalBytes, 76); AT(6, proxyOp.proxyNbytes, 80); AT(6, proxyOp.rawProxyNsteps, 84);
#undef SIZE
#undef AT

/* Offsets by type and field. */
#define O(v, T, m, f) [T##_##f] = offsetof(struct descr_v##v, m.f),

#define COLL_OF(v) \
  O(v, COLL, coll, seqNumber) O(v, COLL, coll, func) O(v, COLL, coll, sendBuff) O(v, COLL, coll, recvBuff) \
  O(v, COLL, coll, count) O(v, COLL, coll, root) O(v, COLL, coll, datatype) O(v, COLL, coll, nChannels) \
  O(v, COLL, coll, nWarps) O(v, COLL, coll, algo) O(v, COLL, coll, proto)
#define P2P_OF(v) \
  O(v, P2P, p2p, func) O(v, P2P, p2p, buff) O(v, P2P, p2p, datatype) O(v, P2P, p2p, count) O(v, P2P, p2p, peer)
#define COMM_OF(v, T, m) O(v, T, m, name) O(v, T, m, commHash)
#define PROXY_OP_OF(v) \
  O(v, PROXY_OP, proxyOp, pid) O(v, PROXY_OP, proxyOp, channelId) O(v, PROXY_OP, proxyOp, peer) O(v, PROXY_OP, proxyOp, nSteps) \
  O(v, PROXY_OP, proxyOp, chunkSize) O(v, PROXY_OP, proxyOp, isSend)
#define RCCL_PROXY_OP_OF(v) \
  O(v, PROXY_OP, proxyOp, commHash) O(v, PROXY_OP, proxyOp, opCount) O(v, PROXY_OP, proxyOp, traceFuncIdx) \
  O(v, PROXY_OP, proxyOp, traceProtocol) O(v, PROXY_OP, proxyOp, tracePattern) O(v, PROXY_OP, proxyOp, traceTotalBytes) \
  O(v, PROXY_OP, proxyOp, proxyNbytes) O(v, PROXY_OP, proxyOp, rawProxyNsteps)
#define COLL_API_OF(v) \
  O(v, COLL_API, collApi, func) O(v, COLL_API, collApi, count) O(v, COLL_API, collApi, datatype) O(v, COLL_API, collApi, root) \
  O(v, COLL_API, collApi, stream) O(v, COLL_API, collApi, graphCaptured)
#define P2P_API_OF(v) \
  O(v, P2P_API, p2pApi, func) O(v, P2P_API, p2pApi, count) O(v, P2P_API, p2pApi, datatype) O(v, P2P_API, p2pApi, stream) \
  O(v, P2P_API, p2pApi, graphCaptured)
#define CE_COLL_OF(v) \
  O(v, CE_COLL, ceColl, seqNumber) O(v, CE_COLL, ceColl, func) O(v, CE_COLL, ceColl, sendBuff) O(v, CE_COLL, ceColl, recvBuff) \
  O(v, CE_COLL, ceColl, count) O(v, CE_COLL, ceColl, root) O(v, CE_COLL, ceColl, datatype) O(v, CE_COLL, ceColl, syncStrategy) \
  O(v, CE_COLL, ceColl, intraBatchSync) O(v, CE_COLL, ceColl, batchSize) O(v, CE_COLL, ceColl, numBatches) \
  O(v, CE_COLL, ceColl, ceSeqNum) O(v, CE_COLL, ceColl, stream)

#define STEP_AT(v) [TYPE_PROXY_STEP] = { O(v, PROXY_STEP, proxyStep, step) }
#define NET_AT(v) [TYPE_NET_PLUGIN] = { O(v, NET_PLUGIN, netPlugin, id) O(v, NET_PLUGIN, netPlugin, data) }
#define KERNEL_AT(v) [TYPE_KERNEL_CH] = { O(v, KERNEL_CH, kernelCh, channelId) O(v, KERNEL_CH, kernelCh, pTimer) }
#define LAUNCH_AT(v) [TYPE_KERNEL_LAUNCH] = { O(v, KERNEL_LAUNCH, kernelLaunch, stream) }
#define GROUP_API_AT(v) [TYPE_GROUP_API] = { O(v, GROUP_API, groupApi, graphCaptured) O(v, GROUP_API, groupApi, groupDepth) }
#define CE_PARTS_AT(v) \
  [TYPE_CE_SYNC] = { O(v, CE_SYNC, ceCollSync, isComplete) O(v, CE_SYNC, ceCollSync, nRanks) }, \
  [TYPE_CE_BATCH] = { O(v, CE_BATCH, ceCollBatch, numOps) O(v, CE_BATCH, ceCollBatch, totalBytes) O(v, CE_BATCH, ceCollBatch, useIntraSync) }

/* Everything of version 6 but ProxyOp. */
#define V6_AT \
  [TYPE_COLL] = { COLL_OF(6) O(6, COLL, coll, parentGroup) }, \
  [TYPE_P2P] = { P2P_OF(6) O(6, P2P, p2p, nChannels) O(6, P2P, p2p, parentGroup) }, \
  STEP_AT(6), NET_AT(6), KERNEL_AT(6), LAUNCH_AT(6), GROUP_API_AT(6), CE_PARTS_AT(6), \
  [TYPE_COLL_API] = { COLL_API_OF(6) }, [TYPE_P2P_API] = { P2P_API_OF(6) }, [TYPE_CE_COLL] = { CE_COLL_OF(6) }

#define TYPES_V1 0x3fu
#define TYPES_V3 0xffu
#define TYPES_V5 0xfffu
#define TYPES_V6 0x7fffu
#define TYPES_V7 0xffffu

const struct layout layouts[VERSION_COUNT] = {
  { 7, "ncclProfiler_v7", sizeof(struct descr_v7), sizeof(union args_v4), 8, INIT_V5, TYPES_V7, 31, false, {
    [TYPE_COLL] = { COLL_OF(7) O(7, COLL, coll, parentGroup) O(7, COLL, coll, kernelVariant) O(7, COLL, coll, isSymColl)
                    O(7, COLL, coll, userTag) },
    [TYPE_P2P] = { P2P_OF(7) O(7, P2P, p2p, nChannels) O(7, P2P, p2p, parentGroup) O(7, P2P, p2p, userTag) },
    [TYPE_PROXY_OP] = { PROXY_OP_OF(7) },
    STEP_AT(7), NET_AT(7), KERNEL_AT(7), LAUNCH_AT(7), GROUP_API_AT(7), CE_PARTS_AT(7),
    [TYPE_COLL_API] = { COLL_API_OF(7) O(7, COLL_API, collApi, userTag) },
    [TYPE_P2P_API] = { P2P_API_OF(7) O(7, P2P_API, p2pApi, userTag) },
    [TYPE_CE_COLL] = { CE_COLL_OF(7) O(7, CE_COLL, ceColl, userTag) },
    [TYPE_KERNEL_PHASE] = { O(7, KERNEL_PHASE, kernelPhase, channelId) O(7, KERNEL_PHASE, kernelPhase, phaseId)
                            O(7, KERNEL_PHASE, kernelPhase, phaseName) O(7, KERNEL_PHASE, kernelPhase, pTimer) } } },
  { 6, "ncclProfiler_v6", sizeof(struct descr_v6), sizeof(union args_v4), 8, INIT_V5, TYPES_V6, 30, false, {
    V6_AT, [TYPE_PROXY_OP] = { PROXY_OP_OF(6) } } },
  { 5, "ncclProfiler_v5", sizeof(struct descr_v5), sizeof(union args_v4), 8, INIT_V5, TYPES_V5, 24, false, {
    [TYPE_COLL] = { COLL_OF(5) O(5, COLL, coll, parentGroup) },
    [TYPE_P2P] = { P2P_OF(5) O(5, P2P, p2p, nChannels) O(5, P2P, p2p, parentGroup) },
    [TYPE_PROXY_OP] = { PROXY_OP_OF(5) },
    STEP_AT(5), NET_AT(5), KERNEL_AT(5), LAUNCH_AT(5), GROUP_API_AT(5),
    [TYPE_COLL_API] = { COLL_API_OF(5) }, [TYPE_P2P_API] = { P2P_API_OF(5) } } },
  { 4, "ncclProfiler_v4", sizeof(struct descr_v4), sizeof(union args_v4), 1, INIT_V4, TYPES_V3, 22, false, {
    [TYPE_COLL] = { COLL_OF(4) },
    [TYPE_P2P] = { P2P_OF(4) O(4, P2P, p2p, nChannels) },
    [TYPE_PROXY_OP] = { PROXY_OP_OF(4) },
    STEP_AT(4), NET_AT(4), KERNEL_AT(4) } },
  { 3, "ncclProfiler_v3", sizeof(struct descr_v3), sizeof(union args_v1), 1, INIT_V1, TYPES_V3, 18, false, {
    [TYPE_COLL] = { COLL_OF(3) COMM_OF(3, COLL, coll) },
    [TYPE_P2P] = { P2P_OF(3) COMM_OF(3, P2P, p2p) },
    [TYPE_PROXY_OP] = { PROXY_OP_OF(3) },
    STEP_AT(3), NET_AT(3), [TYPE_KERNEL_CH] = { O(3, KERNEL_CH, kernelCh, channelId) } } },
  { 2, "ncclProfiler_v2", sizeof(struct descr_v2), sizeof(union args_v1), 1, INIT_V1, TYPES_V1, 18, false, {
    [TYPE_COLL] = { COLL_OF(2) COMM_OF(2, COLL, coll) O(2, COLL, coll, trafficBytes) },
    [TYPE_P2P] = { P2P_OF(2) COMM_OF(2, P2P, p2p) },
    [TYPE_PROXY_OP] = { PROXY_OP_OF(2) },
    STEP_AT(2) } },
  { 1, "ncclProfiler_v1", sizeof(struct descr_v1), sizeof(union args_v1), 1, INIT_V1, TYPES_V1, 18, true, {
    [TYPE_COLL] = { COLL_OF(1) COMM_OF(1, COLL, coll) O(1, COLL, coll, trafficBytes) O(1, COLL, coll, op)
                    O(1, COLL, coll, isCollnet) O(1, COLL, coll, isNvls) },
    [TYPE_P2P] = { P2P_OF(1) COMM_OF(1, P2P, p2p) },
    [TYPE_PROXY_OP] = { PROXY_OP_OF(1) },
    STEP_AT(1) } },
};

const struct layout layout_rccl_v6 = {
  6, "ncclProfiler_v6", sizeof(struct descr_v6), sizeof(union args_rccl_v6), 8, INIT_V5, TYPES_V6 | TYPE_BIT(PROXY_DIAG), 31, false, {
    V6_AT, [TYPE_PROXY_OP] = { PROXY_OP_OF(6) RCCL_PROXY_OP_OF(6) } }
};
