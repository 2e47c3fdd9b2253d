/* SPDX-License-Identifier: Apache-2.0 */
/* Code generated from plugin/api/generate/table.go by make generate; DO NOT EDIT. */
#ifndef NCCLOTF2_API_VERSIONS_H
#define NCCLOTF2_API_VERSIONS_H

#include "abi.h"

/* ---- version 1, from NCCL 2.23.4 on ---- */
struct ncclotf2_descr_v1 {
  uint8_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      const char *name; uint64_t commHash; uint64_t seqNumber; uint8_t func; const void *sendBuff; void *recvBuff;
      size_t count; int root; uint8_t datatype; uint32_t op; size_t trafficBytes; uint8_t nMaxChannels; uint8_t nWarps;
      uint8_t algo; uint8_t proto; int isCollnet; int isNvls;
    } coll;
    struct {
      const char *name; uint64_t commHash; uint8_t func; void *buff; uint8_t datatype; size_t count; int peer;
    } p2p;
    struct {
      int32_t pid; uint8_t channelId; int peer; int nSteps; int chunkSize; int isSend;
    } proxyOp;
    struct {
      int step;
    } proxyStep;
  };
};
struct ncclotf2_plugin_v1 {
  const char *name;
  ncclotf2_result (*init)(void **context, int *eActivationMask);
  ncclotf2_result (*startEvent)(void *context, void **eHandle, struct ncclotf2_descr_v1 *eDescr);
  ncclotf2_result (*stopEvent)(void *eHandle);
  ncclotf2_result (*recordEventState)(void *eHandle, int eState, union ncclotf2_state_args_v1 *eStateArgs);
  ncclotf2_result (*finalize)(void *context);
};

/* ---- version 2, from NCCL 2.24.3 on ---- */
struct ncclotf2_descr_v2 {
  uint8_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      const char *name; uint64_t commHash; uint64_t seqNumber; const char *func; const void *sendBuff; void *recvBuff;
      size_t count; int root; const char *datatype; size_t trafficBytes; uint8_t nMaxChannels; uint8_t nWarps;
      const char *algo; const char *proto;
    } coll;
    struct {
      const char *name; uint64_t commHash; const char *func; void *buff; const char *datatype; size_t count; int peer;
    } p2p;
    struct {
      int32_t pid; uint8_t channelId; int peer; int nSteps; int chunkSize; int isSend;
    } proxyOp;
    struct {
      int step;
    } proxyStep;
  };
};
struct ncclotf2_plugin_v2 {
  const char *name;
  ncclotf2_result (*init)(void **context, int *eActivationMask);
  ncclotf2_result (*startEvent)(void *context, void **eHandle, struct ncclotf2_descr_v2 *eDescr);
  ncclotf2_result (*stopEvent)(void *eHandle);
  ncclotf2_result (*recordEventState)(void *eHandle, int eState, union ncclotf2_state_args_v1 *eStateArgs);
  ncclotf2_result (*finalize)(void *context);
};

/* ---- version 3, from NCCL 2.26.2 on ---- */
struct ncclotf2_descr_v3 {
  uint8_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      const char *name; uint64_t commHash; uint64_t seqNumber; const char *func; const void *sendBuff; void *recvBuff;
      size_t count; int root; const char *datatype; uint8_t nMaxChannels; uint8_t nWarps; const char *algo;
      const char *proto;
    } coll;
    struct {
      const char *name; uint64_t commHash; const char *func; void *buff; const char *datatype; size_t count; int peer;
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
struct ncclotf2_plugin_v3 {
  const char *name;
  ncclotf2_result (*init)(void **context, int *eActivationMask);
  ncclotf2_result (*startEvent)(void *context, void **eHandle, struct ncclotf2_descr_v3 *eDescr);
  ncclotf2_result (*stopEvent)(void *eHandle);
  ncclotf2_result (*recordEventState)(void *eHandle, int eState, union ncclotf2_state_args_v1 *eStateArgs);
  ncclotf2_result (*finalize)(void *context);
};

/* ---- version 4, from NCCL 2.27.3 on ---- */
struct ncclotf2_descr_v4 {
  uint8_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      uint64_t seqNumber; const char *func; const void *sendBuff; void *recvBuff; size_t count; int root;
      const char *datatype; uint8_t nChannels; uint8_t nWarps; const char *algo; const char *proto;
    } coll;
    struct {
      const char *func; void *buff; const char *datatype; size_t count; int peer; uint8_t nChannels;
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
struct ncclotf2_plugin_v4 {
  const char *name;
  ncclotf2_result (*init)(void **context,
  int *eActivationMask, const char *commName, uint64_t commHash, int nNodes, int nranks, int rank, ncclotf2_logger logfn);
  ncclotf2_result (*startEvent)(void *context, void **eHandle, struct ncclotf2_descr_v4 *eDescr);
  ncclotf2_result (*stopEvent)(void *eHandle);
  ncclotf2_result (*recordEventState)(void *eHandle, int eState, union ncclotf2_state_args *eStateArgs);
  ncclotf2_result (*finalize)(void *context);
};

/* ---- version 5, from NCCL 2.28.3 on ---- */
struct ncclotf2_descr_v5 {
  uint64_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      uint64_t seqNumber; const char *func; const void *sendBuff; void *recvBuff; size_t count; int root;
      const char *datatype; uint8_t nChannels; uint8_t nWarps; const char *algo; const char *proto; void *parentGroup;
    } coll;
    struct {
      const char *func; void *buff; const char *datatype; size_t count; int peer; uint8_t nChannels; void *parentGroup;
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
      uint8_t graphCaptured; int groupDepth;
    } groupApi;
    struct {
      const char *func; size_t count; const char *datatype; int root; void *stream; uint8_t graphCaptured;
    } collApi;
    struct {
      const char *func; size_t count; const char *datatype; void *stream; uint8_t graphCaptured;
    } p2pApi;
    struct {
      void *stream;
    } kernelLaunch;
  };
};
struct ncclotf2_plugin_v5 {
  const char *name;
  ncclotf2_result (*init)(void **context,
  uint64_t commId, int *eActivationMask, const char *commName, int nNodes, int nranks, int rank, ncclotf2_logger logfn);
  ncclotf2_result (*startEvent)(void *context, void **eHandle, struct ncclotf2_descr_v5 *eDescr);
  ncclotf2_result (*stopEvent)(void *eHandle);
  ncclotf2_result (*recordEventState)(void *eHandle, int eState, union ncclotf2_state_args *eStateArgs);
  ncclotf2_result (*finalize)(void *context);
};

