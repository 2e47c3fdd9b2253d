/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiler API version 6 (NCCL 2.29 and 2.30). RCCL for a time exported an extended v6: its extra
 * members lie behind those read here, and its extra type and state values are ignored.
 */
#include "abi_v6.h"
#include "event.h"
#include "life.h"

static ncclotf2_result init(void **context, uint64_t commId, int *eActivationMask, const char *commName, int nNodes,
                            int nranks, int rank, ncclotf2_logger logfn) {
  return ncclotf2_init(&(struct ncclotf2_init_args){.api = NCCLOTF2_API(6),
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

static ncclotf2_result start_event(void *context, void **eHandle, struct ncclotf2_descr_v6 *eDescr) {
  return ncclotf2_start(context, eHandle, (const struct ncclotf2_descr_v7 *)(const void *)eDescr, NCCLOTF2_API(6));
}

__attribute__((visibility("default"))) struct ncclotf2_plugin_v6 ncclProfiler_v6 = {
    .name = NCCLOTF2_NAME,
    .init = init,
    .startEvent = start_event,
    .stopEvent = ncclotf2_stop,
    .recordEventState = ncclotf2_state_v4,
    .finalize = ncclotf2_finalize,
};
