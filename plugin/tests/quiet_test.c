/* SPDX-License-Identifier: Apache-2.0
 *
 * The host notices nothing: its signals, timers, children, threads, descriptors, environment and limits are
 * after init and finalize what they were, whoever takes the records out.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "../collector.h"
#include "../ring.h"
#include "host.h"
#include "test.h"

extern char **environ;

static const char *directory(void) {
  static char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/experiment", host_folder());
  return path;
}

/* NULL: the spool; else what the stub of a collector does. */
static void use(const char *behavior) {
  setenv("NCCL_OTF2_DIR", directory(), 1);
  if (behavior)
    host_use_stub(behavior, 0xf47);
  else
    setenv("NCCL_OTF2_COLLECTOR", "spool", 1);
}

static void live(int lives) {
  for (int life = 0; life < lives; life++) {
    void *context = host_init((uint64_t)life + 1, 2, 0);
    for (int i = 0; i < 100; i++) ncclProfiler_v6.stopEvent(host_start(context, host_descr(NCCLOTF2_COLL)));
    ncclProfiler_v6.finalize(context);
  }
}

/* ---- signals ---- */

static volatile sig_atomic_t handled[65];
static void on_signal(int number) { handled[number]++; }

static bool can_be_caught(int number) {
  return number != SIGKILL && number != SIGSTOP && number != 32 && number != 33; /* the two are glibc's */
}

/* All, of a thread that has ended. */
static uint64_t blocked_of(pid_t thread) {
  char path[64], line[256];
  snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)thread);
  FILE *file = fopen(path, "r");
  CHECK(file || errno == ENOENT, "%s: %s", path, strerror(errno));
  unsigned long long mask = UINT64_MAX;
  if (!file) return mask;
  while (fgets(line, sizeof line, file))
    if (sscanf(line, "SigBlk: %llx", &mask) == 1) break;
  fclose(file);
  return mask;
}

static unsigned threads(pid_t *list, unsigned most) {
  DIR *tasks = opendir("/proc/self/task");
  CHECK(tasks, "/proc/self/task: %s", strerror(errno));
  unsigned count = 0;
  for (struct dirent *entry; (entry = readdir(tasks));) {
    if (entry->d_name[0] == '.') continue;
    CHECK(count < most, "more than %u threads", most);
    list[count++] = atoi(entry->d_name);
  }
  closedir(tasks);
  return count;
}

/* Whether a thread is still being made: until it runs, glibc's two signals are blocked in it, too. */
static bool some_begin(void) {
  pid_t list[64];
  const unsigned count = threads(list, 64);
  bool some = false;
  for (unsigned i = 0; i < count; i++) some = some || blocked_of(list[i]) & (3ULL << 31);
  return some;
}

enum { BYSTANDERS = 3 };
static pthread_barrier_t parked;
static bool released;

static void *bystander(void *self) {
  sigset_t mask;
  sigemptyset(&mask);
  for (int i = 0; i <= (int)(uintptr_t)self; i++) sigaddset(&mask, SIGRTMIN + 2 * i);
  sigaddset(&mask, SIGUSR2);
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
  pthread_barrier_wait(&parked);
  while (!__atomic_load_n(&released, __ATOMIC_ACQUIRE)) usleep(1000);
  return NULL;
}

