/* SPDX-License-Identifier: Apache-2.0
 *
 * The application's own marks: what it says is in the records of the thread that says it, and where nothing is
 * recorded nothing happens.
 */
#include "../mark.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>

#include "../ring.h"
#include "host.h"
#include "test.h"

static void *begin(uint32_t mask) {
  host_use_stub("ready", mask);
  return host_init(1, 2, 0);
}

static const struct ncclotf2_record *records[1 << 14];

/* The marks of this thread so far; returns how many. */
static size_t marks(const struct ncclotf2_record **list, size_t most) {
  const size_t count = reader_own(records, sizeof records / sizeof *records);
  CHECK(count <= sizeof records / sizeof *records, "%zu records", count);
  size_t found = 0;
  for (size_t i = 0; i < count; i++) {
    if (records[i]->kind != NCCLOTF2_RECORD_MARK) continue;
    CHECK(found < most, "more than %zu marks", most);
    list[found++] = records[i];
  }
  return found;
}

static void mark_is(const struct ncclotf2_record *got, enum ncclotf2_mark mark, uint32_t string) {
  struct ncclotf2_record want = {.aux = string};
  host_same_record(got, &want, sizeof want, NCCLOTF2_RECORD_MARK, mark);
}

static void kinds(void) {
  begin(0xf47);
  nccl_otf2_phase_begin("step 1");
  nccl_otf2_phase_begin("forward");
  nccl_otf2_mark("loss is NaN");
  nccl_otf2_phase_end();
  nccl_otf2_phase_end();
  nccl_otf2_mark("");
  const struct ncclotf2_record *list[8];
  EQUAL(marks(list, 8), 6, "marks");
  mark_is(list[0], NCCLOTF2_MARK_PHASE_BEGIN, host_string_id("step 1"));
  mark_is(list[1], NCCLOTF2_MARK_PHASE_BEGIN, host_string_id("forward"));
  mark_is(list[2], NCCLOTF2_MARK_POINT, host_string_id("loss is NaN"));
  mark_is(list[3], NCCLOTF2_MARK_PHASE_END, 0);
  mark_is(list[4], NCCLOTF2_MARK_PHASE_END, 0);
  mark_is(list[5], NCCLOTF2_MARK_POINT, host_string_id(""));
  for (unsigned i = 1; i < 6; i++) CHECK(list[i]->ticks >= list[i - 1]->ticks, "ticks go back");
  CHECK(list[0]->ticks > 0, "no ticks");
}

static void no_text(void) {
  begin(0xf47);
  nccl_otf2_mark(NULL);
  const struct ncclotf2_record *list[4];
  EQUAL(marks(list, 4), 0, "marks of nothing");
}

static void nameless_phase(void) {
  begin(0xf47);
  nccl_otf2_phase_begin("outer");
  nccl_otf2_phase_begin(NULL);
  nccl_otf2_phase_end();
  nccl_otf2_phase_end();
  const struct ncclotf2_record *list[4];
  EQUAL(marks(list, 4), 4, "marks");
  mark_is(list[1], NCCLOTF2_MARK_PHASE_BEGIN, 0);
}

