/* SPDX-License-Identifier: Apache-2.0
 *
 * After warm-up a recording thread makes no system call, allocates nothing and faults no page: a
 * seccomp filter traps its system calls, malloc is counted, the kernel counts the faults. Chunks
 * change hands all the while.
 */
#include <dlfcn.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "../cupti.h"
#include "../futex.h"
#include "../mark.h"
#include "../measurement.h"
#include "../ring.h"
#include "../scorep.h"
#include "host.h"
#include "test.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

static __thread volatile uint64_t allocations;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *old);
__attribute__((visibility("default"))) void *malloc(size_t size) {
  allocations++;
  return __libc_malloc(size);
}
__attribute__((visibility("default"))) void *calloc(size_t count, size_t size) {
  allocations++;
  return __libc_calloc(count, size);
}
__attribute__((visibility("default"))) void *realloc(void *old, size_t size) {
  allocations++;
  return __libc_realloc(old, size);
}
__attribute__((visibility("default"))) void free(void *old) {
  allocations++;
  __libc_free(old);
}

static volatile sig_atomic_t trapped, trapped_call;
static void on_trap(int number, siginfo_t *info, void *unused) {
  (void)number;
  (void)unused;
  trapped++;
  trapped_call = info->si_syscall;
}

/* For this thread alone. Allowed is only what the test itself needs, and reading the clock where the
 * kernel offers no other way than a call. */
static void trap_system_calls(bool allow_clock) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrusage, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allow_clock ? SYS_clock_gettime : SYS_exit, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs: %s", strerror(errno));
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "seccomp: %s", strerror(errno));
}

static void *context;
static volatile bool done, warm;

/* One of everything; false if something was refused. */
static bool round_v6(uint64_t count) {
  bool recorded = true;
  for (unsigned type = 0; type <= NCCLOTF2_CE_BATCH; type++) {
    struct ncclotf2_descr_v6 d = host_descr(type);
    d.parentObj = (void *)(uintptr_t)(count | 1);
    if (type == NCCLOTF2_COLL) {
      d.coll.func = "AllReduce";
      d.coll.datatype = "ncclFloat32";
      d.coll.algo = "RING";
      d.coll.proto = "LL128";
    }
    void *handle = NULL;
    ncclProfiler_v6.startEvent(context, &handle, &d);
    recorded = recorded && handle;
    union ncclotf2_state_args args = {.kernelCh = {count}};
    ncclProfiler_v6.recordEventState(handle, type == NCCLOTF2_KERNEL_CH ? 22 : 19, &args);
    ncclProfiler_v6.stopEvent(handle);
  }
  return recorded;
}

static bool round_v7(uint64_t count) {
  bool recorded = true;
  for (unsigned type = 0; type <= NCCLOTF2_KERNEL_PHASE; type++) {
    struct ncclotf2_descr_v7 d;
    memset(&d, 0, sizeof d);
    d.type = 1ULL << type;
    d.parentObj = (void *)(uintptr_t)(count | 1);
    if (type == NCCLOTF2_COLL) {
      d.coll.func = "AllReduce";
      d.coll.algo = "RING";
      d.coll.kernelVariant = "RailRing_LsaSTMC";
      d.coll.userTag = count;
    }
    if (type == NCCLOTF2_KERNEL_PHASE) d.kernelPhase.phaseName = "wait peer";
    void *handle = NULL;
    ncclProfiler_v7.startEvent(context, &handle, &d);
    recorded = recorded && handle;
    union ncclotf2_state_args args = {.kernelCh = {count}};
    ncclProfiler_v7.recordEventState(handle, type == NCCLOTF2_KERNEL_PHASE ? 31 : 20, &args);
    ncclProfiler_v7.stopEvent(handle);
  }
  return recorded;
}

