/* SPDX-License-Identifier: Apache-2.0
 *
 * inject: becomes another program, whose n-th system call of some kind fails, or is its last. In a Go program
 * no library stands between it and the kernel, so this is done below: the kernel asks about each call of some kinds
 * (seccomp user notification), and a process beside the program answers.
 *
 *   INJECT_PROGRAM  what to become; arguments and environment are handed on
 *   INJECT_BELOW    absolute path: only calls on what is below it count. Not set: all do, of those on a descriptor
 *                   the ones on files that have a name (by others the language's runtime wakes itself)
 *   INJECT_RULES    "calls at times do;…". Of the calls of these kinds (names below, with commas) it is the one of number
 *                   `at`, from 1, and so many from there on; 0: all. Each rule counts for itself, the first one that fits does it. Empty: none
 *     do            a number: that errno. short: half of what a write was to write is written (a call that cannot be
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

#include "plugin/shm.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

enum { CANNOT = 125, RULES = 16, MOST_LOGGED = 20 };

/* Where a call says which file it is about. */
enum subject { FILE_DESCRIPTOR, PATH_AT, PATH, NEW_PATH_AT, NO_FILE };

struct watched {
  int number;
  enum subject subject;
  int argument; /* the descriptor, or that of the folder with the path behind it, or the path */
  const char *kind, *name; /* a rule may say either */
};

static const struct watched calls[] = {
#ifdef SYS_open
  { SYS_open, PATH, 0, "opens", "open" },
#endif
#ifdef SYS_rename
  { SYS_rename, PATH, 1, "names", "rename" },
  { SYS_link, PATH, 1, "names", "link" },
  { SYS_mkdir, PATH, 0, "names", "mkdir" },
  { SYS_unlink, PATH, 0, "names", "unlink" },
#endif
  { SYS_openat, PATH_AT, 0, "opens", "openat" },
#ifdef SYS_renameat
  { SYS_renameat, NEW_PATH_AT, 2, "names", "renameat" },
#endif
  { SYS_renameat2, NEW_PATH_AT, 2, "names", "renameat2" },
  { SYS_linkat, NEW_PATH_AT, 2, "names", "linkat" },
  { SYS_mkdirat, PATH_AT, 0, "names", "mkdirat" },
  { SYS_unlinkat, PATH_AT, 0, "names", "unlinkat" },
  { SYS_write, FILE_DESCRIPTOR, 0, "writes", "write" },
  { SYS_pwrite64, FILE_DESCRIPTOR, 0, "writes", "pwrite64" },
  { SYS_writev, FILE_DESCRIPTOR, 0, "writes", "writev" },
  { SYS_pwritev, FILE_DESCRIPTOR, 0, "writes", "pwritev" },
  { SYS_ftruncate, FILE_DESCRIPTOR, 0, "writes", "ftruncate" },
  { SYS_copy_file_range, FILE_DESCRIPTOR, 2, "writes", "copy_file_range" },
  { SYS_fsync, FILE_DESCRIPTOR, 0, "syncs", "fsync" },
  { SYS_fdatasync, FILE_DESCRIPTOR, 0, "syncs", "fdatasync" },
  { SYS_syncfs, FILE_DESCRIPTOR, 0, "syncs", "syncfs" },
  { SYS_sync_file_range, FILE_DESCRIPTOR, 0, "syncs", "sync_file_range" },
  { SYS_read, FILE_DESCRIPTOR, 0, "reads", "read" },
  { SYS_pread64, FILE_DESCRIPTOR, 0, "reads", "pread64" },
  { SYS_getdents64, FILE_DESCRIPTOR, 0, "reads", "getdents64" },
  { SYS_fallocate, NO_FILE, 0, "others", "fallocate" },
  { SYS_flock, NO_FILE, 0, "others", "flock" },
  { SYS_statfs, NO_FILE, 0, "others", "statfs" },
  { SYS_pidfd_open, NO_FILE, 0, "others", "pidfd_open" },
  { SYS_sched_setaffinity, NO_FILE, 0, "others", "sched_setaffinity" },
  { SYS_clone, NO_FILE, 0, "others", "clone" },
  { SYS_clone3, NO_FILE, 0, "others", "clone3" },
  { SYS_epoll_create1, NO_FILE, 0, "others", "epoll_create1" },
};
enum { CALLS = sizeof calls / sizeof *calls };

/* The kind of calls that open a file which they may make. */
static const char creates[] = "creates";

struct rule {
  char calls[128], what[16];
  unsigned long at, times;
  unsigned long count;
};

