/* SPDX-License-Identifier: Apache-2.0
 *
 * Names in descriptors (func, datatype, algo, …) are literals inside libnccl, so their address
 * stands for them: each ring remembers the ids of the addresses its threads have seen, and the
 * bytes are copied to the shared heap once.
 */
#ifndef NCCLOTF2_INTERN_H
#define NCCLOTF2_INTERN_H

#include <stdbool.h>
#include <stdint.h>

#include "session.h"
#include "shm.h"

uint32_t ncclotf2_intern_slow(struct ncclotf2_ring *ring, const char *text);

/* Returns the id of a text, which is found in the heap or appended, cut to NCCLOTF2_STRING_MAX; 0 for NULL or if the
 * heap is full. Compares texts, not addresses. May be called on any thread. */
uint32_t ncclotf2_string_id(const char *text);

/* The same for the name of a kernel, which is cut to NCCLOTF2_KERNEL_NAME_MAX. */
uint32_t ncclotf2_kernel_name_id(const char *name);

/* Whether an id, which may be 0, is that of this name. */
bool ncclotf2_kernel_name_is(uint32_t id, const char *name);

/* The number of texts that were not stored because the heap was full. */
uint64_t ncclotf2_strings_lost(void);

static inline unsigned ncclotf2_intern_slot(const char *text) {
  return (unsigned)((uint64_t)(uintptr_t)text * 0x9e3779b97f4a7c15ULL >> 58);
}
_Static_assert(NCCLOTF2_INTERN_SLOTS == 64, "the hash gives 6 bits");

static inline __attribute__((always_inline)) uint32_t ncclotf2_intern(struct ncclotf2_ring *ring, const char *text) {
  if (!text) return 0;
  unsigned slot = ncclotf2_intern_slot(text);
  if (__builtin_expect(ring->intern[slot].address == (uint64_t)(uintptr_t)text &&
                           ring->intern_epoch == __atomic_load_n(&ncclotf2_fast.intern_epoch, __ATOMIC_RELAXED), 1))
    return ring->intern[slot].string;
  return ncclotf2_intern_slow(ring, text);
}

#endif