static bool round_v4(uint64_t count) {
  bool recorded = true;
  for (unsigned type = 0; type <= NCCLOTF2_NET_PLUGIN; type++) {
    struct ncclotf2_descr_v4 d;
    memset(&d, 0, sizeof d);
    d.type = (uint8_t)(1u << type);
    d.parentObj = (void *)(uintptr_t)(count | 1);
    if (type == NCCLOTF2_COLL) d.coll.func = "AllReduce", d.coll.proto = "LL";
    void *handle = NULL;
    ncclProfiler_v4.startEvent(context, &handle, &d);
    recorded = recorded && handle;
    union ncclotf2_state_args args = {.kernelCh = {count}};
    ncclProfiler_v4.recordEventState(handle, 22, &args);
    ncclProfiler_v4.stopEvent(handle);
  }
  return recorded;
}

static bool round_v1(uint64_t count) {
  bool recorded = true;
  for (unsigned type = 0; type <= NCCLOTF2_PROXY_CTRL; type++) {
    struct ncclotf2_descr_v1 d;
    memset(&d, 0, sizeof d);
    d.type = (uint8_t)(1u << type);
    d.parentObj = (void *)(uintptr_t)(count | 1);
    if (type == NCCLOTF2_COLL) {
      d.coll.name = "tensor parallel";
      d.coll.commHash = 1;
      d.coll.func = (uint8_t)(count % 9); /* one number too many */
      d.coll.algo = (uint8_t)(count % 8);
    }
    void *handle = NULL;
    ncclProfiler_v1.startEvent(context, &handle, &d);
    recorded = recorded && handle;
    union ncclotf2_state_args_v1 args = {.proxyOp = {count, 3}};
    ncclProfiler_v1.recordEventState(handle, (int)(count % 8), &args);
    ncclProfiler_v1.stopEvent(handle);
  }
  return recorded;
}

static bool round_of_marks(uint64_t count) {
  static const char *const names[] = {"forward", "backward", "optimizer"};
  const uint64_t lost = host_header()->lost_marks;
  for (unsigned i = 0; i < 3; i++) nccl_otf2_phase_begin(names[(count + i) % 3]);
  nccl_otf2_mark(count % 2 ? "odd" : "even");
  for (unsigned i = 0; i < 3; i++) nccl_otf2_phase_end();
  return round_v6(count) && host_header()->lost_marks == lost;
}

/* The slot holds what the last event left there, and ends of events of nobody come in between. */
static bool round_raw(uint64_t count) {
  static __thread void *slot;
  struct ncclotf2_descr_v6 d = host_descr(NCCLOTF2_COLL);
  d.parentObj = (void *)(uintptr_t)(count | 1);
  slot = (void *)(uintptr_t)(count + 0x7000);
  ncclProfiler_v6.startEvent(context, &slot, &d);
  ncclProfiler_v6.stopEvent(NULL);
  ncclProfiler_v6.stopEvent((void *)(uintptr_t)(count + 0x7000));
  return round_v6(count) && slot;
}

static bool call_api(unsigned type, const char *func, void *group) {
  struct ncclotf2_descr_v6 d = host_descr(type);
  d.parentObj = group;
  if (type == NCCLOTF2_P2P_API) d.p2pApi.func = func, d.p2pApi.datatype = "ncclFloat32", d.p2pApi.count = 1;
  else d.collApi.func = func, d.collApi.datatype = "ncclBfloat16", d.collApi.count = 1;
  void *handle = NULL;
  ncclProfiler_v6.startEvent(context, &handle, &d);
  ncclProfiler_v6.stopEvent(handle);
  return handle != NULL;
}

/* A plain call, and calls in a group. */
static bool round_of_calls(uint64_t count) {
  bool recorded = true;
  for (int depth = 1; depth <= 3; depth++) {
    struct ncclotf2_descr_v6 d = host_descr(NCCLOTF2_GROUP_API);
    d.groupApi.groupDepth = depth % 3;
    void *group = NULL;
    ncclProfiler_v6.startEvent(context, &group, &d);
    recorded = recorded && group;
    if (count % 2 || depth == 2) recorded = call_api(NCCLOTF2_COLL_API, "AllReduce", group) && recorded;
    else recorded = call_api(NCCLOTF2_P2P_API, "Send", group) && call_api(NCCLOTF2_P2P_API, "Recv", group) && recorded;
    ncclProfiler_v6.recordEventState(group, 24, NULL);
    ncclProfiler_v6.stopEvent(group);
  }
  return round_v6(count) && recorded;
}

