/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin that does nothing: what the callbacks of a real one cost more than its own is that one's.
 * It asks for all events, or those of EMPTY_PLUGIN_EVENTS (a mask), and gives each a handle, as NCCL calls on only for
 * events that have one.
 */
#include <stdlib.h>

#include "plugin/api_versions.h"

static ncclotf2_result init(void **context, uint64_t commId, int *eActivationMask, const char *commName, int nNodes,
                            int nranks, int rank, ncclotf2_logger logfn)
{
  (void)commId;
  (void)commName;
  (void)nNodes;
  (void)nranks;
  (void)rank;
  (void)logfn;
  static int some;
  *context = &some;
  const char *events = getenv("EMPTY_PLUGIN_EVENTS");
  *eActivationMask = events ? (int)strtol(events, NULL, 0) : (int)NCCLOTF2_KNOWN_V6;
  return NCCLOTF2_SUCCESS;
}

static ncclotf2_result start_event(void *context, void **eHandle, struct ncclotf2_descr_v6 *eDescr)
{
  (void)eDescr;
  *eHandle = context;
  return NCCLOTF2_SUCCESS;
}

static ncclotf2_result start_event_v5(void *context, void **eHandle, struct ncclotf2_descr_v5 *eDescr)
{
  (void)eDescr;
  *eHandle = context;
  return NCCLOTF2_SUCCESS;
}

static ncclotf2_result stop_event(void *eHandle)
{
  (void)eHandle;
  return NCCLOTF2_SUCCESS;
}

static ncclotf2_result record_event_state(void *eHandle, int eState, union ncclotf2_state_args *eStateArgs)
{
  (void)eHandle;
  (void)eState;
  (void)eStateArgs;
  return NCCLOTF2_SUCCESS;
}

static ncclotf2_result finalize(void *context)
{
  (void)context;
  return NCCLOTF2_SUCCESS;
}

__attribute__((visibility("default"))) struct ncclotf2_plugin_v6 ncclProfiler_v6 = {
    .name = "empty",
    .init = init,
    .startEvent = start_event,
    .stopEvent = stop_event,
    .recordEventState = record_event_state,
    .finalize = finalize,
};

/* NCCL 2.28 knows no version 6. It does not look at the bits that it has no events for. */
__attribute__((visibility("default"))) struct ncclotf2_plugin_v5 ncclProfiler_v5 = {
    .name = "empty",
    .init = init,
    .startEvent = start_event_v5,
    .stopEvent = stop_event,
    .recordEventState = record_event_state,
    .finalize = finalize,
};
