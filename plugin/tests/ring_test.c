/* SPDX-License-Identifier: Apache-2.0
 *
 * Rings and chunks: handed over whole and in order, used again, and refused at the memory cap with
 * every loss counted.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include "../chunk.h"
#include "../handle.h"
#include "../intern.h"
#include "../ring.h"
#include "host.h"
#include "test.h"

enum {
  LEAST_CHUNKS = 64, /* with NCCL_OTF2_MEMORY=4M */
  RESERVE = 4,
  CHUNK_UNITS = (NCCLOTF2_CHUNK_SIZE - NCCLOTF2_CHUNK_HEAD) / NCCLOTF2_UNIT,
  GENERAL_UNITS = (LEAST_CHUNKS - RESERVE) * CHUNK_UNITS
};

static void *context;

static void begin(void) {
  ncclotf2_chunks_by_hand = true;
  setenv("NCCL_OTF2_MEMORY", "4M", 1);
  host_use_stub("ready", 0x7fff);
  context = host_init(0x1, 2, 0);
  EQUAL(host_header()->chunk_count, LEAST_CHUNKS, "chunks");
  EQUAL(host_header()->chunk_reserve, RESERVE, "reserve");
}

static void no_spares(void) {
  for (unsigned i = 0; i < NCCLOTF2_SPARE_MAX; i++) __atomic_store_n(&host_header()->spare[i], 0, __ATOMIC_RELEASE);
}

static uint64_t lost(unsigned reason, unsigned type) {
  return __atomic_load_n(&host_header()->lost[reason][type], __ATOMIC_RELAXED);
}

/* ---- writers and a reader at the same time ---- */

enum { WRITERS = 4, EVENTS = 100000 };

static struct {
  uint64_t started, next, stopped, states, refused;
  uint64_t ticks;
  uint32_t tid;
} seen[NCCLOTF2_RING_MAX];
static uint8_t *numbers; /* one bit per handle number */
static uint64_t numbers_most;

static void check_record(uint32_t ring, const struct ncclotf2_record *record, void *unused) {
  (void)unused;
  CHECK(record->ticks >= seen[ring].ticks, "ring %u: ticks go back", ring);
  seen[ring].ticks = record->ticks;
  if (record->kind == NCCLOTF2_RECORD_THREAD) {
    seen[ring].tid = record->aux; /* a writer that began late may have the ring of one that is done */
    CHECK(seen[ring].next % EVENTS == 0, "a new owner after %llu", (unsigned long long)seen[ring].next);
    seen[ring].next = 0;
  }
  if (record->kind == NCCLOTF2_RECORD_STATE) seen[ring].states++;
  if (record->kind == NCCLOTF2_RECORD_STOP) seen[ring].stopped++;
  if (record->kind != NCCLOTF2_RECORD_START) return;
  uint64_t number = record->handle & NCCLOTF2_NUMBER_MASK;
  CHECK(number < numbers_most, "number %llu", (unsigned long long)number);
  CHECK(!(numbers[number / 8] & 1 << number % 8), "number %llu was given twice", (unsigned long long)number);
  numbers[number / 8] |= (uint8_t)(1 << number % 8);
  /* The writer's count is in every record: nothing is torn, skipped or repeated. */
  uint64_t count = record->arg;
  EQUAL(count, seen[ring].next, "count in parentObj");
  seen[ring].next++;
  if (record->type == NCCLOTF2_COLL) {
    const struct ncclotf2_coll *coll = (const void *)record;
    EQUAL(coll->seq, count, "seq");
    EQUAL(coll->count, ~count, "count");
    EQUAL(coll->send_buff, count * 3, "send_buff");
    EQUAL(coll->parent_group, count * 7, "parent_group");
    CHECK(coll->func && coll->proto, "names");
  } else {
    EQUAL(record->type, NCCLOTF2_COLL_API, "type");
    const struct ncclotf2_coll_api *api = (const void *)record;
    EQUAL(api->count, count * 5, "count");
    EQUAL(api->stream, ~count, "stream");
  }
  seen[ring].started++;
}

static uint64_t refusals[WRITERS];
static uint32_t running;