static void signals(const char *behavior) {
  use(behavior);
  static uint8_t stack[1 << 16];
  stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack}, stack_after;
  CHECK(sigaltstack(&alternative, NULL) == 0, "sigaltstack: %s", strerror(errno));
  struct sigaction before[65];
  for (int number = 1; number < 65; number++) {
    if (!can_be_caught(number) || number == SIGALRM) continue; /* the frame's own limit on time */
    static const int flags[] = {0, SA_ONSTACK, SA_RESTART, SA_ONSTACK | SA_NODEFER, SA_NOCLDSTOP};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags[number % 5]};
    sigaddset(&action.sa_mask, 1 + number % 31);
    CHECK(sigaction(number, &action, NULL) == 0, "signal %d: %s", number, strerror(errno));
    CHECK(sigaction(number, NULL, &before[number]) == 0, "signal %d: %s", number, strerror(errno));
  }
  sigset_t own;
  sigemptyset(&own);
  sigaddset(&own, SIGTERM);
  sigaddset(&own, SIGRTMIN + 5);
  sigprocmask(SIG_SETMASK, &own, NULL);
  pthread_barrier_init(&parked, NULL, BYSTANDERS + 1);
  pthread_t others[BYSTANDERS];
  for (uintptr_t i = 0; i < BYSTANDERS; i++) CHECK(pthread_create(&others[i], NULL, bystander, (void *)i) == 0, "no thread");
  pthread_barrier_wait(&parked);
  EVENTUALLY(!some_begin()); /* the sanitizers have threads, too */
  pid_t list[64], list_after[64];
  uint64_t masks[64];
  const unsigned count = threads(list, 64);
  for (unsigned i = 0; i < count; i++) masks[i] = blocked_of(list[i]);

  live(3);
  usleep(50000); /* for what would come late */

  for (int number = 1; number < 65; number++) {
    EQUAL(handled[number], 0, "signals that arrived");
    if (!can_be_caught(number) || number == SIGALRM) continue;
    struct sigaction after;
    sigaction(number, NULL, &after);
    CHECK(after.sa_handler == before[number].sa_handler && after.sa_flags == before[number].sa_flags,
          "signal %d is handled otherwise", number);
    for (int other = 1; other < 65; other++)
      CHECK(sigismember(&after.sa_mask, other) == sigismember(&before[number].sa_mask, other),
            "signal %d is handled with another mask", number);
  }
  CHECK(sigaltstack(NULL, &stack_after) == 0 && stack_after.ss_sp == stack, "the signal stack is another");
  for (unsigned i = 0; i < count; i++) EQUAL(blocked_of(list[i]), masks[i], "signals that a thread blocks");
  /* Threads of ours handle none of the host's signals. */
  const unsigned count_after = threads(list_after, 64);
  for (unsigned i = 0; i < count_after; i++) {
    bool ours = true;
    for (unsigned k = 0; k < count; k++) ours = ours && list_after[i] != list[k];
    const uint64_t all = 0x7fffffff & ~(1ULL << (SIGKILL - 1)) & ~(1ULL << (SIGSTOP - 1));
    if (ours) EQUAL(blocked_of(list_after[i]) & all, all, "signals that a thread of ours blocks");
  }
  CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "the host can see a child");
  CHECK(waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD, "the host can see a clone");
  CHECK(wait(NULL) < 0 && errno == ECHILD, "wait() waits");
  __atomic_store_n(&released, true, __ATOMIC_RELEASE);
  for (unsigned i = 0; i < BYSTANDERS; i++) pthread_join(others[i], NULL);
}

static void signals_collector(void) { signals("ready"); }
static void signals_spool(void) { signals(NULL); }
static void signals_dead_collector(void) { signals("die"); }
static void signals_no_collector(void) { signals("exit"); }
static void signals_refused(void) { signals("refuse"); }

static void child_signal_ignored(void) {
  use("ready");
  signal(SIGCHLD, SIG_IGN);
  live(2);
  EQUAL(host_mask, 0xf47, "mask");
  struct sigaction action;
  sigaction(SIGCHLD, NULL, &action);
  CHECK(action.sa_handler == SIG_IGN, "SIGCHLD is handled otherwise");
  CHECK(waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD, "the host can see a child");
}