static void long_names(void) {
  begin(0xf47);
  char text[4096];
  memset(text, 'n', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  nccl_otf2_phase_begin(text);
  text[NCCLOTF2_STRING_MAX] = 'x'; /* what differs is cut off */
  nccl_otf2_mark(text);
  text[NCCLOTF2_STRING_MAX - 1] = 'x';
  nccl_otf2_mark(text);
  const struct ncclotf2_record *list[3];
  EQUAL(marks(list, 3), 3, "marks");
  const char *bytes = (const char *)ncclotf2_string_at(ncclotf2_session.base, (list[0]->aux - 1) * 8ULL) +
                      offsetof(struct ncclotf2_string, bytes);
  EQUAL(strlen(bytes), NCCLOTF2_STRING_MAX, "length");
  EQUAL(list[1]->aux, list[0]->aux, "the same text");
  CHECK(list[2]->aux != list[0]->aux, "another text has the same id");
}

static void one_buffer(void) {
  begin(0xf47);
  static char text[32];
  enum { STEPS = 3000 }; /* more than the heap is searched for */
  for (unsigned i = 0; i < STEPS; i++) {
    snprintf(text, sizeof text, "step %u", i);
    nccl_otf2_mark(text);
  }
  static const struct ncclotf2_record *list[STEPS];
  EQUAL(marks(list, STEPS), STEPS, "marks");
  for (unsigned i = 0; i < STEPS; i++) {
    snprintf(text, sizeof text, "step %u", i);
    CHECK(list[i]->aux, "mark %u has no text", i);
    const char *bytes = (const char *)ncclotf2_string_at(ncclotf2_session.base, (list[i]->aux - 1) * 8ULL) +
                        offsetof(struct ncclotf2_string, bytes);
    CHECK(strcmp(bytes, text) == 0, "mark %u is \"%s\"", i, bytes);
  }
}

/* A name that comes again and again does not fill the heap, however many there were before it. */
static void names_again(void) {
  begin(0xf47);
  char text[32];
  for (unsigned i = 0; i < 2000; i++) {
    snprintf(text, sizeof text, "once %u", i);
    nccl_otf2_mark(text);
  }
  nccl_otf2_phase_begin("forward");
  nccl_otf2_phase_begin("backward");
  const uint64_t used = host_header()->string_used;
  for (unsigned i = 0; i < 5000; i++) {
    nccl_otf2_phase_begin("forward");
    nccl_otf2_phase_end();
    nccl_otf2_phase_begin("backward");
    nccl_otf2_phase_end();
  }
  EQUAL(host_header()->string_used, used, "bytes of names");
}

static void before_init(void) {
  nccl_otf2_phase_begin("too early");
  nccl_otf2_mark("too early");
  nccl_otf2_phase_end();
  CHECK(!ncclotf2_session.base && !ncclotf2_ring, "a mark made a session");
  begin(0xf47);
  nccl_otf2_mark("now");
  const struct ncclotf2_record *list[2];
  EQUAL(marks(list, 2), 1, "marks");
}

static void after_finalize(void) {
  void *context = begin(0xf47);
  ncclProfiler_v6.finalize(context);
  nccl_otf2_mark("between");
  host_init(2, 2, 0);
  nccl_otf2_mark("later");
  const struct ncclotf2_record *list[2];
  EQUAL(marks(list, 2), 2, "marks");
}

static void *mark_in_child(void *unused) {
  nccl_otf2_phase_begin("child's thread");
  nccl_otf2_phase_end();
  CHECK(!ncclotf2_ring, "a thread of a child has a ring");
  return unused;
}

static void forked(void) {
  begin(0xf47);
  nccl_otf2_mark("parent");
  const struct ncclotf2_chunk *chunk = ncclotf2_chunk_at(ncclotf2_session.base, 0);
  const uint32_t committed = chunk->committed;
  const uint64_t strings = host_header()->string_used;
  pid_t pid = fork();
  if (pid == 0) {
    nccl_otf2_phase_begin("child");
    nccl_otf2_mark("child");
    nccl_otf2_phase_end();
    pthread_t thread;
    pthread_create(&thread, NULL, mark_in_child, NULL);
    pthread_join(thread, NULL);
    exit(0);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  EQUAL(status, 0, "the child's end");
  EQUAL(chunk->committed, committed, "committed");
  EQUAL(host_header()->string_used, strings, "names");
  nccl_otf2_mark("parent again");
  const struct ncclotf2_record *list[2];
  EQUAL(marks(list, 2), 2, "marks");
}

static void switched_off(void) {
  setenv("NCCL_OTF2_ENABLE", "0", 1);
  host_init(1, 2, 0);
  nccl_otf2_phase_begin("off");
  nccl_otf2_mark("off");
  nccl_otf2_phase_end();
  CHECK(!ncclotf2_session.base, "a session was made");
}

static void nothing_is_recorded(void) {
  host_use_stub("refuse", 0xf47);
  host_init(1, 2, 0);
  nccl_otf2_phase_begin("refused");
  nccl_otf2_mark("refused");
  nccl_otf2_phase_end();
  const struct ncclotf2_record *list[1];
  EQUAL(marks(list, 1), 0, "marks");
  /* On a full disk neither. */
  host_header()->record_mask = 0xf47 | NCCLOTF2_RECORD_FULL;
  nccl_otf2_mark("full");
  EQUAL(marks(list, 1), 0, "marks");
  /* A window is about operations, not about marks. */
  host_header()->record_mask = 0xf47 | NCCLOTF2_RECORD_WINDOW;
  ncclotf2_comm_at(ncclotf2_session.base, 0)->last = 0;
  nccl_otf2_mark("outside");
  EQUAL(marks(list, 1), 1, "marks");
}

enum { THREADS = 8, TIMES = 500 };
static void *many_marks(void *self) {
  char phase[32], text[32];
  for (unsigned i = 0; i < TIMES; i++) {
    snprintf(phase, sizeof phase, "phase %u", i % 7);
    nccl_otf2_phase_begin(phase);
    snprintf(text, sizeof text, "thread %u mark %u", (unsigned)(uintptr_t)self, i % 11);
    nccl_otf2_mark(text);
    nccl_otf2_phase_end();
  }
  return NULL;
}

static struct {
  unsigned seen, owner;
} progress[NCCLOTF2_RING_MAX];

static void check_mark(uint32_t ring, const struct ncclotf2_record *record, void *unused) {
  (void)unused;
  if (record->kind != NCCLOTF2_RECORD_MARK) return;
  static const uint8_t order[] = {NCCLOTF2_MARK_PHASE_BEGIN, NCCLOTF2_MARK_POINT, NCCLOTF2_MARK_PHASE_END};
  const unsigned n = progress[ring].seen % (3 * TIMES);
  progress[ring].seen++;
  EQUAL(record->type, order[n % 3], "order");
  if (record->type == NCCLOTF2_MARK_PHASE_END) return;
  CHECK(record->aux, "no text");
  const char *text = (const char *)ncclotf2_string_at(ncclotf2_session.base, (record->aux - 1) * 8ULL) +
                     offsetof(struct ncclotf2_string, bytes);
  unsigned thread, mark;
  if (record->type == NCCLOTF2_MARK_PHASE_BEGIN) {
    CHECK(sscanf(text, "phase %u", &mark) == 1 && mark == n / 3 % 7, "round %u: %s", n / 3, text);
  } else {
    CHECK(sscanf(text, "thread %u mark %u", &thread, &mark) == 2 && mark == n / 3 % 11, "round %u: %s", n / 3, text);
    if (n < 3) progress[ring].owner = thread; /* a ring may have several owners, one after the other */
    EQUAL(thread, progress[ring].owner, "the marks of one thread are in two rings");
  }
}

static void many_threads(void) {
  begin(0xf47);
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, many_marks, (void *)i) == 0, "no thread");
  for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  struct reader *reader = calloc(1, sizeof *reader);
  reader_drain(reader, check_mark, NULL);
  free(reader);
  unsigned all = 0;
  for (unsigned i = 0; i < NCCLOTF2_RING_MAX; i++) all += progress[i].seen;
  EQUAL(all, THREADS * TIMES * 3, "marks");
}

