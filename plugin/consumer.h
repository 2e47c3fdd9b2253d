/* SPDX-License-Identifier: Apache-2.0
 *
 * Who takes the records out of the shared memory: the collector process, else this library's own
 * spool thread; and the threads that this needs. All functions want the life lock held.
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

/* Starts a new one if the collector has died: a collector the first time, then the spool. Returns whether it had. */
bool ncclotf2_consumer_check(void);

/* How long answers are waited for; tests make it shorter. */
struct ncclotf2_patience {
  uint32_t collector_ms, longest_ms;
};
extern struct ncclotf2_patience ncclotf2_patience;

/* Asks for everything recorded so far to be on disk and waits for that: a second at most, and five where what is not on disk ends with
 * this process; not at all while an earlier request is unanswered that was waited for in vain. What is
 * waited is counted (header.waited, unanswered). */
void ncclotf2_consumer_flush(void);

/* Logs what the collector has to say, and what is wrong with the spool, if it is new. */
void ncclotf2_consumer_messages(void);

#endif
