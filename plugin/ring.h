/* SPDX-License-Identifier: Apache-2.0
 *
 * The hot path: one ring per thread, written by that thread alone.
 *
 *   void *at = ncclotf2_reserve(base, bytes, class, ticks, &loss);   room for one record
 *   ... fill in all of its bytes ...
 *   ncclotf2_commit(base, bytes);                                    publish it
 *
 * Between the two the thread does nothing else with its ring. In the steady state this is a few
 * loads and stores: no lock, no allocation, no system call, no page fault. Whatever is rare
 * (a thread's first record, a full chunk) happens in ring.c.
 */
#ifndef NCCLOTF2_RING_H
#define NCCLOTF2_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "session.h"
#include "shm.h"

/* Initial-exec: one instruction, no call of __tls_get_addr, which can allocate. */
extern __thread struct ncclotf2_ring *ncclotf2_ring __attribute__((tls_model("initial-exec")));

/* Makes room for a record in the calling thread's ring (and gives it a ring). Returns -1 when there
 * is, else the enum ncclotf2_loss why there is not. */
int ncclotf2_ring_room(unsigned bytes, enum ncclotf2_class class, uint64_t ticks);

/* A fresh block of handle numbers for the ring; returns its first. */
uint64_t ncclotf2_ring_numbers(struct ncclotf2_ring *ring);

static inline __attribute__((always_inline)) void *ncclotf2_reserve(uint8_t *base, unsigned bytes,
                                                                    enum ncclotf2_class class, uint64_t ticks,
                                                                    unsigned *loss) {
  struct ncclotf2_ring *ring = ncclotf2_ring;
  if (__builtin_expect(!ring || ring->cursor + bytes > ring->limit ||
                           ring->cursor / NCCLOTF2_CHUNK_SIZE >= ncclotf2_fast.limit[class],
                       0)) {
    int refused = ncclotf2_ring_room(bytes, class, ticks);
    if (refused >= 0) {
      *loss = (unsigned)refused;
      return NULL;
    }
    ring = ncclotf2_ring;
  }
  return base + ring->cursor;
}

static inline __attribute__((always_inline)) void ncclotf2_commit(uint8_t *base, unsigned bytes) {
  struct ncclotf2_ring *ring = ncclotf2_ring;
  uint64_t head = ring->cursor & ~(uint64_t)(NCCLOTF2_CHUNK_SIZE - 1);
  ring->cursor += bytes;
  struct ncclotf2_chunk *chunk = (struct ncclotf2_chunk *)(void *)(base + head);
  __atomic_store_n(&chunk->committed, (uint32_t)(ring->cursor - head - NCCLOTF2_CHUNK_HEAD), __ATOMIC_RELEASE);
}

static inline __attribute__((always_inline)) uint64_t ncclotf2_next_number(void) {
  struct ncclotf2_ring *ring = ncclotf2_ring;
  uint64_t number = ring->number;
  if (__builtin_expect(number == ring->number_end, 0)) number = ncclotf2_ring_numbers(ring);
  ring->number = number + 1;
  return number;
}

#endif