static const struct flavour {
  const char *what;
  bool (*round)(uint64_t count);
  unsigned api;
  uint32_t record; /* beside the types */
  uint64_t first, last;
  enum { ALONE, CUPTI, SCOREP, MEASURED } with;
} flavours[] = {
    {"version 6", round_v6, 6, 0, 0, 0, ALONE},
    {"version 7", round_v7, 7, 0, 0, 0, ALONE},
    {"version 4", round_v4, 4, 0, 0, 0, ALONE},
    {"version 1", round_v1, 1, 0, 0, 0, ALONE},
    {"inside a window", round_v6, 6, NCCLOTF2_RECORD_WINDOW, 0, UINT64_MAX, ALONE},
    {"outside a window", round_v6, 6, NCCLOTF2_RECORD_WINDOW, UINT64_MAX, UINT64_MAX, ALONE},
    {"marks", round_of_marks, 6, 0, 0, 0, ALONE},
    {"record mode", round_raw, 6, NCCLOTF2_RECORD_RAW, 0, 0, ALONE},
    {"with CUPTI", round_v6, 6, 0, 0, 0, CUPTI},
    {"with Score-P", round_of_calls, 6, 0, 0, 0, SCOREP},
    {"in a measurement", round_v6, 6, 0, 0, UINT64_MAX, MEASURED},
};
static const struct flavour *flavour;
enum { ROUNDS = 100000 };

static uint32_t handed_over, handed_over_least; /* chunks */
static struct {
  uint64_t rounds, refused, allocations, traps;
  long faults;
} result;

static void *recorder(void *unused) {
  const uint32_t mask = host_header()->record_mask;
  host_header()->record_mask = mask & ~NCCLOTF2_RECORD_WINDOW;
  /* Until the cap, so that every chunk has been in use here. */
  while (flavour->round(0)) {
  }
  /* ... and those of the reserve, and of lower classes. */
  const uint64_t *dropped = &host_header()->lost[NCCLOTF2_LOSS_STOP_MEMORY][NCCLOTF2_COLL];
  const uint64_t handle = ncclotf2_fast.tag_bits | (uint64_t)NCCLOTF2_COLL << NCCLOTF2_TYPE_SHIFT;
  while (host_start(context, host_descr(NCCLOTF2_GROUP))) {
  }
  for (uint64_t before = *dropped; *dropped == before;) ncclProfiler_v6.stopEvent((void *)(uintptr_t)handle);
  warm = true;
  while (!flavour->round(0)) sched_yield(); /* the reader begins */
  host_header()->record_mask = mask;
  trap_system_calls(host_header()->clock_source == NCCLOTF2_CLOCK_MONOTONIC);
  struct rusage before, after;
  for (uint64_t i = 0; i < 1000; i++) flavour->round(i);
  getrusage(RUSAGE_THREAD, &before);
  uint64_t allocated = allocations;
  /* On a busy machine the reader is behind, and most is refused: until enough has changed hands. */
  for (uint64_t i = 0; i < ROUNDS || __atomic_load_n(&handed_over, __ATOMIC_RELAXED) < handed_over_least; i++, result.rounds++)
    result.refused += !flavour->round(i);
  result.allocations = allocations - allocated;
  getrusage(RUSAGE_THREAD, &after);
  result.traps = (uint64_t)trapped;
  result.faults = after.ru_minflt - before.ru_minflt + after.ru_majflt - before.ru_majflt;
  done = true;
  syscall(SYS_exit, 0); /* the thread's end in libc makes calls that are not allowed any more */
  return unused;
}

static uint32_t chunks_taken(const struct reader *reader) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < NCCLOTF2_RING_MAX; i++) sum += (uint32_t)reader->rings[i].sequence;
  return sum;
}

