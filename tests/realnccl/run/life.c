/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens to processes: delays, signals, children, deaths.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run.h"

static void inject(const struct actor *a, uint64_t begin, const char *kind, long us)
{
  EACH_RANK (a, r)
    log_line("inject", "{\"t\":%llu,\"t1\":%llu,\"worldRank\":%d,\"kind\":\"%s\",\"us\":%ld}\n", (unsigned long long)begin,
             (unsigned long long)now_ns(), r->rank, kind, us);
}

/* sleep:MS is a delay that is written down, work:MS is not. */
static void sleep_for(struct actor *a, const struct word *w)
{
  const uint64_t begin = now_ns();
  sleep_ms((long)w->number);
  inject(a, begin, "host sleep", (long)w->number * 1000);
}

static void work(struct actor *a, const struct word *w)
{
  const double ms = strtod(w->argument[0], NULL);
  const struct timespec t = {(time_t)(ms / 1000), (long)(ms * 1e6) % 1000000000};
  nanosleep(&t, NULL);
}

static void meet(struct actor *a, const struct word *w) { pthread_barrier_wait(&shared->barrier); }

/* killall:MS  after that time the whole job is killed */
static void kill_all(struct actor *a, const struct word *w)
{
  sleep_ms((long)w->number);
  inject(a, now_ns(), "job killed", 0);
  __atomic_store_n(&shared->kill_all, 1, __ATOMIC_RELEASE);
  sleep_ms(60000);
}

static const struct {
  const char *name;
  int number;
} signals[] = {{"KILL", SIGKILL}, {"TERM", SIGTERM}, {"SEGV", SIGSEGV}, {"ABRT", SIGABRT},
               {"INT", SIGINT},   {"HUP", SIGHUP},   {"STOP", SIGSTOP}, {"CONT", SIGCONT}};

/* kill:SIGNAL  the own process: SEGV by a store to nowhere, ABRT by abort() */
static void kill_self(struct actor *a, const struct word *w)
{
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    if (strcmp(signals[i].name, w->argument[0]) != 0) continue;
    inject(a, now_ns(), w->argument[0], 0);
    if (signals[i].number == SIGSEGV) *(volatile int *)(uintptr_t)(w->number & 0) = 1; /* cppcheck-suppress nullPointer */
    if (signals[i].number == SIGABRT) abort();
    kill(getpid(), signals[i].number);
    return;
  }
  give_up(BAD_USAGE, "no signal %s", w->argument[0]);
}

/* quit:N  exit(N) with everything still going on; leave:N the same by _exit */
static void quit(struct actor *a, const struct word *w)
{
  inject(a, now_ns(), "exit", 0);
  exit((int)w->number);
}

static void leave(struct actor *a, const struct word *w)
{
  inject(a, now_ns(), "exit", 0);
  _exit((int)w->number);
}

/* The program's end leaves the communicators as they are. */
static void no_destroy(struct actor *a, const struct word *w) { a->keep = 1; }

static void wait_for_child(pid_t child)
{
  int status = 0;
  pid_t got;
  do got = waitpid(child, &status, 0);
  while (got < 0 && errno == EINTR);
  if (got == child && WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  give_up(PROCESS_KILLED, "a forked child ended with status %#x", (unsigned)status);
}

/* fork[:MS]  a child that does nothing (for a while, then nobody waits for it), as those of data loaders */
static void fork_child(struct actor *a, const struct word *w)
{
  const pid_t child = fork();
  if (child == 0) {
    if (w->number) sleep_ms((long)w->number);
    _exit(0);
  }
  if (!w->number) wait_for_child(child);
}

/* forkexit  a child that leaves through exit(), so that destructors run in it */
static void fork_exit(struct actor *a, const struct word *w)
{
  const pid_t child = fork();
  if (child == 0) exit(0);
  wait_for_child(child);
}

/* exec  a child that becomes another program */
static void fork_exec(struct actor *a, const struct word *w)
{
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/true", "true", (char *)NULL);
    _exit(1);
  }
  wait_for_child(child);
}

static void nothing(int signal) {}

/* timer:US and profile:US  interval timers whose signals interrupt system calls (ALRM) or come with processor time (PROF); 0:
 * none */
static void interrupt_by(int which, int signal, int flags, size_t us)
{
  const struct sigaction action = {.sa_handler = nothing, .sa_flags = flags};
  const struct timeval every = {(time_t)(us / 1000000), (suseconds_t)(us % 1000000)};
  sigaction(signal, &action, NULL);
  setitimer(which, &(struct itimerval){every, every}, NULL);
}

static void timer(struct actor *a, const struct word *w) { interrupt_by(ITIMER_REAL, SIGALRM, 0, w->number); }
static void profile(struct actor *a, const struct word *w) { interrupt_by(ITIMER_PROF, SIGPROF, SA_RESTART, w->number); }

/* handlers  as frameworks have them: they say something and let the signal do what it does */
static void tell_and_die(int number)
{
  static const char text[] = "ncclrun: a handler saw a signal\n";
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(3);
  signal(number, SIG_DFL);
  raise(number);
}

static void handlers(struct actor *a, const struct word *w)
{
  static const int deadly[] = {SIGTERM, SIGSEGV, SIGABRT, SIGINT};
  for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
    const struct sigaction action = {.sa_handler = tell_and_die, .sa_flags = SA_NODEFER};
    sigaction(deadly[i], &action, NULL);
  }
}

const struct word_action life_words[] = {
  {"sleep", sleep_for},      {"work", work},       {"barrier", meet},       {"killall", kill_all},
  {"kill", kill_self},       {"raise", kill_self}, {"quit", quit},          {"leave", leave},
  {"nodestroy", no_destroy}, {"fork", fork_child}, {"forkexit", fork_exit}, {"exec", fork_exec},
  {"timer", timer},          {"profile", profile}, {"handlers", handlers},  {NULL, NULL}};
