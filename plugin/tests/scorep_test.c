/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of NCCL forwarded to a Score-P measurement, played by tests/fakescorep, which ends the program where the real one
 * would: whatever NCCL does, it does not.
 */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <sys/prctl.h>

#include "../../tests/fakescorep/fakescorep.h"
#include "host.h"
#include "test.h"

static const struct fakescorep *app;
static void (*disable_recording)(void), (*enable_recording)(void);

static const char *file(const char *model, const char *name) {
  static char path[PATH_MAX];
  char program[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  CHECK(length > 0, "who am I: %s", strerror(errno));
  program[length] = '\0';
  for (int i = 0; i < 3; i++) *strrchr(program, '/') = '\0';
  snprintf(path, sizeof path, "%s/fakescorep/%s/%s", program, model, name);
  CHECK(access(path, R_OK) == 0, "%s is not built", path);
  return path;
}

static void *load(const char *model, const char *name) {
  void *library = dlopen(file(model, name), RTLD_NOW | RTLD_GLOBAL);
  CHECK(library, "%s", dlerror());
  return library;
}

/* The program is linked by scorep --user, and uses one of its macros. */
static void instrument(const char *model) {
  app = dlsym(load(model, "libscorep_measurement.so"), "fakescorep");
  void *events = load(model, "libscorep_adapter_user_event.so.11");
  disable_recording = (void (*)(void))dlsym(events, "SCOREP_User_DisableRecording");
  enable_recording = (void (*)(void))dlsym(events, "SCOREP_User_EnableRecording");
}

static void *begin(const char *model) {
  instrument(model);
  host_use_stub("ready", 0xffff);
  return host_init(1, 4, 0);
}

static void check_state(enum ncclotf2_scorep_state state, enum ncclotf2_scorep_model model) {
  CHECK(host_header()->scorep_state == state, "state %u: %s", host_header()->scorep_state, host_header()->scorep_why);
  EQUAL(host_header()->scorep_model, model, "model");
  EQUAL(ncclotf2_fast.scorep, state == NCCLOTF2_SCOREP_ON, "on");
}

/* The stub's, and that calls are forwarded. */
static void check_lines(void) { EQUAL(host_lines, 1, "warnings"); }

static uint64_t kept(enum ncclotf2_scorep_kept reason) { return host_header()->scorep_kept[reason]; }

/* ---- what NCCL does ---- */

static void *start_group(void *context, int depth) {
  struct ncclotf2_descr_v6 d = host_descr(NCCLOTF2_GROUP_API);
  d.groupApi.groupDepth = depth;
  void *group = host_start(context, d);
  ncclProfiler_v6.recordEventState(group, 23, NULL);
  return group;
}

static void end_group(void *group) {
  ncclProfiler_v6.recordEventState(group, 24, NULL);
  ncclProfiler_v6.stopEvent(group);
}

static void *start_call(void *context, void *group, const char *func, size_t count, const char *datatype) {
  const bool p2p = strcmp(func, "Send") == 0 || strcmp(func, "Recv") == 0;
  struct ncclotf2_descr_v6 d = host_descr(p2p ? NCCLOTF2_P2P_API : NCCLOTF2_COLL_API);
  d.parentObj = group;
  if (p2p) {
    d.p2pApi.func = func;
    d.p2pApi.count = count;
    d.p2pApi.datatype = datatype;
  } else {
    d.collApi.func = func;
    d.collApi.count = count;
    d.collApi.datatype = datatype;
  }
  return host_start(context, d);
}

static void append(void *context, void *group, const char *func, size_t count) {
  ncclProfiler_v6.stopEvent(start_call(context, group, func, count, "ncclFloat32"));
}

static void plain(void *context, const char *func, size_t count) {
  void *group = start_group(context, 1);
  append(context, group, func, count);
  end_group(group);
}

/* One call in a function of the application's. */
static void check_call(void *context, const char *func, const char *region) {
  const uint64_t enters = app->enters();
  app->enter("step");
  plain(context, func, 10);
  app->leave("step");
  EQUAL(app->enters(), enters + 1, "enters");
  EQUAL(app->leaves(), enters + 1, "leaves");
  CHECK(strcmp(app->last(), region) == 0, "%s became %s", func, app->last());
}

/* ---- cases ---- */

static void every_operation(void) {
  static const char *const operations[][2] = {
      {"AllReduce", "ncclAllReduce"}, {"Broadcast", "ncclBroadcast"}, {"Reduce", "ncclReduce"}, {"AllGather", "ncclAllGather"},
      {"ReduceScatter", "ncclReduceScatter"}, {"AlltoAll", "ncclAlltoAll"}, {"Gather", "ncclGather"}, {"Scatter", "ncclScatter"},
      {"Send", "ncclSend"}, {"Recv", "ncclRecv"}, {"PutSignal", "ncclOther"}};
  enum { OPERATIONS = sizeof operations / sizeof *operations };
  void *context = begin("none");
  check_state(NCCLOTF2_SCOREP_ON, NCCLOTF2_SCOREP_SINGLE);
  EQUAL(app->regions(), 12, "regions defined at the start");
  for (unsigned i = 0; i < OPERATIONS; i++) check_call(context, operations[i][0], operations[i][1]);
  EQUAL(app->regions(), 12, "regions");
  EQUAL(app->values(), OPERATIONS, "values");
  EQUAL(app->sum(), OPERATIONS * 40, "bytes");
  EQUAL(host_header()->scorep_forwarded, OPERATIONS, "forwarded");
  ncclProfiler_v6.finalize(context);
  check_lines();
  CHECK(host_logged("from the main thread"), "%s", host_line);
}

static void the_span_of_a_plain_call(void) {
  void *context = begin("none");
  void *group = start_group(context, 1);
  EQUAL(app->enters(), 0, "enters before the operation is known");
  void *call = start_call(context, group, "AllReduce", 1000, "ncclFloat16");
  EQUAL(app->depth(), 2, "depth in the call");
  EQUAL(app->sum(), 2000, "bytes");
  ncclProfiler_v6.stopEvent(call);
  EQUAL(app->depth(), 2, "depth when the operation is appended");
  ncclProfiler_v6.recordEventState(group, 24, NULL);
  /* … its kernel is launched */
  void *launch = host_start(context, host_descr(NCCLOTF2_KERNEL_LAUNCH));
  ncclProfiler_v6.stopEvent(launch);
  EQUAL(app->depth(), 2, "depth when it is launched");
  ncclProfiler_v6.stopEvent(group);
  EQUAL(app->depth(), 1, "depth behind the call");
  EQUAL(app->leaves(), 1, "leaves");
  ncclProfiler_v6.stopEvent(group); /* a stale handle */
  ncclProfiler_v6.recordEventState(group, 24, NULL);
  ncclProfiler_v6.stopEvent(call);
  EQUAL(app->leaves(), 1, "leaves");
}

/* The application's code runs between the calls of a group, and one that fails is not stopped. */
static void calls_in_a_group_are_points(void) {
  void *context = begin("pthread");
  app->enter("outer");
  void *group = start_group(context, 2);
  EQUAL(app->enters(), 0, "a group is no region");
  app->enter("inner");
  append(context, group, "AllReduce", 10);
  EQUAL(app->leaves(), 1, "leaves");
  start_call(context, group, "Send", 10, "ncclInt8");
  EQUAL(app->leaves(), 2, "leaves");
  app->leave("inner");
  app->leave("outer"); /* it ends the group elsewhere */
  app->enter("other");
  end_group(group);
  app->leave("other");
  EQUAL(app->enters(), 2, "enters");
  EQUAL(app->sum(), 50, "bytes");
}

/* Names of what NCCL makes sends and receives of. */
static void series(void) {
  void *context = begin("none");
  static const struct {
    unsigned sends, receives;
    const char *region;
    uint64_t bytes;
  } cases[] = {{4, 4, "ncclAlltoAll", 160}, {1, 4, "ncclGather", 160}, {4, 1, "ncclScatter", 160}, {1, 0, "ncclSend", 40},
               {0, 1, "ncclRecv", 40},      {2, 2, "ncclSendRecv", 80}, {1, 1, "ncclSendRecv", 40}};
  uint64_t sum = 0;
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    void *group = start_group(context, 1);
    for (unsigned k = 0; k < cases[i].sends; k++) append(context, group, "Send", 10);
    for (unsigned k = 0; k < cases[i].receives; k++) append(context, group, "Recv", 10);
    EQUAL(app->enters(), i, "enters before all is known");
    end_group(group);
    EQUAL(app->leaves(), i + 1, "leaves");
    CHECK(strcmp(app->last(), cases[i].region) == 0, "%u sends, %u receives became %s", cases[i].sends, cases[i].receives, app->last());
    EQUAL(app->sum(), sum += cases[i].bytes, "bytes");
  }
  /* Without the state it is told when it ends. */
  void *group = start_group(context, 1);
  append(context, group, "Recv", 10);
  ncclProfiler_v6.stopEvent(group);
  CHECK(strcmp(app->last(), "ncclRecv") == 0, "it became %s", app->last());
  EQUAL(app->leaves(), sizeof cases / sizeof *cases + 1, "leaves");
}

