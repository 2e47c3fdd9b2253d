/* SPDX-License-Identifier: Apache-2.0
 *
 * Score-P's functions for user regions and metrics, where the program that loads the plugin is instrumented with them.
 * Measured with Score-P 8.4: names, parameters, and what may be called from where.
 */
#ifndef NCCLOTF2_SCOREP_LIBRARY_H
#define NCCLOTF2_SCOREP_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm.h"

enum {
  SCOREP_PHASE_WITHIN = 0,  /* -1: before the measurement, 1: behind it */
  SCOREP_REGION_FUNCTION = 1,
  SCOREP_METRIC_UINT64 = 1,
  SCOREP_METRIC_GLOBAL = 0
};

/* FUNCTION(needed, member, symbol, result, parameters) for each function; those that are not needed may be missing. */
#define SCOREP_FUNCTIONS(FUNCTION)                                                                                     \
  FUNCTION(1, region_init, SCOREP_User_RegionInit, void,                                                               \
           (void **handle, const char **last_file_name, uint32_t *last_file, const char *name, uint32_t type,          \
            const char *file, uint32_t line))                                                                          \
  FUNCTION(1, region_enter, SCOREP_User_RegionEnter, void, (void *handle))                                             \
  FUNCTION(1, region_end, SCOREP_User_RegionEnd, void, (void *handle))                                                 \
  FUNCTION(0, recording_enabled, SCOREP_User_RecordingEnabled, bool, (void))                                           \
  FUNCTION(0, init_metric, SCOREP_User_InitMetric, void,                                                               \
           (uint32_t *handle, const char *name, const char *unit, uint32_t type, int8_t context))                      \
  FUNCTION(0, trigger_uint64, SCOREP_User_TriggerMetricUint64, void, (uint32_t handle, uint64_t value))               \
  FUNCTION(0, location_count, SCOREP_Location_GetCountOfLocations, uint32_t, (void))                                  \
  FUNCTION(0, is_tracing, SCOREP_IsTracingEnabled, bool, (void))                                                      \
  FUNCTION(0, total_memory, SCOREP_Env_GetTotalMemory, uint64_t, (void))                                              \
  FUNCTION(0, has_flushed, SCOREP_Status_HasOtf2Flushed, bool, (void))

struct scorep_functions {
#define MEMBER(needed, member, symbol, result, parameters) result(*member) parameters;
  SCOREP_FUNCTIONS(MEMBER)
#undef MEMBER
  const int *phase; /* of the measurement; changes at any time */
};

/* Finds them among the symbols that the process exports; loads nothing, calls nothing. *model is how Score-P sees threads.
 * False if they cannot be used: `why` gets one line that says what to do about it, or "" if there is no Score-P. */
bool ncclotf2_scorep_library(struct scorep_functions *functions, enum ncclotf2_scorep_model *model, char *why,
                             size_t why_size);

#endif
