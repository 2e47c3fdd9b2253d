/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows: the operations that are recorded are those of the window, on every member alike, with all that
 * belongs to them and nothing else; and every operation that is not is counted.
 */
#include "../window.h"

#include <pthread.h>

#include "../handle.h"
#include "../ring.h"
#include "host.h"
#include "test.h"

enum { ALL = 0x7fff };
#define BIT(type) (1u << NCCLOTF2_##type)

static void *begin(uint32_t mask, uint64_t first, uint64_t last) {
  host_use_stub("ready", mask | NCCLOTF2_RECORD_WINDOW);
  host_init(0x1111, 2, 1); /* so that index 0 is not right by accident */
  host_header()->window_first = first;
  host_header()->window_last = last;
  void *context = host_init(0x2222, 4, 3);
  struct ncclotf2_comm *comm = ncclotf2_comm_at(ncclotf2_session.base, 1);
  EQUAL(comm->first, first, "the window's begin");
  EQUAL(comm->last, last, "the window's end");
  return context;
}

static struct ncclotf2_comm *comm_of(const void *context) {
  return ncclotf2_comm_at(ncclotf2_session.base, (uint32_t)((uint64_t)(uintptr_t)context ^ ncclotf2_fast.context_bits));
}

static void stop(void *handle) { ncclProfiler_v6.stopEvent(handle); }

/* One event, started and stopped as NCCL does it: with the handle, whatever it is. */
static void *event(void *context, unsigned type, void *parent) {
  struct ncclotf2_descr_v6 d = host_descr(type);
  d.parentObj = parent;
  void *handle = host_start(context, d);
  stop(handle);
  return handle;
}

static void *call(void *context, unsigned type, void *parent, bool captured) {
  struct ncclotf2_descr_v6 d = host_descr(type);
  d.parentObj = parent;
  if (type == NCCLOTF2_COLL_API) d.collApi.graphCaptured = captured;
  if (type == NCCLOTF2_P2P_API) d.p2pApi.graphCaptured = captured;
  if (type == NCCLOTF2_GROUP_API) d.groupApi.graphCaptured = captured;
  void *handle = host_start(context, d);
  stop(handle);
  return handle;
}

/* What one operation consists of. */
struct operation {
  void *group_api, *call, *group, *task, *launch, *op, *step, *net, *channel;
};

/* What follows a call, with the handles NCCL has by then. */
static void carry_out(void *context, struct operation *o, unsigned task) {
  o->group = event(context, NCCLOTF2_GROUP, NULL);
  struct ncclotf2_descr_v6 d = host_descr(task);
  d.parentObj = o->call;
  if (task == NCCLOTF2_COLL)
    d.coll.parentGroup = o->group;
  else
    d.p2p.parentGroup = o->group;
  o->task = host_start(context, d);
  stop(o->task);
  o->launch = event(context, NCCLOTF2_KERNEL_LAUNCH, o->group_api);
  o->op = event(context, NCCLOTF2_PROXY_OP, o->task);
  o->step = event(context, NCCLOTF2_PROXY_STEP, o->op);
  o->net = event(context, NCCLOTF2_NET_PLUGIN, o->step);
  o->channel = event(context, NCCLOTF2_KERNEL_CH, o->task);
}

static struct operation operate(void *context, bool message) {
  struct operation o = {0};
  o.group_api = call(context, NCCLOTF2_GROUP_API, NULL, false);
  o.call = call(context, message ? NCCLOTF2_P2P_API : NCCLOTF2_COLL_API, o.group_api, false);
  carry_out(context, &o, message ? NCCLOTF2_P2P : NCCLOTF2_COLL);
  return o;
}

/* All of it was recorded, or nothing; of the plan nothing is said. */
static void all_or_nothing(const struct operation *o, bool recorded, uint64_t number) {
  const void *const parts[] = {o->group_api, o->call, o->task, o->launch, o->op, o->step, o->net, o->channel};
  for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
    CHECK((parts[i] != NULL) == recorded, "operation %llu: part %u was %s", (unsigned long long)number, i,
          parts[i] ? "recorded" : "not recorded");
  if (recorded) CHECK(o->group, "operation %llu: its plan was not recorded", (unsigned long long)number);
}

enum { MOST = 4096 };
static const struct ncclotf2_record *records[MOST];
static size_t take_records(void) {
  const size_t count = reader_own(records, MOST);
  CHECK(count <= MOST, "%zu records", count);
  return count;
}