static void *write_events(void *argument) {
  unsigned self = (unsigned)(uintptr_t)argument;
  for (uint64_t i = 0; i < EVENTS; i++) {
    struct ncclotf2_descr_v6 d = host_descr(i % 3 ? NCCLOTF2_COLL : NCCLOTF2_COLL_API);
    d.parentObj = (void *)(uintptr_t)i;
    if (i % 3) {
      d.coll.seqNumber = i;
      d.coll.count = ~i;
      d.coll.sendBuff = (void *)(uintptr_t)(i * 3);
      d.coll.parentGroup = (void *)(uintptr_t)(i * 7);
      d.coll.func = "AllReduce";
      d.coll.proto = "LL128";
    } else {
      d.collApi.count = i * 5;
      d.collApi.stream = (void *)(uintptr_t)~i;
    }
    void *handle;
    while (!(handle = host_start(context, d))) {
      refusals[self]++;
      sched_yield(); /* the reader is behind */
    }
    /* Where a stop or a state finds no room it goes missing; the reader's sums are checked with that. */
    if (i % 2) ncclProfiler_v6.recordEventState(handle, 23, NULL);
    ncclProfiler_v6.stopEvent(handle);
  }
  __atomic_sub_fetch(&running, 1, __ATOMIC_RELEASE);
  return NULL;
}

static void handover(void) {
  begin();
  numbers_most = 4ULL * WRITERS * EVENTS;
  numbers = calloc(1, numbers_most / 8);
  struct reader *reader = calloc(1, sizeof *reader);
  CHECK(numbers && reader, "no memory");
  pthread_t threads[WRITERS];
  running = WRITERS;
  for (unsigned i = 0; i < WRITERS; i++)
    CHECK(pthread_create(&threads[i], NULL, write_events, (void *)(uintptr_t)i) == 0, "no thread");
  while (__atomic_load_n(&running, __ATOMIC_ACQUIRE)) {
    if (!reader_drain(reader, check_record, NULL)) sched_yield();
  }
  for (unsigned i = 0; i < WRITERS; i++) pthread_join(threads[i], NULL);
  reader_drain(reader, check_record, NULL);

  uint64_t started = 0, stopped = 0, states = 0, refused = 0, chunks = 0;
  for (uint32_t i = 0; i < host_header()->ring_used; i++) {
    started += seen[i].started;
    stopped += seen[i].stopped;
    states += seen[i].states;
    chunks += reader->rings[i].sequence;
    EQUAL(seen[i].tid, ncclotf2_ring_at(ncclotf2_session.base, i)->tid, "tid");
  }
  for (unsigned i = 0; i < WRITERS; i++) refused += refusals[i];
  EQUAL(started, (uint64_t)WRITERS * EVENTS, "starts");
  EQUAL(lost(NCCLOTF2_LOSS_MEMORY, NCCLOTF2_COLL) + lost(NCCLOTF2_LOSS_MEMORY, NCCLOTF2_COLL_API), refused, "refusals");
  EQUAL(stopped + states + lost(NCCLOTF2_LOSS_STOP_MEMORY, NCCLOTF2_COLL) + lost(NCCLOTF2_LOSS_STOP_MEMORY, NCCLOTF2_COLL_API),
        (uint64_t)WRITERS * EVENTS * 3 / 2, "stops and states");
  CHECK(chunks > 3 * LEAST_CHUNKS, "only %llu chunks were handed over", (unsigned long long)chunks);
  free(reader);
}

/* ---- the cap ---- */

