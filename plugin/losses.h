/* SPDX-License-Identifier: Apache-2.0
 *
 * What the user is told, in NCCL's log, of what was not recorded, and of what the collector has to say.
 */
#ifndef NCCLOTF2_LOSSES_H
#define NCCLOTF2_LOSSES_H

#include "session.h"

/* What there is to tell beside the reasons of enum ncclotf2_loss. */
enum { NCCLOTF2_NOTICE_STAMPS = NCCLOTF2_LOSS_REASONS, NCCLOTF2_NOTICES };

/* Something was lost for this reason, or is to be told: the first time, a thread of ours does. Any thread. */
void ncclotf2_losses_noticed(unsigned reason);

/* If the collector has said something new, a thread of ours tells. Any thread; costs two loads if not. */
void ncclotf2_losses_listen(uint8_t *base);

/* Its message of this number has been told. */
void ncclotf2_losses_heard(uint32_t number);

/* How much was lost since the last time: a warning, if the user has not been told yet that anything was. Caller holds the life lock. */
void ncclotf2_losses_sum_up(void);

#endif
