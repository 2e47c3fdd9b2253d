/* SPDX-License-Identifier: Apache-2.0 */
#include "intern.h"

#include <string.h>

#include "memory.h"

enum {
  PROBES = 8,          /* slots tried for an address, or for a text, before it is given up */
  INDEX_SLOTS = 1 << 15
};

static uint64_t lost;

/* Ids of the texts in the heap, by their hashes. It lies in this process alone; what it does not know is at
 * worst stored twice. */
static uint32_t text_index[INDEX_SLOTS];

uint64_t ncclotf2_strings_lost(void) { return __atomic_load_n(&lost, __ATOMIC_RELAXED); }

static uint64_t string_bytes(uint32_t length) {
  return (offsetof(struct ncclotf2_string, bytes) + (uint64_t)length + 7) & ~7ULL;
}

static uint32_t hash(const char *text, uint32_t length) {
  uint64_t sum = 14695981039346656037u; /* FNV-1a */
  for (uint32_t i = 0; i < length; i++) sum = (sum ^ (uint8_t)text[i]) * 1099511628211u;
  return (uint32_t)(sum ^ sum >> 32);
}

/* The id of a text that is in the heap, else 0. */
static uint32_t find(uint8_t *base, const char *text, uint32_t length, uint32_t home) {
  for (uint32_t i = 0; i < PROBES; i++) {
    uint32_t id = __atomic_load_n(&text_index[(home + i) % INDEX_SLOTS], __ATOMIC_ACQUIRE);
    if (!id) return 0;
    struct ncclotf2_string *string = ncclotf2_string_at(base, (uint64_t)(id - 1) * 8);
    if (__atomic_load_n(&string->length, __ATOMIC_ACQUIRE) == length &&
        memcmp((const char *)string + offsetof(struct ncclotf2_string, bytes), text, length - 1) == 0)
      return id;
  }
  return 0;
}

static void remember(uint32_t id, uint32_t home) {
  for (uint32_t i = 0; i < PROBES; i++) {
    uint32_t none = 0;
    if (__atomic_compare_exchange_n(&text_index[(home + i) % INDEX_SLOTS], &none, id, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED))
      return;
  }
}

static uint32_t id_of(const char *text, size_t most) {
  uint8_t *base = ncclotf2_session.base;
  if (!text || !base) return 0;
  uint32_t length = (uint32_t)strnlen(text, most) + 1; /* with the closing NUL */
  const uint32_t home = hash(text, length - 1);
  const uint32_t known = find(base, text, length, home);
  if (known) return known;

  uint64_t *used = &ncclotf2_header_at(base)->string_used;
  uint64_t offset = __atomic_load_n(used, __ATOMIC_RELAXED);
  do {
    if (offset + string_bytes(length) > NCCLOTF2_STRING_SIZE ||
        !ncclotf2_memory_reaches(base, NCCLOTF2_TABLE_STRINGS, offset + string_bytes(length))) {
      ncclotf2_count(&lost);
      return 0;
    }
  } while (!__atomic_compare_exchange_n(used, &offset, offset + string_bytes(length), true,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  struct ncclotf2_string *string = ncclotf2_string_at(base, offset);
  char *bytes = (char *)string + offsetof(struct ncclotf2_string, bytes);
  memcpy(bytes, text, length - 1);
  bytes[length - 1] = '\0';
  __atomic_store_n(&string->length, length, __ATOMIC_RELEASE);
  const uint32_t id = (uint32_t)(offset / 8 + 1);
  remember(id, home);
  return id;
}

uint32_t ncclotf2_string_id(const char *text) { return id_of(text, NCCLOTF2_STRING_MAX); }

uint32_t ncclotf2_kernel_name_id(const char *name) { return id_of(name, NCCLOTF2_KERNEL_NAME_MAX); }

bool ncclotf2_kernel_name_is(uint32_t id, const char *name) {
  if (!id) return false;
  const struct ncclotf2_string *string = ncclotf2_string_at(ncclotf2_session.base, (uint64_t)(id - 1) * 8);
  const char *bytes = (const char *)string + offsetof(struct ncclotf2_string, bytes);
  const uint32_t length = string->length - 1; /* this thread has seen it in place */
  return strncmp(bytes, name, length) == 0 && (length == NCCLOTF2_KERNEL_NAME_MAX || !name[length]);
}

uint32_t ncclotf2_intern_slow(struct ncclotf2_ring *ring, const char *text) {
  const uint32_t epoch = __atomic_load_n(&ncclotf2_fast.intern_epoch, __ATOMIC_RELAXED);
  if (ring->intern_epoch != epoch) {
    memset(ring->intern, 0, sizeof ring->intern);
    ring->intern_epoch = epoch;
  }
  unsigned home = ncclotf2_intern_slot(text), slot = home;
  for (unsigned i = 0; i < PROBES; i++) {
    slot = (home + i) % NCCLOTF2_INTERN_SLOTS;
    if (ring->intern[slot].address == (uint64_t)(uintptr_t)text) return ring->intern[slot].string;
    if (ring->intern[slot].address == 0) break;
    if (i == PROBES - 1) slot = home;
  }
  uint32_t id = ncclotf2_string_id(text);
  ring->intern[slot].address = (uint64_t)(uintptr_t)text;
  ring->intern[slot].string = id;
  return id;
}
