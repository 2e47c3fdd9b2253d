/* SPDX-License-Identifier: Apache-2.0
 *
 * Version 5 of the profiler API: the descriptor of startEvent and the plugin's function table,
 * first in NCCL 2.28.3. Members from the published ABI; abi_check.c asserts every offset.
 */
#ifndef NCCLOTF2_ABI_V5_H
#define NCCLOTF2_ABI_V5_H

#include "abi.h"

struct ncclotf2_descr_v5 {      /* ncclProfilerEventDescr_v5_t */
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
  };
};

struct ncclotf2_plugin_v5 {     /* ncclProfiler_v5_t */
  const char *name;
  ncclotf2_result (*init)(void **context, uint64_t commId, int *eActivationMask, const char *commName, int nNodes,
                          int nranks, int rank, ncclotf2_logger logfn);
  ncclotf2_result (*startEvent)(void *context, void **eHandle, struct ncclotf2_descr_v5 *eDescr);
  ncclotf2_result (*stopEvent)(void *eHandle);
  ncclotf2_result (*recordEventState)(void *eHandle, int eState, union ncclotf2_state_args *eStateArgs);
  ncclotf2_result (*finalize)(void *context);
};

#endif
