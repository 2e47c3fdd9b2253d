/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiler API version 2 (NCCL 2.24 and 2.25). Communicators say who they are only
 * with their operations.
 */
#include "abi_v2.h"
#include "event.h"
#include "life.h"

static ncclotf2_result init(void **context, int *eActivationMask) {
  return ncclotf2_init(&(struct ncclotf2_init_args){.api = NCCLOTF2_API(2),
                                                    .context = context,
                                                    .mask = eActivationMask,
                                                    .rank = -1,
                                                    .caller = __builtin_return_address(0)});
}

static ncclotf2_result start(void *context, void **eHandle, const struct ncclotf2_descr_v7 *d) {
  return ncclotf2_start(context, eHandle, d, NCCLOTF2_API(2));
}

static ncclotf2_result start_coll(void *context, void **eHandle, const struct ncclotf2_descr_v2 *d) {
  ncclotf2_identify(context, d->coll.commHash, d->coll.name, d->rank);
  return start(context, eHandle,
               &(struct ncclotf2_descr_v7){.type = d->type,
                                           .parentObj = d->parentObj,
                                           .rank = d->rank,
                                           .coll = {.seqNumber = d->coll.seqNumber,
                                                    .func = d->coll.func,
                                                    .sendBuff = d->coll.sendBuff,
                                                    .recvBuff = d->coll.recvBuff,
                                                    .count = d->coll.count,
                                                    .root = d->coll.root,
                                                    .datatype = d->coll.datatype,
                                                    .nChannels = d->coll.nMaxChannels,
                                                    .nWarps = d->coll.nWarps,
                                                    .algo = d->coll.algo,
                                                    .proto = d->coll.proto}});
}

static ncclotf2_result start_p2p(void *context, void **eHandle, const struct ncclotf2_descr_v2 *d) {
  ncclotf2_identify(context, d->p2p.commHash, d->p2p.name, d->rank);
  return start(context, eHandle,
               &(struct ncclotf2_descr_v7){.type = d->type,
                                           .parentObj = d->parentObj,
                                           .rank = d->rank,
                                           .p2p = {.func = d->p2p.func,
                                                   .buff = d->p2p.buff,
                                                   .datatype = d->p2p.datatype,
                                                   .count = d->p2p.count,
                                                   .peer = d->p2p.peer}});
}

static ncclotf2_result start_event(void *context, void **eHandle, struct ncclotf2_descr_v2 *eDescr) {
  if (eDescr->type == 1u << NCCLOTF2_COLL) return start_coll(context, eHandle, eDescr);
  if (eDescr->type == 1u << NCCLOTF2_P2P) return start_p2p(context, eHandle, eDescr);
  /* All other members lie where the newer versions have them. */
  return start(context, eHandle, (const struct ncclotf2_descr_v7 *)(const void *)eDescr);
}

__attribute__((visibility("default"))) struct ncclotf2_plugin_v2 ncclProfiler_v2 = {
    .name = NCCLOTF2_NAME,
    .init = init,
    .startEvent = start_event,
    .stopEvent = ncclotf2_stop,
    .recordEventState = ncclotf2_state_v1,
    .finalize = ncclotf2_finalize,
};
