/* SPDX-License-Identifier: Apache-2.0
 *
 * Spool files: the records as they are, written by a thread of this process where no collector can
 * be started. They are converted after the run by the same code that the collector uses.
 *
 * Where the spool takes over from a collector that died, it begins with the oldest chunk that the
 * collector had not given back; the collector may have written the first records of it as well.
 *
 * What cannot be written stays in memory and is tried again. NCCL's log says so, and the file itself: at its beginning there is room for
 * that and for the number of events that are missing, also where the disk is full.
 */
#ifndef NCCLOTF2_SPOOL_H
#define NCCLOTF2_SPOOL_H

#include <stdbool.h>
#include <stddef.h>

/* Makes the directory and the file. False with one line in *why if that is impossible. */
bool ncclotf2_spool_open(char *why, size_t why_size);

/* A round of the thread that writes them: writes what is new, answers requests, and waits 10 ms or for the next request. */
void ncclotf2_spool_round(void);

/* Writes what is new, from the calling thread; only where no thread goes its rounds. */
void ncclotf2_spool_flush(void);

#endif
