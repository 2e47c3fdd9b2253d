/* SPDX-License-Identifier: Apache-2.0
 *
 * The consumer reads the records from the shared memory: it is the collector process, or else the plugin's own
 * spool thread. The caller of each function holds the life lock.
 */
#ifndef NCCLOTF2_CONSUMER_H
#define NCCLOTF2_CONSUMER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* The life lock guards init, finalize and the end of the process, which are slow and rare. Event callbacks never
 * take it. */
extern pthread_mutex_t ncclotf2_life;

/* Starts the consumer, for the first communicator; known: event types of the API version. If it returns false, there
 * is no consumer and no events must be requested; it has logged why. */
bool ncclotf2_consumer_start(uint32_t known);

/* Returns whether events may be requested; also detects a collector that became ready late. */
bool ncclotf2_consumer_ready(void);

/* Logs once where the recording is written. */
void ncclotf2_consumer_introduce(void);

/* Replaces a collector that has died, the first time by another collector, then by the spool thread. Returns whether it had died. */
bool ncclotf2_consumer_check(void);

/* How long to wait for answers; tests shorten it. */
struct ncclotf2_patience {
  uint32_t collector_ms, longest_ms;
};
extern struct ncclotf2_patience ncclotf2_patience;

/* Requests that everything recorded so far be written to disk, and waits for it: for one second at most, or for five where
 * data that is not on disk would be lost with this process. Does not wait while an earlier request that timed out is still
 * unanswered. Counts the time waited and the timeouts (header.waited, unanswered). */
void ncclotf2_consumer_flush(void);

/* Logs new messages of the collector and new problems of the spool. */
void ncclotf2_consumer_messages(void);

#endif