static void at_the_cap(void) {
  begin();
  static void *handles[GENERAL_UNITS];
  uint32_t count = 0;
  struct ncclotf2_descr_v6 unit = host_descr(NCCLOTF2_GROUP);
  void *handle;
  while ((handle = host_start(context, unit))) {
    CHECK(count < GENERAL_UNITS, "more starts than there is room for");
    handles[count++] = handle;
  }
  /* THREAD is two units, INIT one. */
  EQUAL(count, GENERAL_UNITS - 3, "starts until the cap");
  EQUAL(lost(NCCLOTF2_LOSS_MEMORY, NCCLOTF2_GROUP), 1, "refused");
  CHECK(!host_start(context, unit), "recorded beyond the cap");
  CHECK(!host_start(context, host_descr(NCCLOTF2_COLL)), "recorded beyond the cap");
  EQUAL(lost(NCCLOTF2_LOSS_MEMORY, NCCLOTF2_GROUP), 2, "refused");
  EQUAL(lost(NCCLOTF2_LOSS_MEMORY, NCCLOTF2_COLL), 1, "refused");

  /* States go; the one with the GPU's stop time and the stops have the reserve. */
  ncclProfiler_v6.recordEventState(handles[0], 19, NULL);
  EQUAL(lost(NCCLOTF2_LOSS_STOP_MEMORY, NCCLOTF2_GROUP), 1, "dropped states");
  const uint32_t reserve_units = RESERVE * CHUNK_UNITS;
  union ncclotf2_state_args args = {.kernelCh = {9}};
  ncclProfiler_v6.recordEventState(handles[0], 22, &args);
  for (uint32_t i = 1; i < reserve_units; i++) ncclProfiler_v6.stopEvent(handles[i]);
  EQUAL(lost(NCCLOTF2_LOSS_STOP_MEMORY, NCCLOTF2_GROUP), 1, "stops lost with a reserve");
  ncclProfiler_v6.stopEvent(handles[0]);
  EQUAL(lost(NCCLOTF2_LOSS_STOP_MEMORY, NCCLOTF2_GROUP), 2, "stops lost without");
  ncclProfiler_v6.finalize(context); /* without room for its record */
  CHECK(host_logged("not recorded: 3 events: memory was full (NCCL_OTF2_MEMORY); 2 stops and states"), "%s", host_line);
  context = host_init(0x2, 2, 0);

  /* A reader makes room, and everything goes on, outside the reserve. */
  struct reader *reader = calloc(1, sizeof *reader);
  EQUAL(reader_drain(reader, NULL, NULL), GENERAL_UNITS - 1 + reserve_units, "records");
  handle = host_start(context, unit);
  CHECK(handle, "refused with free memory");
  ncclProfiler_v6.stopEvent(handle);
  CHECK(ncclotf2_ring->cursor / NCCLOTF2_CHUNK_SIZE < ncclotf2_fast.limit[NCCLOTF2_CLASS_OPERATION], "a start is in the reserve");
  EQUAL(reader_drain(reader, NULL, NULL), 2, "records");
  for (uint32_t i = 0; i < 10 * GENERAL_UNITS; i++) {
    handle = host_start(context, unit);
    CHECK(handle, "refused with free memory after %u", i);
    if (i % CHUNK_UNITS == 0) reader_drain(reader, NULL, NULL);
  }
  free(reader);
}

static void reserve_for_stops_alone(void) {
  begin();
  struct ncclotf2_descr_v6 unit = host_descr(NCCLOTF2_GROUP);
  void *handle = host_start(context, unit);
  while (host_start(context, unit)) {
  }
  ncclProfiler_v6.stopEvent(handle);
  CHECK(ncclotf2_ring->cursor / NCCLOTF2_CHUNK_SIZE >= ncclotf2_fast.limit[NCCLOTF2_CLASS_OPERATION], "the stop is not in the reserve");
  /* The ring now has room, but not for starts and states. */
  uint64_t before = lost(NCCLOTF2_LOSS_MEMORY, NCCLOTF2_GROUP);
  CHECK(!host_start(context, unit), "a start is in the reserve");
  EQUAL(lost(NCCLOTF2_LOSS_MEMORY, NCCLOTF2_GROUP), before + 1, "refused");
  ncclProfiler_v6.recordEventState(handle, 23, NULL);
  EQUAL(lost(NCCLOTF2_LOSS_STOP_MEMORY, NCCLOTF2_GROUP), 1, "dropped states");
}

