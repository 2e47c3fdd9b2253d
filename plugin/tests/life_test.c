/* SPDX-License-Identifier: Apache-2.0
 *
 * From the first init to the end of the process: the mask, several lives, threads, forks, limits.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "../clock.h"
#include "../consumer.h"
#include "../handle.h"
#include "../settings.h"
#include "host.h"
#include "sandbox.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* The clock of NCCL_OTF2_CLOCK=host; -rdynamic exports it. */
static uint64_t host_time = 5000;
static uint64_t host_now(void) { return __atomic_add_fetch(&host_time, 10, __ATOMIC_RELAXED); }
__attribute__((visibility("default"))) struct ncclotf2_host_clock ncclotf2_host_clock = {
    .now = host_now, .anchor = {.ticks = 1000, .raw = 2000, .mono = 3000, .real = 4000}};

static void stop_all(void *context) {
  EQUAL(ncclProfiler_v6.finalize(context), 0, "finalize");
}

static void mask_is_written_once(void) {
  host_use_stub("ready", 0x8f47); /* bit 15 is no type of v6, and another one in RCCL's */
  host_mask = 0;
  void *first = host_init(1, 2, 0);
  EQUAL(host_mask, 0xf47, "mask after the first init");
  host_mask = 0x40; /* paused by somebody */
  void *second = host_init(2, 2, 0);
  EQUAL(host_mask, 0x40, "mask after the second init");
  EQUAL(host_header()->live_comms, 2, "live communicators");
  /* A second libnccl in the process has a mask of its own. */
  int other_mask = 0;
  void *context = NULL;
  ncclProfiler_v6.init(&context, 3, &other_mask, NULL, 1, 2, 0, host_logger);
  EQUAL(other_mask, 0xf47, "mask of the other libnccl");
  EQUAL(host_mask, 0x40, "mask");
  stop_all(first);
  stop_all(first); /* twice is once */
  EQUAL(host_header()->live_comms, 2, "live communicators");
  stop_all(second);
  stop_all(NULL); /* NCCL 2.30 and 2.31 count a failed init twice; no context of ours goes with it */
  stop_all((void *)(uintptr_t)0x7001020304050607);
  EQUAL(host_header()->live_comms, 1, "live communicators");
  stop_all(context);
  EQUAL(host_header()->live_comms, 0, "live communicators");
  EQUAL(host_mask, 0x40, "mask after the last finalize");
  host_init(4, 2, 0);
  EQUAL(host_mask, 0xf47, "mask in the next life");
  CHECK(host_logged("stub: ready"), "the collector's message was not printed");
}

static void *init_as(unsigned version, uint64_t id, int *mask) {
  void *context = NULL;
  if (version == 6)
    ncclProfiler_v6.init(&context, id, mask, NULL, 1, 2, 0, host_logger);
  else
    ncclProfiler_v7.init(&context, id, mask, NULL, 1, 2, 0, host_logger);
  return context;
}