static void sizes(void) {
  static const struct {
    const char *datatype;
    uint64_t bytes;
  } cases[] = {{"ncclInt8", 1},    {"ncclInt32", 4},   {"ncclUint32", 4},   {"ncclInt64", 8},      {"ncclUint64", 8},    {"ncclFloat16", 2},
               {"ncclFloat32", 4}, {"ncclFloat64", 8}, {"ncclBfloat16", 2}, {"ncclFloat8e4m3", 1}, {"ncclFloat8e5m2", 1}, {"ncclUint8", 1}};
  void *context = begin("none");
  uint64_t sum = 0;
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    void *group = start_group(context, 1);
    start_call(context, group, "AllReduce", 100, cases[i].datatype);
    end_group(group);
    EQUAL(app->sum(), sum += 100 * cases[i].bytes, cases[i].datatype);
  }
  const uint64_t values = app->values();
  static const char *const unknown[] = {"Unknown", NULL};
  for (unsigned i = 0; i < 2; i++) {
    void *group = start_group(context, 1);
    start_call(context, group, i ? "AllReduce" : "Send", 100, unknown[i]);
    end_group(group);
  }
  EQUAL(app->values(), values, "values of unknown sizes");
  EQUAL(app->leaves(), sizeof cases / sizeof *cases + 2, "leaves");
}

