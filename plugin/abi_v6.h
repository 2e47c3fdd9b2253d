/* SPDX-License-Identifier: Apache-2.0
 *
 * Version 6 of the profiler API: the descriptor of startEvent and the plugin's function table,
 * first in NCCL 2.29.2. Members and offsets from the published ABI; every one is asserted.
 */
#ifndef NCCLOTF2_ABI_V6_H
#define NCCLOTF2_ABI_V6_H

#include "abi.h"

struct ncclotf2_descr_v6 {      /* ncclProfilerEventDescr_v6_t */
  uint64_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      uint8_t graphCaptured; int groupDepth;
    } groupApi;
    struct {
      const char *func; size_t count; const char *datatype; int root; void *stream;
      uint8_t graphCaptured;
    } collApi;
    struct {
      const char *func; size_t count; const char *datatype; void *stream; uint8_t graphCaptured;
    } p2pApi;
    struct {
      void *stream;
    } kernelLaunch;
    struct {
      uint64_t seqNumber; const char *func; const void *sendBuff; void *recvBuff; size_t count;
      int root; const char *datatype; uint8_t nChannels; uint8_t nWarps; const char *algo;
      const char *proto; void *parentGroup;
    } coll;
    struct {
      const char *func; void *buff; const char *datatype; size_t count; int peer;
      uint8_t nChannels; void *parentGroup;
    } p2p;
    struct {
      int32_t pid; uint8_t channelId; int peer; int nSteps; int chunkSize; int isSend;
    } proxyOp;
    struct {
      int step;
    } proxyStep;
    struct {
      uint8_t channelId; uint64_t pTimer;
    } kernelCh;
    struct {
      int64_t id; void *data;
    } netPlugin;
    struct {
      uint64_t seqNumber; const char *func; const void *sendBuff; void *recvBuff; size_t count;
      int root; const char *datatype; const char *syncStrategy; uint8_t intraBatchSync;
      uint32_t batchSize; uint32_t numBatches; uint32_t ceSeqNum; void *stream;
    } ceColl;
    struct {
      uint8_t isComplete; int nRanks;
    } ceCollSync;
    struct {
      int numOps; size_t totalBytes; uint8_t useIntraSync;
    } ceCollBatch;
  };
};