/* The host's own children are its own: none is reaped in its place, and its SIGCHLD comes once for each. */
static void own_children(void) {
  use("die"); /* two starts, in the middle of everything */
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigaction(SIGCHLD, &action, NULL);
  enum { CHILDREN = 4 };
  pid_t children[CHILDREN];
  for (int i = 0; i < CHILDREN; i++) {
    children[i] = fork();
    if (children[i] == 0) _exit(40 + i);
    siginfo_t info;
    while (waitid(P_PID, (id_t)children[i], &info, WEXITED | WNOWAIT) < 0) CHECK(errno == EINTR, "waitid: %s", strerror(errno));
  }
  const int arrived = handled[SIGCHLD];
  live(2);
  EQUAL(handled[SIGCHLD], arrived, "SIGCHLD");
  for (int i = 0; i < CHILDREN; i++) {
    int status = -1;
    CHECK(waitpid(children[i], &status, 0) == children[i], "child %d is gone: %s", i, strerror(errno));
    EQUAL(WEXITSTATUS(status), 40 + i, "its status");
  }
}

/* ---- timers ---- */

static __thread bool of_host; /* this thread */
static pid_t host_pid;
static volatile sig_atomic_t elsewhere;
static void on_timer(int number) {
  handled[number]++;
  /* Children that share our memory have our thread's variables, too. */
  if (!of_host || syscall(SYS_getpid) != host_pid) elsewhere++;
}

static void timers(const char *behavior) {
  use(behavior);
  alarm(0); /* it is the timer of ITIMER_REAL; the others end the case if something hangs */
  of_host = true;
  host_pid = getpid();
  struct sigaction action = {.sa_handler = on_timer}; /* without SA_RESTART: calls are interrupted */
  const int numbers[] = {SIGALRM, SIGPROF, SIGVTALRM, SIGRTMIN + 1, SIGRTMIN + 2};
  enum { TIMERS = sizeof numbers / sizeof *numbers };
  for (unsigned i = 0; i < TIMERS; i++) sigaction(numbers[i], &action, NULL);
  const struct itimerval often = {{0, 300}, {0, 300}};
  setitimer(ITIMER_REAL, &often, NULL);
  setitimer(ITIMER_PROF, &often, NULL);
  setitimer(ITIMER_VIRTUAL, &often, NULL);
  static const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID};
  timer_t made[2];
  const struct itimerspec spec = {{0, 300000}, {0, 300000}};
  for (unsigned i = 0; i < 2; i++) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1 + (int)i};
    CHECK(timer_create(clocks[i], &event, &made[i]) == 0, "timer_create: %s", strerror(errno));
    CHECK(timer_settime(made[i], 0, &spec, NULL) == 0, "timer_settime: %s", strerror(errno));
  }
  live(3);
  if (behavior) {
    EQUAL(host_mask, 0xf47, "mask");
    EQUAL(host_header()->collector_state, NCCLOTF2_COLLECTOR_READY, "the collector's state");
  }
  /* They all go on, here. */
  int arrived[TIMERS];
  for (unsigned i = 0; i < TIMERS; i++) arrived[i] = handled[numbers[i]];
  void *context = host_init(9, 2, 0);
  for (bool all = false; !all;) {
    for (int i = 0; i < 1000; i++) ncclProfiler_v6.stopEvent(host_start(context, host_descr(NCCLOTF2_COLL)));
    all = true;
    for (unsigned i = 0; i < TIMERS; i++) all = all && handled[numbers[i]] >= arrived[i] + 20;
  }
  ncclProfiler_v6.finalize(context);
  EQUAL(elsewhere, 0, "signals of timers that were handled elsewhere");
  struct itimerval now;
  static const int kinds[] = {ITIMER_REAL, ITIMER_PROF, ITIMER_VIRTUAL};
  for (unsigned i = 0; i < 3; i++) {
    getitimer(kinds[i], &now);
    CHECK(now.it_interval.tv_usec > 0 && now.it_interval.tv_usec <= 4000 && now.it_interval.tv_sec == 0, "a timer was changed");
  }
  for (unsigned i = 0; i < 2; i++) timer_delete(made[i]);
  const struct itimerval never = {{0, 0}, {0, 0}};
  for (unsigned i = 0; i < 3; i++) setitimer(kinds[i], &never, NULL);
}

static void timers_collector(void) { timers("ready"); }
static void timers_spool(void) { timers(NULL); }

static void on_beat(int number) { handled[number]++; }

