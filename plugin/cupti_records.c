/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti_records.h"

#include <string.h>

#include "clock.h"
#include "cupti_buffers.h"
#include "intern.h"
#include "ring.h"
#include "session.h"

/* Callback ids, the same in all releases. */
static const struct {
  uint8_t kind;
  uint16_t cbid;
} launches[] = {
    {CUPTI_DRIVER, 307}, {CUPTI_DRIVER, 442}, /* cuLaunchKernel, …_ptsz */
    {CUPTI_DRIVER, 652}, {CUPTI_DRIVER, 653}, /* cuLaunchKernelEx */
    {CUPTI_DRIVER, 477}, {CUPTI_DRIVER, 478}, /* cuLaunchCooperativeKernel */
    {CUPTI_DRIVER, 514}, {CUPTI_DRIVER, 515}, /* cuGraphLaunch */
};

/* Kinds that are written down, with the size of their records by the first version that has it. Of a version newer
 * than the table at least the last is there. */
static const struct kind {
  uint8_t kind, bit; /* bit: of header.cupti_kinds */
  uint8_t name;      /* offset of a const char *, 0: none */
  struct {
    uint32_t since;
    uint16_t size;
  } sizes[6];
} kinds_of[] = {
    {CUPTI_CONCURRENT_KERNEL, CUPTI_CONCURRENT_KERNEL, CUPTI_AT_KERNEL_NAME,
     {{0, 200}, {19, 208}, {130000, 216}, {130100, 224}, {130300, 232}, {130400, 248}}},
    {CUPTI_KERNEL, CUPTI_CONCURRENT_KERNEL, CUPTI_AT_KERNEL_NAME,
     {{0, 200}, {19, 208}, {130000, 216}, {130100, 224}, {130300, 232}, {130400, 248}}},
    {CUPTI_DRIVER, CUPTI_DRIVER, 0, {{0, 40}}},
    {CUPTI_EXTERNAL_CORRELATION, CUPTI_EXTERNAL_CORRELATION, 0, {{0, 24}}},
    {CUPTI_MEMCPY, CUPTI_MEMCPY, 0, {{0, 88}, {26, 96}, {130400, 112}}},
    {CUPTI_MEMCPY2, CUPTI_MEMCPY2, 0, {{0, 96}}},
    {CUPTI_MEMSET, CUPTI_MEMSET, 0, {{0, 88}, {130400, 104}}},
    {CUPTI_SYNCHRONIZATION, CUPTI_SYNCHRONIZATION, 0, {{0, 40}, {26, 56}}},
    {CUPTI_MEMORY2, CUPTI_MEMORY2, CUPTI_AT_MEMORY2_NAME, {{0, 120}, {24, 128}}},
};
enum { KINDS = sizeof kinds_of / sizeof *kinds_of };

bool ncclotf2_cupti_is_launch(enum cupti_kind kind, uint32_t cbid) {
  for (unsigned i = 0; i < sizeof launches / sizeof *launches; i++)
    if (launches[i].kind == kind && launches[i].cbid == cbid) return true;
  return false;
}

static uint32_t number_at(const uint8_t *record, unsigned offset) {
  uint32_t number;
  memcpy(&number, record + offset, sizeof number);
  return number;
}

/* The row of a record that is to be kept, else NULL. `rest`: bytes up to the end of the buffer. */
static const struct kind *wanted(const uint8_t *record, size_t rest, uint64_t kinds) {
  if (rest < 16) return NULL;
  const uint32_t kind = number_at(record, CUPTI_AT_KIND);
  const struct kind *row = NULL;
  for (unsigned i = 0; i < KINDS && !row; i++)
    if (kinds_of[i].kind == kind) row = &kinds_of[i];
  if (!row || !(kinds >> row->bit & 1) || rest < row->sizes[0].size) return NULL;
  if (kind == CUPTI_DRIVER && !ncclotf2_cupti_is_launch(CUPTI_DRIVER, number_at(record, CUPTI_AT_API_CBID))) return NULL;
  if (kind == CUPTI_EXTERNAL_CORRELATION && number_at(record, CUPTI_AT_EXTERNAL_KIND) != CUPTI_EXTERNAL_CUSTOM2) return NULL;
  return row;
}

static size_t size_of(const struct kind *row, uint32_t version, size_t rest) {
  size_t size = row->sizes[0].size;
  for (unsigned i = 1; i < sizeof row->sizes / sizeof *row->sizes && row->sizes[i].since && row->sizes[i].since <= version; i++)
    size = row->sizes[i].size;
  if (size > NCCLOTF2_CUPTI_MOST) size = NCCLOTF2_CUPTI_MOST;
  return size < rest ? size : rest;
}

/* The ids of names by their addresses: CUPTI has one string for all records of a kernel. Whether it is still the same
 * text is looked at, as nothing says what becomes of the string when a module is unloaded. */
