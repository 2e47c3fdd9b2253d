/* SPDX-License-Identifier: Apache-2.0 */
#include "ring.h"

#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "consumer.h"
#include "memory.h"

__thread struct ncclotf2_ring *ncclotf2_ring __attribute__((tls_model("initial-exec")));

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool have_key;

/* header.freed + 1 when a look through all chunks of a class last found none: until something has been freed no other
 * look is worth its time, because a refused event must stay cheap; NCCL's thread pays for it. */
static uint64_t barren[NCCLOTF2_CLASSES];

static void give_back(struct ncclotf2_ring *ring) {
  __atomic_store_n(&ring->state, NCCLOTF2_RING_FREE, __ATOMIC_RELEASE);
}

static void thread_ends(void *ring) {
  ncclotf2_ring = NULL;
  /* In a forked child the ring still belongs to the parent's thread of the same name. */
  if (ncclotf2_session_is_owner()) give_back(ring);
}

static void make_key(void) { have_key = pthread_key_create(&key, thread_ends) == 0; }

static bool take(struct ncclotf2_ring *ring) {
  uint32_t expected = NCCLOTF2_RING_FREE;
  return __atomic_load_n(&ring->state, __ATOMIC_RELAXED) == NCCLOTF2_RING_FREE &&
         __atomic_compare_exchange_n(&ring->state, &expected, NCCLOTF2_RING_OWNED, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED);
}

