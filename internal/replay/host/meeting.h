/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the members of a communicator meet. Making a communicator is collective: no rank can use or
 * leave it before all ranks have joined. With the live clock nothing else holds the processes of a
 * replay together, so each member says here that its init is done, and waits for the others before
 * the first call that uses the communicator.
 */
#ifndef REPLAY_HOST_MEETING_H
#define REPLAY_HOST_MEETING_H

#include "program.h"

/* path: a file that all processes of the replay share, zero-filled, with a 32-bit counter for each
 * meeting; NULL: nobody waits. What is wrong with it ends the process with status 1. */
void meeting_begin(const struct program *program, const char *path);

void meeting_arrive(const struct context *context);

/* Returns when all members have arrived, or after 20 s: one of them may have died. */
void meeting_wait(const struct context *context);

#endif
