/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of event types: how each is named, which bits of the activation mask make NCCL start
 * it, and the members that descriptors of all versions have between them. The program's reader, the
 * dump, the player and the recording plugin all work from it; where a version keeps a member, if it
 * has it at all, is in layouts.h.
 */
#ifndef FAKENCCL_EVENTS_H
#define FAKENCCL_EVENTS_H

#include "profiler.h"

enum field_kind {
  FIELD_NONE,
  FIELD_U8,
  FIELD_BOOL,
  FIELD_I32,
  FIELD_U32,
  FIELD_I64,
  FIELD_U64,
  FIELD_STRING,   /* const char * to an interned constant */
  FIELD_FUNC,     /* the same, but a one-byte code in version 1 */
  FIELD_DATATYPE, /* " */
  FIELD_ALGO,     /* " */
  FIELD_PROTO,    /* " */
  FIELD_POINTER,  /* opaque */
  FIELD_HANDLE,   /* another event's handle */
  FIELD_NET_DATA  /* pointer to a network plugin's own descriptor */
};

/* Fields in the program's order: X(TYPE, name, kind). */
#define COLL_FIELDS(X) \
  X(COLL, seqNumber, U64) X(COLL, func, FUNC) X(COLL, sendBuff, POINTER) X(COLL, recvBuff, POINTER) \
  X(COLL, count, U64) X(COLL, root, I32) X(COLL, datatype, DATATYPE) X(COLL, nChannels, U8) X(COLL, nWarps, U8) \
  X(COLL, algo, ALGO) X(COLL, proto, PROTO) X(COLL, parentGroup, HANDLE) \
  X(COLL, kernelVariant, STRING) X(COLL, isSymColl, BOOL) X(COLL, userTag, U64) \
  X(COLL, name, STRING) X(COLL, commHash, U64) X(COLL, trafficBytes, U64) \
  X(COLL, op, U32) X(COLL, isCollnet, I32) X(COLL, isNvls, I32)
#define P2P_FIELDS(X) \
  X(P2P, func, FUNC) X(P2P, buff, POINTER) X(P2P, datatype, DATATYPE) X(P2P, count, U64) X(P2P, peer, I32) \
  X(P2P, nChannels, U8) X(P2P, parentGroup, HANDLE) X(P2P, userTag, U64) X(P2P, name, STRING) X(P2P, commHash, U64)
#define PROXY_OP_FIELDS(X) \
  X(PROXY_OP, pid, I32) X(PROXY_OP, channelId, U8) X(PROXY_OP, peer, I32) X(PROXY_OP, nSteps, I32) \
  X(PROXY_OP, chunkSize, I32) X(PROXY_OP, isSend, I32) \
  X(PROXY_OP, commHash, U64) X(PROXY_OP, opCount, I64) X(PROXY_OP, traceFuncIdx, I32) X(PROXY_OP, traceProtocol, I32) \
  X(PROXY_OP, tracePattern, I32) X(PROXY_OP, traceTotalBytes, U32) X(PROXY_OP, proxyNbytes, U32) X(PROXY_OP, rawProxyNsteps, I32)
#define PROXY_STEP_FIELDS(X) X(PROXY_STEP, step, I32)
#define KERNEL_CH_FIELDS(X) X(KERNEL_CH, channelId, U8) X(KERNEL_CH, pTimer, U64)
#define NET_PLUGIN_FIELDS(X) X(NET_PLUGIN, id, I64) X(NET_PLUGIN, data, NET_DATA)
#define GROUP_API_FIELDS(X) X(GROUP_API, graphCaptured, BOOL) X(GROUP_API, groupDepth, I32)
#define COLL_API_FIELDS(X) \
  X(COLL_API, func, STRING) X(COLL_API, count, U64) X(COLL_API, datatype, STRING) X(COLL_API, root, I32) \
  X(COLL_API, stream, POINTER) X(COLL_API, graphCaptured, BOOL) X(COLL_API, userTag, U64)
