/* SPDX-License-Identifier: Apache-2.0
 *
 * Version 7 of the profiler API: the descriptor of startEvent and the plugin's function table,
 * first in NCCL 2.31.2. Members from the published ABI; abi_check.c asserts every offset.
 * This is the superset of versions 4 to 7: what they share lies at the same offsets.
 */
#ifndef NCCLOTF2_ABI_V7_H
#define NCCLOTF2_ABI_V7_H

#include "abi.h"

struct ncclotf2_descr_v7 {      /* ncclProfilerEventDescr_v7_t */
  uint64_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      uint8_t graphCaptured; int groupDepth;
    } groupApi;
    struct {
      const char *func; size_t count; const char *datatype; int root; void *stream;
      uint8_t graphCaptured; uint64_t userTag;
    } collApi;
    struct {
      const char *func; size_t count; const char *datatype; void *stream; uint8_t graphCaptured; uint64_t userTag;
    } p2pApi;
    struct {
      void *stream;
    } kernelLaunch;
    struct {
      uint64_t seqNumber; const char *func; const void *sendBuff; void *recvBuff; size_t count;
      int root; const char *datatype; uint8_t nChannels; uint8_t nWarps; const char *algo;
      const char *proto; void *parentGroup;
      const char *kernelVariant; uint8_t isSymColl; uint64_t userTag;
    } coll;
    struct {
      const char *func; void *buff; const char *datatype; size_t count; int peer;
      uint8_t nChannels; void *parentGroup; uint64_t userTag;
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
      uint32_t batchSize; uint32_t numBatches; uint32_t ceSeqNum; void *stream; uint64_t userTag;
    } ceColl;
    struct {
      uint8_t isComplete; int nRanks;
    } ceCollSync;
    struct {
      int numOps; size_t totalBytes; uint8_t useIntraSync;
    } ceCollBatch;
    struct {
      uint8_t channelId; uint8_t phaseId; const char *phaseName; uint64_t pTimer;
    } kernelPhase;
  };
};

struct ncclotf2_plugin_v7 {     /* ncclProfiler_v7_t */
  const char *name;
  ncclotf2_result (*init)(void **context, uint64_t commId, int *eActivationMask, const char *commName, int nNodes,
                          int nranks, int rank, ncclotf2_logger logfn);
  ncclotf2_result (*startEvent)(void *context, void **eHandle, struct ncclotf2_descr_v7 *eDescr);
  ncclotf2_result (*stopEvent)(void *eHandle);
  ncclotf2_result (*recordEventState)(void *eHandle, int eState, union ncclotf2_state_args *eStateArgs);
  ncclotf2_result (*finalize)(void *context);
};

#endif
