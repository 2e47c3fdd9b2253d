/* SPDX-License-Identifier: Apache-2.0
 *
 * The substrate plugin in a Score-P measurement, played by tests/fakescorep: what the measurement has a say in.
 */
#include "../measurement.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "../../tests/fakescorep/fakescorep.h"
#include "../ring.h"
#include "host.h"
#include "test.h"

static void (*disable_recording)(void), (*enable_recording)(void);

static void *load(const char *name) {
  char program[PATH_MAX], path[PATH_MAX + 64];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  CHECK(length > 0, "who am I: %s", strerror(errno));
  program[length] = '\0';
  for (int i = 0; i < 3; i++) *strrchr(program, '/') = '\0';
  snprintf(path, sizeof path, "%s/%s", program, name);
  void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  CHECK(library, "%s", dlerror());
  return library;
}

/* Score-P finds the plugin by its name, on the loader's path or loaded already. */
static void measure(const char *substrates) {
  setenv("NCCL_OTF2_SCOREP", "off", 1); /* for itself: nothing is forwarded */
  setenv("SCOREP_SUBSTRATE_PLUGINS", substrates, 1);
  if (*substrates) load(NCCLOTF2_SUBSTRATE_LIBRARY);
  load("fakescorep/pthread/libscorep_measurement.so");
  void *events = load("fakescorep/pthread/libscorep_adapter_user_event.so.11");
  disable_recording = (void (*)(void))dlsym(events, "SCOREP_User_DisableRecording");
  enable_recording = (void (*)(void))dlsym(events, "SCOREP_User_EnableRecording");
}

static void *begin(const char *substrates) {
  measure(substrates);
  host_use_stub("ready", 0x7fff);
  return host_init(0x2222, 4, 3);
}

/* Handles of a call's events, NULL for what is not recorded. */
struct call {
  void *group_api, *coll_api, *coll, *op;
};

static struct call call(void *context) {
  struct call c;
  struct ncclotf2_descr_v6 d = host_descr(NCCLOTF2_GROUP_API);
  d.groupApi.groupDepth = 1;
  c.group_api = host_start(context, d);
  d = host_descr(NCCLOTF2_COLL_API);
  d.parentObj = c.group_api;
  c.coll_api = host_start(context, d);
  ncclProfiler_v6.stopEvent(c.coll_api);
  d = host_descr(NCCLOTF2_COLL);
  d.parentObj = c.coll_api;
  c.coll = host_start(context, d);
  ncclProfiler_v6.stopEvent(c.coll);
  d = host_descr(NCCLOTF2_PROXY_OP);
  d.parentObj = c.coll;
  c.op = host_start(context, d);
  ncclProfiler_v6.stopEvent(c.op);
  ncclProfiler_v6.stopEvent(c.group_api);
  return c;
}

static void check_call(void *context, bool recorded, const char *when) {
  const struct call c = call(context);
  const void *const parts[] = {c.group_api, c.coll_api, c.coll, c.op};
  for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
    CHECK((parts[i] != NULL) == recorded, "%s, part %u of the call was %s", when, i, parts[i] ? "recorded" : "not recorded");
}

enum { MOST = 4096 };
static const struct ncclotf2_record *records[MOST];
static unsigned records_of(unsigned kind, const struct ncclotf2_record **last) {
  const size_t count = reader_own(records, MOST);
  unsigned found = 0;
  for (size_t i = 0; i < count; i++) {
    if (records[i]->kind != kind) continue;
    found++;
    *last = records[i];
  }
  return found;
}

static void pauses(void) {
  void *context = begin("nccl_otf2");
  EQUAL(host_header()->scorep_measured, 1, "measured");
  const struct ncclotf2_record *edge = NULL;
  check_call(context, true, "at the begin");
  EQUAL(records_of(NCCLOTF2_RECORD_WINDOW_EDGE, &edge), 0, "edges");
  disable_recording();
  check_call(context, false, "in the pause");
  EQUAL(records_of(NCCLOTF2_RECORD_WINDOW_EDGE, &edge), 1, "edges");
  EQUAL(edge->arg, 1, "first call that is not recorded");
  EQUAL(edge->flags & NCCLOTF2_EDGE_INSIDE, 0, "direction");
  check_call(context, false, "in the pause");
  enable_recording();
  check_call(context, true, "behind the pause");
  EQUAL(records_of(NCCLOTF2_RECORD_WINDOW_EDGE, &edge), 2, "edges");
  EQUAL(edge->arg, 3, "first call that is recorded again");
  EQUAL(edge->flags & NCCLOTF2_EDGE_INSIDE, NCCLOTF2_EDGE_INSIDE, "direction");
  EQUAL(host_header()->paused[NCCLOTF2_COLL_API], 2, "calls in the pause");
  EQUAL(ncclotf2_comm_at(ncclotf2_session.base, 0)->collectives, 4, "calls counted");
}

