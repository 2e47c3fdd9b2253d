/* SPDX-License-Identifier: Apache-2.0
 *
 * What the substrate plugin passes to the NCCL plugin: two libraries in one process, of which either may be loaded first. NCCL's looks for
 * the other by its name, and then for the object below.
 */
#ifndef NCCLOTF2_MEASUREMENT_ABI_H
#define NCCLOTF2_MEASUREMENT_ABI_H

#include <stdint.h>

#define NCCLOTF2_SUBSTRATE_LIBRARY "libscorep_substrate_nccl_otf2.so"
#define NCCLOTF2_MEASUREMENT_SYMBOL "nccl_otf2_measurement"
#define NCCLOTF2_MEASUREMENT_VERSION 1u
#define NCCLOTF2_MEASUREMENT_THREADS 4096u

struct ncclotf2_measurement {
  uint32_t version;
  uint32_t recording; /* whether Score-P records now: not in pauses, nor behind the measurement's end */
  int32_t rank;       /* Score-P's number of the process; -1 before it is known */
  uint32_t threads_lost; /* for which there was no room */
  void (*ends)(void); /* set by the NCCL plugin; called when the measurement is over, on the thread that ends it */
  /* Which thread recorded at which of Score-P's locations, each pair once. Filled in from the front; an entry is in place when
   * its tid is not 0. */
  struct {
    uint32_t tid, location;
  } threads[NCCLOTF2_MEASUREMENT_THREADS];
};

#endif