static unsigned starts_of(unsigned type) {
  unsigned starts = 0;
  for (size_t i = 0, count = take_records(); i < count; i++)
    starts += records[i]->kind == NCCLOTF2_RECORD_START && records[i]->type == type;
  return starts;
}

/* The edges so far, in order. */
static unsigned edges(const struct ncclotf2_record **list, unsigned most) {
  unsigned found = 0;
  for (size_t i = 0, count = take_records(); i < count; i++) {
    if (records[i]->kind != NCCLOTF2_RECORD_WINDOW_EDGE) continue;
    CHECK(found < most, "more than %u edges", most);
    list[found++] = records[i];
  }
  return found;
}

static void edge_is(const struct ncclotf2_record *edge, uint32_t comm, bool inside, uint64_t ordinal) {
  struct ncclotf2_record want = {.flags = inside, .aux = comm, .arg = ordinal};
  host_same_record(edge, &want, sizeof want, NCCLOTF2_RECORD_WINDOW_EDGE, 0);
}

static uint64_t paused(unsigned type) { return host_header()->paused[type]; }
static uint64_t filtered(unsigned type) { return host_header()->filtered[type]; }

static void nothing_lost(void) {
  for (unsigned reason = 0; reason < NCCLOTF2_LOSS_REASONS; reason++)
    for (unsigned type = 0; type < NCCLOTF2_TYPES; type++) EQUAL(host_header()->lost[reason][type], 0, "lost");
}

/* ---- collectives ---- */

static void collectives(void) {
  enum { FIRST = 3, LAST = 5, CALLS = 9 };
  void *context = begin(ALL, FIRST, LAST);
  for (uint64_t i = 0; i < CALLS; i++) {
    const struct operation o = operate(context, false);
    all_or_nothing(&o, i >= FIRST && i < LAST, i);
    /* What controls the proxy goes with what was last. */
    CHECK((event(context, NCCLOTF2_PROXY_CTRL, NULL) != NULL) == (i >= FIRST && i < LAST), "ProxyCtrl after %llu", (unsigned long long)i);
  }
  EQUAL(comm_of(context)->collectives, CALLS, "collectives");
  EQUAL(comm_of(context)->messages, 0, "messages");
  EQUAL(comm_of(context)->replayed, 0, "replayed");
  const struct ncclotf2_record *list[4];
  EQUAL(edges(list, 4), 3, "edges");
  edge_is(list[0], 1, false, 0); /* recording begins with the communicator */
  edge_is(list[1], 1, true, FIRST);
  edge_is(list[2], 1, false, LAST);
  /* The edge comes before what is chosen otherwise. */
  size_t at = 0, count = take_records();
  while (at < count && records[at] != list[1]) at++;
  CHECK(at + 1 < count && records[at + 1]->type == NCCLOTF2_COLL_API && records[at + 1]->kind == NCCLOTF2_RECORD_START,
        "after the edge comes kind %u", records[at + 1]->kind);
  static const unsigned types[] = {NCCLOTF2_GROUP_API, NCCLOTF2_COLL_API, NCCLOTF2_COLL, NCCLOTF2_KERNEL_LAUNCH, NCCLOTF2_PROXY_OP,
                                   NCCLOTF2_PROXY_STEP, NCCLOTF2_NET_PLUGIN, NCCLOTF2_KERNEL_CH, NCCLOTF2_PROXY_CTRL};
  for (unsigned i = 0; i < sizeof types / sizeof *types; i++) {
    EQUAL(paused(types[i]), CALLS - (LAST - FIRST), "paused");
    EQUAL(starts_of(types[i]), LAST - FIRST, "starts");
    EQUAL(filtered(types[i]), 0, "filtered");
  }
  /* A plan too many at the end is allowed. */
  EQUAL(starts_of(NCCLOTF2_GROUP) + paused(NCCLOTF2_GROUP), CALLS, "plans");
  CHECK(starts_of(NCCLOTF2_GROUP) <= LAST - FIRST + 1, "%u plans were recorded", starts_of(NCCLOTF2_GROUP));
  nothing_lost();
  EQUAL(host_header()->null_handles, 10 * CALLS - (LAST - FIRST) * 9 - starts_of(NCCLOTF2_GROUP), "NULL handles");
}

