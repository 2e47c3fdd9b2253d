/* SPDX-License-Identifier: Apache-2.0 */
#include "measurement.h"

#include <dlfcn.h>

#include "clock.h"
#include "log.h"
#include "ring.h"

struct ncclotf2_measurement *ncclotf2_measurement;

static void note_rank(void) {
  __atomic_store_n(&ncclotf2_header_at(ncclotf2_session.base)->scorep_rank,
                   __atomic_load_n(&ncclotf2_measurement->rank, __ATOMIC_ACQUIRE), __ATOMIC_RELAXED);
}

void ncclotf2_measurement_find(void (*ends)(void)) {
  static bool refused;
  if (ncclotf2_measurement || refused) return;
  void *library = dlopen(NCCLOTF2_SUBSTRATE_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (!library) return;
  struct ncclotf2_measurement *found = dlsym(library, NCCLOTF2_MEASUREMENT_SYMBOL);
  if (!found || found->version != NCCLOTF2_MEASUREMENT_VERSION) {
    refused = true;
    ncclotf2_log(NCCLOTF2_LOG_WARN, "%s is of another version than this library: it is left alone", NCCLOTF2_SUBSTRATE_LIBRARY);
    return;
  }
  ncclotf2_measurement = found;
  note_rank();
  __atomic_store_n(&ncclotf2_header_at(ncclotf2_session.base)->scorep_measured, 1, __ATOMIC_RELEASE);
  __atomic_store_n(&ncclotf2_fast.measured, 1, __ATOMIC_RELEASE);
  __atomic_store_n(&found->ends, ends, __ATOMIC_RELEASE);
}

void ncclotf2_measurement_threads(void) {
  static uint32_t recorded;
  if (!ncclotf2_measurement) return;
  note_rank();
  for (; recorded < NCCLOTF2_MEASUREMENT_THREADS; recorded++) {
    const uint32_t tid = __atomic_load_n(&ncclotf2_measurement->threads[recorded].tid, __ATOMIC_ACQUIRE);
    if (!tid) return;
    const uint64_t ticks = ncclotf2_ticks();
    unsigned loss;
    struct ncclotf2_record *at = ncclotf2_reserve(ncclotf2_session.base, sizeof *at, NCCLOTF2_CLASS_STOP, ticks, &loss);
    if (!at) return; /* the next time */
    *at = (struct ncclotf2_record){.ticks = ticks,
                                   .kind = NCCLOTF2_RECORD_SCOREP_THREAD,
                                   .units = 1,
                                   .aux = tid,
                                   .arg = ncclotf2_measurement->threads[recorded].location};
    ncclotf2_commit(ncclotf2_session.base, sizeof *at);
    ncclotf2_ticks_recorded(ticks);
  }
}