/* GPU and host count Broadcasts differently from 2.29 on: NCCL waits for ever then, or reads freed memory. */
static void stamps_that_kill(void) {
  enum { REST = 0xf07, CHANNELS = 1 << NCCLOTF2_KERNEL_CH, PHASES = 1 << NCCLOTF2_KERNEL_PHASE, ALL = REST | CHANNELS | PHASES };
  static const struct {
    unsigned version;
    const char *setting, *rearch; /* NULL: unset */
    uint32_t asked;
  } cases[] = {
      {6, NULL, NULL, REST},
      {6, "", NULL, REST},
      {6, "1", NULL, REST},
      {6, "99999999999999999999", NULL, REST},
      {6, "0x0", NULL, REST | CHANNELS},
      {6, "off", NULL, REST | CHANNELS},
      {6, "0", NULL, REST | CHANNELS},
      {6, NULL, "1", REST}, /* that way of enqueueing came with 2.31 */
      {7, NULL, NULL, REST},
      {7, "1", NULL, REST},
      {7, "0", NULL, ALL},
      {7, NULL, "0", REST},
      {7, NULL, "", REST},
      {7, NULL, "on", REST},
      {7, NULL, "99999999999999999999", REST},
      {7, NULL, "1", ALL},
  };
  host_use_stub("ready", ALL);
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (cases[i].setting)
      setenv("NCCL_ALLGATHERV_ENABLE", cases[i].setting, 1);
    else
      unsetenv("NCCL_ALLGATHERV_ENABLE");
    if (cases[i].rearch)
      setenv("NCCL_ENQUEUE_REARCH_ENABLE", cases[i].rearch, 1);
    else
      unsetenv("NCCL_ENQUEUE_REARCH_ENABLE");
    const pid_t child = fork();
    if (child == 0) {
      const bool asked = cases[i].asked & CHANNELS;
      int mask = 0;
      init_as(cases[i].version, 1, &mask);
      EQUAL((uint32_t)mask, cases[i].asked, "mask");
      EQUAL(host_header()->withheld, asked ? 0 : (uint32_t)(CHANNELS | PHASES), "withheld");
      EQUAL(host_logged("NCCL_ALLGATHERV_ENABLE=0"), !asked, "said");
      mask = 0;
      init_as(cases[i].version, 2, &mask);
      EQUAL(mask, 0, "mask after the second init");
      _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "case %u", i);
  }
}

static struct ncclotf2_record mask_changes[4];
static unsigned mask_change_count;
static void note_mask(uint32_t ring, const struct ncclotf2_record *record, void *unused) {
  (void)ring, (void)unused;
  if (record->kind == NCCLOTF2_RECORD_MASK) mask_changes[mask_change_count++ % 4] = *record;
}

/* RAS (NCCL 2.31) sets the word for the whole job; callbacks of what had begun still come. */
static void mask_changed_by_ras(void) {
  host_use_stub("ready", 0xf47);
  int *mask = host_guarded(sizeof *mask);
  *mask = 0;
  void *context = NULL, *handle = NULL;
  EQUAL(ncclProfiler_v7.init(&context, 1, mask, NULL, 1, 2, 0, host_logger), 0, "init");
  EQUAL(*mask, 0xf47, "mask");
  struct ncclotf2_descr_v7 call = {.type = 1ULL << NCCLOTF2_COLL_API};
  *mask |= 0x8000; /* NCCL's own doing: nothing is missing by it */
  ncclProfiler_v7.startEvent(context, &handle, &call);
  *mask = 0;
  ncclProfiler_v7.stopEvent(handle);
  ncclProfiler_v7.stopEvent(handle);
  *mask = 0x47;
  ncclProfiler_v7.startEvent(context, &handle, &call);
  struct reader *reader = calloc(1, sizeof *reader);
  reader_drain(reader, note_mask, NULL);
  free(reader);
  EQUAL(mask_change_count, 2, "changes");
  EQUAL(mask_changes[0].aux, 0, "mask");
  EQUAL(mask_changes[0].arg, 0xf47, "mask before");
  EQUAL(mask_changes[1].aux, 0x47, "mask");
  EQUAL(mask_changes[1].arg, 0, "mask before");
  ncclProfiler_v7.finalize(context);
  munmap((void *)((uintptr_t)mask & ~4095UL), 4096); /* libnccl is gone */
  ncclProfiler_v7.stopEvent(handle);
  ncclProfiler_v7.startEvent(context, &handle, &call);
}