/* The communicators of one process are told apart, and start with what the header says then. */
static void communicators_separate(void) {
  void *second = begin(ALL, 1, 2);
  host_header()->window_first = 0;
  host_header()->window_last = UINT64_MAX;
  void *third = host_init(0x3333, 2, 0);
  for (uint64_t i = 0; i < 4; i++) {
    const struct operation outside = operate(second, false), inside = operate(third, false);
    all_or_nothing(&outside, i == 1, i);
    all_or_nothing(&inside, true, i);
  }
  EQUAL(comm_of(second)->collectives, 4, "collectives");
  EQUAL(comm_of(third)->collectives, 4, "collectives");
  EQUAL(ncclotf2_comm_at(ncclotf2_session.base, 0)->collectives, 0, "collectives of the first");
  const struct ncclotf2_record *list[8];
  const unsigned count = edges(list, 8);
  EQUAL(count, 3, "edges");
  for (unsigned i = 0; i < count; i++) EQUAL(list[i]->aux, 1, "an edge's communicator");
}

/* Several calls in one group across the edge: each for itself, the group with its first. */
static void group_across_the_edge(void) {
  void *context = begin(ALL, 1, 3);
  void *group = call(context, NCCLOTF2_GROUP_API, NULL, false);
  CHECK(!group, "a group that begins outside was recorded");
  CHECK(!call(context, NCCLOTF2_COLL_API, group, false), "call 0 was recorded");
  CHECK(call(context, NCCLOTF2_COLL_API, group, false), "call 1 was not recorded");
  CHECK(event(context, NCCLOTF2_GROUP, NULL), "the plan with call 1 was not recorded");
  group = call(context, NCCLOTF2_GROUP_API, NULL, false);
  CHECK(group, "a group that begins inside was not recorded");
  CHECK(call(context, NCCLOTF2_COLL_API, group, false), "call 2 was not recorded");
  CHECK(!call(context, NCCLOTF2_COLL_API, group, false), "call 3 was recorded");
  CHECK(event(context, NCCLOTF2_GROUP, NULL), "the plan with call 2 was not recorded");
  CHECK(!event(context, NCCLOTF2_GROUP, NULL), "a plan with calls outside was recorded");
}

static void no_more_plans(void) {
  void *context = begin(ALL, 0, 2); /* a window from the beginning, and nothing is ever captured */
  for (uint64_t i = 0; i < 20; i++) {
    const struct operation o = operate(context, false);
    all_or_nothing(&o, i < 2, i);
  }
  CHECK(starts_of(NCCLOTF2_GROUP) <= 3, "%u plans were recorded", starts_of(NCCLOTF2_GROUP));
}

/* ---- messages ---- */

static void messages_alone(void) {
  void *context = begin(ALL, 2, 4);
  for (uint64_t i = 0; i < 7; i++) {
    const struct operation o = operate(context, true);
    all_or_nothing(&o, i == 2 || i == 3, i);
  }
  EQUAL(comm_of(context)->messages, 7, "messages");
  EQUAL(comm_of(context)->collectives, 0, "collectives");
  const struct ncclotf2_record *list[4];
  EQUAL(edges(list, 4), 3, "edges");
  edge_is(list[1], 1, true, 2);
  edge_is(list[2], 1, false, 4);
  EQUAL(paused(NCCLOTF2_P2P_API), 5, "paused");
}

/* Members send different numbers of messages, so these go with the next collective. */
static void messages_between_collectives(void) {
  void *context = begin(ALL, 2, 3);
  for (uint64_t collective = 0; collective < 5; collective++) {
    const struct operation o = operate(context, false);
    all_or_nothing(&o, collective == 2, collective);
    for (unsigned i = 0; i < 4; i++) { /* before collective + 1 */
      const struct operation message = operate(context, true);
      all_or_nothing(&message, collective + 1 == 2, collective + 1);
    }
  }
  EQUAL(comm_of(context)->messages, 20, "messages");
  EQUAL(comm_of(context)->collectives, 5, "collectives");
}

/* ---- graphs ---- */

