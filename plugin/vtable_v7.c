/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiler API version 7 (NCCL 2.31 and later).
 */
#include "abi_v7.h"
#include "event.h"
#include "life.h"

static ncclotf2_result init(void **context, uint64_t commId, int *eActivationMask, const char *commName, int nNodes,
                            int nranks, int rank, ncclotf2_logger logfn) {
  return ncclotf2_init(&(struct ncclotf2_init_args){.api = NCCLOTF2_API(7),
                                                    .context = context,
                                                    .mask = eActivationMask,
                                                    .comm_id = commId,
                                                    .name = commName,
                                                    .nnodes = nNodes,
                                                    .nranks = nranks,
                                                    .rank = rank,
                                                    .logger = logfn,
                                                    .caller = __builtin_return_address(0)});
}

static ncclotf2_result start_event(void *context, void **eHandle, struct ncclotf2_descr_v7 *eDescr) {
  return ncclotf2_start(context, eHandle, eDescr, NCCLOTF2_API(7));
}

__attribute__((visibility("default"))) struct ncclotf2_plugin_v7 ncclProfiler_v7 = {
    .name = NCCLOTF2_NAME,
    .init = init,
    .startEvent = start_event,
    .stopEvent = ncclotf2_stop,
    .recordEventState = ncclotf2_state_v7,
    .finalize = ncclotf2_finalize,
};