/* NCCL does not get out of a call without the stop; where a handle was lost nothing is left open for longer than that. */
static void open_calls(void) {
  void *context = begin("none");
  start_call(context, start_group(context, 1), "AllReduce", 1, "ncclInt8");
  EQUAL(app->depth(), 2, "depth");
  plain(context, "Broadcast", 1);
  EQUAL(app->depth(), 1, "depth");
  start_call(context, start_group(context, 1), "AllReduce", 1, "ncclInt8");
  start_group(context, 2);
  EQUAL(app->depth(), 1, "depth");
  EQUAL(app->enters(), 3, "enters");
  /* A call that names another group, and more than one operation in a call. */
  void *group = start_group(context, 1);
  append(context, NULL, "Reduce", 1);
  EQUAL(app->depth(), 1, "depth");
  append(context, group, "AllGather", 1);
  append(context, group, "AllGather", 1);
  append(context, group, "Send", 1);
  EQUAL(app->depth(), 2, "depth");
  end_group(group);
  EQUAL(app->depth(), 1, "depth");
  EQUAL(app->leaves(), app->enters(), "leaves");
}

/* ---- who calls ---- */

static void *init_from(const char *library) {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
  CHECK(length > 0, "who am I: %s", strerror(errno));
  path[length] = '\0';
  strcpy(strrchr(path, '/') + 1, library);
  void *nccl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  CHECK(nccl, "%s", dlerror());
  int (*init)(struct ncclotf2_plugin_v6 *, void **, int *) =
      (int (*)(struct ncclotf2_plugin_v6 *, void **, int *))dlsym(nccl, "fake_init_v6");
  void *context = NULL;
  EQUAL(init(&ncclProfiler_v6, &context, &host_mask), 0, "init");
  return context;
}