static void reserve_chunk_in_a_slot(void) {
  begin();
  uint32_t last = LEAST_CHUNKS - 1;
  no_spares();
  ncclotf2_chunk_states_at(ncclotf2_session.base)[last] = NCCLOTF2_CHUNK_SPARE;
  __atomic_store_n(&host_header()->spare[3], last + 1, __ATOMIC_RELEASE);
  for (unsigned i = 0; i < 2 * CHUNK_UNITS; i++) CHECK(host_start(context, host_descr(NCCLOTF2_GROUP)), "refused");
  EQUAL(host_header()->spare[3], 0, "slot");
  EQUAL(ncclotf2_chunk_states_at(ncclotf2_session.base)[last], NCCLOTF2_CHUNK_FREE, "state");
  CHECK(host_header()->faulted_chunks > 0, "chunks from outside the slots are not counted");
}

static void proxy_children(void) {
  begin();
  /* Before anything was refused a step without parent is NCCL's own. */
  CHECK(host_start(context, host_descr(NCCLOTF2_PROXY_STEP)), "refused");
  CHECK(host_start(context, host_descr(NCCLOTF2_NET_PLUGIN)), "refused");
  struct ncclotf2_descr_v6 step = host_descr(NCCLOTF2_PROXY_STEP), net = host_descr(NCCLOTF2_NET_PLUGIN);
  while (host_start(context, host_descr(NCCLOTF2_GROUP))) {
  }
  CHECK(!host_start(context, host_descr(NCCLOTF2_PROXY_OP)), "recorded beyond the cap");
  struct reader *reader = calloc(1, sizeof *reader);
  reader_drain(reader, NULL, NULL);
  free(reader);
  /* There is room again, but the op is not there: its steps, and their net events, go with it. */
  CHECK(!host_start(context, step), "a step of a refused op was recorded");
  EQUAL(lost(NCCLOTF2_LOSS_MEMORY, NCCLOTF2_PROXY_STEP), 1, "refused");
  CHECK(!host_start(context, net), "a net event of a refused step was recorded");
  EQUAL(lost(NCCLOTF2_LOSS_MEMORY, NCCLOTF2_NET_PLUGIN), 1, "refused");
  void *op = host_start(context, host_descr(NCCLOTF2_PROXY_OP));
  CHECK(op, "refused");
  step.parentObj = op;
  net.parentObj = host_start(context, step);
  CHECK(net.parentObj && host_start(context, net), "a step of a recorded op was refused");
  /* Where ops are not recorded, steps never have a parent. */
  step.parentObj = NULL;
  __atomic_store_n(&host_header()->record_mask, 1u << NCCLOTF2_PROXY_STEP, __ATOMIC_RELAXED);
  CHECK(host_start(context, step), "refused");
}

/* ---- what goes first ---- */

static const struct {
  unsigned type, units;
  uint32_t chunks; /* that its class may use */
} classes[] = {
    {NCCLOTF2_PROXY_CTRL, 1, LEAST_CHUNKS * 10 / 16}, {NCCLOTF2_PROXY_STEP, 2, LEAST_CHUNKS * 12 / 16},
    {NCCLOTF2_KERNEL_CH, 2, LEAST_CHUNKS * 14 / 16},  {NCCLOTF2_COLL_API, 3, LEAST_CHUNKS * 15 / 16},
};
enum { CLASSES = sizeof classes / sizeof *classes };

/* What each type's class is, by the memory that it may use. */
static const uint32_t chunks_of[NCCLOTF2_CE_BATCH + 1] = {
    [NCCLOTF2_GROUP] = 60,    [NCCLOTF2_COLL] = 60,       [NCCLOTF2_P2P] = 60,           [NCCLOTF2_PROXY_OP] = 56,
    [NCCLOTF2_PROXY_STEP] = 48, [NCCLOTF2_PROXY_CTRL] = 40, [NCCLOTF2_KERNEL_CH] = 56,   [NCCLOTF2_NET_PLUGIN] = 48,
    [NCCLOTF2_GROUP_API] = 60, [NCCLOTF2_COLL_API] = 60,  [NCCLOTF2_P2P_API] = 60,       [NCCLOTF2_KERNEL_LAUNCH] = 60,
    [NCCLOTF2_CE_COLL] = 60,  [NCCLOTF2_CE_SYNC] = 56,    [NCCLOTF2_CE_BATCH] = 56,
};

