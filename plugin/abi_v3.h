/* SPDX-License-Identifier: Apache-2.0
 *
 * Version 3 of the profiler API: the descriptor of startEvent and the plugin's function table,
 * first in NCCL 2.26.2. Members from the published ABI; abi_check.c asserts every offset.
 */
#ifndef NCCLOTF2_ABI_V3_H
#define NCCLOTF2_ABI_V3_H

#include "abi.h"

struct ncclotf2_descr_v3 {      /* ncclProfilerEventDescr_v3_t */
  uint8_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      const char *name; uint64_t commHash; uint64_t seqNumber; const char *func; const void *sendBuff;
      void *recvBuff; size_t count; int root; const char *datatype; uint8_t nMaxChannels;
      uint8_t nWarps; const char *algo; const char *proto;
    } coll;
    struct {
      const char *name; uint64_t commHash; const char *func; void *buff; const char *datatype;
      size_t count; int peer;
    } p2p;
    struct {
      int32_t pid; uint8_t channelId; int peer; int nSteps; int chunkSize; int isSend;
    } proxyOp;
    struct {
      int step;
    } proxyStep;
    struct {
      uint8_t channelId;
    } kernelCh;
    struct {
      int64_t id; void *data;
    } netPlugin;
  };
};

struct ncclotf2_plugin_v3 {     /* ncclProfiler_v3_t */
  const char *name;
  ncclotf2_result (*init)(void **context, int *eActivationMask);
  ncclotf2_result (*startEvent)(void *context, void **eHandle, struct ncclotf2_descr_v3 *eDescr);
  ncclotf2_result (*stopEvent)(void *eHandle);
  ncclotf2_result (*recordEventState)(void *eHandle, int eState, union ncclotf2_state_args_v1 *eStateArgs);
  ncclotf2_result (*finalize)(void *context);
};

#endif
