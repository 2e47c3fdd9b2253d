/* SPDX-License-Identifier: Apache-2.0
 *
 * COUNT ranks of a job of NRANKS, from rank FIRST on. Each has an application's thread, which calls RATE
 * collectives a second for SECONDS, and a proxy thread, which brings the network's and the kernels' events of
 * each, as far as the plugin asks for them. Both sleep when there is nothing to do, as NCCL's do.
 *
 * With CHURN, that many times a second a communicator over the process's ranks is made, used, and destroyed: one
 * that does not block, for which NCCL makes a thread for each launch.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "calls.h"
#include "host.h"

enum {
  CHANNELS = 2,
  STEPS = 8,
  QUEUE = 256,    /* operations that the application may be ahead of the proxy thread */
  SHORT_LIFE = 20 /* operations of a communicator that does not live long */
};

static int nranks, first_rank, rank_count;
static double rate, seconds, churn;

/* Sums over all threads that have ended. */
static pthread_mutex_t sums = PTHREAD_MUTEX_INITIALIZER;
static uint64_t calls[CALL_KINDS], refused, operations, communicators, thread_count;
static uint64_t begun, ended; /* ns, of the calls */
static uint64_t first_init;   /* ns */
static long faults;           /* page faults of those threads, after their second operation */

static long faults_of_thread(void)
{
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

static void add_up(const struct caller *c, long faults_before)
{
  const uint64_t now = timer_monotonic();
  const long of_thread = faults_of_thread() - faults_before;
  pthread_mutex_lock(&sums);
  for (unsigned k = 0; k < CALL_KINDS; k++) calls[k] += c->calls[k];
  for (unsigned t = 0; t <= NCCLOTF2_CE_BATCH; t++) refused += c->refused[t];
  thread_count++;
  if (faults_before >= 0) faults += of_thread;
  if (now > ended) ended = now;
  pthread_mutex_unlock(&sums);
}

/* A communicator rank: its application's thread puts operations into the queue, its proxy thread takes them out. */
struct rank {
  struct caller application, proxy;
  void *queue[QUEUE]; /* handles of Coll; END: no more */
  sem_t room, filled;
  pthread_t application_thread, proxy_thread;
};
static char end_of_queue;
#define END ((void *)&end_of_queue)

static void put(struct rank *r, uint64_t at, void *coll)
{
  while (sem_wait(&r->room) != 0) {
  }
  r->queue[at % QUEUE] = coll;
  sem_post(&r->filled);
}

static void *proxy(void *of)
{
  struct rank *r = of;
  struct caller *c = &r->proxy;
  const int pid = (int)getpid();
  long faults_before = -1;
  for (uint64_t at = 0;; at++) {
    while (sem_wait(&r->filled) != 0) {
    }
    void *coll = r->queue[at % QUEUE], *kernels[CHANNELS];
    sem_post(&r->room);
    if (coll == END) break;
    if (at == 2) faults_before = faults_of_thread();
    const uint64_t from = timer_monotonic();
    for (unsigned i = 0; i < CHANNELS; i++) kernels[i] = channel_start(c, coll, i, from, false);
    for (unsigned i = 0; i < CHANNELS; i++) {
      transfer_calls(c, coll, i, true, STEPS, pid, false);
      transfer_calls(c, coll, i, false, STEPS, pid, false);
    }
    const uint64_t to = timer_monotonic();
    for (unsigned i = 0; i < CHANNELS; i++) channel_stop(c, kernels[i], to, false);
  }
  add_up(c, faults_before);
  return NULL;
}

static void begin_thread(pthread_t *thread, void *(*run)(void *), void *of)
{
  if (pthread_create(thread, NULL, run, of) != 0) host_fail("no thread", strerror(errno));
}

/* Initializes the communicator and begins the rank's proxy thread. */
static void open_rank(struct rank *r, uint64_t comm_id, int size, int rank)
{
  const uint64_t before = timer_monotonic();
  void *context = host_init(comm_id, size, rank);
  if (!first_init) first_init = timer_monotonic() - before;
  r->application = r->proxy =
      (struct caller){.plugin = host_plugin, .context = context, .rank = rank, .peer = (rank + 1) % size};
  sem_init(&r->room, 0, QUEUE);
  sem_init(&r->filled, 0, 0);
  begin_thread(&r->proxy_thread, proxy, r);
}

/* Ends the proxy thread when it has done what was put into its queue: `at` operations. */
static void drain_rank(struct rank *r, uint64_t at)
{
  put(r, at, END);
  pthread_join(r->proxy_thread, NULL);
  sem_destroy(&r->room);
  sem_destroy(&r->filled);
}

static void *application(void *of)
{
  struct rank *r = of;
  prctl(PR_SET_TIMERSLACK, 1UL);
  const uint64_t count = (uint64_t)(rate * seconds), from = begun;
  long faults_before = -1;
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t next = from + (uint64_t)((double)i * 1e9 / rate);
    if (timer_monotonic() < next) {
      const struct timespec until = {.tv_sec = (time_t)(next / 1000000000u), .tv_nsec = (long)(next % 1000000000u)};
      while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
      }
    }
    if (i == 2) faults_before = faults_of_thread();
    put(r, i, allreduce_calls(&r->application, i, CHANNELS, false));
  }
  drain_rank(r, count);
  add_up(&r->application, faults_before);
  pthread_mutex_lock(&sums);
  operations += count;
  pthread_mutex_unlock(&sums);
  return NULL;
}

