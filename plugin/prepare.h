/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread that puts pages of shared memory in place before NCCL's threads write to them. Pages are in place per
 * process, so the collector, which says which ones, cannot do it for us. What NCCL's threads have noticed and must not see to
 * themselves it sees to as well (ncclotf2_consumer_look).
 */
#ifndef NCCLOTF2_PREPARE_H
#define NCCLOTF2_PREPARE_H

/* Starts it, unless it is there. Without a thread to be had, recording threads put the pages in place themselves. With
 * the life lock held. */
void ncclotf2_prepare_start(void);

#endif