/* What a call has begun goes on. */
static void a_pause_within_a_call(void) {
  void *context = begin("nccl_otf2");
  struct ncclotf2_descr_v6 d = host_descr(NCCLOTF2_COLL_API);
  void *coll_api = host_start(context, d);
  disable_recording();
  d = host_descr(NCCLOTF2_COLL);
  d.parentObj = coll_api;
  void *coll = host_start(context, d);
  CHECK(coll, "the operation was not recorded");
  d = host_descr(NCCLOTF2_PROXY_OP);
  d.parentObj = coll;
  CHECK(host_start(context, d), "its transfer was not recorded");
  check_call(context, false, "in the pause");
}

/* A window and a measurement: what is in both. */
static void together_with_a_window(void) {
  measure("nccl_otf2");
  host_use_stub("ready", 0x7fff | NCCLOTF2_RECORD_WINDOW);
  host_init(0x1111, 2, 1);
  host_header()->window_first = 1;
  host_header()->window_last = 3;
  void *context = host_init(0x2222, 4, 3);
  check_call(context, false, "before the window");
  disable_recording();
  check_call(context, false, "in the window and the pause");
  enable_recording();
  check_call(context, true, "in the window");
  check_call(context, false, "behind the window");
}

static void recording_that_begins_off(void) {
  setenv("FAKESCOREP_RECORDING", "off", 1);
  void *context = begin("nccl_otf2");
  check_call(context, false, "at the begin");
  enable_recording();
  check_call(context, true, "later");
  disable_recording(); /* as it was when main began */
}

static void without_the_plugin(void) {
  void *context = begin("");
  EQUAL(host_header()->scorep_measured, 0, "measured");
  EQUAL(ncclotf2_fast.measured, 0, "measured");
  disable_recording();
  check_call(context, true, "in a pause that is none of ours");
}

static uint32_t other_tid;
static void *record_elsewhere(void *unused) {
  (void)unused;
  other_tid = (uint32_t)syscall(SYS_gettid);
  for (int i = 0; i < 3; i++) enable_recording(); /* Score-P gets to know the thread */
  return NULL;
}

static void threads_and_their_locations(void) {
  setenv("FAKESCOREP_RANK", "5", 1);
  void *context = begin("nccl_otf2");
  pthread_t thread;
  pthread_create(&thread, NULL, record_elsewhere, NULL);
  pthread_join(thread, NULL);
  const struct ncclotf2_record *last = NULL;
  EQUAL(records_of(NCCLOTF2_RECORD_SCOREP_THREAD, &last), 0, "threads before the end");
  ncclProfiler_v6.finalize(context);
  EQUAL(records_of(NCCLOTF2_RECORD_SCOREP_THREAD, &last), 2, "threads");
  EQUAL(last->aux, other_tid, "the other's tid");
  EQUAL(last->arg, 1, "its location");
  EQUAL(host_header()->scorep_rank, 5, "rank");
  ncclProfiler_v6.finalize(host_init(0x3333, 4, 3));
  EQUAL(records_of(NCCLOTF2_RECORD_SCOREP_THREAD, &last), 2, "threads, each once");
}

/* Its exit handler may run before ours. */
static void the_measurement_ends(void) {
  void *context = begin("nccl_otf2");
  check_call(context, true, "at the begin");
  CHECK(ncclotf2_measurement->ends, "it does not know whom to tell");
  ((struct fakescorep *)dlsym(RTLD_DEFAULT, "fakescorep"))->end();
  const struct ncclotf2_record *last = NULL;
  EQUAL(records_of(NCCLOTF2_RECORD_SCOREP_THREAD, &last), 1, "threads");
  EQUAL(host_header()->request, host_header()->answered, "requests and answers");
  CHECK(host_header()->request > 0, "nothing was asked to be on disk");
  check_call(context, false, "behind the measurement");
  ncclProfiler_v6.finalize(context);
}

TEST_MAIN({"calls in the measurement's pauses are not recorded, and counted", pauses},
          {"what was called before a pause is recorded to its end", a_pause_within_a_call},
          {"a window and a pause at a time", together_with_a_window},
          {"a measurement that begins with recording off", recording_that_begins_off},
          {"without the substrate plugin the measurement has no say", without_the_plugin},
          {"threads and their locations are recorded at the end", threads_and_their_locations},
          {"with the measurement all is on disk, and nothing is recorded behind it", the_measurement_ends})