/* Sampling profilers interrupt system calls, also those that do not wait. */
static void beat(long microseconds) {
  struct sigaction action = {.sa_handler = on_beat};
  sigaction(SIGPROF, &action, NULL);
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval often = {{0, microseconds}, {0, microseconds}};
  setitimer(ITIMER_REAL, &often, NULL);
  setitimer(ITIMER_PROF, &often, NULL);
}

static void timers_alive(void) {
  alarm(0);
  beat(20);
  for (int i = 0; handled[SIGALRM] < 5000; i++) CHECK(ncclotf2_process_alive(getpid()), "we are dead, at look %d", i);
  beat(0);
}

static void timers_shm(void) {
  alarm(0);
  setenv("NCCL_OTF2_RING", "shm", 1);
  setenv("NCCL_OTF2_MEMORY", "256M", 1);
  use("ready");
  beat(50);
  void *context = host_init(1, 2, 0);
  beat(0);
  unlink(host_header()->memory_path); /* the collector would */
  CHECK(handled[SIGALRM], "no signals");
  EQUAL(host_header()->memory_kind, NCCLOTF2_MEMORY_SHM, "the memory's kind");
  EQUAL((uint64_t)host_header()->chunk_count * NCCLOTF2_CHUNK_SIZE, 256 << 20, "its chunks");
  EQUAL(host_header()->collector_state, NCCLOTF2_COLLECTOR_READY, "the collector's state");
  ncclProfiler_v6.finalize(context);
}

/* ---- threads, descriptors, surroundings ---- */

static unsigned descriptors(void) {
  DIR *open_ones = opendir("/proc/self/fd");
  CHECK(open_ones, "/proc/self/fd: %s", strerror(errno));
  unsigned count = 0;
  for (struct dirent *entry; (entry = readdir(open_ones));) count += entry->d_name[0] != '.';
  closedir(open_ones);
  return count - 1; /* the folder's own */
}

static void *no_life(void *id) {
  *(pid_t *)id = gettid();
  return NULL;
}

/* A thread that has ended, and was joined, is the kernel's for a moment longer. */
static bool is_there(pid_t thread) {
  pid_t list[64];
  const unsigned count = threads(list, 64);
  bool there = false;
  for (unsigned i = 0; i < count; i++) there = there || list[i] == thread;
  return there;
}

static void costs(const char *behavior, unsigned more_threads, unsigned more_descriptors) {
  use(behavior);
  pthread_t first; /* sanitizers start a thread of their own with the program's first */
  pid_t id, list[64];
  CHECK(pthread_create(&first, NULL, no_life, &id) == 0, "no thread");
  pthread_join(first, NULL);
  EVENTUALLY(!is_there(id));
  const unsigned threads_before = threads(list, 64), descriptors_before = descriptors();
  for (int life = 0; life < 3; life++) {
    void *context = host_init(1, 2, 0);
    EQUAL(threads(list, 64), threads_before + more_threads, "threads");
    EQUAL(descriptors(), descriptors_before + more_descriptors, "descriptors");
    ncclProfiler_v6.finalize(context);
    EQUAL(threads(list, 64), threads_before + more_threads, "threads after finalize");
    EQUAL(descriptors(), descriptors_before + more_descriptors, "descriptors after finalize");
  }
}

static void costs_collector(void) { costs("ready", 1, 1); }  /* that prepares memory; the memory */
static void costs_spool(void) { costs(NULL, 1, 2); }         /* and the file */
static void costs_refused(void) { costs("refuse", 0, 1); }

struct surroundings {
  char cwd[PATH_MAX], name[16];
  char *variables[512];
  char *texts[512];
  mode_t mask;
  int nice, dumpable, death_signal, subreaper;
  pid_t session, group;
  cpu_set_t cpus;
  struct rlimit limits[RLIM_NLIMITS];
};

