/* SPDX-License-Identifier: Apache-2.0
 *
 * The host must neither get a SIGCHLD for the collector nor reap it with a careless wait(). So a
 * first child, which has no exit signal, starts a second and ends; the second has no exit signal
 * either, and its parent is then init (or a subreaper). Both share our memory until the second has
 * become the collector, and this thread stands still meanwhile (CLONE_VFORK): no copy of a huge
 * address space, no limit on committed memory, no fork handlers of other libraries.
 *
 * The children therefore run with all signals blocked until their handlers are reset (a handler of
 * the host must not run in them, on the host's memory), do system calls only, and do not touch
 * what other threads of the host may use.
 */
#include "collector.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "futex.h"
#include "session.h"
#include "settings.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#if defined(__SANITIZE_THREAD__)
/* The sanitizer's clone treats every child as a fork and changes its own state, which the child shares with us. */
int __clone(int (*function)(void *), void *stack, int flags, void *argument, ...);
#define clone __clone
#endif

extern char **environ;

enum {
  STACK = 64 << 10,
  COLLECTOR_FD = 3, /* where the collector finds the memory */
  FILES = 64, /* descriptors that the collector needs at least; it raises its limit as far as it may */
  NICE = 5
};

struct launch {
  const char *path;
  char **argv, **envp;
  int memfd;
  bool keep_stderr;
  rlim_t most_fds;
  uint8_t *second_stack;
  pid_t pid;   /* the collector's */
  int problem; /* errno of what went wrong in the children */
};

/* 64 signals as the kernel counts them; glibc's own wrappers spare its two internal ones. */
static void block_signals(uint64_t *before) {
  uint64_t all = UINT64_MAX;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, before, sizeof all);
}

static void restore_signals(const uint64_t *before) {
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, before, NULL, sizeof *before);
}

#define IN_CHILD __attribute__((no_sanitize("address", "thread", "undefined"), noinline))

/* struct kernel_sigaction is all zero for SIG_DFL, of any size on the architecture. */
static IN_CHILD void reset_handlers(void) {
  static const uint64_t zero[8];
  for (int number = 1; number <= 64; number++)
    if (number != SIGKILL && number != SIGSTOP) syscall(SYS_rt_sigaction, number, zero, NULL, sizeof(uint64_t));
}

static IN_CHILD void arrange_descriptors(const struct launch *launch) {
  if (launch->memfd == COLLECTOR_FD)
    syscall(SYS_fcntl, COLLECTOR_FD, F_SETFD, 0);
  else
    syscall(SYS_dup3, launch->memfd, COLLECTOR_FD, 0);
  /* Whoever waits for the end of the job's output must not wait for the collector. Without /dev/null (a bare root) or
   * a descriptor to spare, a directory will do: reading and writing it fail. */
  for (int fd = 0; fd <= (launch->keep_stderr ? 1 : 2); fd++) {
    syscall(SYS_close, fd);
    if (syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0) < 0) syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY | O_DIRECTORY, 0);
  }
  if (syscall(SYS_close_range, COLLECTOR_FD + 1, ~0u, 0) != 0)
    for (rlim_t fd = COLLECTOR_FD + 1; fd < launch->most_fds; fd++) syscall(SYS_close, (int)fd);
}

static IN_CHILD int second_child(void *argument) {
  struct launch *launch = argument;
  reset_handlers();
  arrange_descriptors(launch);
  syscall(SYS_setsid);
  /* getpriority answers 20 - nice, so that it is never negative. */
  long priority = syscall(SYS_getpriority, PRIO_PROCESS, 0);
  if (priority > 0) syscall(SYS_setpriority, PRIO_PROCESS, 0, (int)(20 - priority + NICE));
  static const uint64_t none;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof none);
  launch->problem = 0;
  if (syscall(SYS_execve, launch->path, launch->argv, launch->envp) != 0) launch->problem = errno;
  syscall(SYS_exit_group, 127);
  return 127;
}

static IN_CHILD int first_child(void *argument) {
  struct launch *launch = argument;
  launch->pid = clone(second_child, launch->second_stack, CLONE_VM | CLONE_VFORK, launch);
  if (launch->pid < 0) launch->problem = errno;
  syscall(SYS_exit_group, 0);
  return 0;
}

/* What the children report lies in a shared mapping, beside their stacks: tools that run a program on
 * an emulated processor (valgrind) make forks of such children. */
struct shared {
  uint8_t stacks[2 * STACK];
  struct launch launch;
};

static bool spawn(struct launch *request) {
  struct shared *shared =
      mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (shared == MAP_FAILED) {
    request->problem = errno;
    return false;
  }
  struct launch *launch = &shared->launch;
  *launch = *request;
  launch->second_stack = shared->stacks + 2 * STACK;
  launch->pid = -1;
  launch->problem = ECHILD;
  uint64_t before;
  block_signals(&before);
  pid_t first = clone(first_child, shared->stacks + STACK, CLONE_VM | CLONE_VFORK, launch);
  if (first < 0)
    launch->problem = errno;
  else
    while (waitpid(first, NULL, __WALL) < 0 && errno == EINTR) {
    }
  restore_signals(&before);
  *request = *launch;
  munmap(shared, sizeof *shared);
  return first >= 0 && request->pid > 0 && request->problem == 0;
}

