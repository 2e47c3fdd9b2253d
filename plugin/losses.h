/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages to the user, in NCCL's log: what was not recorded, and what the collector reports.
 */
#ifndef NCCLOTF2_LOSSES_H
#define NCCLOTF2_LOSSES_H

#include "session.h"

/* Messages beside the reasons of enum ncclotf2_loss. */
enum { NCCLOTF2_NOTICE_STAMPS = NCCLOTF2_LOSS_REASONS, NCCLOTF2_NOTICES };

/* Notes that something was lost for this reason, or is to be reported: a thread of ours sees it within about a second. Any thread; no system call. */
void ncclotf2_losses_noticed(unsigned reason);

/* A warning for each reason that was noticed and not reported yet. Caller holds the life lock. */
void ncclotf2_losses_tell(void);

/* How much was lost since the last time: a warning, unless the user has had one. Caller holds the life lock. */
void ncclotf2_losses_sum_up(void);

#endif