/* With a parent, so that nothing is refused for want of one. */
static void *start_child(unsigned type) {
  struct ncclotf2_descr_v6 d = host_descr(type);
  d.parentObj = (void *)(uintptr_t)0x1234;
  return host_start(context, d);
}

static uint32_t used_chunks(void) {
  uint32_t used = 0;
  for (uint32_t i = 0; i < LEAST_CHUNKS; i++)
    used += ncclotf2_chunk_states_at(ncclotf2_session.base)[i] == NCCLOTF2_CHUNK_USED;
  return used;
}

/* As memory fills up, what says least is refused first; the others go on until their own limit. */
static void least_goes_first(void) {
  begin();
  uint32_t filled = 0; /* units of the chunks in use; THREAD is two, INIT one */
  for (unsigned class = 0; class < CLASSES; class++) {
    const uint32_t before = filled, per_chunk = CHUNK_UNITS / classes[class].units;
    uint32_t count = 0;
    while (start_child(classes[class].type)) count++;
    EQUAL(count, (classes[class].chunks - before) * per_chunk - (class == 0 ? 3 : 0), "starts until the limit");
    filled = classes[class].chunks;
    EQUAL(used_chunks(), filled, "chunks in use");
    for (unsigned type = 0; type <= NCCLOTF2_CE_BATCH; type++) {
      if (chunks_of[type] > filled) continue;
      const uint64_t refused = lost(NCCLOTF2_LOSS_MEMORY, type);
      CHECK(!start_child(type), "type %u was recorded with %u chunks in use", type, filled);
      EQUAL(lost(NCCLOTF2_LOSS_MEMORY, type), refused + 1, "refused");
    }
  }
  EQUAL(lost(NCCLOTF2_LOSS_STOP_MEMORY, NCCLOTF2_GROUP), 0, "stops");
  /* Each class comes back as soon as there is a chunk below its limit. */
  struct reader *reader = calloc(1, sizeof *reader);
  reader_drain(reader, NULL, NULL);
  free(reader);
  for (unsigned type = 0; type <= NCCLOTF2_CE_BATCH; type++) CHECK(start_child(type), "type %u was refused with free memory", type);
  CHECK(ncclotf2_ring->cursor / NCCLOTF2_CHUNK_SIZE < ncclotf2_fast.limit[NCCLOTF2_CLASS_CONTROL], "the ring is in chunks that not all may use");
}

/* Types have their class, whatever the order in which memory ran out. */
static void each_has_its_limit(void) {
  begin();
  uint32_t *states = ncclotf2_chunk_states_at(ncclotf2_session.base);
  no_spares();
  for (uint32_t limit = 1; limit < LEAST_CHUNKS; limit++) {
    /* Chunks below the limit are in use, and so is all of this ring's. */
    for (uint32_t i = 0; i < LEAST_CHUNKS; i++) states[i] = i < limit ? NCCLOTF2_CHUNK_USED : NCCLOTF2_CHUNK_FREE;
    for (unsigned type = 0; type <= NCCLOTF2_CE_BATCH; type++) {
      ncclotf2_ring->cursor = ncclotf2_ring->limit; /* full */
      const bool recorded = start_child(type) != NULL;
      CHECK(recorded == (limit < chunks_of[type]), "type %u was %s with %u of %d chunks in use", type,
            recorded ? "recorded" : "refused", limit, LEAST_CHUNKS);
      if (recorded) states[ncclotf2_ring->chunk - 1] = NCCLOTF2_CHUNK_FREE;
    }
    ncclotf2_ring->cursor = ncclotf2_ring->limit;
    const uint64_t dropped = lost(NCCLOTF2_LOSS_STOP_MEMORY, NCCLOTF2_COLL);
    ncclProfiler_v6.stopEvent((void *)(uintptr_t)(ncclotf2_fast.tag_bits | (uint64_t)NCCLOTF2_COLL << NCCLOTF2_TYPE_SHIFT | 1));
    EQUAL(lost(NCCLOTF2_LOSS_STOP_MEMORY, NCCLOTF2_COLL), dropped, "a stop was dropped");
  }
}