/* Its functions begin and end between the callbacks, and tell Score-P. */
static void instrumented(const char *library, uint64_t depth) {
  instrument("none");
  host_use_stub("ready", 0xffff);
  void *context = init_from(library);
  check_state(NCCLOTF2_SCOREP_ON, NCCLOTF2_SCOREP_SINGLE);
  void *group = start_group(context, 1);
  append(context, group, "AllReduce", 10);
  EQUAL(app->enters(), 1, "enters");
  EQUAL(app->depth(), depth, "depth in the call");
  end_group(group);
  group = start_group(context, 1);
  append(context, group, "Send", 10);
  append(context, group, "Recv", 10);
  append(context, group, "Recv", 10);
  ncclProfiler_v6.recordEventState(group, 24, NULL);
  EQUAL(app->depth(), depth, "depth while it launches");
  ncclProfiler_v6.stopEvent(group);
  CHECK(strcmp(app->last(), "ncclGather") == 0, "it became %s", app->last());
  EQUAL(app->enters(), 2, "enters");
  EQUAL(app->leaves(), 2, "leaves");
}
static void instrumented_nccl(void) { instrumented("libnccl-instrumented.so", 1); }
static void instrumented_nccl_without_plt(void) { instrumented("libnccl-instrumented-noplt.so", 1); }
static void nccl_as_ever(void) { instrumented("libnccl.so.2", 2); }

/* ---- threads ---- */

static void *call_often(void *context) {
  enum { CALLS = 500 };
  for (int i = 0; i < CALLS; i++) {
    plain(context, "AllReduce", 1);
    void *group = start_group(context, 2);
    append(context, group, "Send", 1);
    append(context, group, "Recv", 1);
    end_group(group);
  }
  return NULL;
}

static void threads_call(void *context) {
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, call_often, context);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

static void all_threads(void) {
  void *context = begin("pthread");
  check_state(NCCLOTF2_SCOREP_ON, NCCLOTF2_SCOREP_CREATE_WAIT);
  threads_call(context);
  call_often(context);
  EQUAL(app->enters(), 5 * 1500, "enters");
  EQUAL(app->leaves(), 5 * 1500, "leaves");
  EQUAL(app->locations(), 5, "threads");
  EQUAL(host_header()->scorep_forwarded, 5 * 1500, "forwarded");
  ncclProfiler_v6.finalize(context);
  check_lines();
}

static void main_thread_only(const char *name, enum ncclotf2_scorep_model model) {
  void *context = begin(name);
  check_state(NCCLOTF2_SCOREP_ON, model);
  threads_call(context);
  EQUAL(app->enters(), 0, "enters");
  EQUAL(kept(NCCLOTF2_SCOREP_KEPT_THREAD), 4 * 1500, "calls from other threads");
  call_often(context);
  EQUAL(app->leaves(), 1500, "leaves");
  ncclProfiler_v6.finalize(context);
  CHECK(host_logged("6000 from other threads than the main one (link the program by scorep --thread=pthread)"), "%s", host_line);
}
static void main_thread_only_none(void) { main_thread_only("none", NCCLOTF2_SCOREP_SINGLE); }
static void main_thread_only_omp(void) { main_thread_only("omp", NCCLOTF2_SCOREP_FORK_JOIN); }

/* NCCL initializes communicators on threads of its own. */
static void *init_elsewhere(void *result) {
  *(void **)result = host_init(1, 4, 0);
  return NULL;
}

static void handles_are_made_where_they_may_be(void) {
  instrument("omp");
  host_use_stub("ready", 0xffff);
  void *context = NULL;
  pthread_t thread;
  pthread_create(&thread, NULL, init_elsewhere, &context);
  pthread_join(thread, NULL);
  EQUAL(app->regions(), 0, "regions");
  check_call(context, "AllReduce", "ncclAllReduce");
  EQUAL(app->regions(), 12, "regions");
}

static void *init_and_call(void *comm_id) {
  void *context = host_init((uint64_t)(uintptr_t)comm_id, 4, 0);
  for (int i = 0; i < 10; i++) plain(context, "AllReduce", 1);
  return NULL;
}

