/* SPDX-License-Identifier: Apache-2.0
 *
 * After warm-up a recording thread makes no system call, allocates nothing and faults no page: a
 * seccomp filter traps its system calls, malloc is counted, the kernel counts the faults. Chunks
 * change hands all the while.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

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
static bool round_of_events(uint64_t count) {
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

static struct {
  uint64_t refused, allocations, traps;
  long faults;
} result;

static void *recorder(void *unused) {
  /* Until the cap, so that every chunk has been in use here. */
  while (round_of_events(0)) {
  }
  /* ... and those of the reserve. */
  const uint64_t *dropped = &host_header()->lost[NCCLOTF2_LOSS_STOP_MEMORY][NCCLOTF2_COLL];
  const uint64_t handle = ncclotf2_fast.tag_bits | (uint64_t)NCCLOTF2_COLL << NCCLOTF2_TYPE_SHIFT;
  for (uint64_t before = *dropped; *dropped == before;) ncclProfiler_v6.stopEvent((void *)(uintptr_t)handle);
  warm = true;
  while (!round_of_events(0)) sched_yield(); /* the reader begins */
  trap_system_calls(host_header()->clock_source == NCCLOTF2_CLOCK_MONOTONIC);
  struct rusage before, after;
  for (uint64_t i = 0; i < 1000; i++) round_of_events(i);
  getrusage(RUSAGE_THREAD, &before);
  uint64_t allocated = allocations;
  for (uint64_t i = 0; i < 200000; i++) result.refused += !round_of_events(i);
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

static void steady(void) {
  setenv("NCCL_OTF2_MEMORY", "16M", 1);
  /* No collector and no spool: where chunks come unprepared, as they do when this test's reader is
   * behind, a thread looks once a second whether the collector lives, and that is a call. */
  setenv("NCCL_OTF2_COLLECTOR", "spool", 1);
  setenv("NCCL_OTF2_DIR", "/dev/null/nothing", 1);
  context = host_init(1, 2, 0);
  host_header()->record_mask = 0x7fff;
  struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
  sigaction(SIGSYS, &action, NULL);
  struct reader *reader = calloc(1, sizeof *reader);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, recorder, NULL) == 0, "no thread");
  while (!warm) sched_yield();
  while (!done)
    if (!reader_drain(reader, NULL, NULL)) sched_yield();
  CHECK(result.traps == 0, "%llu system calls, the last number %d", (unsigned long long)result.traps, (int)trapped_call);
  EQUAL(result.allocations, 0, "allocations");
  /* One chunk with its pages not in place would be 16. */
  CHECK(result.faults < 16, "%ld page faults", result.faults);
  uint32_t chunks = chunks_taken(reader);
  CHECK(chunks > 1000, "only %u chunks changed hands", chunks);
  printf("     %llu of 200000 rounds refused in part, %u chunks, %ld page faults\n", (unsigned long long)result.refused,
         chunks, result.faults);
  free(reader);
}

TEST_MAIN({"a warm thread makes no system call, no allocation and no page fault", steady})

#else
int main(void) {
  printf("ok   steady_test: (the sanitizers' own calls would be counted; the build without them runs it)\n");
  return 0;
}
#endif
