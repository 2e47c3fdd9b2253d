/* SPDX-License-Identifier: Apache-2.0
 *
 * What the user is told, in NCCL's log, of what was not recorded, and of what the collector has to say.
 */
#ifndef NCCLOTF2_LOSSES_H
#define NCCLOTF2_LOSSES_H

#include "session.h"

/* What there is to tell beside the reasons of enum ncclotf2_loss. */
enum { NCCLOTF2_NOTICE_STAMPS = NCCLOTF2_LOSS_REASONS, NCCLOTF2_NOTICES };

/* Something was lost for this reason, or is to be told: a thread of ours sees it within a second or so. Any thread; no system call. */
void ncclotf2_losses_noticed(unsigned reason);

/* A warning for each reason that was noticed and not told yet. Caller holds the life lock. */
void ncclotf2_losses_tell(void);

/* How much was lost since the last time: a warning, if the user has not been told yet that anything was. Caller holds the life lock. */
void ncclotf2_losses_sum_up(void);

#endif
