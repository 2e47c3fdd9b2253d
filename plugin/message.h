/* SPDX-License-Identifier: Apache-2.0
 *
 * What the collector has to say to the user: it has no log of its own, so it leaves a line in the shared memory.
 */
#ifndef NCCLOTF2_MESSAGE_H
#define NCCLOTF2_MESSAGE_H

/* Logs it if it is new. With the life lock held. */
void ncclotf2_message_tell(void);

#endif
