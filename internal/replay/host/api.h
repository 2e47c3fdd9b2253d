/* SPDX-License-Identifier: Apache-2.0 */
/* Code generated from plugin/api/generate/table.go by make generate; DO NOT EDIT. */
#ifndef REPLAY_HOST_API_H
#define REPLAY_HOST_API_H

/* Event types are bits of the activation mask; these are their numbers. The last two are no bit numbers: RCCL's own type
 * has the bit of NCCL's KernelPhase in version 6, and descriptors may carry anything that neither library defines. */
enum event_type {
  TYPE_GROUP, TYPE_COLL, TYPE_P2P, TYPE_PROXY_OP, TYPE_PROXY_STEP, TYPE_PROXY_CTRL, TYPE_KERNEL_CH, TYPE_NET_PLUGIN,
  TYPE_GROUP_API, TYPE_COLL_API, TYPE_P2P_API, TYPE_KERNEL_LAUNCH, TYPE_CE_COLL, TYPE_CE_SYNC, TYPE_CE_BATCH,
  TYPE_KERNEL_PHASE, TYPE_PROXY_DIAG, TYPE_OTHER, TYPE_COUNT
};

/* The members of descriptors, in the order in which programs have them. */
enum {
  COLL_seqNumber, COLL_func, COLL_sendBuff, COLL_recvBuff, COLL_count, COLL_root, COLL_datatype, COLL_nChannels,
  COLL_nWarps, COLL_algo, COLL_proto, COLL_parentGroup, COLL_kernelVariant, COLL_isSymColl, COLL_userTag, COLL_name,
  COLL_commHash, COLL_trafficBytes, COLL_op, COLL_isCollnet, COLL_isNvls,
};
enum {
  P2P_func, P2P_buff, P2P_datatype, P2P_count, P2P_peer, P2P_nChannels, P2P_parentGroup, P2P_userTag, P2P_name,
  P2P_commHash,
};
enum {
  PROXY_OP_pid, PROXY_OP_channelId, PROXY_OP_peer, PROXY_OP_nSteps, PROXY_OP_chunkSize, PROXY_OP_isSend,
  PROXY_OP_commHash, PROXY_OP_opCount, PROXY_OP_traceFuncIdx, PROXY_OP_traceProtocol, PROXY_OP_tracePattern,
  PROXY_OP_traceTotalBytes, PROXY_OP_proxyNbytes, PROXY_OP_rawProxyNsteps,
};
enum {
  PROXY_STEP_step,
};
enum {
  KERNEL_CH_channelId, KERNEL_CH_pTimer,
};
enum {
  NET_PLUGIN_id, NET_PLUGIN_data,
};
enum {
  GROUP_API_graphCaptured, GROUP_API_groupDepth,
};
enum {
  COLL_API_func, COLL_API_count, COLL_API_datatype, COLL_API_root, COLL_API_stream, COLL_API_graphCaptured,
  COLL_API_userTag,
};
enum {
  P2P_API_func, P2P_API_count, P2P_API_datatype, P2P_API_stream, P2P_API_graphCaptured, P2P_API_userTag,
};
enum {
  KERNEL_LAUNCH_stream,
};
enum {
  CE_COLL_seqNumber, CE_COLL_func, CE_COLL_sendBuff, CE_COLL_recvBuff, CE_COLL_count, CE_COLL_root, CE_COLL_datatype,
  CE_COLL_syncStrategy, CE_COLL_intraBatchSync, CE_COLL_batchSize, CE_COLL_numBatches, CE_COLL_ceSeqNum, CE_COLL_stream,
  CE_COLL_userTag,
};
enum {
  CE_SYNC_isComplete, CE_SYNC_nRanks,
};
enum {
  CE_BATCH_numOps, CE_BATCH_totalBytes, CE_BATCH_useIntraSync,
};
enum {
  KERNEL_PHASE_channelId, KERNEL_PHASE_phaseId, KERNEL_PHASE_phaseName, KERNEL_PHASE_pTimer,
};
enum { OTHER_type }; /* not a member: what the descriptor's type is to be */

#define FIELD_MAX 22
#define VERSION_COUNT 7
#define STATE_COUNT 32 /* states run from 0 to the one before; others are counted as this */

#endif