static void *init(unsigned api) {
  void *made = NULL;
  switch (api) {
    case 1: ncclProfiler_v1.init(&made, &host_mask); break;
    case 4: ncclProfiler_v4.init(&made, &host_mask, NULL, 1, 1, 2, 0, host_logger); break;
    case 7: ncclProfiler_v7.init(&made, 1, &host_mask, NULL, 1, 2, 0, host_logger); break;
    default: made = host_init(1, 2, 0); break;
  }
  return made;
}

static const char *beside_tests(const char *library) {
  static char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
  CHECK(length > 0, "who am I: %s", strerror(errno));
  path[length] = '\0';
  for (int i = 0; i < 3; i++) *strrchr(path, '/') = '\0';
  strcat(path, library);
  return path;
}

/* Without a collector nobody else does. */
static void begin_cupti(void) {
  setenv("NCCL_OTF2_CUPTI_LIBRARY", beside_tests("/fakecupti/libcupti.so.12"), 1);
  setenv("FAKECUPTI_SWIFT", "1", 1);
  host_header()->cupti_kinds = 1ULL << 10 | 1ULL << 39 | 1ULL << 4;
  CHECK(ncclotf2_cupti_begin(true), "%s", host_line);
}

static void begin_scorep(void) {
  setenv("FAKESCOREP_SWIFT", "1", 1);
  CHECK(dlopen(beside_tests("/fakescorep/pthread/libscorep_adapter_user_event.so.11"), RTLD_NOW | RTLD_GLOBAL), "%s", dlerror());
  ncclotf2_scorep_begin(6, (const void *)(uintptr_t)begin_scorep);
  EQUAL(host_header()->scorep_state, NCCLOTF2_SCOREP_ON, "state");
  ncclotf2_scorep_prepare();
}

static void begin_measurement(void) {
  CHECK(dlopen(beside_tests("/" NCCLOTF2_SUBSTRATE_LIBRARY), RTLD_NOW | RTLD_LOCAL), "%s", dlerror());
  ncclotf2_measurement_find(NULL);
  EQUAL(ncclotf2_fast.measured, 1, "measured");
}

static void steady(const struct flavour *chosen) {
  flavour = chosen;
  setenv("NCCL_OTF2_MEMORY", "16M", 1);
  /* No collector and no spool: where chunks come unprepared, as they do when this test's reader is
   * behind, a thread looks once a second whether the collector lives, and that is a call. */
  setenv("NCCL_OTF2_COLLECTOR", "spool", 1);
  setenv("NCCL_OTF2_DIR", "/dev/null/nothing", 1);
  context = init(flavour->api);
  struct ncclotf2_comm *comm = ncclotf2_comm_at(ncclotf2_session.base, 0);
  comm->first = flavour->first;
  comm->last = flavour->last;
  host_header()->record_mask = 0xffff | flavour->record;
  if (flavour->with == CUPTI) begin_cupti();
  if (flavour->with == SCOREP) begin_scorep();
  if (flavour->with == MEASURED) begin_measurement();
  const bool outside = flavour->first != 0;
  handed_over_least = outside ? 0 : 1000;
  struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
  sigaction(SIGSYS, &action, NULL);
  struct reader *reader = calloc(1, sizeof *reader);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, recorder, NULL) == 0, "no thread");
  while (!warm) sched_yield();
  while (!done) {
    if (!reader_drain(reader, NULL, NULL)) sched_yield();
    __atomic_store_n(&handed_over, chunks_taken(reader), __ATOMIC_RELAXED);
  }
  CHECK(result.traps == 0, "%llu system calls, the last number %d", (unsigned long long)result.traps, (int)trapped_call);
  EQUAL(result.allocations, 0, "allocations");
  /* One chunk with its pages not in place would be 16. */
  CHECK(result.faults < 16, "%ld page faults", result.faults);
  CHECK(flavour->with != SCOREP || host_header()->scorep_forwarded >= result.rounds - result.refused, "calls were not forwarded");
  uint32_t chunks = chunks_taken(reader);
  CHECK(chunks >= handed_over_least, "only %u chunks changed hands", chunks);
  CHECK(!outside || result.refused == result.rounds, "recorded outside");
  printf("     %s: %llu of %llu rounds refused in part, %u chunks, %ld page faults\n", flavour->what,
         (unsigned long long)result.refused, (unsigned long long)result.rounds, chunks, result.faults);
  free(reader);
}