/* A prepared chunk that this event may not use stays prepared for one that may. */
static void spares_for_others(void) {
  begin();
  uint32_t *states = ncclotf2_chunk_states_at(ncclotf2_session.base);
  for (uint32_t i = 0; i < LEAST_CHUNKS; i++) states[i] = NCCLOTF2_CHUNK_USED;
  no_spares();
  const uint32_t high = 50; /* steps may use 48, channels 56 */
  states[high] = NCCLOTF2_CHUNK_SPARE;
  __atomic_store_n(&host_header()->spare[2], high + 1, __ATOMIC_RELEASE);
  ncclotf2_ring->cursor = ncclotf2_ring->limit;
  CHECK(!start_child(NCCLOTF2_PROXY_CTRL) && !start_child(NCCLOTF2_PROXY_STEP), "recorded beyond the limit");
  EQUAL(host_header()->spare[2], high + 1, "slot");
  EQUAL(states[high], NCCLOTF2_CHUNK_SPARE, "state");
  CHECK(start_child(NCCLOTF2_KERNEL_CH), "refused with a prepared chunk");
  EQUAL(host_header()->spare[2], 0, "slot");
  EQUAL(states[high], NCCLOTF2_CHUNK_USED, "state");
  EQUAL(host_header()->faulted_chunks, 0, "chunks that nobody had prepared");
  /* The ring has room there, and still not for everything. */
  CHECK(!start_child(NCCLOTF2_PROXY_STEP), "a step is in a chunk of its betters");
  CHECK(start_child(NCCLOTF2_COLL), "refused");
}

/* What one class has looked for in vain another may still find; and after a vain look none is made until
 * something has become free. */
static void one_class_alone(void) {
  enum { CHUNKS = 1024, CONTROL = CHUNKS * 10 / 16, OPERATION = CHUNKS * 15 / 16 };
  ncclotf2_chunks_by_hand = true;
  setenv("NCCL_OTF2_MEMORY", "64M", 1);
  host_use_stub("ready", 0x7fff);
  context = host_init(0x1, 2, 0);
  EQUAL(host_header()->chunk_count, CHUNKS, "chunks");
  uint32_t *states = ncclotf2_chunk_states_at(ncclotf2_session.base);
  for (uint32_t i = 0; i < CONTROL; i++) states[i] = NCCLOTF2_CHUNK_USED;
  no_spares();
  ncclotf2_ring->cursor = ncclotf2_ring->limit;
  for (uint32_t chunk = 0; chunk < OPERATION - CONTROL; chunk++) {
    CHECK(!start_child(NCCLOTF2_PROXY_CTRL), "recorded beyond the limit");
    ncclotf2_ring->cursor = ncclotf2_ring->limit; /* full again */
    CHECK(start_child(NCCLOTF2_GROUP), "refused with %u chunks free", OPERATION - CONTROL - chunk);
  }
  ncclotf2_ring->cursor = ncclotf2_ring->limit;
  CHECK(!start_child(NCCLOTF2_GROUP), "recorded beyond the limit");
  EQUAL(lost(NCCLOTF2_LOSS_MEMORY, NCCLOTF2_PROXY_CTRL), OPERATION - CONTROL, "refused");
  /* When there is room again, and that has been said, it is found at once. */
  states[100] = NCCLOTF2_CHUNK_FREE;
  CHECK(!start_child(NCCLOTF2_PROXY_CTRL), "chunks are looked at although nothing was freed");
  host_header()->freed++;
  CHECK(start_child(NCCLOTF2_PROXY_CTRL), "the free chunk is not found");
}

/* ---- threads ---- */

static void *one_event(void *name) {
  if (name) prctl(PR_SET_NAME, name);
  void *handle = host_start(context, host_descr(NCCLOTF2_GROUP));
  CHECK(handle, "refused");
  ncclProfiler_v6.stopEvent(handle);
  return (void *)ncclotf2_ring;
}

static struct {
  uint32_t threads, tids[2000];
  char last_name[16];
} owners;

static void note_owner(uint32_t ring, const struct ncclotf2_record *record, void *unused) {
  (void)unused;
  if (ring != 1 || record->kind != NCCLOTF2_RECORD_THREAD) return;
  EQUAL(record->units, 2, "units");
  CHECK(owners.threads < 2000, "too many");
  owners.tids[owners.threads++] = record->aux;
  memcpy(owners.last_name, ((const struct ncclotf2_thread_record *)record)->name, sizeof owners.last_name);
}