/* Without room a mark is counted; the end of a phase has the reserve. */
static void no_room(void) {
  setenv("NCCL_OTF2_MEMORY", "4M", 1);
  void *context = begin(0x7fff);
  nccl_otf2_phase_begin("phase");
  while (host_start(context, host_descr(NCCLOTF2_GROUP))) {
  }
  EQUAL(host_header()->lost_marks, 0, "lost marks");
  nccl_otf2_mark("lost");
  nccl_otf2_phase_begin("lost");
  EQUAL(host_header()->lost_marks, 2, "lost marks");
  nccl_otf2_phase_end();
  EQUAL(host_header()->lost_marks, 2, "lost marks");
  mark_is(reader_last(), NCCLOTF2_MARK_PHASE_END, 0);
}

/* The way a program finds them: in the library that is loaded already, and that nobody has made global. */
static void found_by_name(void) {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
  CHECK(length > 0, "who am I");
  path[length] = '\0';
  for (int i = 0; i < 3; i++) *strrchr(path, '/') = '\0'; /* BUILD/plugin/tests/mark_test */
  strcat(path, "/libnccl-profiler-otf2.so");
  CHECK(!dlopen(path, RTLD_LAZY | RTLD_NOLOAD), "loaded before it is");
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  CHECK(library, "%s", dlerror());
  struct ncclotf2_plugin_v6 *plugin = dlsym(library, "ncclProfiler_v6");
  CHECK(plugin, "%s", dlerror());
  setenv("NCCL_OTF2_COLLECTOR", "spool", 1);
  char directory[PATH_MAX];
  snprintf(directory, sizeof directory, "%s/experiment", host_folder());
  setenv("NCCL_OTF2_DIR", directory, 1);
  void *context = NULL;
  plugin->init(&context, 1, &host_mask, NULL, 1, 2, 0, host_logger);

  void *again = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  CHECK(again == library, "%s", dlerror());
  void (*phase_begin)(const char *) = (void (*)(const char *))dlsym(again, "nccl_otf2_phase_begin");
  void (*phase_end)(void) = (void (*)(void))dlsym(again, "nccl_otf2_phase_end");
  void (*mark)(const char *) = (void (*)(const char *))dlsym(again, "nccl_otf2_mark");
  CHECK(phase_begin && phase_end && mark, "%s", dlerror());
  phase_begin("a phase found by name");
  mark("a mark found by name");
  phase_end();
  plugin->finalize(context);
  CHECK(!ncclotf2_session.base, "the marks went to this program's own copy");

  char command[2 * PATH_MAX + 128];
  snprintf(command, sizeof command, "grep -aq 'a phase found by name' '%s'/shards/*.spool && grep -aq 'a mark found by name' '%s'/shards/*.spool",
           directory, directory);
  CHECK(system(command) == 0, "the texts are not in the file");
}

TEST_MAIN({"phases and points are in the thread's records", kinds},
          {"a point without text is none", no_text},
          {"a phase without a name nests all the same", nameless_phase},
          {"long names are cut", long_names},
          {"a buffer may hold another text next time", one_buffer},
          {"names that come again take no room", names_again},
          {"before the first communicator nothing happens", before_init},
          {"between communicators marks are recorded", after_finalize},
          {"in a forked child nothing happens", forked},
          {"switched off, nothing happens", switched_off},
          {"where nothing is recorded there are no marks", nothing_is_recorded},
          {"threads have marks of their own", many_threads},
          {"without room marks are counted, and phases end", no_room},
          {"programs find them by name", found_by_name})
