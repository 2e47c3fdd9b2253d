/* SPDX-License-Identifier: Apache-2.0
 *
 * The chunks that records lie in: who may use how many, and how they go from writers to readers and back.
 */
#ifndef NCCLOTF2_CHUNK_H
#define NCCLOTF2_CHUNK_H

#include <stdbool.h>
#include <stdint.h>

#include "session.h"

/* How many chunks, from the first on, a class may use. */
uint32_t ncclotf2_class_chunks(const struct ncclotf2_header *header, enum ncclotf2_class class);

/* Brings the pages of a chunk that is ours into this process, so that recording into it does not
 * fault; no system call if they are in place. False if there is no memory left for them. */
bool ncclotf2_chunk_map(uint32_t chunk);

/* Takes a chunk for records of a class, with its pages in place. Its index + 1, or 0: there is none. For recording threads. */
uint32_t ncclotf2_chunk_take(uint8_t *base, enum ncclotf2_class class);

/* Whether a recording thread has found no prepared chunk since this was last asked: who prepares them may have died. */
bool ncclotf2_chunks_ran_out(void);

/* Whether recording threads take chunks. */
enum ncclotf2_use {
  NCCLOTF2_USE_IDLE,   /* none in the last second */
  NCCLOTF2_USE_LATELY, /* in the last second, or the process begins */
  NCCLOTF2_USE_NOW     /* since this was last asked */
};

/* Keeps spare chunks in the slots, with their pages in place in this process, so that no recording thread has to see to it: as many as there
 * are slots while chunks are taken, few when none have been for some seconds. now: CLOCK_MONOTONIC, ns. For one thread of this library. */
enum ncclotf2_use ncclotf2_chunks_prepare(uint64_t now);

/* Fills one more slot, as long as there are fewer than in an idle process; false if none was. Before that thread begins. */
bool ncclotf2_chunks_prepare_one(void);

/* For tests, which fill the slots themselves: set before init. */
extern bool ncclotf2_chunks_by_hand;

/* Gives a chunk whose records are all read and safe back to the writers: as a spare one if there is
 * a slot, and it is no reserve. For a reader in this process (the collector does the same). */
void ncclotf2_chunk_free(uint32_t chunk);

#endif
