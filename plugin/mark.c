/* SPDX-License-Identifier: Apache-2.0 */
#include "mark.h"

#include "clock.h"
#include "intern.h"
#include "ring.h"

#define EXPORTED __attribute__((visibility("default")))
#define TYPES ((1u << NCCLOTF2_TYPES) - 1)

static void record(enum ncclotf2_mark mark, const char *text) {
  uint8_t *base = __atomic_load_n(&ncclotf2_fast.base, __ATOMIC_ACQUIRE);
  if (!base) return;
  const uint32_t mask = __atomic_load_n(&ncclotf2_header_at(base)->record_mask, __ATOMIC_RELAXED);
  if (!(mask & TYPES) || mask & NCCLOTF2_RECORD_FULL) return;
  const uint64_t ticks = ncclotf2_ticks();
  /* The text is the caller's and may be another one at the same address next time. */
  const uint32_t id = ncclotf2_string_id(text);
  unsigned loss;
  struct ncclotf2_record *at =
      ncclotf2_reserve(base, sizeof *at, mark == NCCLOTF2_MARK_PHASE_END ? NCCLOTF2_CLASS_STOP : NCCLOTF2_CLASS_OPERATION,
                       ticks, &loss);
  if (!at) {
    ncclotf2_count(&ncclotf2_header_at(base)->lost_marks);
    return;
  }
  *at = (struct ncclotf2_record){
      .ticks = ticks, .kind = NCCLOTF2_RECORD_MARK, .type = (uint8_t)mark, .units = 1, .aux = id};
  ncclotf2_commit(base, sizeof *at);
  ncclotf2_ticks_recorded(ticks);
}

EXPORTED void nccl_otf2_phase_begin(const char *name) {
  record(NCCLOTF2_MARK_PHASE_BEGIN, name); /* also without a name: its end will come */
}
EXPORTED void nccl_otf2_phase_end(void) { record(NCCLOTF2_MARK_PHASE_END, NULL); }
EXPORTED void nccl_otf2_mark(const char *text) {
  if (text) record(NCCLOTF2_MARK_POINT, text);
}
