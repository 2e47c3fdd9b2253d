/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs FAILING_PROGRAM in its own place, with its arguments and descriptors, and makes system calls of it fail as
 * FAILING_RULES says. A rule is "call,errno,skip,argument,mask,file,times": after `skip` calls of that number which the rule
 * fits, the next `times` fail with `errno`, or with 0 all further ones. It fits when the argument's bits have one of the mask (a mask of 0: always),
 * and, with `file` 1, when the first argument is a descriptor of a file (and not of an event counter, say, by which the
 * language's runtime wakes itself). Each failed call is a line in the file FAILING_REPORT.
 *
 * A seccomp filter hands the calls to a child, which decides.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2
#endif

enum { RULES = 16, LONGEST_LIFE = 120 /* s */, REPORT_FD = 100, LISTENER_FD = 101 };

static struct rule {
  int call, error;
  unsigned long skip;
  unsigned argument;
  unsigned long mask;
  int file;
  unsigned long times;
  bool over;
} rules[RULES];
static unsigned count;

static __attribute__((noreturn)) void fail(const char *what) {
  fprintf(stderr, "failing: %s: %s\n", what, strerror(errno));
  _exit(125);
}

static void parse(const char *text) {
  for (int length; *text; text += length) {
    struct rule *r = &rules[count];
    length = -1;
    if (count == RULES || sscanf(text, "%d,%d,%lu,%u,%lx,%d,%lu;%n", &r->call, &r->error, &r->skip, &r->argument, &r->mask, &r->file, &r->times,
                                       &length) != 7 ||
        length < 0 || r->argument > 5) {
      errno = EINVAL;
      fail("FAILING_RULES");
    }
    count++;
  }
}

/* Whether a descriptor of another process is a file with a name. */
static bool is_file(uint32_t pid, int fd) {
  char link[64], target[4096];
  snprintf(link, sizeof link, "/proc/%u/fd/%d", pid, fd);
  ssize_t n = readlink(link, target, sizeof target - 1);
  if (n <= 0) return false;
  target[n] = '\0';
  return target[0] == '/' && strncmp(target, "/dev/", 5) != 0 && strncmp(target, "/memfd:", 7) != 0;
}

static bool fits(const struct rule *r, const struct seccomp_notif *asked) {
  return r->call == asked->data.nr && (!r->mask || asked->data.args[r->argument] & r->mask) &&
         (!r->file || is_file(asked->pid, (int)asked->data.args[0]));
}

/* Answers until the process has ended. */
static __attribute__((noreturn)) void supervise(int listener) {
  struct seccomp_notif_sizes sizes;
  if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) != 0) _exit(125);
  struct seccomp_notif *asked = malloc(sizes.seccomp_notif > sizeof *asked ? sizes.seccomp_notif : sizeof *asked);
  struct seccomp_notif_resp *answer = malloc(sizes.seccomp_notif_resp > sizeof *answer ? sizes.seccomp_notif_resp : sizeof *answer);
  if (!asked || !answer) _exit(125);
  for (;;) {
    memset(asked, 0, sizes.seccomp_notif);
    memset(answer, 0, sizes.seccomp_notif_resp);
    struct pollfd question = {.fd = listener, .events = POLLIN};
    if (poll(&question, 1, -1) < 0 && errno == EINTR) continue;
    if (!(question.revents & POLLIN)) _exit(0);
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, asked) != 0) {
      if (errno == EINTR || errno == ENOENT) continue; /* a signal came in between: the call is made again */
      _exit(125);
    }
    answer->id = asked->id;
    answer->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    for (unsigned i = 0; i < count && !answer->error; i++) {
      if (rules[i].over || !fits(&rules[i], asked)) continue;
      if (rules[i].skip > 0) {
        rules[i].skip--;
        continue;
      }
      rules[i].over = rules[i].times > 0 && --rules[i].times == 0;
      answer->flags = 0;
      answer->error = -rules[i].error;
    }
    const bool failed = answer->error != 0;
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, answer) == 0 && failed) dprintf(REPORT_FD, "%d\n", asked->data.nr);
  }
}

/* The number of a descriptor by which the filter's questions come. */
static int install(void) {
  struct sock_filter filter[2 * RULES + 2];
  unsigned n = 0;
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (unsigned i = 0; i < count; i++) {
    filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)rules[i].call, 0, 1);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
  }
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog program = {(unsigned short)n, filter};
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

int main(int argc, char **argv) {
  (void)argc;
  const char *program = getenv("FAILING_PROGRAM"), *text = getenv("FAILING_RULES"), *report = getenv("FAILING_REPORT");
  errno = EINVAL;
  if (!program || !text || !report) fail("FAILING_PROGRAM, FAILING_RULES, FAILING_REPORT");
  parse(text);
  int lines = open(report, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (lines < 0 || dup3(lines, REPORT_FD, O_CLOEXEC) < 0) fail(report);
  close(lines);
  volatile int *listener = mmap(NULL, sizeof *listener, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (listener == MAP_FAILED) fail("mmap");
  *listener = -1;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("no_new_privs");
  /* With the table of descriptors in common until one of the two leaves it. */
  long child = syscall(SYS_clone, (unsigned long)(CLONE_FILES | SIGCHLD), 0, 0, 0, 0);
  if (child < 0) fail("clone");
  if (child == 0) {
    alarm(LONGEST_LIFE);
    while (*listener == -1) usleep(200);
    if (*listener < 0) _exit(125);
    /* All else is the program's alone: the end of what it has open must be its own. */
    if (syscall(SYS_close_range, 0, REPORT_FD - 1, CLOSE_RANGE_UNSHARE) != 0) _exit(125);
    supervise(LISTENER_FD);
  }
  int fd = install();
  /* What the filter stops would wait for ever before the child knows. */
  *listener = fd >= 0 ? dup3(fd, LISTENER_FD, O_CLOEXEC) : -2;
  if (*listener < 0) fail("seccomp");
  execv(program, argv);
  fail(program);
}