static void captured_and_replayed(void) {
  void *context = begin(ALL, 2, 4);
  /* Captured calls are always recorded: one stands for all its replays. They do not count. */
  void *group = call(context, NCCLOTF2_GROUP_API, NULL, true);
  void *captured = call(context, NCCLOTF2_COLL_API, group, true);
  CHECK(group && captured, "a captured call was not recorded");
  CHECK((uint64_t)(uintptr_t)captured & NCCLOTF2_CAPTURED_BIT, "its handle does not say so");
  EQUAL(comm_of(context)->collectives, 0, "collectives");
  for (uint64_t i = 0; i < 7; i++) {
    struct operation o = {.group_api = group, .call = captured};
    carry_out(context, &o, NCCLOTF2_COLL);
    const bool inside = i >= 2 && i < 4;
    const void *const parts[] = {o.task, o.op, o.step, o.net, o.channel};
    for (unsigned k = 0; k < sizeof parts / sizeof *parts; k++)
      CHECK((parts[k] != NULL) == inside, "replay %llu: part %u", (unsigned long long)i, k);
    if (inside) CHECK(o.group, "replay %llu: its plan was not recorded", (unsigned long long)i);
  }
  EQUAL(comm_of(context)->replayed, 7, "replayed");
  EQUAL(comm_of(context)->collectives, 0, "collectives");
  EQUAL(paused(NCCLOTF2_COLL), 5, "paused");
  EQUAL(paused(NCCLOTF2_COLL_API), 0, "paused");
  CHECK(starts_of(NCCLOTF2_GROUP) <= 3, "%u plans were recorded", starts_of(NCCLOTF2_GROUP));
  /* Calls go on counting from where they were. */
  for (uint64_t i = 0; i < 6; i++) {
    const struct operation o = operate(context, false);
    all_or_nothing(&o, i == 2 || i == 3, i);
  }
  EQUAL(comm_of(context)->collectives, 6, "collectives");
  EQUAL(comm_of(context)->replayed, 7, "replayed");
}

static void replayed_messages(void) {
  void *context = begin(ALL, 2, 4);
  void *captured = call(context, NCCLOTF2_P2P_API, NULL, true);
  CHECK(captured, "a captured call was not recorded");
  EQUAL(comm_of(context)->messages, 0, "messages");
  for (uint64_t i = 0; i < 6; i++) {
    struct operation o = {.call = captured};
    carry_out(context, &o, NCCLOTF2_P2P);
    const bool inside = i >= 2 && i < 4;
    CHECK((o.task != NULL) == inside && (o.op != NULL) == inside && (o.channel != NULL) == inside, "replay %llu",
          (unsigned long long)i);
    if (inside) CHECK(o.group, "replay %llu: its plan was not recorded", (unsigned long long)i);
  }
  EQUAL(comm_of(context)->messages, 0, "messages, as the application calls them");
  /* Calls count from where they were. */
  for (uint64_t i = 0; i < 6; i++) {
    const struct operation o = operate(context, true);
    all_or_nothing(&o, i == 2 || i == 3, i);
  }
  EQUAL(comm_of(context)->messages, 6, "messages");
}

/* ---- before v5 there are no calls ---- */

static void *start_v4(void *context, unsigned type, void *parent) {
  struct ncclotf2_descr_v4 d;
  memset(&d, 0, sizeof d);
  d.type = (uint8_t)(1u << type);
  d.parentObj = parent;
  void *handle = (void *)(uintptr_t)0xbadbadULL;
  ncclProfiler_v4.startEvent(context, &handle, &d);
  CHECK(handle != (void *)(uintptr_t)0xbadbadULL, "*eHandle was not written");
  ncclProfiler_v4.stopEvent(handle);
  return handle;
}

