/* SPDX-License-Identifier: Apache-2.0
 *
 * The Score-P measurement that this process is part of, if our substrate plugin is loaded in it (SCOREP_SUBSTRATE_PLUGINS=nccl_otf2):
 * what is called while its recording is off is not recorded here either.
 */
#ifndef NCCLOTF2_MEASUREMENT_H
#define NCCLOTF2_MEASUREMENT_H

#include <stdbool.h>

#include "session.h"
#include "substrate/measurement_abi.h"

/* NULL until it is found. */
extern struct ncclotf2_measurement *ncclotf2_measurement;

/* Looks for it among the loaded libraries; loads nothing. `ends` is called when it is over. Caller holds the life lock. */
void ncclotf2_measurement_find(void (*ends)(void));

/* Records which of Score-P's locations are whose, as far as that has not been recorded. Caller holds the life lock. */
void ncclotf2_measurement_threads(void);

/* Whether operations that begin now are to be recorded, for all that a measurement has to say. */
static inline bool ncclotf2_measurement_records(void) {
  return !__atomic_load_n(&ncclotf2_fast.measured, __ATOMIC_ACQUIRE) ||
         __atomic_load_n(&ncclotf2_measurement->recording, __ATOMIC_ACQUIRE);
}

#endif