#define P2P_API_FIELDS(X) \
  X(P2P_API, func, STRING) X(P2P_API, count, U64) X(P2P_API, datatype, STRING) X(P2P_API, stream, POINTER) \
  X(P2P_API, graphCaptured, BOOL) X(P2P_API, userTag, U64)
#define KERNEL_LAUNCH_FIELDS(X) X(KERNEL_LAUNCH, stream, POINTER)
#define CE_COLL_FIELDS(X) \
  X(CE_COLL, seqNumber, U64) X(CE_COLL, func, STRING) X(CE_COLL, sendBuff, POINTER) X(CE_COLL, recvBuff, POINTER) \
  X(CE_COLL, count, U64) X(CE_COLL, root, I32) X(CE_COLL, datatype, STRING) X(CE_COLL, syncStrategy, STRING) \
  X(CE_COLL, intraBatchSync, BOOL) X(CE_COLL, batchSize, U32) X(CE_COLL, numBatches, U32) X(CE_COLL, ceSeqNum, U32) \
  X(CE_COLL, stream, POINTER) X(CE_COLL, userTag, U64)
#define CE_SYNC_FIELDS(X) X(CE_SYNC, isComplete, BOOL) X(CE_SYNC, nRanks, I32)
#define CE_BATCH_FIELDS(X) X(CE_BATCH, numOps, I32) X(CE_BATCH, totalBytes, U64) X(CE_BATCH, useIntraSync, BOOL)
#define KERNEL_PHASE_FIELDS(X) \
  X(KERNEL_PHASE, channelId, U8) X(KERNEL_PHASE, phaseId, U8) X(KERNEL_PHASE, phaseName, STRING) X(KERNEL_PHASE, pTimer, U64)
/* Not a member: what the descriptor's type is to be. */
#define OTHER_FIELDS(X) X(OTHER, type, U64)

/* COLL_seqNumber and so on: a field's place in the order of its type. */
#define FAKENCCL_INDEX(T, name, kind) T##_##name,
enum { COLL_FIELDS(FAKENCCL_INDEX) };
enum { P2P_FIELDS(FAKENCCL_INDEX) };
enum { PROXY_OP_FIELDS(FAKENCCL_INDEX) };
enum { PROXY_STEP_FIELDS(FAKENCCL_INDEX) };
enum { KERNEL_CH_FIELDS(FAKENCCL_INDEX) };
enum { NET_PLUGIN_FIELDS(FAKENCCL_INDEX) };
enum { GROUP_API_FIELDS(FAKENCCL_INDEX) };
enum { COLL_API_FIELDS(FAKENCCL_INDEX) };
enum { P2P_API_FIELDS(FAKENCCL_INDEX) };
enum { KERNEL_LAUNCH_FIELDS(FAKENCCL_INDEX) };
enum { CE_COLL_FIELDS(FAKENCCL_INDEX) };
enum { CE_SYNC_FIELDS(FAKENCCL_INDEX) };
enum { CE_BATCH_FIELDS(FAKENCCL_INDEX) };
enum { KERNEL_PHASE_FIELDS(FAKENCCL_INDEX) };
enum { OTHER_FIELDS(FAKENCCL_INDEX) };
#undef FAKENCCL_INDEX

struct field {
  const char *name;
  enum field_kind kind;
};

#define FIELD_MAX 22

struct event_info {
  const char *name;
  uint32_t implied_by;  /* NCCL starts the event when any of these bits is in the operation's mask; 0:
                           whatever the mask is */
  bool needs_parent;    /* not started below a NULL parent */
  bool needed_parent;   /* … up to NCCL 2.27 */
  bool called_on_null;  /* stop and state are called even with a NULL handle */
  bool stale_slot;      /* the slot keeps its handle after the stop, so a start that the mask leaves
                           out makes NCCL stop the earlier event again */
  struct field fields[FIELD_MAX]; /* ended by a NULL name */
};

extern const struct event_info event_info[TYPE_COUNT];
extern const char *const state_names[STATE_COUNT + 1]; /* the last: of states that nobody defines */

#endif
