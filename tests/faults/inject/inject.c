/* SPDX-License-Identifier: Apache-2.0
 *
 * inject: becomes another program, whose n-th system call on a folder's files fails, or is its last. In a Go program
 * no library stands between it and the kernel, so this is done below: the kernel asks about each call of some kinds
 * (seccomp user notification), and a process beside the program answers.
 *
 *   INJECT_PROGRAM  what to become; arguments and environment are handed on
 *   INJECT_BELOW    absolute path: calls on what is below it count
 *   INJECT_CALLS    which: names of kinds below, with commas
 *   INJECT_AT       which of them it is, from 1
 *   INJECT_TIMES    how many from there on; 0: all
 *   INJECT_DO       a number: that errno. short: half of what a write was to write is written (a call that cannot be
 *                   done in part is done). kill: the program is killed before the call. stop: it stops, to go on
 *                   INJECT_STOP_MS later
 *   INJECT_ONCE     a file that must not be there yet: nothing is done if it is. It is made
 *   INJECT_LOG      a file to which each of them is appended
 *
 * Exit status 125: it cannot be done on this machine; a line on standard error, and in the log, says why.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

enum { CANNOT = 125 };

/* Where a call says which file it is about. */
enum subject { FILE_DESCRIPTOR, PATH_AT, PATH, NEW_PATH_AT };

struct watched {
  int number;
  enum subject subject;
  int argument; /* the descriptor, or that of the folder with the path behind it, or the path */
  const char *kind, *name;
};

static const struct watched calls[] = {
#ifdef SYS_open
  { SYS_open, PATH, 0, "open", "open" },
#endif
#ifdef SYS_rename
  { SYS_rename, PATH, 1, "name", "rename" },
  { SYS_link, PATH, 1, "name", "link" },
  { SYS_mkdir, PATH, 0, "name", "mkdir" },
  { SYS_unlink, PATH, 0, "name", "unlink" },
#endif
  { SYS_openat, PATH_AT, 0, "open", "openat" },
#ifdef SYS_renameat
  { SYS_renameat, NEW_PATH_AT, 2, "name", "renameat" },
#endif
  { SYS_renameat2, NEW_PATH_AT, 2, "name", "renameat2" },
  { SYS_linkat, NEW_PATH_AT, 2, "name", "linkat" },
  { SYS_mkdirat, PATH_AT, 0, "name", "mkdirat" },
  { SYS_unlinkat, PATH_AT, 0, "name", "unlinkat" },
  { SYS_write, FILE_DESCRIPTOR, 0, "write", "write" },
  { SYS_pwrite64, FILE_DESCRIPTOR, 0, "write", "pwrite64" },
  { SYS_writev, FILE_DESCRIPTOR, 0, "write", "writev" },
  { SYS_pwritev, FILE_DESCRIPTOR, 0, "write", "pwritev" },
  { SYS_ftruncate, FILE_DESCRIPTOR, 0, "write", "ftruncate" },
  { SYS_copy_file_range, FILE_DESCRIPTOR, 2, "write", "copy_file_range" },
  { SYS_fsync, FILE_DESCRIPTOR, 0, "sync", "fsync" },
  { SYS_fdatasync, FILE_DESCRIPTOR, 0, "sync", "fdatasync" },
  { SYS_syncfs, FILE_DESCRIPTOR, 0, "sync", "syncfs" },
  { SYS_sync_file_range, FILE_DESCRIPTOR, 0, "sync", "sync_file_range" },
  { SYS_read, FILE_DESCRIPTOR, 0, "read", "read" },
  { SYS_pread64, FILE_DESCRIPTOR, 0, "read", "pread64" },
  { SYS_getdents64, FILE_DESCRIPTOR, 0, "read", "getdents64" },
};
enum { CALLS = sizeof calls / sizeof *calls };

static struct {
  const char *program, *below, *kinds, *what, *log;
  unsigned long at, times, stop_ms;
  unsigned long count, done;
  pid_t target;
} plan;