/* A ring used before comes first: its chunk is half empty and its pages are in place. */
static struct ncclotf2_ring *take_any(uint8_t *base) {
  struct ncclotf2_header *header = ncclotf2_header_at(base);
  for (;;) {
    uint32_t used = __atomic_load_n(&header->ring_used, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < used; i++)
      if (take(ncclotf2_ring_at(base, i))) return ncclotf2_ring_at(base, i);
    if (used == NCCLOTF2_RING_MAX || !ncclotf2_memory_reaches(base, NCCLOTF2_TABLE_RINGS, sizeof(struct ncclotf2_ring) * (used + 1ull)))
      return NULL;
    if (__atomic_compare_exchange_n(&header->ring_used, &used, used + 1, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED) &&
        take(ncclotf2_ring_at(base, used)))
      return ncclotf2_ring_at(base, used);
  }
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

/* Index + 1 of a chunk that is now ours, or 0. */
static uint32_t take_spare(uint8_t *base, uint32_t limit) {
  struct ncclotf2_header *header = ncclotf2_header_at(base);
  uint32_t *states = ncclotf2_chunk_states_at(base);
  const uint32_t most = header->chunk_count - header->chunk_reserve;
  for (unsigned i = 0; i < NCCLOTF2_SPARE_MAX; i++) {
    uint32_t chunk = __atomic_load_n(&header->spare[i], __ATOMIC_RELAXED);
    /* Those that this class may not use wait for another one, cold ones for their pages. */
    if (!chunk || chunk & NCCLOTF2_SPARE_COLD || (chunk > limit && chunk <= most) ||
        !__atomic_compare_exchange_n(&header->spare[i], &chunk, 0, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      continue;
    if (chunk <= limit) {
      __atomic_store_n(&states[chunk - 1], NCCLOTF2_CHUNK_USED, __ATOMIC_RELAXED);
      return chunk;
    }
    /* A reserve chunk has no business in a slot; whoever put it there, it goes back. */
    if (chunk <= header->chunk_count)
      make_free(base, chunk - 1);
  }
  return 0;
}

/* From the lowest on, so that few pages are in use and those again and again. */
static uint32_t scan(uint8_t *base, uint32_t limit, enum ncclotf2_class class) {
  const uint64_t freed = __atomic_load_n(&ncclotf2_header_at(base)->freed, __ATOMIC_ACQUIRE);
  if (__atomic_load_n(&barren[class], __ATOMIC_RELAXED) == freed + 1) return 0;
  for (uint32_t i = 0; i < limit; i++)
    if (take_chunk(base, i)) return i + 1;
  __atomic_store_n(&barren[class], freed + 1, __ATOMIC_RELAXED);
  return 0;
}

static uint32_t any_chunk(uint8_t *base, enum ncclotf2_class class) {
  struct ncclotf2_header *header = ncclotf2_header_at(base);
  const uint32_t most = header->chunk_count - header->chunk_reserve;
  const uint32_t own = ncclotf2_class_chunks(header, class), limit = own < most ? own : most;
  uint32_t chunk = take_spare(base, limit);
  if (chunk) return chunk;
  ncclotf2_consumer_starved();
  chunk = scan(base, limit, class);
  for (uint32_t i = limit; !chunk && i < own; i++)
    if (take_chunk(base, i)) chunk = i + 1;
  if (chunk) __atomic_fetch_add(&header->faulted_chunks, 1, __ATOMIC_RELAXED);
  return chunk;
}

static bool refill(uint8_t *base, struct ncclotf2_ring *ring, enum ncclotf2_class class) {
  uint32_t taken = any_chunk(base, class);
  if (!taken) return false;
  if (!ncclotf2_chunk_map(taken - 1)) {
    make_free(base, taken - 1);
    __atomic_store_n(&barren[class], __atomic_load_n(&ncclotf2_header_at(base)->freed, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED); /* nor has another one pages */
    return false;
  }

  struct ncclotf2_header *header = ncclotf2_header_at(base);
  struct ncclotf2_chunk *chunk = ncclotf2_chunk_at(base, taken - 1);
  /* Who had the chunk before has long left it: the collector gave it back, having read all that was committed to it.
   * That order goes through another process; this makes it one that can be seen in ours, too (thread checkers look). */
  (void)__atomic_load_n(&chunk->committed, __ATOMIC_ACQUIRE);
  uint64_t sequence = ring->chunk ? ring->sequence + 1 : 0;
  chunk->ring = (uint32_t)(ring - ncclotf2_ring_at(base, 0));
  chunk->sequence = sequence;
  __atomic_store_n(&chunk->next, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&chunk->committed, 0, __ATOMIC_RELAXED);
  uint32_t *link = ring->chunk ? &ncclotf2_chunk_at(base, ring->chunk - 1)->next : &ring->first;
  __atomic_store_n(link, taken, __ATOMIC_RELEASE);

  ring->chunk = taken;
  ring->sequence = sequence;
  ring->cursor = ncclotf2_chunk_offset(header, taken - 1) + NCCLOTF2_CHUNK_HEAD;
  ring->limit = ncclotf2_chunk_offset(header, taken);
  return true;
}

static bool has_room(const struct ncclotf2_ring *ring, unsigned bytes, enum ncclotf2_class class) {
  return ring->cursor + bytes <= ring->limit && ring->cursor / NCCLOTF2_CHUNK_SIZE < ncclotf2_fast.limit[class];
}

/* The record that says whose the following ones are. Its ticks are those of the record it makes way
 * for, so a ring's ticks stay in order. */
static bool announce(uint8_t *base, struct ncclotf2_ring *ring, enum ncclotf2_class class, uint64_t ticks) {
  struct ncclotf2_thread_record record = {
      .head = {.ticks = ticks, .kind = NCCLOTF2_RECORD_THREAD, .units = sizeof record / NCCLOTF2_UNIT}};
  if (!has_room(ring, sizeof record, class) && !refill(base, ring, class)) return false;
  uint32_t tid = (uint32_t)syscall(SYS_gettid);
  record.head.aux = tid;
  prctl(PR_GET_NAME, record.name);
  __atomic_store_n(&ring->tid, tid, __ATOMIC_RELAXED);
  __atomic_store_n(&ring->generation, ring->generation + 1, __ATOMIC_RELAXED);
  memcpy(base + ring->cursor, &record, sizeof record);
  ncclotf2_ring = ring;
  ncclotf2_commit(base, sizeof record);
  return true;
}

int ncclotf2_ring_room(unsigned bytes, enum ncclotf2_class class, uint64_t ticks) {
  uint8_t *base = ncclotf2_session.base;
  struct ncclotf2_ring *ring = ncclotf2_ring;
  if (!ring) {
    pthread_once(&key_once, make_key);
    ring = take_any(base);
    if (!ring) return ncclotf2_header_at(base)->ring_used == NCCLOTF2_RING_MAX ? NCCLOTF2_LOSS_RING : NCCLOTF2_LOSS_MEMORY;
    if (!announce(base, ring, class, ticks)) {
      give_back(ring);
      return NCCLOTF2_LOSS_MEMORY;
    }
    /* Without the key the ring of an ended thread stays taken: there are thousands. */
    if (have_key) pthread_setspecific(key, ring);
  }
  if (!has_room(ring, bytes, class) && !refill(base, ring, class)) return NCCLOTF2_LOSS_MEMORY;
  return -1;
}

uint64_t ncclotf2_ring_numbers(struct ncclotf2_ring *ring) {
  uint64_t first = __atomic_fetch_add(&ncclotf2_header_at(ncclotf2_session.base)->next_number, NCCLOTF2_NUMBER_BLOCK,
                                      __ATOMIC_RELAXED);
  ring->number_end = first + NCCLOTF2_NUMBER_BLOCK;
  return first;
}

void ncclotf2_ring_prepare(void) {
  uint8_t *base = ncclotf2_session.base;
  struct ncclotf2_header *header = ncclotf2_header_at(base);
  for (unsigned i = 0; i < NCCLOTF2_SPARE_MAX; i++) {
    uint32_t cold = __atomic_load_n(&header->spare[i], __ATOMIC_ACQUIRE);
    const uint32_t chunk = cold & ~NCCLOTF2_SPARE_COLD;
    if (chunk == cold || !chunk || chunk > header->chunk_count) continue;
    const bool mapped = ncclotf2_chunk_map(chunk - 1);
    if (__atomic_compare_exchange_n(&header->spare[i], &cold, mapped ? chunk : 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED) &&
        !mapped)
      make_free(base, chunk - 1);
  }
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
