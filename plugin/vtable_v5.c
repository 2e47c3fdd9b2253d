/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiler API version 5 (NCCL 2.28). Its descriptor is v6's without the copy-engine events.
 */
#include "abi_v5.h"
#include "abi_v6.h"
#include "event.h"
#include "life.h"

#define SAME(member)                                                                                     \
  _Static_assert(offsetof(struct ncclotf2_descr_v5, member) == offsetof(struct ncclotf2_descr_v6, member), \
                 "v5 and v6 differ in " #member)
SAME(type);
SAME(parentObj);
SAME(rank);
SAME(groupApi.graphCaptured);
SAME(groupApi.groupDepth);
SAME(collApi.func);
SAME(collApi.count);
SAME(collApi.datatype);
SAME(collApi.root);
SAME(collApi.stream);
SAME(collApi.graphCaptured);
SAME(p2pApi.func);
SAME(p2pApi.count);
SAME(p2pApi.datatype);
SAME(p2pApi.stream);
SAME(p2pApi.graphCaptured);
SAME(kernelLaunch.stream);
SAME(coll.seqNumber);
SAME(coll.func);
SAME(coll.sendBuff);
SAME(coll.recvBuff);
SAME(coll.count);
SAME(coll.root);
SAME(coll.datatype);
SAME(coll.nChannels);
SAME(coll.nWarps);
SAME(coll.algo);
SAME(coll.proto);
SAME(coll.parentGroup);
SAME(p2p.func);
SAME(p2p.buff);
SAME(p2p.datatype);
SAME(p2p.count);
SAME(p2p.peer);
SAME(p2p.nChannels);
SAME(p2p.parentGroup);
SAME(proxyOp.pid);
SAME(proxyOp.channelId);
SAME(proxyOp.peer);
SAME(proxyOp.nSteps);
SAME(proxyOp.chunkSize);
SAME(proxyOp.isSend);
SAME(proxyStep.step);
SAME(kernelCh.channelId);
SAME(kernelCh.pTimer);
SAME(netPlugin.id);
SAME(netPlugin.data);
#undef SAME

static ncclotf2_result init(void **context, uint64_t commId, int *eActivationMask, const char *commName, int nNodes,
                            int nranks, int rank, ncclotf2_logger logfn) {
  return ncclotf2_init(&(struct ncclotf2_init_args){.api_version = 5,
                                                    .known = NCCLOTF2_KNOWN_V5,
                                                    .context = context,
                                                    .comm_id = commId,
                                                    .mask = eActivationMask,
                                                    .name = commName,
                                                    .nnodes = nNodes,
                                                    .nranks = nranks,
                                                    .rank = rank,
                                                    .logger = logfn});
}

static ncclotf2_result start_event(void *context, void **eHandle, struct ncclotf2_descr_v5 *eDescr) {
  return ncclotf2_start(context, eHandle, (const struct ncclotf2_descr_v6 *)(const void *)eDescr, NCCLOTF2_KNOWN_V5);
}

__attribute__((visibility("default"))) struct ncclotf2_plugin_v5 ncclProfiler_v5 = {
    .name = NCCLOTF2_NAME,
    .init = init,
    .startEvent = start_event,
    .stopEvent = ncclotf2_stop,
    .recordEventState = ncclotf2_state,
    .finalize = ncclotf2_finalize,
};
