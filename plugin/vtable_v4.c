/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiler API version 4 (NCCL 2.27). Operations have no call to belong to; their parent is the
 * Group event.
 */
#include "api_versions.h"
#include "event.h"
#include "life.h"

#define API ((struct ncclotf2_api){.version = 4, .known = NCCLOTF2_KNOWN_V4})

static ncclotf2_result init(void **context, int *eActivationMask, const char *commName, uint64_t commHash, int nNodes,
                            int nranks, int rank, ncclotf2_logger logfn) {
  return ncclotf2_init(&(struct ncclotf2_init_args){.api = API,
                                                    .context = context,
                                                    .mask = eActivationMask,
                                                    .comm_id = commHash,
                                                    .name = commName,
                                                    .nnodes = nNodes,
                                                    .nranks = nranks,
                                                    .rank = rank,
                                                    .logger = logfn,
                                                    .caller = __builtin_return_address(0)});
}

static ncclotf2_result start_event(void *context, void **eHandle, struct ncclotf2_descr_v4 *eDescr) {
  return ncclotf2_start(context, eHandle, (const ncclotf2_descr *)(const void *)eDescr, API);
}

__attribute__((visibility("default"))) struct ncclotf2_plugin_v4 ncclProfiler_v4 = {
    .name = NCCLOTF2_NAME,
    .init = init,
    .startEvent = start_event,
    .stopEvent = ncclotf2_stop,
    .recordEventState = ncclotf2_state_v4,
    .finalize = ncclotf2_finalize,
};
