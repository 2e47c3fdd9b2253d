/* SPDX-License-Identifier: Apache-2.0
 *
 * Who takes the records out of the shared memory: the collector process, else this library's own
 * spool thread. All functions but two want the life lock held.
 */
#ifndef NCCLOTF2_CONSUMER_H
#define NCCLOTF2_CONSUMER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* The life lock: for init, finalize and the end of the process, which are slow and rare. No event
 * callback takes it. */
extern pthread_mutex_t ncclotf2_life;

/* Starts it, for the first communicator; known: event types of the API version. Returns false if
 * there is none and no events must be asked for; a line about that has been logged. */
bool ncclotf2_consumer_start(uint32_t known);

/* Whether events may be asked for; notices a collector that was slow to get ready. */
bool ncclotf2_consumer_ready(void);

/* Says once where it is recorded. */
void ncclotf2_consumer_introduce(void);

/* Starts a new one if the collector has died: a collector the first time, then the spool. */
void ncclotf2_consumer_check(void);

/* Called by a recording thread, without the lock, when the consumer has left it no prepared chunk: once a
 * second it sees whether the collector has died, and then has ncclotf2_consumer_check called on a
 * thread of its own. */
void ncclotf2_consumer_starved(void);

/* Asks for everything recorded so far to be on disk and waits for that, at most `seconds`. */
void ncclotf2_consumer_flush(unsigned seconds);

/* The spool's thread ends: what is left is written by whoever asks. Takes the life lock itself. */
void ncclotf2_consumer_without_thread(void);

/* Logs what the collector has to say, if it is new. */
void ncclotf2_consumer_messages(void);

#endif
