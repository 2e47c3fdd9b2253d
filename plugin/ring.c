/* SPDX-License-Identifier: Apache-2.0 */
#include "ring.h"

#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "chunk.h"
#include "memory.h"

__thread struct ncclotf2_ring *ncclotf2_ring __attribute__((tls_model("initial-exec")));

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool have_key;

static void give_back(struct ncclotf2_ring *ring) {
  __atomic_store_n(&ring->state, NCCLOTF2_RING_FREE, __ATOMIC_RELEASE);
}

static void thread_ends(void *ring) {
  ncclotf2_ring = NULL;
  /* In a forked child the ring still belongs to the parent's thread of the same name. */
  if (ncclotf2_session_is_owner()) give_back(ring);
}

static void make_key(void) { have_key = pthread_key_create(&key, thread_ends) == 0; }

static bool take_ring(struct ncclotf2_ring *ring) {
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
      if (take_ring(ncclotf2_ring_at(base, i))) return ncclotf2_ring_at(base, i);
    if (used == NCCLOTF2_RING_MAX || !ncclotf2_memory_reaches(base, NCCLOTF2_TABLE_RINGS, sizeof(struct ncclotf2_ring) * (used + 1ull)))
      return NULL;
    if (__atomic_compare_exchange_n(&header->ring_used, &used, used + 1, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED) &&
        take_ring(ncclotf2_ring_at(base, used)))
      return ncclotf2_ring_at(base, used);
  }
}

static bool refill(uint8_t *base, struct ncclotf2_ring *ring, enum ncclotf2_class class) {
  const uint32_t taken = ncclotf2_chunk_take(base, class);
  if (!taken) return false;

  struct ncclotf2_header *header = ncclotf2_header_at(base);
  struct ncclotf2_chunk *chunk = ncclotf2_chunk_at(base, taken - 1);
  /* The chunk's previous user has finished with it: the collector returned the chunk only after it had read everything
   * that was committed. But that ordering passes through the collector's process, where ThreadSanitizer cannot see it.
   * This acquire load establishes it within our process. */
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
