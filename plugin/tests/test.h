/* SPDX-License-Identifier: Apache-2.0
 *
 * The C tests' frame. Each case runs in a process of its own, because a process has one session
 * for life. A failed check says where and what and ends the case; a case that hangs is killed.
 */
#ifndef NCCLOTF2_TEST_H
#define NCCLOTF2_TEST_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition, ...)                                                \
  do {                                                                       \
    if (!(condition)) {                                                      \
      fprintf(stderr, "%s:%d: not so: %s: ", __FILE__, __LINE__, #condition); \
      fprintf(stderr, __VA_ARGS__);                                          \
      fputc('\n', stderr);                                                   \
      fflush(stderr);                                                        \
      _exit(1);                                                              \
    }                                                                        \
  } while (0)

#define EQUAL(got, want, what)                                                                   \
  do {                                                                                           \
    const unsigned long long got_ = (unsigned long long)(got), want_ = (unsigned long long)(want); \
    CHECK(got_ == want_, "%s is %llu (0x%llx), want %llu (0x%llx)", what, got_, got_, want_, want_); \
  } while (0)

struct test_case {
  const char *name; /* a sentence */
  void (*run)(void);
};

enum { TEST_SECONDS = 600 }; /* for what would never end; a machine that is busy elsewhere has time enough */

/* Waits for what is bound to come true; that it never does ends the case by its limit. */
#define EVENTUALLY(condition) \
  while (!(condition)) usleep(1000)

extern pid_t test_case_pid; /* of the process of a case, 0 outside of them */

/* The exit status of a case's process, or 128 + signal. The case ends by exit(), so that the
 * plugin's exit handler is part of it. */
static inline int test_run_one(const struct test_case *test) {
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    test_case_pid = getpid();
    alarm(TEST_SECONDS);
    test->run();
    exit(0);
  }
  int status = 0;
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return pid < 0 ? 127 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* With arguments only the cases whose name contains one of them. */
static inline int test_main(int argc, char **argv, const struct test_case *tests, unsigned count) {
  int failed = 0;
  const char *program = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
  for (unsigned i = 0; i < count; i++) {
    bool chosen = argc < 2;
    for (int k = 1; k < argc; k++) chosen = chosen || strstr(tests[i].name, argv[k]);
    if (!chosen) continue;
    int status = test_run_one(&tests[i]);
    printf("%s %s: %s", status ? "FAIL" : "ok  ", program, tests[i].name);
    if (status > 128) printf(" (%s)", strsignal(status - 128));
    putchar('\n');
    fflush(stdout);
    failed += status != 0;
  }
  return failed != 0;
}

#define TEST_MAIN(...)                                                         \
  int main(int argc, char **argv) {                                            \
    static const struct test_case tests[] = {__VA_ARGS__};                     \
    return test_main(argc, argv, tests, sizeof tests / sizeof *tests);         \
  }

#endif
