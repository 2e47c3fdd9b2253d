/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk.h"

#include "memory.h"

/* header.freed + 1 when a look through all chunks of a class last found none: until something has been freed no other
 * look is worth its time, because a refused event must stay cheap; NCCL's thread pays for it. */
static uint64_t barren[NCCLOTF2_CLASSES];

static bool ran_out; /* a thread found no prepared chunk */

bool ncclotf2_chunks_ran_out(void) { return __atomic_exchange_n(&ran_out, false, __ATOMIC_RELAXED); }

uint32_t ncclotf2_class_chunks(const struct ncclotf2_header *header, enum ncclotf2_class class) {
  static const uint8_t sixteenths[NCCLOTF2_CLASSES] = {[NCCLOTF2_CLASS_CONTROL] = 10,
                                                       [NCCLOTF2_CLASS_STEP] = 12,
                                                       [NCCLOTF2_CLASS_CHANNEL] = 14,
                                                       [NCCLOTF2_CLASS_OPERATION] = 15,
                                                       [NCCLOTF2_CLASS_STOP] = 16};
  if (class == NCCLOTF2_CLASS_STOP) return header->chunk_count;
  if (class == NCCLOTF2_CLASS_OPERATION) return header->chunk_count - header->chunk_reserve;
  return (uint32_t)((uint64_t)header->chunk_count * sixteenths[class] / 16);
}

/* The mark in a chunk's head says that this process has its pages in place: it goes with them when the
 * collector returns the pages of long unused chunks to the system. */
enum { MARK = 0x70616765 };

bool ncclotf2_chunk_map(uint32_t index) {
  struct ncclotf2_chunk *chunk = ncclotf2_chunk_at(ncclotf2_session.base, index);
  uint32_t *mark = &chunk->pad[0];
  if (!ncclotf2_memory_is_scarce() && __atomic_load_n(mark, __ATOMIC_RELAXED) == MARK) return true;
  if (!ncclotf2_memory_place(chunk, NCCLOTF2_CHUNK_SIZE)) return false;
  __atomic_store_n(mark, MARK, __ATOMIC_RELAXED);
  return true;
}

