/* SPDX-License-Identifier: Apache-2.0
 *
 * Version 1 of the profiler API: the descriptor of startEvent and the plugin's function table,
 * first in NCCL 2.23.4. Members from the published ABI; abi_check.c asserts every offset.
 * Functions, algorithms, protocols and datatypes are numbers here; vtable_v1.c has their names.
 */
#ifndef NCCLOTF2_ABI_V1_H
#define NCCLOTF2_ABI_V1_H

#include "abi.h"

struct ncclotf2_descr_v1 {      /* ncclProfilerEventDescr_v1_t */
  uint8_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      const char *name; uint64_t commHash; uint64_t seqNumber; uint8_t func; const void *sendBuff;
      void *recvBuff; size_t count; int root; uint8_t datatype; uint32_t op; size_t trafficBytes;
      uint8_t nMaxChannels; uint8_t nWarps; uint8_t algo; uint8_t proto; int isCollnet; int isNvls;
    } coll;
    struct {
      const char *name; uint64_t commHash; uint8_t func; void *buff; uint8_t datatype; size_t count;
      int peer;
    } p2p;
    struct {
      int32_t pid; uint8_t channelId; int peer; int nSteps; int chunkSize; int isSend;
    } proxyOp;
    struct {
      int step;
    } proxyStep;
  };
};

struct ncclotf2_plugin_v1 {     /* ncclProfiler_v1_t */
  const char *name;
  ncclotf2_result (*init)(void **context, int *eActivationMask);
  ncclotf2_result (*startEvent)(void *context, void **eHandle, struct ncclotf2_descr_v1 *eDescr);
  ncclotf2_result (*stopEvent)(void *eHandle);
  ncclotf2_result (*recordEventState)(void *eHandle, int eState, union ncclotf2_state_args_v1 *eStateArgs);
  ncclotf2_result (*finalize)(void *context);
};

#endif