static bool can_be_signaled(pid_t pid) { return kill(pid, 0) == 0 || errno == EPERM; }

bool ncclotf2_process_alive(pid_t pid) {
  if (pid <= 0) return false;
  int fd = (int)syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0) return errno != ESRCH && can_be_signaled(pid);
  struct pollfd ended = {.fd = fd, .events = POLLIN};
  int ends;
  do ends = poll(&ended, 1, 0); /* a profiler's timer can interrupt it although it does not wait */
  while (ends < 0 && errno == EINTR);
  close(fd);
  return ends < 0 ? can_be_signaled(pid) : ends == 0;
}

/* A thread's state, field 3 of its stat; the second one is its name and may contain anything. */
static char thread_state(const char *task, const char *thread) {
  char path[PATH_MAX], stat[1024];
  snprintf(path, sizeof path, "%s/%s/stat", task, thread);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t got = fd < 0 ? -1 : read(fd, stat, sizeof stat - 1);
  if (fd >= 0) close(fd);
  stat[got > 0 ? got : 0] = '\0';
  const char *end = strrchr(stat, ')');
  return end && end[1] ? end[2] : '\0';
}

const char *ncclotf2_process_holdup(pid_t pid) {
  char task[64], states[256] = "";
  snprintf(task, sizeof task, "/proc/%d/task", (int)pid);
  DIR *threads = opendir(task);
  size_t count = 0;
  for (const struct dirent *thread; threads && count + 1 < sizeof states && (thread = readdir(threads));)
    if (thread->d_name[0] != '.' && (states[count] = thread_state(task, thread->d_name))) count++;
  if (threads) closedir(threads);
  states[count] = '\0';
  return !count                 ? "what it is doing cannot be seen"
         : strchr(states, 'R')  ? NULL
         : strpbrk(states, "Tt") ? "it is stopped"
         : strchr(states, 'D')  ? "it waits for a disk or a network file system"
                                : "it waits for something";
}

/* Where the tool lies, seen from this library's folder: beside it, or in the bin of a prefix whose lib that is. From any
 * other folder nothing is looked for elsewhere: of /tmp/mine that would be /tmp/bin, which anybody can make.
 * internal/installed finds the library from the tool by the same places. */
static const struct {
  const char *folder; /* how the library's folder ends */
  const char *tool;   /* the tool's, seen from there */
} tool_folders[] = {
    {"", ""}, {"/lib", "/../bin"}, {"/lib64", "/../bin"}, {"/lib/x86_64-linux-gnu", "/../../bin"}, {"/lib/aarch64-linux-gnu", "/../../bin"}};

static bool near_library(const char *library, char *path, size_t size) {
  const char *slash = strrchr(library, '/');
  int length = slash ? (int)(slash - library) : 1;
  for (size_t i = 0; i < sizeof tool_folders / sizeof *tool_folders; i++) {
    const int end = (int)strlen(tool_folders[i].folder);
    if (end <= length && strncmp((slash ? library : ".") + length - end, tool_folders[i].folder, (size_t)end) == 0 &&
        (size_t)snprintf(path, size, "%.*s%s/nccl-otf2", length, slash ? library : ".", tool_folders[i].tool) < size && access(path, X_OK) == 0)
      return true;
  }
  return false;
}

/* What a tool's installation has for this alone: a smaller program, which starts sooner (cmd/nccl-otf2-collector). libexec
 * lies in the tool's folder where all was copied to one, and beside it where that is the bin of a prefix. */
static void prefer_small(char *path, size_t size) {
  static const char *const places[] = {"", "/.."};
  char small[PATH_MAX];
  const int folder = (int)(strrchr(path, '/') - path);
  const bool prefix = folder >= 4 && strncmp(path + folder - 4, "/bin", 4) == 0;
  for (size_t i = 0; i < (prefix ? 2 : 1); i++) {
    const int length = snprintf(small, sizeof small, "%.*s%s/libexec/nccl-otf2/nccl-otf2-collector", folder, path, places[i]);
    if (length > 0 && (size_t)length < size && (size_t)length < sizeof small && access(small, X_OK) == 0) {
      memcpy(path, small, (size_t)length + 1);
      return;
    }
  }
}