static bool take_chunk(uint8_t *base, uint32_t chunk) {
  uint32_t *state = ncclotf2_chunk_states_at(base) + chunk;
  uint32_t expected = NCCLOTF2_CHUNK_FREE;
  return __atomic_load_n(state, __ATOMIC_RELAXED) == NCCLOTF2_CHUNK_FREE &&
         __atomic_compare_exchange_n(state, &expected, NCCLOTF2_CHUNK_USED, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void make_free(uint8_t *base, uint32_t chunk) {
  __atomic_store_n(ncclotf2_chunk_states_at(base) + chunk, NCCLOTF2_CHUNK_FREE, __ATOMIC_RELEASE);
  __atomic_fetch_add(&ncclotf2_header_at(base)->freed, 1, __ATOMIC_RELEASE);
}

/* Returns the index + 1 of a chunk that the caller now owns, or 0. */
static uint32_t take_spare(uint8_t *base, uint32_t limit) {
  struct ncclotf2_header *header = ncclotf2_header_at(base);
  uint32_t *states = ncclotf2_chunk_states_at(base);
  const uint32_t most = header->chunk_count - header->chunk_reserve;
  for (unsigned i = 0; i < NCCLOTF2_SPARE_MAX; i++) {
    uint32_t chunk = __atomic_load_n(&header->spare[i], __ATOMIC_RELAXED);
    /* A chunk that this class may not use stays for another class. */
    if (!chunk || (chunk > limit && chunk <= most) ||
        !__atomic_compare_exchange_n(&header->spare[i], &chunk, 0, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      continue;
    if (chunk <= limit) {
      __atomic_store_n(&states[chunk - 1], NCCLOTF2_CHUNK_USED, __ATOMIC_RELAXED);
      return chunk;
    }
    /* A reserve chunk does not belong in a slot: return it. */
    if (chunk <= header->chunk_count)
      make_free(base, chunk - 1);
  }
  return 0;
}

/* Starts at the lowest, so that the same few pages are used again and again. */
static uint32_t scan(uint8_t *base, uint32_t limit, enum ncclotf2_class class) {
  const uint64_t freed = __atomic_load_n(&ncclotf2_header_at(base)->freed, __ATOMIC_ACQUIRE);
  if (__atomic_load_n(&barren[class], __ATOMIC_RELAXED) == freed + 1) return 0;
  for (uint32_t i = 0; i < limit; i++)
    if (take_chunk(base, i)) return i + 1;
  __atomic_store_n(&barren[class], freed + 1, __ATOMIC_RELAXED);
  return 0;
}

static uint32_t any(uint8_t *base, enum ncclotf2_class class) {
  struct ncclotf2_header *header = ncclotf2_header_at(base);
  const uint32_t most = header->chunk_count - header->chunk_reserve;
  const uint32_t own = ncclotf2_class_chunks(header, class), limit = own < most ? own : most;
  uint32_t chunk = take_spare(base, limit);
  if (chunk) return chunk;
  if (!__atomic_load_n(&ran_out, __ATOMIC_RELAXED)) __atomic_store_n(&ran_out, true, __ATOMIC_RELAXED);
  chunk = scan(base, limit, class);
  for (uint32_t i = limit; !chunk && i < own; i++)
    if (take_chunk(base, i)) chunk = i + 1;
  if (chunk) __atomic_fetch_add(&header->faulted_chunks, 1, __ATOMIC_RELAXED);
  return chunk;
}

uint32_t ncclotf2_chunk_take(uint8_t *base, enum ncclotf2_class class) {
  const uint32_t taken = any(base, class);
  if (!taken || ncclotf2_chunk_map(taken - 1)) return taken;
  make_free(base, taken - 1);
  __atomic_store_n(&barren[class], __atomic_load_n(&ncclotf2_header_at(base)->freed, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED); /* no other chunk has pages either */
  return 0;
}

/* Returns the index + 1 of the lowest free chunk that any class but stops may use, with its pages populated, or 0. */
static uint32_t make_spare(uint8_t *base, const struct ncclotf2_header *header, uint32_t *from) {
  uint32_t *states = ncclotf2_chunk_states_at(base);
  for (; *from < header->chunk_count - header->chunk_reserve; ++*from) {
    uint32_t expected = NCCLOTF2_CHUNK_FREE;
    if (__atomic_load_n(&states[*from], __ATOMIC_RELAXED) != NCCLOTF2_CHUNK_FREE ||
        !__atomic_compare_exchange_n(&states[*from], &expected, NCCLOTF2_CHUNK_SPARE, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      continue;
    if (ncclotf2_chunk_map(*from)) return ++*from;
    make_free(base, *from);
    return 0;
  }
  return 0;
}

bool ncclotf2_chunks_by_hand;

/* Returns how many spare slots to fill. While chunks are being taken, a burst may follow, and the spare chunks must last until the plugin
 * notices it: all slots are filled. Where memory is small, most of it is left to the threads that need it first. */
static unsigned wanted(const struct ncclotf2_header *header, bool idle) {
  enum { IDLE = 32, PART = 8 };
  const unsigned part = header->chunk_count / PART, most = part < NCCLOTF2_SPARE_MAX ? part : NCCLOTF2_SPARE_MAX;
  return idle && IDLE < most ? IDLE : most;
}

/* Frees a spare chunk. An empty head means that the chunk was prepared for a burst that did not come and was never written to: its pages are
 * returned to the system. A used chunk keeps its pages for the next burst; the collector limits how many do. */
static void put_back(uint8_t *base, uint32_t index) {
  struct ncclotf2_chunk *chunk = ncclotf2_chunk_at(base, index);
  if (!__atomic_load_n(&chunk->committed, __ATOMIC_RELAXED)) ncclotf2_memory_return(chunk, NCCLOTF2_CHUNK_SIZE);
  make_free(base, index);
}

static unsigned filled_slots(const struct ncclotf2_header *header) {
  unsigned filled = 0;
  for (unsigned i = 0; i < NCCLOTF2_SPARE_MAX; i++) filled += __atomic_load_n(&header->spare[i], __ATOMIC_RELAXED) != 0;
  return filled;
}

/* Fills up to the given number of empty slots; returns how many it filled. */
static unsigned fill(uint8_t *base, unsigned count) {
  struct ncclotf2_header *header = ncclotf2_header_at(base);
  uint32_t from = 0;
  unsigned done = 0;
  for (unsigned i = 0; i < NCCLOTF2_SPARE_MAX && done < count; i++) {
    uint32_t empty = 0;
    if (__atomic_load_n(&header->spare[i], __ATOMIC_RELAXED)) continue;
    const uint32_t spare = make_spare(base, header, &from);
    if (!spare) break;
    if (__atomic_compare_exchange_n(&header->spare[i], &empty, spare, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
      done++;
    else
      make_free(base, spare - 1);
  }
  return done;
}

/* Empties the given number of slots, the last ones first: recording threads take from the first ones. */
static void empty(uint8_t *base, unsigned count) {
  struct ncclotf2_header *header = ncclotf2_header_at(base);
  for (unsigned i = NCCLOTF2_SPARE_MAX; i-- && count;) {
    uint32_t chunk = __atomic_load_n(&header->spare[i], __ATOMIC_RELAXED);
    if (!chunk || !__atomic_compare_exchange_n(&header->spare[i], &chunk, 0, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) continue;
    put_back(base, chunk - 1);
    count--;
  }
}

enum ncclotf2_use ncclotf2_chunks_prepare(uint64_t now) {
  enum { LATELY_MS = 1000, KEPT_MS = 5000 }; /* pauses between the steps of a training keep the spare chunks */
  static unsigned had;
  static uint64_t used; /* when a chunk was last taken; initially the time of the first call */
  if (ncclotf2_chunks_by_hand) return NCCLOTF2_USE_IDLE;
  uint8_t *base = ncclotf2_session.base;
  const unsigned filled = filled_slots(ncclotf2_header_at(base));
  const bool taken = filled < had;
  if (taken || !used) used = now;
  const uint64_t unused_ms = (now - used) / 1000000;
  const unsigned want = wanted(ncclotf2_header_at(base), unused_ms >= KEPT_MS);
  had = filled;
  if (filled < want) had += fill(base, want - filled);
  if (filled > want) {
    empty(base, filled - want);
    had = want;
  }
  return taken ? NCCLOTF2_USE_NOW : unused_ms < LATELY_MS ? NCCLOTF2_USE_LATELY : NCCLOTF2_USE_IDLE;
}

bool ncclotf2_chunks_prepare_one(void) {
  if (ncclotf2_chunks_by_hand) return false;
  uint8_t *base = ncclotf2_session.base;
  return filled_slots(ncclotf2_header_at(base)) < wanted(ncclotf2_header_at(base), true) && fill(base, 1);
}

void ncclotf2_chunk_free(uint32_t chunk) {
  uint8_t *base = ncclotf2_session.base;
  struct ncclotf2_header *header = ncclotf2_header_at(base);
  uint32_t *state = ncclotf2_chunk_states_at(base) + chunk;
  if (chunk < header->chunk_count - header->chunk_reserve) {
    __atomic_store_n(state, NCCLOTF2_CHUNK_SPARE, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < NCCLOTF2_SPARE_MAX; i++) {
      uint32_t empty = 0;
      if (__atomic_compare_exchange_n(&header->spare[i], &empty, chunk + 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        return;
    }
  }
  make_free(base, chunk);
}
