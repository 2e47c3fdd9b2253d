/* SPDX-License-Identifier: Apache-2.0 */
#include "loss_notices.h"

#include <stdio.h>

#include "intern.h"
#include "log.h"

/* Why events are lost (NULL: the notice reports no loss), and what the user can do about it. */
static const struct {
  const char *why, *advice; /* NULL: logged elsewhere, or only at the end */
} reasons[NCCLOTF2_NOTICES] = {
    [NCCLOTF2_LOSS_MEMORY] = {"events: memory was full (NCCL_OTF2_MEMORY)",
                              "memory is full: raise NCCL_OTF2_MEMORY, or record less with NCCL_OTF2_EVENTS"},
    [NCCLOTF2_LOSS_STOP_MEMORY] = {"stops and states: even the reserve was full", NULL}, /* the warning about full memory comes first */
    [NCCLOTF2_LOSS_RING] = {"events: too many threads", "too many threads call NCCL at the same time"},
    [NCCLOTF2_LOSS_COMM] = {"events: too many communicators", NULL}, /* logged by init */
    [NCCLOTF2_LOSS_FORK] = {"events: in forked processes", NULL},    /* forked processes do not log */
    [NCCLOTF2_LOSS_DISK] = {"events: recording had stopped", NULL},  /* the collector logs why */
    [NCCLOTF2_NOTICE_STAMPS] = {NULL, "RAS, or another writer of NCCL's activation mask, has switched on stamps of kernels (KernelCh): NCCL 2.31 can "
                                      "crash from now on, and its GPU times are wrong; do not use PROFILER_MASK all or kernelch"},
};

static uint32_t noticed; /* one bit per reason */
/* One bit per reason that was reported; the initial ones are logged elsewhere. Guarded by the life lock. */
static uint32_t known = 1u << NCCLOTF2_LOSS_STOP_MEMORY | 1u << NCCLOTF2_LOSS_COMM | 1u << NCCLOTF2_LOSS_DISK;

void ncclotf2_log_new_losses(void) {
  for (unsigned reason = 0; reason < NCCLOTF2_NOTICES; reason++) {
    const uint32_t bit = 1u << reason;
    if (!(__atomic_load_n(&noticed, __ATOMIC_RELAXED) & ~known & bit)) continue;
    known |= bit;
    if (reasons[reason].advice) ncclotf2_log(NCCLOTF2_LOG_WARN, "%s%s", reasons[reason].why ? "events are being lost: " : "", reasons[reason].advice);
  }
}

void ncclotf2_notice_loss(unsigned reason) {
  const uint32_t bit = 1u << reason;
  if (!(__atomic_load_n(&noticed, __ATOMIC_RELAXED) & bit)) __atomic_fetch_or(&noticed, bit, __ATOMIC_RELAXED);
}

void ncclotf2_log_loss_totals(void) {
  const struct ncclotf2_header *header = ncclotf2_header_at(ncclotf2_session.base);
  static uint64_t reported[NCCLOTF2_LOSS_REASONS];
  char line[512] = "";
  size_t used = 0;
  enum ncclotf2_log_level level = NCCLOTF2_LOG_INFO;
  for (unsigned reason = 0; reason < NCCLOTF2_LOSS_REASONS; reason++) {
    uint64_t lost = 0;
    for (unsigned type = 0; type < NCCLOTF2_TYPES; type++)
      lost += __atomic_load_n(&header->lost[reason][type], __ATOMIC_RELAXED);
    if (lost == reported[reason]) continue;
    int length = snprintf(line + used, sizeof line - used, "%s%llu %s", used ? "; " : "",
                          (unsigned long long)(lost - reported[reason]), reasons[reason].why);
    reported[reason] = lost;
    if (length > 0 && (size_t)length < sizeof line - used) used += (size_t)length;
    if (!(known & 1u << reason)) level = NCCLOTF2_LOG_WARN;
    known |= 1u << reason;
  }
  if (used) ncclotf2_log(level, "not recorded: %s", line);
  static uint64_t names_reported;
  uint64_t names = ncclotf2_strings_lost();
  if (names != names_reported)
    ncclotf2_log(names_reported ? NCCLOTF2_LOG_INFO : NCCLOTF2_LOG_WARN, "%llu names were not recorded: too many different ones",
                 (unsigned long long)(names - names_reported));
  names_reported = names;
  ncclotf2_log_new_losses(); /* notices that report no loss */
}