static uint32_t name_id(const char *name) {
  enum { SLOTS = 4096 };
  static struct {
    const char *name;
    uint32_t id;
  } seen[SLOTS];
  if (!name) return 0;
  const unsigned slot = (unsigned)((uint64_t)(uintptr_t)name * 0x9e3779b97f4a7c15ULL >> 52) % SLOTS;
  if (seen[slot].name != name || !ncclotf2_kernel_name_is(seen[slot].id, name)) {
    seen[slot].name = name;
    seen[slot].id = ncclotf2_kernel_name_id(name);
  }
  return seen[slot].id;
}

static void write_record(const struct kind *row, const uint8_t *bytes, size_t size, uint32_t version) {
  uint8_t *base = ncclotf2_session.base;
  struct ncclotf2_header *header = ncclotf2_header_at(base);
  const unsigned whole = (unsigned)(sizeof(struct ncclotf2_record) + (size + NCCLOTF2_UNIT - 1) / NCCLOTF2_UNIT * NCCLOTF2_UNIT);
  const uint64_t ticks = ncclotf2_ticks();
  unsigned loss;
  uint8_t *at = __atomic_load_n(&header->record_mask, __ATOMIC_RELAXED) & NCCLOTF2_RECORD_FULL
                    ? NULL
                    : ncclotf2_reserve(base, whole, NCCLOTF2_CLASS_CHANNEL, ticks, &loss);
  if (!at) {
    ncclotf2_count(&header->cupti_lost);
    return;
  }
  const char *name = NULL;
  if (row->name) memcpy(&name, bytes + row->name, sizeof name);
  *(struct ncclotf2_record *)(void *)at = (struct ncclotf2_record){.ticks = ticks,
                                                                   .kind = NCCLOTF2_RECORD_CUPTI,
                                                                   .units = (uint8_t)(whole / NCCLOTF2_UNIT),
                                                                   .aux = name_id(name),
                                                                   .handle = size,
                                                                   .arg = version};
  memcpy(at + sizeof(struct ncclotf2_record), bytes, size);
  memset(at + sizeof(struct ncclotf2_record) + size, 0, whole - sizeof(struct ncclotf2_record) - size);
  ncclotf2_commit(base, whole);
}

/* For the walk, which has no closure. */
static const struct cupti_functions *cupti;
static uint32_t cupti_version;
static uint64_t cupti_kinds;

static void walk(const struct ncclotf2_cupti_full *full) {
  struct ncclotf2_header *header = ncclotf2_header_at(ncclotf2_session.base);
  const uint8_t *const end = full->bytes + full->valid;
  for (uint8_t *record = NULL, *before = NULL;; before = record) {
    const int result = cupti->next_record(full->bytes, full->valid, &record);
    if (result == CUPTI_MAX_LIMIT_REACHED) return;
    if (result != CUPTI_OK || record < full->bytes || record >= end || (before && record <= before)) {
      ncclotf2_count(&header->cupti_unknown);
      return;
    }
    const struct kind *row = wanted(record, (size_t)(end - record), cupti_kinds);
    if (!row) continue;
    if (full->scrap)
      ncclotf2_count(&header->cupti_lost);
    else
      write_record(row, record, size_of(row, cupti_version, (size_t)(end - record)), cupti_version);
  }
}

void ncclotf2_cupti_drain(const struct cupti_functions *functions, uint32_t version, uint64_t kinds) {
  cupti = functions;
  cupti_version = version;
  cupti_kinds = kinds;
  ncclotf2_cupti_buffers_drain(walk);
}

void ncclotf2_cupti_clock(const struct cupti_functions *functions) {
  enum { TRIES = 4 };
  struct ncclotf2_cupti_clock best = {.head = {.arg = UINT64_MAX}};
  for (int i = 0; i < TRIES; i++) {
    uint64_t stamp = 0;
    const uint64_t before = ncclotf2_ticks();
    const int result = functions->get_timestamp(&stamp);
    const uint64_t real = ncclotf2_clock_realtime(), after = ncclotf2_ticks();
    if (result != CUPTI_OK) return;
    if (after - before >= best.head.arg) continue;
    best = (struct ncclotf2_cupti_clock){
        .head = {.ticks = before + (after - before) / 2, .handle = stamp, .arg = after - before}, .real = real};
  }
  best.head.kind = NCCLOTF2_RECORD_CUPTI_CLOCK;
  best.head.units = sizeof best / NCCLOTF2_UNIT;
  uint8_t *base = ncclotf2_session.base;
  unsigned loss;
  void *at = ncclotf2_reserve(base, sizeof best, NCCLOTF2_CLASS_OPERATION, best.head.ticks, &loss);
  if (!at) return;
  *(struct ncclotf2_cupti_clock *)at = best;
  ncclotf2_commit(base, sizeof best);
}