/* ---- the first time that memory is used ---- */

enum { FIRST_CHUNKS = 800 }; /* none of them given back */

static bool prepared(void) {
  for (unsigned i = 0; i < NCCLOTF2_SPARE_MAX; i++) {
    if (__atomic_load_n(&host_header()->spare[i], __ATOMIC_RELAXED)) return true;
  }
  return false;
}

static void *first_recorder(void *unused) {
  for (uint64_t i = 0; i < 20; i++) round_v6(i); /* the thread's ring, and the names */
  trap_system_calls(host_header()->clock_source == NCCLOTF2_CLOCK_MONOTONIC);
  struct rusage before, after;
  getrusage(RUSAGE_THREAD, &before);
  const uint64_t allocated = allocations;
  while (ncclotf2_ring->sequence < FIRST_CHUNKS) {
    while (!prepared()) {
    }
    result.refused += !round_v6(result.rounds++); /* less than a chunk */
  }
  result.allocations = allocations - allocated;
  getrusage(RUSAGE_THREAD, &after);
  result.traps = (uint64_t)trapped;
  result.faults = after.ru_minflt - before.ru_minflt + after.ru_majflt - before.ru_majflt;
  done = true;
  syscall(SYS_exit, 0);
  return unused;
}

static void first_time(void) {
  setenv("NCCL_OTF2_MEMORY", "128M", 1); /* all types may use what is handed out */
  host_use_stub("ready", 0x7fff);
  context = host_init(1, 2, 0);
  EQUAL(host_header()->preparer, 1, "threads that prepare memory"); /* ours: nobody else is here */
  struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
  sigaction(SIGSYS, &action, NULL);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, first_recorder, NULL) == 0, "no thread");
  while (!done) sched_yield();
  EQUAL(result.traps, 0, "system calls");
  EQUAL(result.allocations, 0, "allocations");
  EQUAL(result.faults, 0, "page faults");
  EQUAL(result.refused, 0, "refused");
  EQUAL(host_header()->faulted_chunks, 0, "chunks that nobody had prepared");
}

static void steady_v6(void) { steady(&flavours[0]); }
static void steady_v7(void) { steady(&flavours[1]); }
static void steady_v4(void) { steady(&flavours[2]); }
static void steady_v1(void) { steady(&flavours[3]); }
static void steady_inside(void) { steady(&flavours[4]); }
static void steady_outside(void) { steady(&flavours[5]); }
static void steady_marks(void) { steady(&flavours[6]); }
static void steady_raw(void) { steady(&flavours[7]); }
static void steady_cupti(void) { steady(&flavours[8]); }
static void steady_scorep(void) { steady(&flavours[9]); }
static void steady_measured(void) { steady(&flavours[10]); }

TEST_MAIN({"memory that is used for the first time costs no system call and no page fault", first_time},
          {"a warm thread makes no system call, no allocation and no page fault", steady_v6},
          {"... nor with version 7", steady_v7},
          {"... nor with version 4", steady_v4},
          {"... nor with version 1", steady_v1},
          {"... nor inside a window", steady_inside},
          {"... nor outside", steady_outside},
          {"... nor with marks", steady_marks},
          {"... nor in record mode", steady_raw},
          {"... nor when CUPTI is told its launches", steady_cupti},
          {"... nor when Score-P is told its calls, but for what that does", steady_scorep},
          {"... nor when a measurement has a say in what is recorded", steady_measured})

#else
int main(void) {
  printf("ok   steady_test: (the sanitizers' own calls would be counted; the build without them runs it)\n");
  return 0;
}
#endif
