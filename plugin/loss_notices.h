/* SPDX-License-Identifier: Apache-2.0
 *
 * Notices in NCCL's log about events that were not recorded. The losses themselves are counted where they happen: see
 * ncclotf2_count_lost_start in event.h.
 */
#ifndef NCCLOTF2_LOSS_NOTICES_H
#define NCCLOTF2_LOSS_NOTICES_H

#include "session.h"

/* Notices that do not report a loss; their numbers follow those of enum ncclotf2_loss. */
enum { NCCLOTF2_NOTICE_STAMPS = NCCLOTF2_LOSS_REASONS, NCCLOTF2_NOTICES };

/* Marks a reason (enum ncclotf2_loss, or a notice above) as to be reported. A thread of the plugin logs it within about a second. May be
 * called on any thread; makes no system call. */
void ncclotf2_notice_loss(unsigned reason);

/* Logs a warning for each reason that was marked and has not been reported yet. The caller holds the life lock. */
void ncclotf2_log_new_losses(void);

/* Logs how many events were lost since the last call, as a warning unless the user was already warned of the reason. The caller holds the
 * life lock. */
void ncclotf2_log_loss_totals(void);

#endif