#define NCCLOTF2_AT(member, offset, size)                                            \
  _Static_assert(offsetof(struct ncclotf2_descr_v6, member) == (offset) &&          \
                 sizeof(((struct ncclotf2_descr_v6 *)0)->member) == (size), #member)
_Static_assert(sizeof(struct ncclotf2_descr_v6) == 112, "descriptor");
NCCLOTF2_AT(type, 0, 8);
NCCLOTF2_AT(parentObj, 8, 8);
NCCLOTF2_AT(rank, 16, 4);
NCCLOTF2_AT(groupApi, 24, 8);
NCCLOTF2_AT(groupApi.graphCaptured, 24, 1);
NCCLOTF2_AT(groupApi.groupDepth, 28, 4);
NCCLOTF2_AT(collApi, 24, 48);
NCCLOTF2_AT(collApi.func, 24, 8);
NCCLOTF2_AT(collApi.count, 32, 8);
NCCLOTF2_AT(collApi.datatype, 40, 8);
NCCLOTF2_AT(collApi.root, 48, 4);
NCCLOTF2_AT(collApi.stream, 56, 8);
NCCLOTF2_AT(collApi.graphCaptured, 64, 1);
NCCLOTF2_AT(p2pApi, 24, 40);
NCCLOTF2_AT(p2pApi.func, 24, 8);
NCCLOTF2_AT(p2pApi.count, 32, 8);
NCCLOTF2_AT(p2pApi.datatype, 40, 8);
NCCLOTF2_AT(p2pApi.stream, 48, 8);
NCCLOTF2_AT(p2pApi.graphCaptured, 56, 1);
NCCLOTF2_AT(kernelLaunch, 24, 8);
NCCLOTF2_AT(kernelLaunch.stream, 24, 8);
NCCLOTF2_AT(coll, 24, 88);
NCCLOTF2_AT(coll.seqNumber, 24, 8);
NCCLOTF2_AT(coll.func, 32, 8);
NCCLOTF2_AT(coll.sendBuff, 40, 8);
NCCLOTF2_AT(coll.recvBuff, 48, 8);
NCCLOTF2_AT(coll.count, 56, 8);
NCCLOTF2_AT(coll.root, 64, 4);
NCCLOTF2_AT(coll.datatype, 72, 8);
NCCLOTF2_AT(coll.nChannels, 80, 1);
NCCLOTF2_AT(coll.nWarps, 81, 1);
NCCLOTF2_AT(coll.algo, 88, 8);
NCCLOTF2_AT(coll.proto, 96, 8);
NCCLOTF2_AT(coll.parentGroup, 104, 8);
NCCLOTF2_AT(p2p, 24, 48);
NCCLOTF2_AT(p2p.func, 24, 8);
NCCLOTF2_AT(p2p.buff, 32, 8);
NCCLOTF2_AT(p2p.datatype, 40, 8);
NCCLOTF2_AT(p2p.count, 48, 8);
NCCLOTF2_AT(p2p.peer, 56, 4);
NCCLOTF2_AT(p2p.nChannels, 60, 1);
NCCLOTF2_AT(p2p.parentGroup, 64, 8);
NCCLOTF2_AT(proxyOp, 24, 24);
NCCLOTF2_AT(proxyOp.pid, 24, 4);
NCCLOTF2_AT(proxyOp.channelId, 28, 1);
NCCLOTF2_AT(proxyOp.peer, 32, 4);
NCCLOTF2_AT(proxyOp.nSteps, 36, 4);
NCCLOTF2_AT(proxyOp.chunkSize, 40, 4);
NCCLOTF2_AT(proxyOp.isSend, 44, 4);
NCCLOTF2_AT(proxyStep, 24, 4);
NCCLOTF2_AT(proxyStep.step, 24, 4);
NCCLOTF2_AT(kernelCh, 24, 16);
NCCLOTF2_AT(kernelCh.channelId, 24, 1);
NCCLOTF2_AT(kernelCh.pTimer, 32, 8);
NCCLOTF2_AT(netPlugin, 24, 16);
NCCLOTF2_AT(netPlugin.id, 24, 8);
NCCLOTF2_AT(netPlugin.data, 32, 8);
NCCLOTF2_AT(ceColl, 24, 88);
NCCLOTF2_AT(ceColl.seqNumber, 24, 8);
NCCLOTF2_AT(ceColl.func, 32, 8);
NCCLOTF2_AT(ceColl.sendBuff, 40, 8);
NCCLOTF2_AT(ceColl.recvBuff, 48, 8);
NCCLOTF2_AT(ceColl.count, 56, 8);
NCCLOTF2_AT(ceColl.root, 64, 4);
NCCLOTF2_AT(ceColl.datatype, 72, 8);
NCCLOTF2_AT(ceColl.syncStrategy, 80, 8);
NCCLOTF2_AT(ceColl.intraBatchSync, 88, 1);
NCCLOTF2_AT(ceColl.batchSize, 92, 4);
NCCLOTF2_AT(ceColl.numBatches, 96, 4);
NCCLOTF2_AT(ceColl.ceSeqNum, 100, 4);
NCCLOTF2_AT(ceColl.stream, 104, 8);
NCCLOTF2_AT(ceCollSync, 24, 8);
NCCLOTF2_AT(ceCollSync.isComplete, 24, 1);
NCCLOTF2_AT(ceCollSync.nRanks, 28, 4);
NCCLOTF2_AT(ceCollBatch, 24, 24);
NCCLOTF2_AT(ceCollBatch.numOps, 24, 4);
NCCLOTF2_AT(ceCollBatch.totalBytes, 32, 8);
NCCLOTF2_AT(ceCollBatch.useIntraSync, 40, 1);
#undef NCCLOTF2_AT

struct ncclotf2_plugin_v6 {     /* ncclProfiler_v6_t */
  const char *name;
  ncclotf2_result (*init)(void **context, uint64_t commId, int *eActivationMask, const char *commName,
                          int nNodes, int nranks, int rank, ncclotf2_logger logfn);
  ncclotf2_result (*startEvent)(void *context, void **eHandle, struct ncclotf2_descr_v6 *eDescr);
  ncclotf2_result (*stopEvent)(void *eHandle);
  ncclotf2_result (*recordEventState)(void *eHandle, int eState, union ncclotf2_state_args *eStateArgs);
  ncclotf2_result (*finalize)(void *context);
};
_Static_assert(sizeof(struct ncclotf2_plugin_v6) == 48, "plugin");
_Static_assert(offsetof(struct ncclotf2_plugin_v6, name) == 0, "plugin");
_Static_assert(offsetof(struct ncclotf2_plugin_v6, init) == 8, "plugin");
_Static_assert(offsetof(struct ncclotf2_plugin_v6, startEvent) == 16, "plugin");
_Static_assert(offsetof(struct ncclotf2_plugin_v6, stopEvent) == 24, "plugin");
_Static_assert(offsetof(struct ncclotf2_plugin_v6, recordEventState) == 32, "plugin");
_Static_assert(offsetof(struct ncclotf2_plugin_v6, finalize) == 40, "plugin");

#endif