/* Stamps that RAS switches on make 2.31 count otherwise than the GPU has. Its "all" does that, asked for by us or not. */
static void stamps_switched_on_by_ras(void) {
  enum { CHANNELS = 1 << NCCLOTF2_KERNEL_CH };
  static const char said[] = "has switched on stamps of kernels";
  for (unsigned asked = 0; asked < 2; asked++) {
    setenv("NCCL_ALLGATHERV_ENABLE", asked ? "0" : "1", 1);
    const pid_t child = fork();
    if (child == 0) {
      host_use_stub("ready", 0xf47);
      int mask = 0;
      void *context = init_as(7, 1, &mask), *handle = NULL;
      EQUAL((uint32_t)mask & CHANNELS, asked ? CHANNELS : 0, "stamps asked for");
      struct ncclotf2_descr_v7 call = {.type = 1ULL << NCCLOTF2_COLL_API};
      const int before = host_lines;
      ncclProfiler_v7.startEvent(context, &handle, &call);
      mask = 0;
      ncclProfiler_v7.stopEvent(handle);
      usleep(50000);
      CHECK(!host_logged(said), "too early");
      for (int i = 0; i < 2; i++) { /* said once */
        mask = 0x7fff;
        ncclProfiler_v7.startEvent(context, &handle, &call);
        mask = 0;
        ncclProfiler_v7.startEvent(context, &handle, &call);
      }
      EVENTUALLY(host_logged(said));
      ncclProfiler_v7.finalize(context);
      EQUAL(host_lines, before + 1, "warnings");
      _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "asked: %u", asked);
  }
}

/* The other versions have nothing that is to be switched off. */
static void stamps_of_other_versions(void) {
  unsetenv("NCCL_ALLGATHERV_ENABLE");
  host_use_stub("ready", 0xf47);
  void *context = NULL;
  int other = 0;
  EQUAL(ncclProfiler_v5.init(&context, 2, &other, NULL, 1, 2, 0, host_logger), 0, "init");
  EQUAL(other, 0xf47, "mask of v5");
  EQUAL(host_header()->withheld, 0, "withheld");
}


static uint32_t lives_kinds[8];
static void count_kind(uint32_t ring, const struct ncclotf2_record *record, void *unused) {
  (void)ring;
  (void)unused;
  lives_kinds[record->kind]++;
}

/* What is noticed on a thread that may make no other. */
static void *make_calls(void *context) {
  sandbox_forbid(SYS_clone, EPERM, SANDBOX_ANY, 0);
  sandbox_forbid(SYS_clone3, EPERM, SANDBOX_ANY, 0);
  for (int i = 0; i < 100000; i++) host_start(context, host_descr(NCCLOTF2_COLL));
  return NULL;
}

static void on_a_thread_of_nccl(void *context) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, make_calls, context) == 0, "no thread");
  pthread_join(thread, NULL);
}

/* Of what is lost, and of what the collector has to say, the user hears while the job runs, once, at NCCL_DEBUG=WARN. */
static void reported_at_once(void) {
  setenv("NCCL_OTF2_MEMORY", "4M", 1);
  host_use_stub("ready", 0xf47);
  void *context = host_init(1, 2, 0);
  CHECK(host_logged("this process is recorded in /stub"), "%s", host_line);
  const int before = host_lines;
  on_a_thread_of_nccl(context);
  EVENTUALLY(host_lines > before);
  CHECK(host_logged("events are being lost: memory is full: raise NCCL_OTF2_MEMORY"), "%s", host_line);
  EQUAL(host_lines, before + 1, "warnings");
  struct reader *reader = calloc(1, sizeof *reader);
  reader_drain(reader, count_kind, NULL); /* there is room again */
  free(reader);
  struct ncclotf2_header *header = host_header();
  snprintf(header->message, sizeof header->message, "recording stopped in /stub: no space");
  __atomic_add_fetch(&header->message_number, 1, __ATOMIC_RELEASE);
  on_a_thread_of_nccl(context);
  EVENTUALLY(host_lines > before + 1);
  CHECK(host_logged("recording stopped in /stub: no space"), "%s", host_line);
  stop_all(context);
  EQUAL(host_lines, before + 2, "warnings");
  CHECK(host_logged("events: memory was full (NCCL_OTF2_MEMORY)"), "%s", host_line);
}

