/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiler API version 1 (NCCL 2.23). Communicators say who they are only
 * with their operations. Functions, algorithms, protocols and datatypes are numbers.
 */
#include "abi_v1.h"
#include "event.h"
#include "life.h"

/* The numbers of NCCL 2.23 (nccl_common.h, nccl.h), as the names that later versions pass. */
static const char *const functions[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                        "AllReduce", "SendRecv", "Send",      "Recv"};
static const char *const algorithms[] = {"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
static const char *const protocols[] = {"LL", "LL128", "SIMPLE"};
static const char *const datatypes[] = {"ncclInt8",    "ncclUint8",   "ncclInt32",   "ncclUint32",
                                        "ncclInt64",   "ncclUint64",  "ncclFloat16", "ncclFloat32",
                                        "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};

#define NAME(table, number) ((number) < sizeof(table) / sizeof *(table) ? (table)[number] : "Unknown")

static ncclotf2_result init(void **context, int *eActivationMask) {
  return ncclotf2_init(&(struct ncclotf2_init_args){.api = NCCLOTF2_API(1),
                                                    .context = context,
                                                    .mask = eActivationMask,
                                                    .rank = -1,
                                                    .caller = __builtin_return_address(0)});
}

static ncclotf2_result start(void *context, void **eHandle, const struct ncclotf2_descr_v7 *d) {
  return ncclotf2_start(context, eHandle, d, NCCLOTF2_API(1));
}

static ncclotf2_result start_coll(void *context, void **eHandle, const struct ncclotf2_descr_v1 *d) {
  ncclotf2_identify(context, d->coll.commHash, d->coll.name, d->rank);
  return start(context, eHandle,
               &(struct ncclotf2_descr_v7){.type = d->type,
                                           .parentObj = d->parentObj,
                                           .rank = d->rank,
                                           .coll = {.seqNumber = d->coll.seqNumber,
                                                    .func = NAME(functions, d->coll.func),
                                                    .sendBuff = d->coll.sendBuff,
                                                    .recvBuff = d->coll.recvBuff,
                                                    .count = d->coll.count,
                                                    .root = d->coll.root,
                                                    .datatype = NAME(datatypes, d->coll.datatype),
                                                    .nChannels = d->coll.nMaxChannels,
                                                    .nWarps = d->coll.nWarps,
                                                    .algo = NAME(algorithms, d->coll.algo),
                                                    .proto = NAME(protocols, d->coll.proto)}});
}

static ncclotf2_result start_p2p(void *context, void **eHandle, const struct ncclotf2_descr_v1 *d) {
  ncclotf2_identify(context, d->p2p.commHash, d->p2p.name, d->rank);
  return start(context, eHandle,
               &(struct ncclotf2_descr_v7){.type = d->type,
                                           .parentObj = d->parentObj,
                                           .rank = d->rank,
                                           .p2p = {.func = NAME(functions, d->p2p.func),
                                                   .buff = d->p2p.buff,
                                                   .datatype = NAME(datatypes, d->p2p.datatype),
                                                   .count = d->p2p.count,
                                                   .peer = d->p2p.peer}});
}

static ncclotf2_result start_event(void *context, void **eHandle, struct ncclotf2_descr_v1 *eDescr) {
  if (eDescr->type == 1u << NCCLOTF2_COLL) return start_coll(context, eHandle, eDescr);
  if (eDescr->type == 1u << NCCLOTF2_P2P) return start_p2p(context, eHandle, eDescr);
  /* All other members lie where the newer versions have them. */
  return start(context, eHandle, (const struct ncclotf2_descr_v7 *)(const void *)eDescr);
}

__attribute__((visibility("default"))) struct ncclotf2_plugin_v1 ncclProfiler_v1 = {
    .name = NCCLOTF2_NAME,
    .init = init,
    .startEvent = start_event,
    .stopEvent = ncclotf2_stop,
    .recordEventState = ncclotf2_state_v1,
    .finalize = ncclotf2_finalize,
};
