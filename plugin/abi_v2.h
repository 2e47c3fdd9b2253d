/* SPDX-License-Identifier: Apache-2.0
 *
 * Version 2 of the profiler API: the descriptor of startEvent and the plugin's function table,
 * first in NCCL 2.24.3. Members from the published ABI; abi_check.c asserts every offset.
 */
#ifndef NCCLOTF2_ABI_V2_H
#define NCCLOTF2_ABI_V2_H

#include "abi.h"

struct ncclotf2_descr_v2 {      /* ncclProfilerEventDescr_v2_t */
  uint8_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      const char *name; uint64_t commHash; uint64_t seqNumber; const char *func; const void *sendBuff;
      void *recvBuff; size_t count; int root; const char *datatype; size_t trafficBytes;
      uint8_t nMaxChannels; uint8_t nWarps; const char *algo; const char *proto;
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
  };
};

struct ncclotf2_plugin_v2 {     /* ncclProfiler_v2_t */
  const char *name;
  ncclotf2_result (*init)(void **context, int *eActivationMask);
  ncclotf2_result (*startEvent)(void *context, void **eHandle, struct ncclotf2_descr_v2 *eDescr);
  ncclotf2_result (*stopEvent)(void *eHandle);
  ncclotf2_result (*recordEventState)(void *eHandle, int eState, union ncclotf2_state_args_v1 *eStateArgs);
  ncclotf2_result (*finalize)(void *context);
};

#endif