static void __attribute__((format(printf, 1, 2))) note(const char *format, ...)
{
  char line[PATH_MAX + 256];
  va_list ap;
  va_start(ap, format);
  int length = vsnprintf(line, sizeof line - 1, format, ap);
  va_end(ap);
  if (length < 0) return;
  if ((size_t)length > sizeof line - 2) length = sizeof line - 2;
  line[length++] = '\n';
  int fd = plan.log ? open(plan.log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (fd < 0) return;
  if (write(fd, line, (size_t)length) != length) perror("inject: log");
  close(fd);
}

static void __attribute__((noreturn)) cannot(const char *what)
{
  int problem = errno;
  fprintf(stderr, "inject: %s: %s\n", what, strerror(problem));
  note("cannot: %s: %s", what, strerror(problem));
  _exit(CANNOT);
}

/* ---- which calls ---------------------------------------------------------------------------- */

static bool listed(const char *names, const char *name)
{
  const size_t length = strlen(name);
  for (const char *at = names; (at = strstr(at, name)); at += length)
    if ((at == names || at[-1] == ',') && (at[length] == ',' || !at[length])) return true;
  return false;
}

static bool link_of(pid_t pid, const char *what, char *path, size_t size)
{
  char name[64];
  snprintf(name, sizeof name, "/proc/%d/%s", pid, what);
  ssize_t n = readlink(name, path, size - 1);
  if (n < 0) return false;
  path[n] = '\0';
  return true;
}

static bool path_of_descriptor(pid_t pid, int fd, char *path, size_t size)
{
  char what[32];
  if (fd == AT_FDCWD) return link_of(pid, "cwd", path, size);
  snprintf(what, sizeof what, "fd/%d", fd);
  return link_of(pid, what, path, size);
}

/* A string of the program's, up to the end of its page at a time. */
static bool string_of(pid_t pid, uint64_t address, char *text, size_t size)
{
  for (size_t done = 0; done < size;) {
    size_t step = 4096 - (size_t)((address + done) & 4095);
    if (step > size - done) step = size - done;
    struct iovec here = { text + done, step }, there = { (void *)(uintptr_t)(address + done), step };
    if (process_vm_readv(pid, &here, 1, &there, 1, 0) != (ssize_t)step) return false;
    if (memchr(text + done, 0, step)) return true;
    done += step;
  }
  return false;
}

static bool path_of_call(const struct watched *w, const struct seccomp_notif *call, char *path, size_t size)
{
  const pid_t pid = (pid_t)call->pid;
  const int fd = (int)call->data.args[w->argument];
  if (w->subject == FILE_DESCRIPTOR) return path_of_descriptor(pid, fd, path, size);
  char name[PATH_MAX], folder[PATH_MAX];
  const bool alone = w->subject == PATH;
  if (!string_of(pid, call->data.args[w->argument + !alone], name, sizeof name)) return false;
  if (name[0] == '/') return (size_t)snprintf(path, size, "%s", name) < size;
  return path_of_descriptor(pid, alone ? AT_FDCWD : fd, folder, sizeof folder) &&
         (size_t)snprintf(path, size, "%s/%s", folder, name) < size;
}

static const struct watched *watched_call(int number)
{
  for (int i = 0; i < CALLS; i++)
    if (calls[i].number == number) return &calls[i];
  return NULL;
}

static bool is_below(const char *path)
{
  const size_t length = strlen(plan.below);
  return strncmp(path, plan.below, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

/* ---- what is done to them ------------------------------------------------------------------- */

static void pause_ms(unsigned long ms)
{
  struct timespec left = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {}
}

/* Writes the first half in the program's place. */
static bool write_half(const struct seccomp_notif *call, int64_t *written)
{
  const bool positioned = call->data.nr == SYS_pwrite64;
  if (call->data.nr != SYS_write && !positioned) return false;
  const uint64_t half = call->data.args[2] / 2;
  if (half == 0 || half > (1 << 20)) return false;
  static uint8_t bytes[1 << 20];
  struct iovec here = { bytes, half }, there = { (void *)(uintptr_t)call->data.args[1], half };
  if (process_vm_readv((pid_t)call->pid, &here, 1, &there, 1, 0) != (ssize_t)half) return false;
  int process = (int)syscall(SYS_pidfd_open, plan.target, 0);
  int fd = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, (int)call->data.args[0], 0);
  if (process >= 0) close(process);
  if (fd < 0) return false;
  *written = positioned ? pwrite(fd, bytes, half, (off_t)call->data.args[3]) : write(fd, bytes, half);
  close(fd);
  return *written > 0;
}

/* What the program is told; false: nothing any more. */
static bool answer(const struct seccomp_notif *call, struct seccomp_notif_resp *to)
{
  char path[2 * PATH_MAX];
  const struct watched *w = watched_call(call->data.nr);
  to->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  if (!w || !path_of_call(w, call, path, sizeof path) || !is_below(path)) return true;
  plan.count++;
  if (plan.count < plan.at || (plan.times && plan.count >= plan.at + plan.times)) return true;
  if (plan.done++ < 20) note("call %lu: %s %s: %s", plan.count, w->name, path, plan.what);
  if (strcmp(plan.what, "kill") == 0) {
    kill(plan.target, SIGKILL);
    return false;
  } else if (strcmp(plan.what, "stop") == 0) {
    kill(plan.target, SIGSTOP);
    pause_ms(plan.stop_ms);
    kill(plan.target, SIGCONT);
  } else if (strcmp(plan.what, "short") == 0) {
    int64_t written;
    if (write_half(call, &written)) to->flags = 0, to->val = written;
  } else {
    to->flags = 0;
    to->error = -atoi(plan.what);
  }
  return true;
}

static void supervise(int listener)
{
  struct seccomp_notif_sizes sizes;
  if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) != 0) cannot("sizes of notifications");
  struct seccomp_notif *call = calloc(1, sizes.seccomp_notif + sizeof *call);
  struct seccomp_notif_resp *to = calloc(1, sizes.seccomp_notif_resp + sizeof *to);
  if (!call || !to) cannot("memory");
  for (struct pollfd fd = { .fd = listener, .events = POLLIN };;) {
    if (poll(&fd, 1, -1) < 0 && errno != EINTR) cannot("poll");
    if (fd.revents & POLLIN) {
      memset(call, 0, sizes.seccomp_notif);
      if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, call) != 0) continue; /* the caller is gone, or was interrupted */
      memset(to, 0, sizes.seccomp_notif_resp);
      to->id = call->id;
      if (answer(call, to)) (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, to);
    } else if (fd.revents & (POLLHUP | POLLERR)) {
      break; /* nobody is left */
    }
  }
  note("calls %lu", plan.count);
  free(call);
  free(to);
}

