/* SPDX-License-Identifier: Apache-2.0
 *
 * Chunks hold the records: how many of them each class may use, and how they pass from writers to readers and back.
 */
#ifndef NCCLOTF2_CHUNK_H
#define NCCLOTF2_CHUNK_H

#include <stdbool.h>
#include <stdint.h>

#include "session.h"

/* The number of chunks, counted from the first, that a class may use. */
uint32_t ncclotf2_class_chunks(const struct ncclotf2_header *header, enum ncclotf2_class class);

/* Populates the pages of a chunk that the caller owns, so that recording into it does not fault. Makes no system
 * call if they are populated already. Returns false if there is no memory left for them. */
bool ncclotf2_chunk_map(uint32_t chunk);

/* Takes a chunk with populated pages for records of a class. Returns its index + 1, or 0 if there is none. For recording threads. */
uint32_t ncclotf2_chunk_take(uint8_t *base, enum ncclotf2_class class);

/* Returns whether a recording thread has found no prepared chunk since the last call: the process that prepares them may have died. */
bool ncclotf2_chunks_ran_out(void);

/* When recording threads last took chunks. */
enum ncclotf2_use {
  NCCLOTF2_USE_IDLE,   /* none in the last second */
  NCCLOTF2_USE_LATELY, /* in the last second, or the process has just started */
  NCCLOTF2_USE_NOW     /* since the last call */
};

/* Keeps spare chunks in the slots, with their pages populated in this process, so that no recording thread has to populate them: fills all
 * slots while chunks are being taken, and few when none was taken for some seconds. now: CLOCK_MONOTONIC, ns. For one thread of the plugin. */
enum ncclotf2_use ncclotf2_chunks_prepare(uint64_t now);

/* Fills one more slot, up to the number of an idle process; returns false if it filled none. For the time before that thread starts. */
bool ncclotf2_chunks_prepare_one(void);

/* Set before init by tests that fill the slots themselves. */
extern bool ncclotf2_chunks_by_hand;

/* Returns a chunk to the writers, once all its records have been read and stored: into an empty slot, unless it is a
 * reserve chunk. For a reader in this process; the collector does the same. */
void ncclotf2_chunk_free(uint32_t chunk);

#endif