static void without_calls(void) {
  host_use_stub("ready", 0xff | NCCLOTF2_RECORD_WINDOW);
  void *context = NULL;
  ncclProfiler_v4.init(&context, &host_mask, NULL, 0x44, 1, 4, 3, host_logger);
  struct ncclotf2_comm *comm = ncclotf2_comm_at(ncclotf2_session.base, 0);
  comm->first = 2, comm->last = 4;
  for (uint64_t i = 0; i < 7; i++) {
    const bool inside = i >= 2 && i < 4;
    void *group = start_v4(context, NCCLOTF2_GROUP, NULL);
    void *task = start_v4(context, NCCLOTF2_COLL, group);
    void *op = start_v4(context, NCCLOTF2_PROXY_OP, task), *step = start_v4(context, NCCLOTF2_PROXY_STEP, op);
    CHECK((group != NULL) == inside && (task != NULL) == inside && (op != NULL) == inside && (step != NULL) == inside,
          "operation %llu", (unsigned long long)i);
  }
  EQUAL(comm->collectives, 7, "collectives");
  EQUAL(comm->replayed, 0, "replayed");
  static const unsigned types[] = {NCCLOTF2_GROUP, NCCLOTF2_COLL, NCCLOTF2_PROXY_OP, NCCLOTF2_PROXY_STEP};
  for (unsigned i = 0; i < 4; i++) {
    EQUAL(paused(types[i]), 5, "paused");
    EQUAL(starts_of(types[i]), 2, "starts");
  }
  const struct ncclotf2_record *list[4];
  EQUAL(edges(list, 4), 3, "edges");
  edge_is(list[0], 0, false, 0);
  edge_is(list[1], 0, true, 2);
  edge_is(list[2], 0, false, 4);
  /* Messages go with the next collective: 7 is outside. */
  CHECK(!start_v4(context, NCCLOTF2_P2P, start_v4(context, NCCLOTF2_GROUP, NULL)), "recorded");
  EQUAL(comm->messages, 1, "messages");
}

/* ---- at run time ---- */

static void changes_at_run_time(void) {
  void *context = begin(ALL, 0, 0);
  struct ncclotf2_comm *comm = comm_of(context);
  static const struct {
    uint64_t first, last, calls, recorded;
  } phases[] = {{0, 0, 5, 0}, {7, UINT64_MAX, 4, 2}, {7, 10, 3, 1}, {20, 22, 2, 0}, {0, UINT64_MAX, 3, 3}, {0, 0, 2, 0}};
  uint64_t ordinal = 0, all = 0;
  for (unsigned phase = 0; phase < sizeof phases / sizeof *phases; phase++) {
    __atomic_store_n(&comm->first, phases[phase].first, __ATOMIC_RELAXED);
    __atomic_store_n(&comm->last, phases[phase].last, __ATOMIC_RELAXED);
    uint64_t recorded = 0;
    for (uint64_t i = 0; i < phases[phase].calls; i++, ordinal++) {
      const struct operation o = operate(context, false);
      all_or_nothing(&o, ordinal >= phases[phase].first && ordinal < phases[phase].last, ordinal);
      recorded += o.call != NULL;
    }
    EQUAL(recorded, phases[phase].recorded, "recorded");
    all += recorded;
  }
  EQUAL(comm->collectives, ordinal, "collectives");
  EQUAL(starts_of(NCCLOTF2_COLL), all, "starts");
  EQUAL(paused(NCCLOTF2_COLL), ordinal - all, "paused");
  static const struct {
    bool inside;
    uint64_t ordinal;
  } want[] = {{false, 0}, {true, 7}, {false, 10}, {true, 14}, {false, 17}};
  const struct ncclotf2_record *list[8];
  EQUAL(edges(list, 8), sizeof want / sizeof *want, "edges");
  for (unsigned i = 0; i < sizeof want / sizeof *want; i++) edge_is(list[i], 1, want[i].inside, want[i].ordinal);
}

/* An operation that was recorded is stopped and followed to its end, whatever the window says by then. */
static void ends_of_what_was_begun(void) {
  void *context = begin(ALL, 0, 1);
  void *begun = host_start(context, host_descr(NCCLOTF2_COLL_API));
  comm_of(context)->last = 0;
  CHECK(!call(context, NCCLOTF2_COLL_API, NULL, false), "recorded");
  stop(begun);
  const struct ncclotf2_record *last = reader_last();
  EQUAL(last->kind, NCCLOTF2_RECORD_STOP, "kind");
  EQUAL(last->handle, (uint64_t)(uintptr_t)begun, "handle");
  struct operation o = {.call = begun};
  carry_out(context, &o, NCCLOTF2_COLL);
  CHECK(o.task && o.op && o.step && o.net && o.channel, "what belongs to a recorded call was not recorded");
}

/* ---- types that are not wanted ---- */