static void short_lived_threads(void) {
  begin();
  enum { THREADS = 1000 };
  for (unsigned i = 0; i < THREADS; i++) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, one_event, i == THREADS - 1 ? "the last one" : NULL) == 0, "no thread");
    pthread_join(thread, NULL);
  }
  EQUAL(host_header()->ring_used, 2, "rings");
  EQUAL(ncclotf2_ring_at(ncclotf2_session.base, 1)->generation, THREADS, "generation");
  EQUAL(ncclotf2_ring_at(ncclotf2_session.base, 1)->state, NCCLOTF2_RING_FREE, "state");
  struct reader *reader = calloc(1, sizeof *reader);
  reader_drain(reader, note_owner, NULL);
  EQUAL(owners.threads, THREADS, "owners");
  for (unsigned i = 1; i < THREADS; i++) CHECK(owners.tids[i] != owners.tids[i - 1], "tid %u twice", owners.tids[i]);
  CHECK(strcmp(owners.last_name, "the last one") == 0, "name \"%s\"", owners.last_name);
  free(reader);
}

static pthread_barrier_t barrier;
static void *one_of_many(void *unused) {
  void *ring = one_event(unused);
  pthread_barrier_wait(&barrier);
  return ring;
}

static void many_threads_at_once(void) {
  begin();
  enum { THREADS = 24, ROUNDS = 10 };
  pthread_barrier_init(&barrier, NULL, THREADS);
  for (unsigned round = 0; round < ROUNDS; round++) {
    pthread_t threads[THREADS];
    void *rings[THREADS];
    for (unsigned i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, one_of_many, NULL) == 0, "no thread");
    for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], &rings[i]);
    for (unsigned i = 0; i < THREADS; i++)
      for (unsigned k = 0; k < i; k++) CHECK(rings[i] != rings[k], "two threads share a ring");
  }
  EQUAL(host_header()->ring_used, THREADS + 1, "rings");
}

/* Rings and names go from thread to thread with nothing but the memory's own order between them: the
 * threads of one parent know nothing of those of another. */
enum { PARENTS = 6 };

static void *named_event(void *number) {
  static char names[PARENTS * 150][16]; /* addresses never seen, so that the heap is searched */
  char *name = names[(uintptr_t)number];
  snprintf(name, sizeof names[0], "name %02u", (unsigned)(uintptr_t)number % 50);
  struct ncclotf2_descr_v6 d = host_descr(NCCLOTF2_COLL_API);
  d.collApi.func = name;
  for (int i = 0; i < 3; i++) {
    void *handle = host_start(context, d);
    CHECK(handle, "refused");
    ncclProfiler_v6.stopEvent(handle);
  }
  return NULL;
}

static void *parent(void *self) {
  for (unsigned i = 0; i < 150; i++) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, named_event, (void *)((uintptr_t)self * 150 + i)) == 0, "no thread");
    pthread_join(thread, NULL);
  }
  return NULL;
}

static void threads_of_several_parents(void) {
  begin();
  pthread_t parents[PARENTS];
  for (unsigned i = 0; i < PARENTS; i++) pthread_create(&parents[i], NULL, parent, (void *)(uintptr_t)i);
  for (unsigned i = 0; i < PARENTS; i++) pthread_join(parents[i], NULL);
  CHECK(host_header()->ring_used <= PARENTS + 1, "%u rings", host_header()->ring_used);
  uint32_t owned = 0;
  for (uint32_t i = 0; i < host_header()->ring_used; i++) owned += ncclotf2_ring_at(ncclotf2_session.base, i)->generation;
  EQUAL(owned, 1 + PARENTS * 150, "owners");
  struct reader *reader = calloc(1, sizeof *reader);
  /* INIT; of each thread THREAD, three starts, three stops. */
  EQUAL(reader_drain(reader, NULL, NULL), 2 + PARENTS * 150 * 7, "records");
  free(reader);
}

enum { NAMES = 300, SEEKERS = 6 };
static uint32_t ids[SEEKERS][NAMES];