/* NCCL_OTF2_COLLECTOR, else that of the same installation; links are followed if there is no tool where the link is. */
static bool find(char *path, size_t size, char *why, size_t why_size) {
  const char *setting = ncclotf2_setting(NCCLOTF2_SETTING_COLLECTOR).text;
  if (setting) {
    if ((size_t)snprintf(path, size, "%s", setting) < size && access(path, X_OK) == 0) return true;
    snprintf(why, why_size, "NCCL_OTF2_COLLECTOR=%s cannot be executed", setting);
    return false;
  }
  Dl_info library;
  char real[PATH_MAX];
  if (dladdr((void *)(uintptr_t)&ncclotf2_collector_start, &library) && library.dli_fname &&
      (near_library(library.dli_fname, path, size) ||
       (realpath(library.dli_fname, real) && near_library(real, path, size)))) {
    prefer_small(path, size);
    return true;
  }
  snprintf(why, why_size, "no program nccl-otf2 beside the library or in ../bin (and NCCL_OTF2_COLLECTOR is not set)");
  return false;
}

/* Libraries to be put into the job's programs, which can be anything; the collector loads libraries, too. */
static bool is_for_the_job(const char *variable) {
  return strncmp(variable, "LD_PRELOAD=", 11) == 0 || strncmp(variable, "LD_AUDIT=", 9) == 0;
}

static char **environment(void) {
  size_t count = 0;
  while (environ && environ[count]) count++;
  char **copy = calloc(count + 1, sizeof *copy);
  if (!copy) return NULL;
  size_t kept = 0;
  for (size_t i = 0; i < count; i++)
    if (!is_for_the_job(environ[i])) copy[kept++] = environ[i];
  return copy;
}

/* A program that closes all descriptors also closes ours; the number may now refer to another file. */
static bool memory_is_open(void) {
  struct stat info;
  return fstat(ncclotf2_session.memfd, &info) == 0 && info.st_dev == ncclotf2_session.memfd_device &&
         info.st_ino == ncclotf2_session.memfd_inode;
}

static enum ncclotf2_start wait_ready(pid_t pid, bool (*meanwhile)(void)) {
  uint32_t *word = &ncclotf2_header_at(ncclotf2_session.base)->collector_state;
  const uint64_t deadline = ncclotf2_clock_monotonic() + ncclotf2_setting(NCCLOTF2_SETTING_START_LIMIT).number * 1000000000;
  for (;;) {
    bool alive = ncclotf2_process_alive(pid); /* read before the answer: a collector's last answer counts */
    switch (__atomic_load_n(word, __ATOMIC_ACQUIRE)) {
      case NCCLOTF2_COLLECTOR_READY: return NCCLOTF2_START_READY;
      case NCCLOTF2_COLLECTOR_REFUSED: return NCCLOTF2_START_REFUSED;
      default: break;
    }
    if (!alive) return NCCLOTF2_START_FAILED;
    if (ncclotf2_clock_monotonic() >= deadline) return NCCLOTF2_START_LATE;
    if (!meanwhile || !meanwhile()) ncclotf2_futex_wait(word, NCCLOTF2_COLLECTOR_NONE, 10);
  }
}

enum ncclotf2_start ncclotf2_collector_start(pid_t *pid, bool (*meanwhile)(void), char *why, size_t why_size) {
  *pid = 0;
  char path[PATH_MAX];
  if (!find(path, sizeof path, why, why_size)) return NCCLOTF2_START_FAILED;
  if (ncclotf2_session.memfd < 0) {
    snprintf(why, why_size, "the collector cannot share the memory");
    return NCCLOTF2_START_FAILED;
  }
  if (!memory_is_open()) {
    snprintf(why, why_size, "the program has closed the shared memory's descriptor");
    return NCCLOTF2_START_FAILED;
  }
  struct rlimit files = {.rlim_cur = 1024, .rlim_max = 1024};
  getrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_max < FILES) {
    snprintf(why, why_size, "a collector needs %d descriptors, and may have %llu (ulimit -n)", FILES, (unsigned long long)files.rlim_max);
    return NCCLOTF2_START_FAILED;
  }
  char **envp = environment();
  if (!envp) {
    snprintf(why, why_size, "no memory");
    return NCCLOTF2_START_FAILED;
  }
  char command[] = "collect", option[] = "--fd", number[] = {'0' + COLLECTOR_FD, '\0'};
  char *argv[] = {path, command, option, number, NULL};
  struct launch launch = {.path = path,
                          .argv = argv,
                          .envp = envp,
                          .memfd = ncclotf2_session.memfd,
                          .keep_stderr = ncclotf2_setting(NCCLOTF2_SETTING_DEBUG).number,
                          .most_fds = files.rlim_cur < 65536 ? files.rlim_cur : 65536};
  __atomic_store_n(&ncclotf2_header_at(ncclotf2_session.base)->collector_state, NCCLOTF2_COLLECTOR_NONE,
                   __ATOMIC_RELEASE);
  bool started = spawn(&launch);
  free(envp);
  if (!started) {
    snprintf(why, why_size, "%s could not be started (%s)", path, strerror(launch.problem));
    return NCCLOTF2_START_FAILED;
  }
  *pid = launch.pid;
  enum ncclotf2_start start = wait_ready(launch.pid, meanwhile);
  if (start == NCCLOTF2_START_FAILED) snprintf(why, why_size, "%s ended before it was ready", path);
  return start;
}