static void threads_that_begin_together(void) {
  setenv("FAKESCOREP_MEMORY", "64", 1);
  instrument("pthread");
  host_use_stub("ready", 0xffff);
  pthread_t threads[8];
  for (uintptr_t i = 0; i < 8; i++) pthread_create(&threads[i], NULL, init_and_call, (void *)(i + 1));
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
  EQUAL(app->leaves(), 80, "leaves");
  EQUAL(app->regions(), 12, "regions");
}

/* Each thread that Score-P gets to know takes of its memory for good, and it ends the program when there is none left. */
static void *call_once(void *context) {
  plain(context, "AllReduce", 1);
  plain(context, "AllReduce", 1);
  return NULL;
}

static void many_threads_call(void *context, int count, bool together) {
  pthread_t threads[100];
  for (int i = 0; i < count; i++) {
    pthread_create(&threads[i], NULL, call_once, context);
    if (!together) pthread_join(threads[i], NULL);
  }
  for (int i = 0; together && i < count; i++) pthread_join(threads[i], NULL);
}

/* 1.25 MiB for each, and a traced one takes 1.1. */
static void more_threads_than_memory(void) {
  void *context = begin("pthread");
  many_threads_call(context, 40, false);
  EQUAL(app->locations(), 12, "threads");
  EQUAL(app->leaves(), 22, "leaves");
  EQUAL(kept(NCCLOTF2_SCOREP_KEPT_MEMORY), 2 * 29, "calls for which there is no memory");
  plain(context, "AllReduce", 1);
  EQUAL(app->leaves(), 23, "leaves");
  ncclProfiler_v6.finalize(context);
  CHECK(host_logged("58 from new threads for which it had no memory (raise SCOREP_TOTAL_MEMORY"), "%s", host_line);
}

static void no_new_threads_after_a_flush(void) {
  void *context = begin("pthread");
  many_threads_call(context, 2, false);
  app->flush();
  many_threads_call(context, 3, false);
  plain(context, "AllReduce", 1);
  EQUAL(app->locations(), 3, "threads");
  EQUAL(app->leaves(), 5, "leaves");
  EQUAL(kept(NCCLOTF2_SCOREP_KEPT_MEMORY), 6, "calls of new threads");
}

static void many_threads_that_begin_together(void) {
  setenv("FAKESCOREP_MEMORY", "64", 1);
  void *context = begin("pthread");
  many_threads_call(context, 100, true);
  CHECK(app->locations() > 20 && app->locations() <= 51, "%llu threads", (unsigned long long)app->locations());
  /* Of a thread's two calls the first may have been one too many at a time. */
  CHECK(app->leaves() >= app->locations() - 1 && app->leaves() <= 2 * (app->locations() - 1), "%llu leaves", (unsigned long long)app->leaves());
  EQUAL(app->leaves() + kept(NCCLOTF2_SCOREP_KEPT_MEMORY), 200, "calls");
}

static void memory_that_is_not_stated(void) {
  void *context = begin("lean");
  check_state(NCCLOTF2_SCOREP_ON, NCCLOTF2_SCOREP_CREATE_WAIT);
  many_threads_call(context, 40, false);
  EQUAL(app->locations(), 1, "threads");
  EQUAL(kept(NCCLOTF2_SCOREP_KEPT_MEMORY), 80, "calls");
  check_call(context, "AllReduce", "ncclAllReduce");
}

/* ---- the measurement's phases ---- */

