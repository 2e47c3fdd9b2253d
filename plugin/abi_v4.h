/* SPDX-License-Identifier: Apache-2.0
 *
 * Version 4 of the profiler API: the descriptor of startEvent and the plugin's function table,
 * first in NCCL 2.27.3. Members from the published ABI; abi_check.c asserts every offset.
 */
#ifndef NCCLOTF2_ABI_V4_H
#define NCCLOTF2_ABI_V4_H

#include "abi.h"

struct ncclotf2_descr_v4 {      /* ncclProfilerEventDescr_v4_t */
  uint8_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      uint64_t seqNumber; const char *func; const void *sendBuff; void *recvBuff; size_t count;
      int root; const char *datatype; uint8_t nChannels; uint8_t nWarps; const char *algo;
      const char *proto;
    } coll;
    struct {
      const char *func; void *buff; const char *datatype; size_t count; int peer;
      uint8_t nChannels;
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

struct ncclotf2_plugin_v4 {     /* ncclProfiler_v4_t */
  const char *name;
  ncclotf2_result (*init)(void **context, int *eActivationMask, const char *commName, uint64_t commHash,
                          int nNodes, int nranks, int rank, ncclotf2_logger logfn);
  ncclotf2_result (*startEvent)(void *context, void **eHandle, struct ncclotf2_descr_v4 *eDescr);
  ncclotf2_result (*stopEvent)(void *eHandle);
  ncclotf2_result (*recordEventState)(void *eHandle, int eState, union ncclotf2_state_args *eStateArgs);
  ncclotf2_result (*finalize)(void *context);
};

#endif