static void silent_handles(void) {
  void *context = begin(BIT(COLL) | BIT(KERNEL_CH), 2, 4);
  for (uint64_t i = 0; i < 6; i++) {
    const bool inside = i >= 2 && i < 4;
    const struct operation o = operate(context, false);
    CHECK((o.task != NULL) == inside, "operation %llu was %s", (unsigned long long)i, o.task ? "recorded" : "not recorded");
    CHECK((o.channel != NULL) == inside, "operation %llu: its channel", (unsigned long long)i);
  }
  EQUAL(starts_of(NCCLOTF2_COLL), 2, "starts");
  EQUAL(starts_of(NCCLOTF2_KERNEL_CH), 2, "starts");
  EQUAL(starts_of(NCCLOTF2_COLL_API), 0, "calls that nobody wants");
  EQUAL(starts_of(NCCLOTF2_GROUP), 0, "plans that nobody wants");
  EQUAL(paused(NCCLOTF2_COLL), 4, "paused");
  EQUAL(paused(NCCLOTF2_COLL_API), 0, "paused");
  EQUAL(filtered(NCCLOTF2_COLL_API), 6, "filtered");
  EQUAL(filtered(NCCLOTF2_GROUP), 6, "filtered");
  EQUAL(filtered(NCCLOTF2_PROXY_OP), 6, "filtered");
  EQUAL(filtered(NCCLOTF2_COLL), 0, "filtered");
  /* What is not recorded has no end in the records either. */
  for (size_t i = 0, count = take_records(); i < count; i++)
    if (records[i]->kind == NCCLOTF2_RECORD_STOP)
      CHECK(records[i]->type == NCCLOTF2_COLL || records[i]->type == NCCLOTF2_KERNEL_CH, "the end of type %u was recorded", records[i]->type);
  EQUAL(host_header()->foreign, 0, "foreign");
}

static void *first_call(void *context) {
  CHECK(!ncclotf2_ring, "this thread has a ring");
  const struct operation o = operate(context, false);
  CHECK(o.task && o.channel, "the operation of this thread's first call was not recorded");
  return NULL;
}

static void silent_at_first(void) {
  void *context = begin(BIT(COLL) | BIT(KERNEL_CH), 0, 10);
  operate(context, false); /* so that the first call there is not an edge */
  pthread_t thread;
  pthread_create(&thread, NULL, first_call, context);
  pthread_join(thread, NULL);
  EQUAL(paused(NCCLOTF2_COLL), 0, "paused");
}

static void types_that_are_none(void) {
  void *context = begin(ALL, 0, UINT64_MAX);
  static const uint64_t strange[] = {0, 3, 0x202, 1ULL << 15, 1ULL << 16, 1ULL << 63, ~0ULL};
  for (unsigned i = 0; i < sizeof strange / sizeof *strange; i++) {
    struct ncclotf2_descr_v6 d = host_descr(0);
    d.type = strange[i];
    d.parentObj = (void *)(uintptr_t)0x1234;
    CHECK(!host_start(context, d), "type 0x%llx has a handle", (unsigned long long)strange[i]);
  }
}

static void full_disk(void) {
  void *context = begin(BIT(COLL_API) | BIT(COLL), 0, 10);
  host_header()->record_mask |= NCCLOTF2_RECORD_FULL;
  CHECK(!call(context, NCCLOTF2_COLL_API, NULL, false), "recorded");
  CHECK(!call(context, NCCLOTF2_GROUP_API, NULL, false), "recorded");
  EQUAL(host_header()->lost[NCCLOTF2_LOSS_DISK][NCCLOTF2_COLL_API], 1, "lost");
  EQUAL(host_header()->lost[NCCLOTF2_LOSS_DISK][NCCLOTF2_GROUP_API], 0, "lost of a type that nobody wants");
  EQUAL(filtered(NCCLOTF2_GROUP_API), 1, "filtered");
  EQUAL(comm_of(context)->collectives, 1, "the call counts all the same");
  EQUAL(comm_of(context)->refused_first, 1, "first call that was refused, plus 1");
  CHECK(!call(context, NCCLOTF2_COLL_API, NULL, false), "recorded");
  EQUAL(comm_of(context)->refused_first, 1, "first call that was refused, plus 1");
  EQUAL(comm_of(context)->refused_last, 2, "last call that was refused, plus 1");
  host_header()->record_mask &= ~NCCLOTF2_RECORD_FULL;
  CHECK(call(context, NCCLOTF2_COLL_API, NULL, false), "not recorded");
  EQUAL(comm_of(context)->refused_last, 2, "last call that was refused, plus 1");
}

/* ---- other processes' communicators (PXN) ---- */