static void before_and_behind_the_measurement(void) {
  setenv("FAKESCOREP_PHASE", "-1", 1);
  void *context = begin("none");
  check_state(NCCLOTF2_SCOREP_ON, NCCLOTF2_SCOREP_SINGLE);
  plain(context, "AllReduce", 1); /* would begin it */
  EQUAL(kept(NCCLOTF2_SCOREP_KEPT_OUTSIDE), 1, "calls before");
  EQUAL(app->regions(), 0, "regions");
  /* … within a call */
  void *group = start_group(context, 1);
  append(context, group, "AllReduce", 1);
  app->set_phase(0);
  end_group(group);
  EQUAL(app->enters() + app->leaves(), 0, "events");
  check_call(context, "AllReduce", "ncclAllReduce");
  group = start_group(context, 1);
  append(context, group, "AllReduce", 1);
  app->set_phase(1);
  end_group(group);
  plain(context, "AllReduce", 1);
  EQUAL(app->ignored(), 0, "calls behind");
  EQUAL(kept(NCCLOTF2_SCOREP_KEPT_OUTSIDE), 3, "calls outside");
  EQUAL(host_header()->scorep_forwarded, 2, "forwarded");
  ncclProfiler_v6.finalize(context);
  CHECK(host_logged("3 while Score-P did not measure"), "%s", host_line);
}

static void pauses(void) {
  void *context = begin("none");
  disable_recording();
  plain(context, "AllReduce", 1);
  void *group = start_group(context, 1);
  append(context, group, "AllReduce", 1);
  enable_recording(); /* by another thread: what was not begun is not ended */
  end_group(group);
  EQUAL(app->enters() + app->leaves(), 0, "events");
  EQUAL(kept(NCCLOTF2_SCOREP_KEPT_PAUSED), 2, "calls in the pause");
  check_call(context, "AllReduce", "ncclAllReduce");
}

