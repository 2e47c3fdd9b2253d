/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of the user adapter.
 */
#include <pthread.h>
#include <stddef.h>

#include "fakescorep.h"

#define EXPORTED __attribute__((visibility("default")))

/* A region or metric that several threads use first is defined once. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

EXPORTED void SCOREP_User_RegionInit(void **handle, const char **last_name, uint32_t *last_file, const char *name, uint32_t type,
                                     const char *file, uint32_t line);
EXPORTED void SCOREP_User_RegionInit(void **handle, const char **last_name, uint32_t *last_file, const char *name, uint32_t type,
                                     const char *file, uint32_t line)
{
  (void)line;
  if (type > 8) fakescorep_die("a region of a type that does not exist");
  if (!fakescorep_measures()) return;
  pthread_mutex_lock(&lock);
  if (!*handle) *handle = fakescorep_define(name, file);
  if (last_name) *last_name = file;
  if (last_file) *last_file = 1;
  pthread_mutex_unlock(&lock);
}

EXPORTED void SCOREP_User_RegionEnter(void *handle);
EXPORTED void SCOREP_User_RegionEnter(void *handle)
{
  if (!fakescorep_measures()) return;
  if (!handle) fakescorep_die("a region that is NULL is entered");
  fakescorep_begin(handle);
}

EXPORTED void SCOREP_User_RegionEnd(void *handle);
EXPORTED void SCOREP_User_RegionEnd(void *handle)
{
  if (fakescorep_measures() && handle) fakescorep_end(handle);
}

EXPORTED void SCOREP_User_RegionBegin(void **handle, const char **last_name, uint32_t *last_file, const char *name, uint32_t type,
                                      const char *file, uint32_t line);
EXPORTED void SCOREP_User_RegionBegin(void **handle, const char **last_name, uint32_t *last_file, const char *name, uint32_t type,
                                      const char *file, uint32_t line)
{
  SCOREP_User_RegionInit(handle, last_name, last_file, name, type, file, line);
  SCOREP_User_RegionEnter(*handle);
}

EXPORTED void SCOREP_User_RegionByNameBegin(const char *name, uint32_t type, const char *file, uint32_t line);
EXPORTED void SCOREP_User_RegionByNameBegin(const char *name, uint32_t type, const char *file, uint32_t line)
{
  (void)type, (void)file, (void)line;
  if (fakescorep_measures()) fakescorep_begin(fakescorep_named(name, true));
}

EXPORTED void SCOREP_User_RegionByNameEnd(const char *name);
EXPORTED void SCOREP_User_RegionByNameEnd(const char *name)
{
  if (!fakescorep_measures()) return;
  void *region = fakescorep_named(name, false);
  if (!region) fakescorep_die("Trying to leave a region-by-name never entered");
  fakescorep_end(region);
}

EXPORTED void SCOREP_User_InitMetric(uint32_t *handle, const char *name, const char *unit, uint32_t type, int8_t context);
EXPORTED void SCOREP_User_InitMetric(uint32_t *handle, const char *name, const char *unit, uint32_t type, int8_t context)
{
  if (type > 2 || context < 0 || context > 1) fakescorep_die("a metric of a type or context that does not exist");
  if (!fakescorep_measures()) return;
  pthread_mutex_lock(&lock);
  if (!*handle) *handle = fakescorep_metric(name, unit);
  pthread_mutex_unlock(&lock);
}

EXPORTED void SCOREP_User_TriggerMetricUint64(uint32_t handle, uint64_t value);
EXPORTED void SCOREP_User_TriggerMetricUint64(uint32_t handle, uint64_t value)
{
  if (fakescorep_measures()) fakescorep_value(handle, (double)value);
}

EXPORTED void SCOREP_User_TriggerMetricInt64(uint32_t handle, int64_t value);
EXPORTED void SCOREP_User_TriggerMetricInt64(uint32_t handle, int64_t value)
{
  if (fakescorep_measures()) fakescorep_value(handle, (double)value);
}

EXPORTED void SCOREP_User_TriggerMetricDouble(uint32_t handle, double value);
EXPORTED void SCOREP_User_TriggerMetricDouble(uint32_t handle, double value)
{
  if (fakescorep_measures()) fakescorep_value(handle, value);
}

/* Each value of a parameter makes a call path of its own. */
EXPORTED void SCOREP_User_ParameterInt64(uint64_t *handle, const char *name, int64_t value);
EXPORTED void SCOREP_User_ParameterInt64(uint64_t *handle, const char *name, int64_t value)
{
  (void)handle, (void)name, (void)value;
  fakescorep_die("a parameter");
}

EXPORTED void SCOREP_User_ParameterUint64(uint64_t *handle, const char *name, uint64_t value);
EXPORTED void SCOREP_User_ParameterUint64(uint64_t *handle, const char *name, uint64_t value)
{
  (void)handle, (void)name, (void)value;
  fakescorep_die("a parameter");
}

EXPORTED void SCOREP_User_ParameterString(uint64_t *handle, const char *name, const char *value);
EXPORTED void SCOREP_User_ParameterString(uint64_t *handle, const char *name, const char *value)
{
  (void)handle, (void)name, (void)value;
  fakescorep_die("a parameter");
}

EXPORTED void SCOREP_User_EnableRecording(void);
EXPORTED void SCOREP_User_EnableRecording(void)
{
  if (fakescorep_measures()) fakescorep_record(true);
}

EXPORTED void SCOREP_User_DisableRecording(void);
EXPORTED void SCOREP_User_DisableRecording(void)
{
  if (fakescorep_measures()) fakescorep_record(false);
}

EXPORTED bool SCOREP_User_RecordingEnabled(void);
EXPORTED bool SCOREP_User_RecordingEnabled(void) { return fakescorep_measures() && fakescorep_recording(); }
