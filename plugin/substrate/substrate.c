/* SPDX-License-Identifier: Apache-2.0
 *
 * A substrate plugin of Score-P's: libscorep_substrate_nccl_otf2.so, loaded where SCOREP_SUBSTRATE_PLUGINS names nccl_otf2. It
 * records what Score-P reports of the measurement where the NCCL plugin finds it, and takes no events but the switches of
 * recording: others cost as before.
 */
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "measurement_abi.h"
#include "scorep_abi.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED struct ncclotf2_measurement nccl_otf2_measurement = {
    .version = NCCLOTF2_MEASUREMENT_VERSION, .recording = 1, .rank = -1};
#define measurement nccl_otf2_measurement

static struct scorep_callbacks score_p;

static void set_recording(bool on) { __atomic_store_n(&measurement.recording, on, __ATOMIC_RELEASE); }

static void recording_enabled(struct SCOREP_Location *location, uint64_t ticks, uint32_t region, const uint64_t *metrics) {
  (void)location, (void)ticks, (void)region, (void)metrics;
  set_recording(true);
}

static void recording_disabled(struct SCOREP_Location *location, uint64_t ticks, uint32_t region, const uint64_t *metrics) {
  (void)location, (void)ticks, (void)region, (void)metrics;
  set_recording(false);
}

static uint32_t get_event_functions(int mode, const scorep_function **functions) {
  static const scorep_function wanted[SCOREP_EVENTS_WANTED] = {
      [SCOREP_EVENT_ENABLE_RECORDING] = (scorep_function)recording_enabled,
      [SCOREP_EVENT_DISABLE_RECORDING] = (scorep_function)recording_disabled};
  (void)mode;
  *functions = wanted;
  return SCOREP_EVENTS_WANTED;
}

static void set_callbacks(const struct scorep_callbacks *callbacks, size_t size) {
  if (size >= sizeof score_p) score_p = *callbacks;
}

static void init_mpp(void) {
  if (score_p.rank) __atomic_store_n(&measurement.rank, score_p.rank(), __ATOMIC_RELEASE);
}

/* With OpenMP a thread comes here in each parallel region. */
static void activate_cpu_location(const struct SCOREP_Location *location, const struct SCOREP_Location *parent, uint32_t forks) {
  (void)parent, (void)forks;
  static __thread const struct SCOREP_Location *latest;
  if (location == latest || !score_p.location_id) return;
  latest = location;
  const uint32_t tid = (uint32_t)syscall(SYS_gettid), id = score_p.location_id(location);
  static uint32_t used;
  const uint32_t filled = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < filled && i < NCCLOTF2_MEASUREMENT_THREADS; i++)
    if (__atomic_load_n(&measurement.threads[i].tid, __ATOMIC_ACQUIRE) == tid && measurement.threads[i].location == id) return;
  const uint32_t at = __atomic_fetch_add(&used, 1, __ATOMIC_ACQ_REL);
  if (at >= NCCLOTF2_MEASUREMENT_THREADS) {
    __atomic_fetch_add(&measurement.threads_lost, 1, __ATOMIC_RELAXED);
    return;
  }
  measurement.threads[at].location = id;
  __atomic_store_n(&measurement.threads[at].tid, tid, __ATOMIC_RELEASE);
}

static void pre_unify(void) {
  set_recording(false);
  void (*const ends)(void) = __atomic_load_n(&measurement.ends, __ATOMIC_ACQUIRE);
  if (ends) ends();
}

static int init(void) { return 0; }

EXPORTED struct scorep_substrate SCOREP_SubstratePlugin_nccl_otf2_get_info(void) {
  return (struct scorep_substrate){.version = SCOREP_SUBSTRATE_VERSION,
                                   .init = init,
                                   .init_mpp = init_mpp,
                                   .activate_cpu_location = activate_cpu_location,
                                   .pre_unify = pre_unify,
                                   .get_event_functions = get_event_functions,
                                   .set_callbacks = set_callbacks};
}