static struct {
  const char *program, *below, *log;
  struct rule rules[RULES];
  int count;
  unsigned long stop_ms;
  unsigned long done;
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

static bool opens(const struct watched *w) { return strcmp(w->kind, "opens") == 0; }

/* Whether a rule is about a call, whatever its arguments. */
static bool names(const struct rule *r, const struct watched *w)
{
  return listed(r->calls, w->kind) || listed(r->calls, w->name) || (opens(w) && listed(r->calls, creates));
}

static bool wanted(const struct rule *r, const struct watched *w, const struct seccomp_notif *call)
{
  if (!names(r, w)) return false;
  if (listed(r->calls, w->kind) || listed(r->calls, w->name)) return true;
  return (call->data.args[w->argument + (w->subject == PATH_AT) + 1] & O_CREAT) != 0;
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

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* Whether a call is on a file that is meant, and which that is ("" where it is not asked for). */
static bool counts(const struct watched *w, const struct seccomp_notif *call, char *path, size_t size)
{
  *path = '\0';
  if (plan.below) return w->subject != NO_FILE && path_of_call(w, call, path, size) && is_below(path);
  if (w->subject != FILE_DESCRIPTOR) return true;
  return path_of_call(w, call, path, size) && path[0] == '/' && !begins(path, "/dev/") && !begins(path, "/memfd:");
}

/* ---- what it is for ------------------------------------------------------------------------- */

static bool read_at(pid_t pid, uint64_t address, void *to, size_t size)
{
  struct iovec here = { to, size }, there = { (void *)(uintptr_t)address, size };
  return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

/* The part of a program's maps that is a process's rings. */
static bool rings_of(pid_t pid, struct ncclotf2_header *header)
{
  char name[64], line[PATH_MAX + 128];
  snprintf(name, sizeof name, "/proc/%d/maps", pid);
  FILE *maps = fopen(name, "re");
  bool found = false;
  while (maps && !found && fgets(line, sizeof line, maps)) {
    unsigned long begin, offset;
    found = sscanf(line, "%lx-%*x %*s %lx", &begin, &offset) == 2 && offset == 0 && strstr(line, "w") && read_at(pid, begin, header, sizeof *header) &&
            header->magic == NCCLOTF2_SHM_MAGIC;
  }
  if (maps) fclose(maps);
  return found;
}

/* Where the program is the collector of a process: whether that has been told that all is on disk, and waits for nothing any
 * more. What the collector has in memory then dies with it, and nobody is left who could know. */
static bool nobody_is_left(void)
{
  static struct ncclotf2_header header;
  if (!rings_of(plan.target, &header) || !header.ended) return false;
  return header.answered == header.request || (kill((pid_t)header.pid, 0) != 0 && errno == ESRCH);
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

/* Does what a rule says; false: there is nobody any more who waits for an answer. */
static bool act(const struct rule *r, const struct watched *w, const char *path, const struct seccomp_notif *call, struct seccomp_notif_resp *to)
{
  const bool kills = strcmp(r->what, "kill") == 0;
  if (plan.done++ < MOST_LOGGED) note("call %lu: %s %s: %s%s", r->count, w->name, path, r->what, kills && nobody_is_left() ? ", nobody is left" : "");
  if (kills) {
    kill((pid_t)call->pid, SIGKILL); /* its process: the program, or one that it has started to go on behind it */
    return false;
  } else if (strcmp(r->what, "stop") == 0) {
    kill(plan.target, SIGSTOP);
    pause_ms(plan.stop_ms);
    kill(plan.target, SIGCONT);
  } else if (strcmp(r->what, "short") == 0) {
    int64_t written;
    if (write_half(call, &written)) to->flags = 0, to->val = written;
  } else {
    to->flags = 0;
    to->error = -atoi(r->what);
  }
  return true;
}

/* What the program is told; false: nothing any more. */
static bool answer(const struct seccomp_notif *call, struct seccomp_notif_resp *to)
{
  char path[2 * PATH_MAX];
  const struct watched *w = watched_call(call->data.nr);
  to->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  if (!w || !counts(w, call, path, sizeof path)) return true;
  for (int i = 0; i < plan.count; i++) {
    struct rule *r = &plan.rules[i];
    if (!wanted(r, w, call)) continue;
    r->count++;
    if (r->count >= r->at && (!r->times || r->count < r->at + r->times)) return act(r, w, path, call, to);
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
  note("calls %lu", plan.rules[0].count);
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
    bool asked = false;
    for (int k = 0; k < plan.count; k++) asked = asked || names(&plan.rules[k], &calls[i]);
    if (!asked) continue;
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
  if (!text) {
    fprintf(stderr, "inject: %s is not set\n", name);
    _exit(2);
  }
  return text;
}

static void read_rules(const char *text)
{
  for (int length; *text; text += length, plan.count++) {
    struct rule *r = &plan.rules[plan.count];
    length = -1;
    if (plan.count == RULES || sscanf(text, "%127s %lu %lu %15[^;];%n", r->calls, &r->at, &r->times, r->what, &length) != 4 || length < 0) {
      fprintf(stderr, "inject: INJECT_RULES: %s\n", text);
      _exit(2);
    }
  }
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
  plan.below = getenv("INJECT_BELOW");
  read_rules(needed("INJECT_RULES"));
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
