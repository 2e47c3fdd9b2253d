/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles and contexts are numbers that look like pointers (shm.h draws the bits). NCCL hands back
 * stale handles, stops events twice, and with PXN passes handles and contexts of other processes;
 * a number differs from those by its value alone, a pointer does not.
 */
#ifndef NCCLOTF2_HANDLE_H
#define NCCLOTF2_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "shm.h"

/* Bits of every context of the process with this tag. */
static inline uint64_t ncclotf2_context_bits(uint32_t tag) {
  return (uint64_t)tag << NCCLOTF2_TAG_SHIFT | (uint64_t)NCCLOTF2_TYPE_MASK << NCCLOTF2_TYPE_SHIFT | NCCLOTF2_CONTEXT_BIT;
}

static inline uint64_t ncclotf2_handle(uint64_t tag_bits, unsigned type, uint64_t number) {
  return tag_bits | (uint64_t)type << NCCLOTF2_TYPE_SHIFT | (number & NCCLOTF2_NUMBER_MASK);
}

/* The event type of a handle. Defined for any value: a number that no type has counts as the newest type. */
static inline unsigned ncclotf2_handle_type(uint64_t handle) {
  const unsigned type = (unsigned)(handle >> NCCLOTF2_TYPE_SHIFT) & NCCLOTF2_TYPE_MASK;
  return type < NCCLOTF2_TYPES ? type : NCCLOTF2_TYPES - 1;
}

/* Whether the handle names a recorded event of the process whose tag is in tag_bits. */
static inline bool ncclotf2_handle_is_ours(uint64_t tag_bits, uint64_t handle) {
  return ((handle ^ tag_bits) >> NCCLOTF2_TAG_SHIFT) == 0 && !(handle & (NCCLOTF2_CONTEXT_BIT | NCCLOTF2_SILENT_BIT));
}

/* Whether it names an event of that process that was not recorded. */
static inline bool ncclotf2_handle_is_silent(uint64_t tag_bits, uint64_t handle) {
  return ncclotf2_handle_is_ours(tag_bits, handle ^ NCCLOTF2_SILENT_BIT);
}

/* What NCCL gets as context where nothing is recorded: not NULL (such a communicator would never
 * be finalized), and out of the range of every communicator table. */
#define NCCLOTF2_CONTEXT_IGNORED ((void *)(uintptr_t)(NCCLOTF2_CONTEXT_BIT | NCCLOTF2_NUMBER_MASK))

#endif
