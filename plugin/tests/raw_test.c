/* SPDX-License-Identifier: Apache-2.0
 *
 * Record mode: everything NCCL did is there to be played again, also what no other mode wants to see. And what
 * callbacks cost, as measured by the way.
 */
#include "../clock.h"
#include "../handle.h"
#include "../ring.h"
#include "host.h"
#include "test.h"

#define GARBAGE 0x7f1122334455ULL

static uint64_t host_time = 5000;
static uint64_t host_now(void) { return __atomic_add_fetch(&host_time, 10, __ATOMIC_RELAXED); }
__attribute__((visibility("default"))) struct ncclotf2_host_clock ncclotf2_host_clock = {
    .now = host_now, .anchor = {.ticks = 1000, .raw = 2000, .mono = 3000, .real = 4000}};

static void *begin(uint32_t mask) {
  host_use_stub("ready", mask);
  return host_init(0x1, 2, 0);
}

static void *start(void *context, unsigned type, uint64_t before) {
  struct ncclotf2_descr_v6 d = host_descr(type);
  void *handle = (void *)(uintptr_t)before;
  EQUAL(ncclProfiler_v6.startEvent(context, &handle, &d), 0, "startEvent");
  return handle;
}

static const struct ncclotf2_record *records[1 << 16];
static size_t take_records(void) {
  const size_t count = reader_own(records, sizeof records / sizeof *records);
  CHECK(count <= sizeof records / sizeof *records, "%zu records", count);
  return count;
}

static void slots(void) {
  void *context = begin(0x7fff | NCCLOTF2_RECORD_RAW);
  for (unsigned type = 0; type <= NCCLOTF2_CE_BATCH; type++) {
    const size_t had = take_records();
    void *handle = start(context, type, GARBAGE + type);
    CHECK(handle && handle != (void *)(uintptr_t)(GARBAGE + type), "type %u was refused", type);
    EQUAL(take_records(), had + 2, "records");
    struct ncclotf2_record want = {.handle = (uint64_t)(uintptr_t)handle, .arg = GARBAGE + type};
    host_same_record(records[had], &want, sizeof want, NCCLOTF2_RECORD_BEFORE, type);
    EQUAL(records[had + 1]->kind, NCCLOTF2_RECORD_START, "kind");
    EQUAL(records[had + 1]->handle, (uint64_t)(uintptr_t)handle, "handle");
    CHECK(records[had + 1]->ticks >= records[had]->ticks, "ticks go back");
    /* An empty slot needs no record. */
    CHECK(start(context, type, 0), "refused");
    EQUAL(take_records(), had + 3, "records");
  }
}

static void refused_slots(void) {
  void *context = begin(1u << NCCLOTF2_COLL | NCCLOTF2_RECORD_RAW);
  start(context, NCCLOTF2_COLL, 0);
  const size_t had = take_records();
  CHECK(!start(context, NCCLOTF2_P2P, GARBAGE), "a type that nobody wants was recorded");
  EQUAL(take_records(), had, "records");
}

static void foreign_events(uint32_t mask, bool recorded) {
  void *context = begin(0x7fff | mask);
  void *ours = start(context, NCCLOTF2_COLL, 0);
  const struct {
    uint64_t handle;
    unsigned type;
  } cases[] = {{0, 0},
               {0x7fffdeadbeefULL, 0xf /* bits 43 to 47 */},
               {(uint64_t)(uintptr_t)ours ^ 1ULL << NCCLOTF2_TAG_SHIFT, NCCLOTF2_COLL},
               {(uint64_t)(uintptr_t)context, 15},
               {~0ULL, 15},
               {256, 0}};
  uint64_t null = 0, foreign = 0;
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    const size_t had = take_records();
    ncclProfiler_v6.stopEvent((void *)(uintptr_t)cases[i].handle);
    union ncclotf2_state_args args = {.kernelCh = {0x1234}};
    ncclProfiler_v6.recordEventState((void *)(uintptr_t)cases[i].handle, 22, &args);
    ncclProfiler_v6.recordEventState((void *)(uintptr_t)cases[i].handle, 23, NULL);
    *(cases[i].handle ? &foreign : &null) += 3;
    EQUAL(host_header()->null_handles, null, "NULL handles");
    EQUAL(host_header()->foreign, foreign, "foreign handles");
    EQUAL(take_records(), had + (recorded ? 3 : 0), "records");
    if (!recorded) continue;
    struct ncclotf2_record want = {.handle = cases[i].handle};
    host_same_record(records[had], &want, sizeof want, NCCLOTF2_RECORD_STOP, cases[i].type);
    want.aux = 22, want.arg = 0x1234, want.flags = NCCLOTF2_FLAG_HAS_ARG;
    host_same_record(records[had + 1], &want, sizeof want, NCCLOTF2_RECORD_STATE, cases[i].type);
    want.aux = 23, want.arg = 0, want.flags = 0;
    host_same_record(records[had + 2], &want, sizeof want, NCCLOTF2_RECORD_STATE, cases[i].type);
  }
  for (unsigned callback = 0; callback < NCCLOTF2_CALLBACKS; callback++)
    for (unsigned type = 0; type < NCCLOTF2_TYPES; type++)
      if (callback != NCCLOTF2_CALLBACK_START) EQUAL(host_header()->cost[callback][type].samples, 0, "measured");
}