/* ---- version 6, from NCCL 2.29.2 on ---- */
struct ncclotf2_descr_v6 {
  uint64_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      uint64_t seqNumber; const char *func; const void *sendBuff; void *recvBuff; size_t count; int root;
      const char *datatype; uint8_t nChannels; uint8_t nWarps; const char *algo; const char *proto; void *parentGroup;
    } coll;
    struct {
      const char *func; void *buff; const char *datatype; size_t count; int peer; uint8_t nChannels; void *parentGroup;
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
      uint8_t graphCaptured; int groupDepth;
    } groupApi;
    struct {
      const char *func; size_t count; const char *datatype; int root; void *stream; uint8_t graphCaptured;
    } collApi;
    struct {
      const char *func; size_t count; const char *datatype; void *stream; uint8_t graphCaptured;
    } p2pApi;
    struct {
      void *stream;
    } kernelLaunch;
    struct {
      uint64_t seqNumber; const char *func; const void *sendBuff; void *recvBuff; size_t count; int root;
      const char *datatype; const char *syncStrategy; uint8_t intraBatchSync; uint32_t batchSize; uint32_t numBatches;
      uint32_t ceSeqNum; void *stream;
    } ceColl;
    struct {
      uint8_t isComplete; int nRanks;
    } ceCollSync;
    struct {
      int numOps; size_t totalBytes; uint8_t useIntraSync;
    } ceCollBatch;
  };
};
struct ncclotf2_plugin_v6 {
  const char *name;
  ncclotf2_result (*init)(void **context,
  uint64_t commId, int *eActivationMask, const char *commName, int nNodes, int nranks, int rank, ncclotf2_logger logfn);
  ncclotf2_result (*startEvent)(void *context, void **eHandle, struct ncclotf2_descr_v6 *eDescr);
  ncclotf2_result (*stopEvent)(void *eHandle);
  ncclotf2_result (*recordEventState)(void *eHandle, int eState, union ncclotf2_state_args *eStateArgs);
  ncclotf2_result (*finalize)(void *context);
};

/* ---- version 7, from NCCL 2.31.2 on ---- */
struct ncclotf2_descr_v7 {
  uint64_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      uint64_t seqNumber; const char *func; const void *sendBuff; void *recvBuff; size_t count; int root;
      const char *datatype; uint8_t nChannels; uint8_t nWarps; const char *algo; const char *proto; void *parentGroup;
      const char *kernelVariant; uint8_t isSymColl; uint64_t userTag;
    } coll;
    struct {
      const char *func; void *buff; const char *datatype; size_t count; int peer; uint8_t nChannels; void *parentGroup;
      uint64_t userTag;
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
      uint8_t graphCaptured; int groupDepth;
    } groupApi;
    struct {
      const char *func; size_t count; const char *datatype; int root; void *stream; uint8_t graphCaptured;
      uint64_t userTag;
    } collApi;
    struct {
      const char *func; size_t count; const char *datatype; void *stream; uint8_t graphCaptured; uint64_t userTag;
    } p2pApi;
    struct {
      void *stream;
    } kernelLaunch;
    struct {
      uint64_t seqNumber; const char *func; const void *sendBuff; void *recvBuff; size_t count; int root;
      const char *datatype; const char *syncStrategy; uint8_t intraBatchSync; uint32_t batchSize; uint32_t numBatches;
      uint32_t ceSeqNum; void *stream; uint64_t userTag;
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
struct ncclotf2_plugin_v7 {
  const char *name;
  ncclotf2_result (*init)(void **context,
  uint64_t commId, int *eActivationMask, const char *commName, int nNodes, int nranks, int rank, ncclotf2_logger logfn);
  ncclotf2_result (*startEvent)(void *context, void **eHandle, struct ncclotf2_descr_v7 *eDescr);
  ncclotf2_result (*stopEvent)(void *eHandle);
  ncclotf2_result (*recordEventState)(void *eHandle, int eState, union ncclotf2_state_args *eStateArgs);
  ncclotf2_result (*finalize)(void *context);
};

/* What all are read as: see event.h. */
typedef struct ncclotf2_descr_v7 ncclotf2_descr;

#endif