static void look_around(struct surroundings *now) {
  memset(now, 0, sizeof *now);
  CHECK(getcwd(now->cwd, sizeof now->cwd), "getcwd: %s", strerror(errno));
  prctl(PR_GET_NAME, now->name);
  for (unsigned i = 0; environ[i]; i++) {
    CHECK(i < 511, "too many variables");
    now->variables[i] = environ[i];
    now->texts[i] = strdup(environ[i]);
  }
  now->mask = umask(022);
  umask(now->mask);
  now->nice = getpriority(PRIO_PROCESS, 0);
  now->dumpable = prctl(PR_GET_DUMPABLE);
  prctl(PR_GET_PDEATHSIG, &now->death_signal);
  prctl(PR_GET_CHILD_SUBREAPER, &now->subreaper);
  now->session = getsid(0);
  now->group = getpgrp();
  sched_getaffinity(0, sizeof now->cpus, &now->cpus);
  for (unsigned i = 0; i < RLIM_NLIMITS; i++) getrlimit((__rlimit_resource_t)i, &now->limits[i]);
}

static void surroundings(const char *behavior) {
  setenv("LD_PRELOAD", "", 1);
  use(behavior);
  static struct surroundings before, after;
  char **const where = environ;
  look_around(&before);
  live(2);
  look_around(&after);
  CHECK(environ == where, "the environment lies elsewhere");
  for (unsigned i = 0; before.variables[i] || after.variables[i]; i++) {
    CHECK(before.variables[i] == after.variables[i], "variable %u is another", i);
    CHECK(strcmp(before.texts[i], after.texts[i]) == 0, "%s has become %s", before.texts[i], after.texts[i]);
  }
  for (unsigned i = 0; before.texts[i]; i++) {
    free(before.texts[i]);
    free(after.texts[i]);
    before.texts[i] = after.texts[i] = NULL;
  }
  CHECK(memcmp(&before, &after, sizeof before) == 0, "something around the host has changed (cwd %s, %s; name %s, %s; umask %o, %o; nice %d, %d)",
        before.cwd, after.cwd, before.name, after.name, before.mask, after.mask, before.nice, after.nice);
}
static void surroundings_collector(void) { surroundings("ready"); }
static void surroundings_spool(void) { surroundings(NULL); }

/* Ranks are mostly bound: what we start runs where the host may, and gets to run there. */
static void bound(void) {
  use("ready");
  cpu_set_t allowed, one;
  sched_getaffinity(0, sizeof allowed, &allowed);
  CPU_ZERO(&one);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &allowed)) cpu++;
  CPU_SET(cpu, &one);
  CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity: %s", strerror(errno));
  host_init(1, 2, 0);
  EQUAL(host_mask, 0xf47, "mask");
  EQUAL(host_header()->collector_state, NCCLOTF2_COLLECTOR_READY, "the collector's state");
  cpu_set_t theirs;
  CHECK(sched_getaffinity((pid_t)host_header()->collector_pid, sizeof theirs, &theirs) == 0, "the collector is gone");
  CHECK(CPU_EQUAL(&theirs, &one), "the collector runs elsewhere");
}

/* ---- children ---- */

static int spool_files(void) {
  char path[PATH_MAX + 8];
  snprintf(path, sizeof path, "%s/shards", directory());
  DIR *shards = opendir(path);
  int count = 0;
  for (struct dirent *entry; shards && (entry = readdir(shards));) count += entry->d_name[0] != '.';
  if (shards) closedir(shards);
  return count;
}

static void *context, *handle;

/* Whatever a child without exec may do. */
static void play_child(void) {
  CHECK(!host_start(context, host_descr(NCCLOTF2_COLL)), "recorded in a child");
  ncclProfiler_v6.recordEventState(handle, 22, NULL);
  ncclProfiler_v6.stopEvent(handle);
  int mask = 0x77;
  void *fresh = NULL;
  ncclProfiler_v6.init(&fresh, 9, &mask, NULL, 1, 2, 0, host_logger);
  CHECK(fresh, "NULL context");
  EQUAL(mask, 0x77, "mask in a child");
  CHECK(!host_start(fresh, host_descr(NCCLOTF2_COLL)), "recorded in a child");
  ncclProfiler_v6.finalize(fresh);
  ncclProfiler_v6.finalize(context);
}