/* ---- communicators and threads that do not live long ---- */

struct launch {
  struct caller caller;
  struct rank *rank;
  struct api_call call;
  uint64_t at; /* operations before */
};

static void *launch(void *of)
{
  struct launch *l = of;
  put(l->rank, l->at, launch_calls(&l->caller, l->call, l->at, CHANNELS, false));
  add_up(&l->caller, -1);
  return NULL;
}

static void one_short_life(uint64_t comm_id)
{
  struct rank *ranks = host_allocate((uint64_t)rank_count, sizeof *ranks);
  for (int r = 0; r < rank_count; r++) open_rank(&ranks[r], comm_id, rank_count, r);
  for (uint64_t i = 0; i < SHORT_LIFE; i++)
    for (int r = 0; r < rank_count; r++) {
      struct launch l = {.caller = ranks[r].application, .rank = &ranks[r], .at = i};
      memset(l.caller.calls, 0, sizeof l.caller.calls);
      memset(l.caller.refused, 0, sizeof l.caller.refused);
      l.call = api_begin(&ranks[r].application, false);
      pthread_t thread;
      begin_thread(&thread, launch, &l);
      pthread_join(thread, NULL);
      api_end(&ranks[r].application, l.call, false);
    }
  for (int r = 0; r < rank_count; r++) {
    drain_rank(&ranks[r], SHORT_LIFE);
    host_plugin->finalize(ranks[r].application.context);
    add_up(&ranks[r].application, -1);
  }
  free(ranks);
  pthread_mutex_lock(&sums);
  communicators++;
  thread_count -= (uint64_t)rank_count; /* their applications' calls came from this thread */
  operations += (uint64_t)rank_count * SHORT_LIFE;
  pthread_mutex_unlock(&sums);
}

static void *short_lives(void *unused)
{
  const uint64_t count = (uint64_t)(churn * seconds);
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t next = begun + (uint64_t)((double)i * 1e9 / churn);
    const struct timespec until = {.tv_sec = (time_t)(next / 1000000000u), .tv_nsec = (long)(next % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
    one_short_life(0xc4a00000 + i);
  }
  return unused;
}

int job_main(char **arguments)
{
  nranks = host_count(strtoul(arguments[0], NULL, 10));
  first_rank = (int)strtol(arguments[1], NULL, 10);
  rank_count = host_count(strtoul(arguments[2], NULL, 10));
  rate = strtod(arguments[3], NULL);
  seconds = strtod(arguments[4], NULL);
  churn = strtod(arguments[5], NULL);
  if (!(rate > 0) || !(seconds > 0)) host_fail("RATE and SECONDS", "above 0 wanted");

  struct rank *ranks = host_allocate((uint64_t)rank_count, sizeof *ranks);
  for (int r = 0; r < rank_count; r++) open_rank(&ranks[r], 0x10b, nranks, first_rank + r);
  communicators = 1;
  begun = timer_monotonic();
  for (int r = 0; r < rank_count; r++) begin_thread(&ranks[r].application_thread, application, &ranks[r]);
  pthread_t lives;
  if (churn > 0) {
    begin_thread(&lives, short_lives, NULL);
    pthread_join(lives, NULL);
  }
  for (int r = 0; r < rank_count; r++) pthread_join(ranks[r].application_thread, NULL);
  if (churn > 0) thread_count++;
  const uint64_t finalizing = timer_monotonic();
  for (int r = 0; r < rank_count; r++) host_plugin->finalize(ranks[r].application.context);
  const uint64_t done = timer_monotonic();
  printf("{\"starts\":%llu,\"stops\":%llu,\"states\":%llu,\"refused\":%llu,\"operations\":%llu,\"communicators\":%llu,"
         "\"threads\":%llu,\"seconds\":%.6f,\"on_disk_seconds\":%.6f,\"init_ns\":%llu,\"finalize_ns\":%llu,\"faults\":%ld}\n",
         (unsigned long long)calls[CALL_START], (unsigned long long)calls[CALL_STOP], (unsigned long long)calls[CALL_STATE],
         (unsigned long long)refused, (unsigned long long)operations, (unsigned long long)communicators,
         (unsigned long long)thread_count, (double)(ended - begun) / 1e9, (double)(done - begun) / 1e9,
         (unsigned long long)first_init, (unsigned long long)(done - finalizing), faults);
  free(ranks);
  return 0;
}
