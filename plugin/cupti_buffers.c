/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti_buffers.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cupti_abi.h"
#include "futex.h"
#include "memory.h"

struct ncclotf2_cupti_limits ncclotf2_cupti_limits = {
    .size = 256 << 10, .count = 256, .ready = 8, .scrap_size = 8 << 10, .scrap_count = 1024, .late_ms = 200};

uint32_t ncclotf2_cupti_wake;

enum { ABSENT = 0, FREE = 1, OUT = 2, FULL = 3 };

/* All members are read and written as atomics. */
struct entry {
  uint32_t next; /* number + 1 on a list, or 0 */
  uint32_t state;
  uint64_t valid;
};

/* Lists are stacks: the number + 1 of the first, and in the upper half how often the list has changed, so that one that
 * has changed and changed back is not taken for untouched. */
typedef uint64_t list;

/* Buffers first, then those for what will be dropped. */
static uint8_t *memory;
static struct entry *entries;
static uint32_t total;
static list free_buffers, free_scraps, full;
static uint32_t made;  /* buffers [0, made) are or have been in use */
static uint32_t at_hand;
static uint64_t strange, overwritten;

/* If even the small ones are out, CUPTI writes here, and all of it on top of each other: it is not read. */
static uint8_t last_resort[8192] __attribute__((aligned(64)));