static void *fork_in_thread(void *unused) {
  pid_t pid = fork();
  if (pid == 0) {
    play_child();
#if defined(__SANITIZE_ADDRESS__) /* at the exit, what the other threads had allocated would be taken for leaks */
    _exit(0);
#else
    exit(0);
#endif
  }
  int status = -1;
  waitpid(pid, &status, 0);
  EQUAL(status, 0, "the end of a thread's child");
  return unused;
}

static void children(const char *behavior) {
  use(behavior);
  context = host_init(1, 2, 0);
  handle = host_start(context, host_descr(NCCLOTF2_COLL));
  fflush(NULL);
  enum { FORK_EXIT, FORK_QUICK, FORK_EXEC, VFORK_EXEC, VFORK_QUICK, TWICE, SPAWN, SHELL, PIPE, THREAD, KINDS };
  for (unsigned kind = 0; kind < KINDS; kind++) {
    const struct ncclotf2_chunk *chunk = ncclotf2_chunk_at(ncclotf2_session.base, ncclotf2_ring->chunk - 1);
    const uint32_t committed = chunk->committed, request = host_header()->request, rings = host_header()->ring_used;
    pid_t pid = 0;
    int status = -1;
    char *const arguments[] = {"true", NULL};
    switch (kind) {
      case FORK_EXIT:
      case FORK_QUICK:
        if ((pid = fork()) == 0) {
          play_child();
          if (kind == FORK_EXIT) exit(0);
          _exit(0);
        }
        break;
      case FORK_EXEC:
        if ((pid = fork()) == 0) {
          play_child();
          execv("/bin/true", arguments);
          _exit(1);
        }
        break;
      case VFORK_EXEC:
        if ((pid = vfork()) == 0) {
          execv("/bin/true", arguments);
          _exit(1);
        }
        break;
      case VFORK_QUICK:
        if ((pid = vfork()) == 0) _exit(0);
        break;
      case TWICE: /* as daemons are made */
        if ((pid = fork()) == 0) {
          pid_t grandchild = fork();
          if (grandchild == 0) {
            setsid();
            play_child();
            exit(0);
          }
          int end = -1;
          waitpid(grandchild, &end, 0);
          exit(end != 0);
        }
        break;
      case SPAWN:
        CHECK(posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, environ) == 0, "posix_spawn");
        break;
      case SHELL: status = system("true"); break;
      case PIPE: {
        FILE *pipe = popen("true", "r");
        CHECK(pipe, "popen: %s", strerror(errno));
        status = pclose(pipe);
        break;
      }
      default: {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, fork_in_thread, NULL) == 0, "no thread");
        pthread_join(thread, NULL);
        status = 0;
        break;
      }
    }
    if (pid > 0) CHECK(waitpid(pid, &status, 0) == pid, "kind %u: waitpid: %s", kind, strerror(errno));
    CHECK(status == 0, "kind %u: the child's status is 0x%x", kind, (unsigned)status);
    EQUAL(chunk->committed, committed, "committed");
    EQUAL(host_header()->request, request, "requests");
    EQUAL(host_header()->ring_used, rings, "rings");
    EQUAL(host_header()->ended, 0, "ended");
    EQUAL(host_header()->live_comms, 1, "live communicators");
    EQUAL(host_header()->comm_used, 1, "communicators");
    CHECK(ncclotf2_fast.base, "kind %u: recording has ended in the parent", kind);
    CHECK(host_start(context, host_descr(NCCLOTF2_COLL)), "kind %u: refused in the parent", kind);
  }
  CHECK(host_header()->lost[NCCLOTF2_LOSS_FORK][NCCLOTF2_COLL] > 0, "events of children are not counted");
  ncclProfiler_v6.stopEvent(handle);
  ncclProfiler_v6.finalize(context);
  EQUAL(host_header()->answered, host_header()->request, "answers");
  EQUAL(spool_files(), behavior ? 0 : 1, "files");
}
static void children_collector(void) { children("ready"); }
#if defined(__SANITIZE_THREAD__) /* its runtime may hang in the fork of a process with threads */
#define CHILDREN_SPOOL_CASE
#else
static void children_spool(void) { children(NULL); }
#define CHILDREN_SPOOL_CASE , {"children of all kinds, with the spool", children_spool}
#endif