static void foreign_contexts(void) {
  void *ours = begin(ALL, 0, 0);
  void *theirs = (void *)((uintptr_t)ours ^ 1ULL << NCCLOTF2_TAG_SHIFT);
  void *their_event = (void *)(uintptr_t)0x5003000000000010ULL;
  void *op = event(theirs, NCCLOTF2_PROXY_OP, their_event);
  CHECK(op, "the op of an operation that its process records was not recorded");
  CHECK(event(theirs, NCCLOTF2_PROXY_STEP, op), "its step was not recorded");
  CHECK(!event(theirs, NCCLOTF2_PROXY_OP, NULL), "the op of an operation that is not recorded was");
  CHECK(!event(theirs, NCCLOTF2_PROXY_STEP, NULL), "a step of nothing was recorded");
  EQUAL(paused(NCCLOTF2_PROXY_OP), 1, "paused");
  EQUAL(paused(NCCLOTF2_PROXY_STEP), 1, "paused");
  EQUAL(host_header()->lost[NCCLOTF2_LOSS_COMM][NCCLOTF2_PROXY_OP], 0, "lost");
}

/* ---- without windows ---- */

static void no_window(void) {
  host_use_stub("ready", ALL);
  void *context = host_init(0x2222, 4, 3);
  struct ncclotf2_comm *comm = ncclotf2_comm_at(ncclotf2_session.base, 0);
  comm->first = comm->last = 0; /* means nothing as long as the mask does not say so */
  for (uint64_t i = 0; i < 5; i++) {
    const struct operation o = operate(context, i % 2);
    all_or_nothing(&o, true, i);
    /* Without parents, too: they may be refused for other reasons, or not be NCCL's custom. */
    CHECK(event(context, NCCLOTF2_KERNEL_CH, NULL) && event(context, NCCLOTF2_GROUP, NULL), "refused");
  }
  const struct ncclotf2_record *list[1];
  EQUAL(edges(list, 1), 0, "edges");
  for (unsigned type = 0; type < NCCLOTF2_TYPES; type++) EQUAL(paused(type), 0, "paused");
  /* The ordinals count all the same: a window may begin at any time. */
  EQUAL(comm->collectives, 3, "collectives");
  EQUAL(comm->messages, 2, "messages");
}

/* Counters are those of the communicator, whichever thread calls. */
static void *ten_calls(void *context) {
  for (int i = 0; i < 10; i++) operate(context, false);
  return NULL;
}

static unsigned all_edges, all_calls;
static void count_all(uint32_t ring, const struct ncclotf2_record *record, void *unused) {
  (void)ring, (void)unused;
  all_edges += record->kind == NCCLOTF2_RECORD_WINDOW_EDGE;
  all_calls += record->kind == NCCLOTF2_RECORD_START && record->type == NCCLOTF2_COLL_API;
}

static void several_threads(void) {
  void *context = begin(ALL, 15, 35);
  for (int i = 0; i < 5; i++) { /* one after the other, as NCCL wants it */
    pthread_t thread;
    pthread_create(&thread, NULL, ten_calls, context);
    pthread_join(thread, NULL);
  }
  EQUAL(comm_of(context)->collectives, 50, "collectives");
  struct reader *reader = calloc(1, sizeof *reader);
  reader_drain(reader, count_all, NULL);
  free(reader);
  EQUAL(all_calls, 20, "calls recorded");
  EQUAL(all_edges, 3, "edges");
}

TEST_MAIN({"collectives are chosen by their ordinals, with all that belongs to them", collectives},
          {"communicators have windows of their own", communicators_separate},
          {"a group across the edge goes with its first call", group_across_the_edge},
          {"after a window from the beginning no plans are recorded", no_more_plans},
          {"messages count themselves where there is no collective", messages_alone},
          {"messages go with the next collective", messages_between_collectives},
          {"captured calls are always recorded, replays are chosen", captured_and_replayed},
          {"replayed messages are no calls", replayed_messages},
          {"before v5 operations count themselves", without_calls},
          {"a window may change at any time", changes_at_run_time},
          {"what was begun inside is recorded to its end", ends_of_what_was_begun},
          {"calls that nobody wants hand the decision on", silent_handles},
          {"a silent handle on a thread's first call", silent_at_first},
          {"what is no type has no handle", types_that_are_none},
          {"with a full disk only wanted types are lost", full_disk},
          {"of other processes' operations those they record are recorded", foreign_contexts},
          {"without a window everything is recorded, and counted", no_window},
          {"ordinals do not ask for the thread", several_threads})