static void *seek_names(void *self) {
  pthread_barrier_wait(&barrier);
  for (unsigned i = 0; i < NAMES; i++) {
    char name[16];
    snprintf(name, sizeof name, "name %03u", i);
    ids[(uintptr_t)self][i] = ncclotf2_string_id(name);
  }
  return NULL;
}

static void names_at_one_time(void) {
  begin();
  pthread_barrier_init(&barrier, NULL, SEEKERS);
  pthread_t threads[SEEKERS];
  for (unsigned i = 0; i < SEEKERS; i++) pthread_create(&threads[i], NULL, seek_names, (void *)(uintptr_t)i);
  for (unsigned i = 0; i < SEEKERS; i++) pthread_join(threads[i], NULL);
  /* Two threads may store a name twice, but each id is that name. */
  for (unsigned i = 0; i < SEEKERS * NAMES; i++) {
    char name[16];
    snprintf(name, sizeof name, "name %03u", i % NAMES);
    CHECK(ids[i / NAMES][i % NAMES], "no id");
    const struct ncclotf2_string *string =
        ncclotf2_string_at(ncclotf2_session.base, (uint64_t)(ids[i / NAMES][i % NAMES] - 1) * 8);
    EQUAL(string->length, 9, "length");
    CHECK(strcmp((const char *)string + 4, name) == 0, "%s, want %s", (const char *)string + 4, name);
  }
}

static pthread_key_t late_key;
static void late_event(void *unused) {
  (void)unused;
  one_event(NULL);
}
static void *with_late_event(void *unused) {
  one_event(unused);
  pthread_setspecific(late_key, (void *)1);
  return NULL;
}

static void events_after_the_end_of_a_thread(void) {
  begin();
  one_event(NULL);                          /* makes the plugin's key ... */
  pthread_key_create(&late_key, late_event); /* ... before this one, so ours is destroyed later */
  for (unsigned i = 0; i < 50; i++) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, with_late_event, NULL) == 0, "no thread");
    pthread_join(thread, NULL);
  }
  EQUAL(host_header()->ring_used, 2, "rings");
  EQUAL(ncclotf2_ring_at(ncclotf2_session.base, 1)->state, NCCLOTF2_RING_FREE, "state");
}

static void *refused_for_want_of_a_ring(void *unused) {
  void *handle = host_start(context, host_descr(NCCLOTF2_P2P));
  CHECK(!handle, "recorded without a ring");
  return unused;
}

static void no_ring_left(void) {
  begin();
  for (uint32_t i = 0; i < NCCLOTF2_RING_MAX; i++) ncclotf2_ring_at(ncclotf2_session.base, i)->state = NCCLOTF2_RING_OWNED;
  host_header()->ring_used = NCCLOTF2_RING_MAX;
  pthread_t thread;
  pthread_create(&thread, NULL, refused_for_want_of_a_ring, NULL);
  pthread_join(thread, NULL);
  EQUAL(lost(NCCLOTF2_LOSS_RING, NCCLOTF2_P2P), 1, "lost");
  CHECK(host_start(context, host_descr(NCCLOTF2_P2P)), "a thread with a ring is refused");
}

TEST_MAIN({"threads write and a reader follows, over many chunks", handover},
          {"at the cap starts are refused and stops are kept", at_the_cap},
          {"a ring in the reserve takes no starts", reserve_for_stops_alone},
          {"a reserve chunk is never a spare", reserve_chunk_in_a_slot},
          {"what belongs to a refused proxy op goes with it", proxy_children},
          {"when memory runs out, what says least goes first", least_goes_first},
          {"every type has its limit", each_has_its_limit},
          {"prepared chunks stay for those that may use them", spares_for_others},
          {"one class out of memory leaves the others alone", one_class_alone},
          {"short-lived threads use a ring one after another", short_lived_threads},
          {"threads at one time have rings of their own", many_threads_at_once},
          {"rings and names go between threads of several parents", threads_of_several_parents},
          {"names are stored by several threads at one time", names_at_one_time},
          {"a thread may record while it ends", events_after_the_end_of_a_thread},
          {"without a ring the event is refused", no_ring_left})