/* What a collector says another one may have said before; numbers in it may be others. */
static void reported_once_by_all_collectors(void) {
  static const struct {
    const char *text;
    bool news;
  } said[] = {
      {"/a cannot be written: what is recorded waits: write /a/shards/x1: no space left on device", true},
      {"/a cannot be written: what is recorded waits: write /a/shards/y22: no space left on device", false},
      {"/a cannot be written: what is recorded waits: write /a/shards/y22: input/output error", true},
      {"recording stopped in /a (what is there is whole): 1064 bytes are on disk", true},
      {"recording stopped in /a (what is there is whole): 99531 bytes are on disk", false},
      {"/a cannot be written: what is recorded waits: open /a/shards/z: no space left on device", false},
  };
  host_use_stub("ready", 0xf47);
  void *context = host_init(1, 2, 0);
  int lines = host_lines;
  for (unsigned i = 0; i < sizeof said / sizeof *said; i++) {
    struct ncclotf2_header *header = host_header();
    snprintf(header->message, sizeof header->message, "%s", said[i].text);
    __atomic_add_fetch(&header->message_number, 1, __ATOMIC_RELEASE);
    ncclProfiler_v6.finalize(host_init(2 + i, 2, 0));
    lines += said[i].news;
    EQUAL(host_lines, lines, said[i].text);
  }
  stop_all(context);
}

static void several_lives(void) {
  host_use_stub("ready", 0xf47);
  uint32_t tag = 0;
  for (uint32_t life = 0; life < 5; life++) {
    void *context = host_init(life + 1, 2, 1);
    if (!life) tag = host_header()->tag;
    EQUAL(host_header()->tag, tag, "tag");
    const struct ncclotf2_comm *comm = ncclotf2_comm_at(ncclotf2_session.base, life);
    EQUAL(comm->ready, 1, "ready");
    EQUAL(comm->comm_id, life + 1, "id");
    CHECK(comm->init_ticks && !comm->final_ticks, "ticks");
    void *handle = host_start(context, host_descr(NCCLOTF2_COLL));
    ncclProfiler_v6.stopEvent(handle);
    uint32_t request = host_header()->request;
    stop_all(context);
    CHECK(comm->final_ticks > comm->init_ticks, "final ticks");
    EQUAL(host_header()->request, request + 1, "requests");
    EQUAL(host_header()->answered, request + 1, "answers");
  }
  EQUAL(host_header()->comm_used, 5, "communicators");
  struct reader *reader = calloc(1, sizeof *reader);
  reader_drain(reader, count_kind, NULL);
  free(reader);
  EQUAL(lives_kinds[NCCLOTF2_RECORD_INIT], 5, "INIT records");
  EQUAL(lives_kinds[NCCLOTF2_RECORD_FINALIZE], 5, "FINALIZE records");
  EQUAL(lives_kinds[NCCLOTF2_RECORD_START], 5, "START records");
}

static void *init_and_record(void *rank) {
  void *context = NULL;
  ncclProfiler_v6.init(&context, 77, &host_mask, "shared name", 1, 16, (int)(uintptr_t)rank, host_logger);
  CHECK(context, "NULL context");
  for (int i = 0; i < 1000; i++) ncclProfiler_v6.stopEvent(host_start(context, host_descr(NCCLOTF2_COLL)));
  return context;
}

static void concurrent_inits(void) {
  host_use_stub("ready", 0xf47);
  enum { THREADS = 16 };
  pthread_t threads[THREADS];
  void *contexts[THREADS];
  for (unsigned i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, init_and_record, (void *)(uintptr_t)i);
  for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], &contexts[i]);
  EQUAL(host_header()->comm_used, THREADS, "communicators");
  unsigned ranks = 0;
  for (unsigned i = 0; i < THREADS; i++) {
    ranks |= 1u << ncclotf2_comm_at(ncclotf2_session.base, i)->rank;
    EQUAL(ncclotf2_comm_at(ncclotf2_session.base, i)->name, 1, "name");
    for (unsigned k = 0; k < i; k++) CHECK(contexts[i] != contexts[k], "two communicators have one context");
  }
  EQUAL(ranks, 0xffff, "ranks");
  for (unsigned i = 0; i < THREADS; i++) stop_all(contexts[i]);
}