/* ---- start ---------------------------------------------------------------------------------- */

static int install(void)
{
  struct sock_filter program[2 * CALLS + 2];
  unsigned short n = 0;
  program[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (int i = 0; i < CALLS; i++) {
    if (!listed(plan.kinds, calls[i].kind)) continue;
    program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].number, 0, 1);
    program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
  }
  program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog filter = { n, program };
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) cannot("no_new_privs");
  /* A Go program sends itself signals all the time; a call that the supervisor has begun with is not to begin anew. */
  unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
  int listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
  if (listener < 0 && errno == EINVAL)
    listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, (unsigned long)SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
  return listener;
}

static unsigned long number(const char *name, unsigned long otherwise)
{
  const char *text = getenv(name);
  return text && *text ? strtoul(text, NULL, 10) : otherwise;
}

static const char *needed(const char *name)
{
  const char *text = getenv(name);
  if (!text || !*text) {
    fprintf(stderr, "inject: %s is not set\n", name);
    _exit(2);
  }
  return text;
}

/* Takes the listener from the program, holds nothing else that is the program's, and ends when the program has. */
static void __attribute__((noreturn)) be_supervisor(int from)
{
  char byte, room[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
  struct iovec part = { &byte, 1 };
  struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
  setsid();
  if (dup2(from, 0) != 0 || syscall(SYS_close_range, 1, ~0U, 0) != 0) cannot("descriptors");
  if (recvmsg(0, &message, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&message)) _exit(CANNOT);
  int listener;
  memcpy(&listener, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof listener);
  supervise(listener);
  _exit(0);
}

static void hand_over(int to, int listener)
{
  char byte = 0, room[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = { 0 };
  struct iovec part = { &byte, 1 };
  struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
  struct cmsghdr *head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof listener);
  memcpy(CMSG_DATA(head), &listener, sizeof listener);
  if (sendmsg(to, &message, 0) != 1) cannot("handing over");
}

int main(int argc, char **argv)
{
  if (argc < 1) return 2;
  plan.program = needed("INJECT_PROGRAM");
  plan.below = needed("INJECT_BELOW");
  plan.kinds = needed("INJECT_CALLS");
  plan.what = needed("INJECT_DO");
  plan.at = number("INJECT_AT", 1);
  plan.times = number("INJECT_TIMES", 1);
  plan.stop_ms = number("INJECT_STOP_MS", 100);
  plan.log = getenv("INJECT_LOG");
  plan.target = getpid();
  const char *once = getenv("INJECT_ONCE");
  if (once && *once) {
    int made = open(once, O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (made < 0) {
      execv(plan.program, argv);
      cannot(plan.program);
    }
    close(made);
  }
  /* Nobody has to wait for the supervisor: the child that starts it ends at once. */
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) cannot("socketpair");
  pid_t child = fork();
  if (child < 0) cannot("fork");
  if (child == 0) {
    if (fork() == 0) be_supervisor(pair[1]);
    _exit(0);
  }
  while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
  (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* EINVAL: nobody asks for it here */
  int listener = install();
  if (listener < 0) cannot("seccomp");
  hand_over(pair[0], listener);
  execv(plan.program, argv);
  cannot(plan.program);
}