static void push_buffer(list *to, uint32_t number) {
  list seen = __atomic_load_n(to, __ATOMIC_RELAXED), with;
  do {
    __atomic_store_n(&entries[number].next, (uint32_t)seen, __ATOMIC_RELAXED);
    with = ((seen >> 32) + 1) << 32 | (number + 1);
  } while (!__atomic_compare_exchange_n(to, &seen, with, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

/* A number + 1, or 0. */
static uint32_t pop_buffer(list *from) {
  list seen = __atomic_load_n(from, __ATOMIC_ACQUIRE), without;
  do {
    if (!(uint32_t)seen) return 0;
    without = ((seen >> 32) + 1) << 32 | __atomic_load_n(&entries[(uint32_t)seen - 1].next, __ATOMIC_RELAXED);
  } while (!__atomic_compare_exchange_n(from, &seen, without, true, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE));
  return (uint32_t)seen;
}

static bool is_scrap(uint32_t number) { return number >= ncclotf2_cupti_limits.count; }

static size_t size_of(uint32_t number) {
  return is_scrap(number) ? ncclotf2_cupti_limits.scrap_size : ncclotf2_cupti_limits.size;
}

static uint8_t *address_of(uint32_t number) {
  const struct ncclotf2_cupti_limits *limit = &ncclotf2_cupti_limits;
  return is_scrap(number) ? memory + limit->count * limit->size + (number - limit->count) * limit->scrap_size
                          : memory + number * limit->size;
}

/* The number of the buffer that begins at an address; `total` if none does. */
static uint32_t number_of(const uint8_t *address) {
  const struct ncclotf2_cupti_limits *limit = &ncclotf2_cupti_limits;
  const size_t buffers = limit->count * limit->size, scraps = limit->scrap_count * limit->scrap_size;
  if (address < memory || address >= memory + buffers + scraps) return total;
  const size_t at = (size_t)(address - memory);
  const bool scrap = at >= buffers;
  const size_t size = scrap ? limit->scrap_size : limit->size, offset = scrap ? at - buffers : at;
  return offset % size ? total : (uint32_t)(offset / size) + (scrap ? limit->count : 0);
}

/* Where the kind of a buffer's first record will be; no kind is 0. */
static uint32_t *first_kind(uint32_t number) { return (uint32_t *)(void *)(address_of(number) + CUPTI_AT_KIND); }

/* One that has never been used; a number + 1, or 0. */
static uint32_t make(void) {
  uint32_t number = __atomic_load_n(&made, __ATOMIC_RELAXED);
  do {
    if (number == ncclotf2_cupti_limits.count) return 0;
  } while (!__atomic_compare_exchange_n(&made, &number, number + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return ncclotf2_memory_place(address_of(number), size_of(number)) ? number + 1 : 0;
}

bool ncclotf2_cupti_buffers_open(void) {
  if (memory) return true;
  const struct ncclotf2_cupti_limits *limit = &ncclotf2_cupti_limits;
  const size_t bytes = limit->count * limit->size + limit->scrap_count * limit->scrap_size;
  struct entry *table = calloc(limit->count + limit->scrap_count, sizeof *table);
  uint8_t *range = !table ? MAP_FAILED
                          : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) {
    free(table);
    return false;
  }
  memory = range;
  entries = table;
  total = limit->count + limit->scrap_count;
  for (uint32_t i = total; i-- > limit->count;) {
    entries[i].state = FREE;
    push_buffer(&free_scraps, i);
  }
  ncclotf2_cupti_buffers_prepare();
  return true;
}

void ncclotf2_cupti_buffers_prepare(void) {
  while (__atomic_load_n(&at_hand, __ATOMIC_RELAXED) < ncclotf2_cupti_limits.ready) {
    const uint32_t fresh = make();
    if (!fresh) return;
    __atomic_store_n(&entries[fresh - 1].state, FREE, __ATOMIC_RELAXED);
    __atomic_add_fetch(&at_hand, 1, __ATOMIC_RELAXED);
    push_buffer(&free_buffers, fresh - 1);
  }
}

void ncclotf2_cupti_request(uint8_t **buffer, size_t *size, size_t *most_records) {
  *most_records = 0; /* as many as fit */
  uint32_t taken = pop_buffer(&free_buffers);
  if (taken) {
    if (__atomic_sub_fetch(&at_hand, 1, __ATOMIC_RELAXED) == ncclotf2_cupti_limits.ready / 4) {
      __atomic_add_fetch(&ncclotf2_cupti_wake, 1, __ATOMIC_RELEASE);
      ncclotf2_futex_wake(&ncclotf2_cupti_wake);
    }
  } else {
    taken = make();
  }
  if (!taken) taken = pop_buffer(&free_scraps);
  if (!taken) {
    __atomic_add_fetch(&overwritten, 1, __ATOMIC_RELAXED);
    *buffer = last_resort;
    *size = sizeof last_resort;
    return;
  }
  __atomic_store_n(first_kind(taken - 1), 0, __ATOMIC_RELAXED);
  __atomic_store_n(&entries[taken - 1].state, OUT, __ATOMIC_RELEASE);
  *buffer = address_of(taken - 1);
  *size = size_of(taken - 1);
}

void ncclotf2_cupti_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
  (void)context;
  (void)stream;
  (void)size;
  if (buffer == last_resort) return;
  const uint32_t number = number_of(buffer);
  uint32_t out = OUT;
  if (number == total ||
      !__atomic_compare_exchange_n(&entries[number].state, &out, FULL, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    __atomic_add_fetch(&strange, 1, __ATOMIC_RELAXED);
    return;
  }
  __atomic_store_n(&entries[number].valid, valid < size_of(number) ? valid : size_of(number), __ATOMIC_RELAXED);
  push_buffer(&full, number);
}

void ncclotf2_cupti_buffers_drain(void (*each)(const struct ncclotf2_cupti_full *)) {
  list seen = __atomic_load_n(&full, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&full, &seen, ((seen >> 32) + 1) << 32, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
  }
  uint32_t oldest = 0;
  for (uint32_t next, at = (uint32_t)seen; at; at = next) { /* turns the list round */
    next = __atomic_load_n(&entries[at - 1].next, __ATOMIC_RELAXED);
    __atomic_store_n(&entries[at - 1].next, oldest, __ATOMIC_RELAXED);
    oldest = at;
  }
  for (uint32_t next, at = oldest; at; at = next) {
    const uint32_t number = at - 1;
    next = __atomic_load_n(&entries[number].next, __ATOMIC_RELAXED);
    each(&(struct ncclotf2_cupti_full){.bytes = address_of(number),
                                       .valid = __atomic_load_n(&entries[number].valid, __ATOMIC_RELAXED),
                                       .scrap = is_scrap(number),
                                       .number = number});
    __atomic_store_n(&entries[number].state, FREE, __ATOMIC_RELAXED);
    if (!is_scrap(number)) __atomic_add_fetch(&at_hand, 1, __ATOMIC_RELAXED);
    push_buffer(is_scrap(number) ? &free_scraps : &free_buffers, number);
  }
}

/* CUPTI may be writing there, and knows no atomics; whether it has begun is all that is asked. */
__attribute__((no_sanitize_thread, noinline)) static bool is_begun(uint32_t number) {
  return *(const volatile uint32_t *)first_kind(number) != 0;
}

uint64_t ncclotf2_cupti_buffers_out(void) {
  uint64_t out = 0;
  for (uint32_t i = 0; i < total; i++)
    out += __atomic_load_n(&entries[i].state, __ATOMIC_ACQUIRE) == OUT && is_begun(i);
  return out;
}

uint64_t ncclotf2_cupti_buffers_strange(void) { return __atomic_load_n(&strange, __ATOMIC_RELAXED); }

uint64_t ncclotf2_cupti_buffers_overwritten(void) { return __atomic_load_n(&overwritten, __ATOMIC_RELAXED); }