static void a_forked_child_tells_nothing(void) {
  void *context = begin("pthread");
  void *group = start_group(context, 1);
  append(context, group, "AllReduce", 1);
  pid_t pid = fork();
  if (pid == 0) {
    end_group(group);
    plain(context, "AllReduce", 1);
    EQUAL(app->enters(), 1, "enters");
    EQUAL(app->leaves(), 0, "leaves");
    _exit(0);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  EQUAL(status, 0, "child");
  end_group(group);
  EQUAL(app->leaves(), 1, "leaves");
}

/* A call that is not recorded has no handle, and its end is not told. */
static void what_is_not_recorded(void) {
  void *context = begin("none");
  host_header()->record_mask = 0xffff | NCCLOTF2_RECORD_FULL;
  struct ncclotf2_descr_v6 d = host_descr(NCCLOTF2_GROUP_API);
  d.groupApi.groupDepth = 1;
  CHECK(!host_start(context, d), "recorded");
  CHECK(!start_call(context, NULL, "AllReduce", 1, "ncclInt8"), "recorded");
  host_header()->record_mask = 0xffff & ~(1u << NCCLOTF2_GROUP_API);
  EQUAL(app->enters(), 0, "enters");
  /* Without groups calls are points. */
  ncclProfiler_v6.stopEvent(start_call(context, NULL, "AllReduce", 1, "ncclInt8"));
  EQUAL(app->leaves(), 1, "leaves");
  EQUAL(app->depth(), 1, "depth");
}

static void two_lives(void) {
  void *context = begin("none");
  check_call(context, "AllReduce", "ncclAllReduce");
  ncclProfiler_v6.finalize(context);
  context = host_init(2, 4, 0);
  check_call(context, "AllReduce", "ncclAllReduce");
  ncclProfiler_v6.finalize(context);
  EQUAL(app->regions(), 12, "regions");
  check_lines();
}

/* ---- why not ---- */

/* Each in a process of its own: what there is of Score-P, a setting, and what the plugin makes of it; without a line
 * it says nothing. */
static void expect(const char *model, bool events, const char *setting, uint32_t mask, enum ncclotf2_scorep_state state, const char *line) {
  pid_t pid = fork();
  if (pid == 0) {
    if (*model) app = dlsym(load(model, "libscorep_measurement.so"), "fakescorep");
    if (events) load(model, "libscorep_adapter_user_event.so.11");
    setenv("NCCL_OTF2_SCOREP", setting, 1);
    host_use_stub("ready", mask);
    void *context = host_init(1, 4, 0);
    EQUAL(host_header()->scorep_state, state, "state");
    EQUAL(ncclotf2_fast.scorep, state == NCCLOTF2_SCOREP_ON, "on");
    CHECK(line ? host_logged(line) : !host_logged("Score-P") && !host_logged("SCOREP"), "the last line is %s", host_line);
    EQUAL(*host_header()->scorep_why != '\0', state > NCCLOTF2_SCOREP_ON, "a reason");
    plain(context, "AllReduce", 1);
    if (app && state != NCCLOTF2_SCOREP_ON) EQUAL(app->enters() + app->regions() + app->ignored(), 0, "calls");
    ncclProfiler_v6.finalize(context);
    exit(0);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  CHECK(status == 0, "%s, NCCL_OTF2_SCOREP=%s", model, setting);
}

static void reasons(void) {
  char preload[PATH_MAX + 64];
  expect("", false, "auto", 0xffff, NCCLOTF2_SCOREP_OFF, NULL);
  expect("", false, "", 0xffff, NCCLOTF2_SCOREP_OFF, NULL);
  expect("", false, "on", 0xffff, NCCLOTF2_SCOREP_ABSENT, "static link it with -rdynamic");
  expect("", false, "maybe", 0xffff, NCCLOTF2_SCOREP_OFF, NULL); /* the collector says what is wrong with it */
  expect("none", true, "off", 0xffff, NCCLOTF2_SCOREP_OFF, NULL);
  expect("none", true, "on", 0xffff, NCCLOTF2_SCOREP_ON, "forwarded to Score-P, from the main thread");
  expect("pthread", true, "auto", 0xffff, NCCLOTF2_SCOREP_ON, "forwarded to Score-P, from all threads");
  snprintf(preload, sizeof preload, "LD_PRELOAD=%s", file("none", "libscorep_adapter_user_event.so.11"));
  expect("none", false, "auto", 0xffff, NCCLOTF2_SCOREP_UNUSABLE, preload);
  expect("none", false, "off", 0xffff, NCCLOTF2_SCOREP_OFF, NULL);
  expect("no-user", false, "auto", 0xffff, NCCLOTF2_SCOREP_UNUSABLE, "without user regions; link it by scorep --user");
  expect("old", true, "auto", 0xffff, NCCLOTF2_SCOREP_UNUSABLE, "does not report its state");
  expect("none", true, "auto", 0x0040, NCCLOTF2_SCOREP_NO_CALLS, "NCCL_OTF2_EVENTS must have CollApi and P2pApi");
  setenv("SCOREP_ENABLE_TRACING", "true", 1);
  expect("", false, "auto", 0xffff, NCCLOTF2_SCOREP_ABSENT, "instrument the program (scorep --user)");
  expect("", false, "off", 0xffff, NCCLOTF2_SCOREP_OFF, NULL);
}

static void nccl_without_calls(void) {
  instrument("none");
  host_use_stub("ready", 0xffff);
  void *context = NULL;
  ncclProfiler_v4.init(&context, &host_mask, "c", 1, 1, 4, 0, host_logger);
  check_state(NCCLOTF2_SCOREP_NO_CALLS, NCCLOTF2_SCOREP_SINGLE);
  CHECK(host_logged("NCCL before 2.28 does not tell of calls"), "%s", host_line);
  ncclProfiler_v4.finalize(context);
}

/* ---- the fake itself ---- */

/* What a program calls that uses the macros. */
static void (*region_init)(void **, const char **, uint32_t *, const char *, uint32_t, const char *, uint32_t);
static void (*region_enter)(void *), (*region_end)(void *);

static void *region(void) {
  void *handle = NULL;
  region_init(&handle, NULL, NULL, "r", 1, "", 0);
  return handle;
}

static void *enter_and_end(void *handle) {
  region_enter(handle);
  region_end(handle);
  return NULL;
}
static void second_thread(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, enter_and_end, region());
  pthread_join(thread, NULL);
}
static void *only_enter(void *handle) {
  region_enter(handle);
  return NULL;
}
static void thread_ends(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, only_enter, region());
  pthread_join(thread, NULL);
}
static void end_elsewhere(void) {
  void *handle = region();
  thread_ends();
  region_end(handle);
}
static void left_open(void) {
  app->enter("f");
  region_enter(region());
  app->leave("f");
}
static void open_at_the_end(void) { region_enter(region()); }
static void not_begun(void) { region_end(region()); }
static void enter_null(void) { region_enter(NULL); }
static void end_null(void) { region_end(NULL); }
static void call_before(void) {
  app->set_phase(-1);
  region();
}
static void call_behind(void) {
  void *handle = region();
  app->set_phase(1);
  region_end(handle);
  region_enter(NULL);
  EQUAL(app->ignored(), 2, "ignored");
}
static void switched_off(void) {
  void *handle = region();
  region_enter(handle);
  disable_recording();
  region_end(handle);
  enable_recording();
}
static void switched_on(void) {
  void *handle = region();
  disable_recording();
  region_enter(handle);
  enable_recording();
  region_end(handle);
}
static void within_a_pause(void) {
  disable_recording();
  enter_and_end(region());
  enable_recording();
  EQUAL(app->enters(), 0, "enters");
}