static void foreign_recorded(void) { foreign_events(NCCLOTF2_RECORD_RAW, true); }
static void foreign_counted(void) { foreign_events(0, false); }

/* At the cap: what a slot held is said of events that were recorded, and of no others. */
static void at_the_cap(uint64_t alignment, unsigned type) {
  setenv("NCCL_OTF2_MEMORY", "4M", 1);
  void *context = begin(0x7fff | NCCLOTF2_RECORD_RAW);
  for (uint64_t i = 0; i < alignment; i++) CHECK(start(context, NCCLOTF2_GROUP, 0), "refused");
  while (start(context, type, GARBAGE)) {
  }
  CHECK(host_header()->lost[NCCLOTF2_LOSS_MEMORY][type], "not counted");
  uint64_t befores = 0;
  static const struct ncclotf2_record *all[1 << 18];
  const size_t count = reader_own(all, sizeof all / sizeof *all);
  CHECK(count <= sizeof all / sizeof *all, "%zu records", count);
  for (size_t i = 0; i < count; i++) {
    if (all[i]->kind != NCCLOTF2_RECORD_BEFORE) continue;
    befores++;
    CHECK(i + 1 < count && all[i + 1]->kind == NCCLOTF2_RECORD_START && all[i + 1]->handle == all[i]->handle,
          "the slot of an event that is not there (record %zu of %zu)", i, count);
  }
  CHECK(befores > 1000, "%llu slots", (unsigned long long)befores);
}
static void cap_even(void) { at_the_cap(0, NCCLOTF2_GROUP); }
static void cap_odd(void) { at_the_cap(1, NCCLOTF2_GROUP); }
static void cap_of_control_even(void) { at_the_cap(0, NCCLOTF2_PROXY_CTRL); }
static void cap_of_control_odd(void) { at_the_cap(1, NCCLOTF2_PROXY_CTRL); }

/* ---- costs ---- */

static void samples(void) {
  void *context = begin(0x7fff);
  enum { EVENTS = 10000 };
  uint64_t want[NCCLOTF2_TYPES] = {0}, all = 0;
  const uint64_t from = ncclotf2_ticks();
  for (unsigned i = 0; i < EVENTS; i++) {
    const unsigned type = i % 5;
    void *handle = host_start(context, host_descr(type));
    CHECK(handle, "refused");
    if ((uint64_t)(uintptr_t)handle % NCCLOTF2_COST_PERIOD == 0) want[type]++, all++;
    ncclProfiler_v6.recordEventState(handle, 19, NULL);
    ncclProfiler_v6.stopEvent(handle);
  }
  const uint64_t took = ncclotf2_ticks() - from;
  CHECK(all >= EVENTS / NCCLOTF2_COST_PERIOD, "%llu events were due", (unsigned long long)all);
  uint64_t ticks = 0;
  for (unsigned callback = 0; callback < NCCLOTF2_CALLBACKS; callback++)
    for (unsigned type = 0; type < NCCLOTF2_TYPES; type++) {
      const struct ncclotf2_cost *cost = &host_header()->cost[callback][type];
      EQUAL(cost->samples, want[type], "samples");
      CHECK(cost->most <= cost->ticks && cost->most * cost->samples >= cost->ticks, "%llu samples, the greatest %llu of %llu",
            (unsigned long long)cost->samples, (unsigned long long)cost->most, (unsigned long long)cost->ticks);
      if (cost->samples) CHECK(cost->ticks > 0, "callback %u of type %u took no time", callback, type);
      ticks += cost->ticks;
    }
  CHECK(ticks < took, "the samples took %llu of %llu ticks", (unsigned long long)ticks, (unsigned long long)took);
}

static void no_samples(void) {
  setenv("NCCL_OTF2_CLOCK", "host", 1);
  void *context = begin(0x7fff);
  EQUAL(host_header()->clock_source, NCCLOTF2_CLOCK_HOST, "clock");
  for (unsigned i = 0; i < 2000; i++) ncclProfiler_v6.stopEvent(host_start(context, host_descr(NCCLOTF2_COLL)));
  for (unsigned callback = 0; callback < NCCLOTF2_CALLBACKS; callback++)
    for (unsigned type = 0; type < NCCLOTF2_TYPES; type++)
      EQUAL(host_header()->cost[callback][type].samples, 0, "samples with a clock that stands still");
}

TEST_MAIN({"what the slot of a handle held before comes with the event", slots},
          {"of events that are not recorded no slot is told", refused_slots},
          {"ends of events of others are recorded in record mode", foreign_recorded},
          {"ends of events of others are counted otherwise", foreign_counted},
          {"at the cap no slot is told without its event", cap_even},
          {"at the cap no slot is told without its event, one unit on", cap_odd},
          {"at the cap of a lower class, too", cap_of_control_even},
          {"at the cap of a lower class, too, one unit on", cap_of_control_odd},
          {"every 256th event is measured", samples},
          {"nothing is measured by the host's clock", no_samples})