static void switched_off(void) {
  setenv("NCCL_OTF2_ENABLE", "0", 1);
  host_mask = 0x5a;
  void *context = host_init(1, 2, 0);
  EQUAL(host_mask, 0x5a, "mask");
  CHECK(!ncclotf2_session.base, "a session was made");
  EQUAL(host_lines, 0, "lines");
  CHECK(!host_start(context, host_descr(NCCLOTF2_COLL)), "recorded");
  ncclProfiler_v6.stopEvent((void *)0x1234);
  union ncclotf2_state_args args = {.kernelCh = {1}};
  ncclProfiler_v6.recordEventState((void *)0x1234, 22, &args);
  stop_all(context);
}

static void identity(void) {
  host_use_stub("ready", 1);
  host_init(1, 2, 0);
  const struct ncclotf2_header *header = host_header();
  char text[600];
  EQUAL(header->magic, NCCLOTF2_SHM_MAGIC, "magic");
  EQUAL(header->version, NCCLOTF2_SHM_VERSION, "version");
  EQUAL(header->header_size, sizeof *header, "header size");
  EQUAL(header->uid, geteuid(), "user");
  EQUAL(header->pid, getpid(), "pid");
  gethostname(text, sizeof text);
  CHECK(strcmp(header->hostname, text) == 0, "hostname %s, want %s", header->hostname, text);
  ssize_t length = readlink("/proc/self/exe", text, sizeof text - 1);
  text[length] = '\0';
  CHECK(strcmp(header->executable, text) == 0, "executable %s, want %s", header->executable, text);
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
  CHECK(file && fscanf(file, "%599s", text) == 1, "boot id");
  fclose(file);
  CHECK(strcmp(header->boot_id, text) == 0, "boot id %s, want %s", header->boot_id, text);
  unsigned long long start = 0;
  file = fopen("/proc/self/stat", "r");
  CHECK(file && fgets(text, sizeof text, file), "stat");
  fclose(file);
  sscanf(strrchr(text, ')') + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", &start);
  EQUAL(header->pid_start, start, "start time");
  CHECK(header->tag != 0 && header->tag < 0xffff, "tag %x", header->tag);
  CHECK(header->created.ticks && header->created.raw && header->created.mono && header->created.real, "clocks");
  EQUAL(header->chunk_count, (256u << 20) / NCCLOTF2_CHUNK_SIZE, "chunks");
  EQUAL(header->chunk_reserve, header->chunk_count / 16, "reserve");
  EQUAL(header->chunk_offset % NCCLOTF2_CHUNK_SIZE, 0, "alignment of chunks");
  CHECK(ncclotf2_session.memfd > 2, "memfd %d", ncclotf2_session.memfd);
  EQUAL(fcntl(ncclotf2_session.memfd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC, "close-on-exec");
  struct stat info;
  fstat(ncclotf2_session.memfd, &info);
  EQUAL(info.st_size, header->total_size, "size");
  for (unsigned i = 0; i < 8; i++) /* one went to this thread */
    CHECK(header->spare[i] || i == 0, "slot %u is empty", i);
  /* What is ready for a burst must be small; memory_test sees to what lies idle. */
  CHECK((uint64_t)info.st_blocks * 512 < 10u << 20, "%llu bytes are in use", (unsigned long long)info.st_blocks * 512);
}

static void standard_streams_closed(void) {
  host_use_stub("ready", 1);
  host_folder();
  close(0);
  host_init(1, 2, 0);
  CHECK(ncclotf2_session.memfd > 2, "memfd %d", ncclotf2_session.memfd);
  CHECK(fcntl(0, F_GETFD) < 0, "0 was left open");
  EQUAL(host_mask, 1, "mask");
}

/* A thread of ours must not keep a program alive whose main thread has ended by itself. */
#if !defined(__SANITIZE_THREAD__) /* which has a thread of its own */
static void main_thread_ends(void) {
  pid_t pid = fork();
  if (pid == 0) {
    host_use_stub("ready", 0xf47);
    host_init(1, 2, 0);
    if (host_header()->preparer != 1) _exit(9);
    pthread_exit(NULL);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  EQUAL(status, 0, "the program's end");
}
#define MAIN_THREAD_CASE {"a program is over when its main thread has ended and no other of its own is left", main_thread_ends},
#else
#define MAIN_THREAD_CASE
#endif

/* ---- fork ---- */

static void in_child(void *context, void *handle) {
  uint64_t before = host_header()->lost[NCCLOTF2_LOSS_FORK][NCCLOTF2_COLL];
  CHECK(!host_start(context, host_descr(NCCLOTF2_COLL)), "recorded in a child");
  EQUAL(host_header()->lost[NCCLOTF2_LOSS_FORK][NCCLOTF2_COLL], before + 1, "counted");
  ncclProfiler_v6.stopEvent(handle);
  ncclProfiler_v6.recordEventState(handle, 22, NULL);
  int mask = 0x77;
  void *fresh = NULL;
  ncclProfiler_v6.init(&fresh, 9, &mask, NULL, 1, 2, 0, host_logger);
  CHECK(fresh, "NULL context");
  EQUAL(mask, 0x77, "mask in a child");
  ncclProfiler_v6.finalize(context);
  ncclProfiler_v6.finalize(fresh);
}

static void *thread_of_child(void *context) {
  CHECK(!host_start(context, host_descr(NCCLOTF2_COLL)), "recorded in a child's thread");
  return NULL;
}

static void forked_child(void) {
  host_use_stub("ready", 0xf47);
  void *context = host_init(1, 2, 0);
  void *handle = host_start(context, host_descr(NCCLOTF2_COLL));
  const struct ncclotf2_chunk *chunk = ncclotf2_chunk_at(ncclotf2_session.base, 0);
  const uint32_t committed = chunk->committed, request = host_header()->request;
  pid_t pid = fork();
  if (pid == 0) {
    in_child(context, handle);
    pthread_t thread;
    pthread_create(&thread, NULL, thread_of_child, context);
    pthread_join(thread, NULL);
    exit(0); /* with the exit handlers */
  }
  int status = -1;
  waitpid(pid, &status, 0);
  EQUAL(status, 0, "the child's end");
  EQUAL(chunk->committed, committed, "committed");
  EQUAL(host_header()->request, request, "requests");
  EQUAL(host_header()->ended, 0, "ended");
  EQUAL(host_header()->live_comms, 1, "live communicators");
  EQUAL(host_header()->ring_used, 1, "rings");
  CHECK(host_start(context, host_descr(NCCLOTF2_COLL)), "refused in the parent");
}

/* Some runtimes fork by the bare system call, past the fork handlers. */
static void bare_fork(void) {
  host_use_stub("ready", 0xf47);
  void *context = host_init(1, 2, 0);
  void *handle = host_start(context, host_descr(NCCLOTF2_COLL));
  const struct ncclotf2_chunk *chunk = ncclotf2_chunk_at(ncclotf2_session.base, 0);
  const uint32_t committed = chunk->committed;
  pthread_mutex_lock(&ncclotf2_life); /* as if another thread had it when the child was made: there it is taken for ever */
  pid_t pid = host_bare_fork();
  if (pid == 0) {
    alarm(TEST_SECONDS);
    in_child(context, handle);
    exit(0);
  }
  pthread_mutex_unlock(&ncclotf2_life);
  int status = -1;
  waitpid(pid, &status, 0);
  EQUAL(status, 0, "the child's end");
  EQUAL(chunk->committed, committed, "committed");
  EQUAL(host_header()->live_comms, 1, "live communicators");
  EQUAL(host_header()->ended, 0, "ended");
}

/* ---- limits ---- */

static void small_files_only(void) {
  host_use_stub("ready", 0xf47);
  struct rlimit limit = {60 << 20, 60 << 20};
  setrlimit(RLIMIT_FSIZE, &limit);
  host_init(1, 2, 0);
  CHECK(ncclotf2_session.base, "no session: %s", host_line);
  CHECK(host_header()->total_size <= 60 << 20, "%llu bytes", (unsigned long long)host_header()->total_size);
  EQUAL(host_header()->chunk_count, (32 << 20) / NCCLOTF2_CHUNK_SIZE, "chunks");
  EQUAL(host_mask, 0xf47, "mask");
}

static void no_files_at_all(void) {
  host_use_stub("ready", 0xf47);
  struct rlimit limit = {1 << 20, 1 << 20};
  setrlimit(RLIMIT_FSIZE, &limit);
  host_mask = 0x99;
  void *context = host_init(1, 2, 0);
  host_init(2, 2, 0);
  CHECK(!ncclotf2_session.base, "a session in no memory");
  EQUAL(host_mask, 0x99, "mask");
  EQUAL(host_lines, 1, "lines");
  CHECK(host_logged("nothing is recorded"), "%s", host_line);
  CHECK(!host_start(context, host_descr(NCCLOTF2_COLL)), "recorded");
  stop_all(context);
}

static void little_address_space(void) {
  host_use_stub("ready", 0xf47);
  FILE *file = fopen("/proc/self/statm", "r");
  unsigned long pages = 0;
  CHECK(file && fscanf(file, "%lu", &pages) == 1, "statm");
  fclose(file);
  rlim_t now = (rlim_t)pages * 4096;
  struct rlimit limit = {now + (100 << 20), now + (100 << 20)};
  setrlimit(RLIMIT_AS, &limit);
  host_init(1, 2, 0);
  CHECK(ncclotf2_session.base, "no session: %s", host_line);
  CHECK(host_header()->chunk_count < (256u << 20) / NCCLOTF2_CHUNK_SIZE, "%u chunks", host_header()->chunk_count);
  EQUAL(host_mask, 0xf47, "mask");
}

static void too_many_communicators(void) {
  host_use_stub("ready", 0xf47);
  void *first = host_init(1, 2, 0);
  __atomic_store_n(&host_header()->comm_used, NCCLOTF2_COMM_MAX, __ATOMIC_RELEASE);
  void *beyond = host_init(2, 2, 0);
  CHECK(host_logged("more than"), "no line");
  const int before = host_lines;
  for (uint64_t id = 3; id < 10; id++) host_init(id, 2, 0);
  EQUAL(host_lines, before, "warnings");
  CHECK(!host_start(beyond, host_descr(NCCLOTF2_P2P)), "recorded");
  EQUAL(host_header()->lost[NCCLOTF2_LOSS_COMM][NCCLOTF2_P2P], 1, "lost");
  stop_all(beyond);
  EQUAL(host_header()->live_comms, 1, "live communicators");
  __atomic_store_n(&host_header()->comm_used, 1, __ATOMIC_RELEASE);
  stop_all(first);
}

/* ---- clocks ---- */

static void clock_of_the_host(void) {
  setenv("NCCL_OTF2_CLOCK", "host", 1);
  host_use_stub("ready", 0xf47);
  void *context = host_init(1, 2, 0);
  EQUAL(host_header()->clock_source, NCCLOTF2_CLOCK_HOST, "source");
  EQUAL(host_header()->clock_hz, 1000000000, "rate");
  EQUAL(host_header()->created.ticks, 1000, "anchor");
  EQUAL(host_header()->created.real, 4000, "anchor");
  uint64_t before = host_time;
  void *handle = host_start(context, host_descr(NCCLOTF2_COLL));
  EQUAL(((const struct ncclotf2_record *)reader_last())->ticks, before + 10, "ticks of the start");
  ncclProfiler_v6.stopEvent(handle);
  EQUAL(((const struct ncclotf2_record *)reader_last())->ticks, before + 20, "ticks of the stop");
  EQUAL(host_header()->host_ticks, before + 20, "the greatest ticks");
  host_time = 100; /* another thread's time may lie behind */
  ncclProfiler_v6.stopEvent(handle);
  EQUAL(host_header()->host_ticks, before + 20, "the greatest ticks");
  struct ncclotf2_clock_tuple tuple = ncclotf2_clock_tuple();
  EQUAL(tuple.ticks, before + 20, "ticks of a tuple");
  EQUAL(tuple.real, before + 20 + 3000, "real time of a tuple");
}

static void clock_choice(void) {
  static const struct {
    uint64_t setting;
    uint32_t source; /* 0: whatever suits the machine */
    const char *what;
  } cases[] = {{NCCLOTF2_CHOICE_CLOCK_MONOTONIC, NCCLOTF2_CLOCK_MONOTONIC, "monotonic"},
               {NCCLOTF2_CHOICE_CLOCK_HOST, NCCLOTF2_CLOCK_HOST, "host"},
               {NCCLOTF2_CHOICE_CLOCK_AUTO, 0, "auto"},
#if defined(__x86_64__)
               {NCCLOTF2_CHOICE_CLOCK_TSC, NCCLOTF2_CLOCK_TSC, "tsc"},
#endif
  };
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *why;
    uint32_t source = ncclotf2_clock_choose(cases[i].setting, &why);
    CHECK(!why, "%s: %s", cases[i].what, why);
    if (cases[i].source) EQUAL(source, cases[i].source, cases[i].what);
    CHECK(source >= NCCLOTF2_CLOCK_MONOTONIC && source <= NCCLOTF2_CLOCK_CNTVCT + 1, "source %u", source);
    ncclotf2_fast.clock = source;
    if (source == NCCLOTF2_CLOCK_HOST) continue;
    struct ncclotf2_clock_tuple a = ncclotf2_clock_tuple(), b = ncclotf2_clock_tuple();
    CHECK(b.ticks > a.ticks && b.raw > a.raw && b.mono > a.mono, "clocks stand still");
    if (source == NCCLOTF2_CLOCK_MONOTONIC) EQUAL(a.ticks, a.mono, "ticks");
  }
}

#define ADDRESS_SPACE_CASE {"little address space makes the memory smaller", little_address_space},
#if SANITIZED /* the sanitizers reserve terabytes */
#undef ADDRESS_SPACE_CASE
#define ADDRESS_SPACE_CASE
static void (*const unused_here)(void) __attribute__((unused)) = little_address_space;
#endif

TEST_MAIN({"the mask is written once per life", mask_is_written_once},
          {"stamps of kernels are not asked for where NCCL hangs or crashes with them", stamps_that_kill},
          {"stamps of kernels that RAS switches on are warned of", stamps_switched_on_by_ras},
          {"other versions are asked for them", stamps_of_other_versions},
          MAIN_THREAD_CASE
          {"a mask that somebody else changes is noticed, and not looked at when libnccl may be gone", mask_changed_by_ras},
          {"losses and the collector's words are told at once", reported_at_once},
          {"what one collector has said another does not say again", reported_once_by_all_collectors},
          {"init, finalize, init goes on in the same session", several_lives},
          {"communicators may be initialized at one time", concurrent_inits},
          {"switched off, nothing is done", switched_off},
          {"the header says who and where we are", identity},
          {"closed standard streams stay closed", standard_streams_closed},
          {"in a forked child nothing happens", forked_child},
          {"a child of a bare clone leaves the session alone", bare_fork},
          {"a limit on file sizes makes the memory smaller", small_files_only},
          {"without memory nothing is recorded, and that is said once", no_files_at_all},
          ADDRESS_SPACE_CASE
          {"communicators beyond the table are counted", too_many_communicators},
          {"ticks can come from the host program", clock_of_the_host},
          {"the clock is chosen", clock_choice})