/* ---- many threads ---- */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static uint64_t resident(void) {
  unsigned long all = 0, pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  CHECK(file && fscanf(file, "%lu %lu", &all, &pages) == 2, "statm");
  fclose(file);
  return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

enum { SHORT_EVENTS = 20, SHORT_THREADS = 2, SHORT_BYTES = SHORT_EVENTS * (128 + 32) /* records of a thread */ };

static void *short_life(void *unused) {
  for (int i = 0; i < SHORT_EVENTS; i++) {
    void *event = host_start(context, host_descr(NCCLOTF2_COLL));
    if (event) ncclProfiler_v6.stopEvent(event);
  }
  return unused;
}

/* spooled waits until all but so many bytes of the records of so many rounds are in the file. */
static void spooled(int rounds, uint64_t all_but) {
  while (host_spooled() + all_but < (uint64_t)rounds * SHORT_THREADS * SHORT_BYTES) usleep(1000);
}

static void short_lives(void) {
  use(NULL);
  context = host_init(1, 2, 0);
  enum { WARM = 500, MORE = 3000, BEHIND = 1 << 20, HARDLY = 1 << 14 };
  uint64_t before = 0;
  for (int i = 0; i < WARM + MORE; i++) {
    if (i == WARM) {
      spooled(i, HARDLY);
      before = resident();
    }
    pthread_t several[SHORT_THREADS];
    for (int k = 0; k < SHORT_THREADS; k++) CHECK(pthread_create(&several[k], NULL, short_life, NULL) == 0, "no thread");
    for (int k = 0; k < SHORT_THREADS; k++) pthread_join(several[k], NULL);
    spooled(i + 1, BEHIND);
  }
  /* What is not in the file yet is in memory: 1 MiB of it is of 300 threads, each of which has a chunk of its own. */
  spooled(WARM + MORE, HARDLY);
  uint64_t after = resident();
  for (int i = 0; after >= before + (4u << 20) && i < 10000; i++) { /* chunks are given back behind what is written */
    usleep(1000);
    after = resident();
  }
  /* 120000 events are 19 MB of records; what one thread needs for itself is a chunk. */
  CHECK(after < before + (4u << 20), "%llu bytes resident, before %llu", (unsigned long long)after, (unsigned long long)before);
  CHECK(host_header()->ring_used <= 3, "%u rings", host_header()->ring_used);
}
#define MEMORY_CASE , {"thousands of short-lived threads take no more memory", short_lives}
#else /* whose memory would be measured */
#define MEMORY_CASE
#endif

TEST_MAIN({"signals, with a collector", signals_collector}, {"signals, with the spool", signals_spool},
          {"signals, with a collector that dies", signals_dead_collector},
          {"signals, with a collector that does not start", signals_no_collector},
          {"signals, with a collector that refuses", signals_refused},
          {"SIGCHLD stays ignored", child_signal_ignored},
          {"the host's own children stay its own", own_children},
          {"timers, with a collector", timers_collector}, {"timers, with the spool", timers_spool},
          {"timers do not kill the collector", timers_alive},
          {"timers, with memory in /dev/shm", timers_shm},
          {"a collector costs one descriptor and one thread", costs_collector},
          {"the spool costs two descriptors and one thread", costs_spool},
          {"a refusal costs one descriptor", costs_refused},
          {"what surrounds the host, with a collector", surroundings_collector},
          {"what surrounds the host, with the spool", surroundings_spool},
          {"a bound rank has its collector beside it", bound},
          {"children of all kinds, with a collector", children_collector}
          CHILDREN_SPOOL_CASE
          MEMORY_CASE)
