/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL's activation mask: the one word per copy of libnccl in which plugins say what events they want.
 */
#ifndef NCCLOTF2_MASK_H
#define NCCLOTF2_MASK_H

#include <stdbool.h>

#include "event.h"

/* Says in header.withheld what NCCL must not be asked for because it would hang the job; before a consumer is started.
 * Caller holds the life lock. */
void ncclotf2_mask_open(unsigned version);

/* Asks for what the settings choose, if a consumer is `ready` for it, once per word and life of the communicators:
 * NCCL passes the same word to every init, and it may have been changed since by whoever pauses recording. What has been
 * withheld is left out. Caller holds the life lock. */
void ncclotf2_mask_ask(int *word, struct ncclotf2_api api, bool ready);

/* No communicator is left: the words may be unmapped. Caller holds the life lock. */
void ncclotf2_mask_forget(void);

#endif