static void many_threads(void) {
  for (int i = 0; i < 20; i++) second_thread();
}

static void thread_after_a_flush(void) {
  app->flush();
  second_thread();
}

/* It dies where the real one does, so that what does not make it die is right. */
static void it_dies(void) {
  static const struct {
    const char *model;
    void (*act)(void);
    bool dies;
  } cases[] = {{"none", second_thread, true},   {"omp", second_thread, true},  {"pthread", second_thread, false},
               {"pthread", thread_ends, false}, {"pthread", end_elsewhere, true}, {"pthread", left_open, true},
               {"pthread", many_threads, true},   {"pthread", thread_after_a_flush, true},
               {"none", open_at_the_end, true}, {"none", not_begun, true},     {"none", enter_null, true},
               {"none", end_null, false},       {"none", call_before, true},   {"none", call_behind, false},
               {"none", switched_off, true},    {"none", switched_on, true},   {"none", within_a_pause, false}};
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_DUMPABLE, 0);
      instrument(cases[i].model);
      void *events = load(cases[i].model, "libscorep_adapter_user_event.so.11");
      *(void **)&region_init = dlsym(events, "SCOREP_User_RegionInit");
      *(void **)&region_enter = dlsym(events, "SCOREP_User_RegionEnter");
      *(void **)&region_end = dlsym(events, "SCOREP_User_RegionEnd");
      cases[i].act();
      exit(0);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    CHECK(cases[i].dies ? WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT : status == 0, "case %u: status %#x", i, status);
  }
}

TEST_MAIN({"every operation has its region and its bytes", every_operation},
          {"a plain call is a region until NCCL leaves it", the_span_of_a_plain_call},
          {"calls within a group are points", calls_in_a_group_are_points},
          {"sends and receives of one call have its name", series},
          {"bytes are counted by the datatype", sizes},
          {"what NCCL leaves open is closed", open_calls},
          {"NCCL that is instrumented itself leaves nothing open between callbacks", instrumented_nccl},
          {"… also where it calls through a table of addresses", instrumented_nccl_without_plt},
          {"other NCCL does", nccl_as_ever},
          {"all threads, with the pthread model", all_threads},
          {"the main thread only, without threads", main_thread_only_none},
          {"the main thread only, with OpenMP", main_thread_only_omp},
          {"regions are defined where that is allowed", handles_are_made_where_they_may_be},
          {"threads that begin together miss nothing", threads_that_begin_together},
          {"no more threads than Score-P has memory for", more_threads_than_memory},
          {"… also of threads that begin together", many_threads_that_begin_together},
          {"no new threads when Score-P has flushed its trace", no_new_threads_after_a_flush},
          {"a Score-P that does not tell its memory gets no more threads", memory_that_is_not_stated},
          {"nothing is told before and behind the measurement", before_and_behind_the_measurement},
          {"nothing is told in pauses", pauses},
          {"a forked child tells nothing", a_forked_child_tells_nothing},
          {"what is not recorded is not forwarded", what_is_not_recorded},
          {"communicators that come again", two_lives},
          {"where it cannot be one line says why", reasons},
          {"NCCL that does not tell of calls", nccl_without_calls},
          {"the fake dies where the real one does", it_dies})
