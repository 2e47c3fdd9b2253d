/* SPDX-License-Identifier: Apache-2.0
 *
 * What callbacks cost. Threads, each with a communicator of its own, go through the calls of one piece again and
 * again, one sequence each PERIOD_NS (0: without a pause). In every few sequences the time of each call is
 * taken, in the others that of the whole sequence: the former gives the distribution, the latter mean and median,
 * which the timer does not disturb and its steps (10 ns on some processors) do not blur. The timer's own cost is
 * measured first, and subtracted.
 *
 * WARM_UP sequences come before those that count. It takes some seconds until memory goes round: until then each
 * piece of it is used for the first time.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "calls.h"
#include "host.h"

enum {
  SAMPLES_MOST = 1 << 20,  /* of single calls, per thread */
  STEPS = 8,               /* of a ProxyOp */
  CHANNELS = 8,            /* of a kernel */
  CALLS_MOST = TRANSFER_CALLS(STEPS),
  KINDS_MOST = 16
};

/* A sequence takes a microsecond or two. What takes longer than this was interrupted by the scheduler in
 * between: it is counted, and no part of the mean. */
#define INTERRUPTED_NS 100000.0

/* A part of what NCCL calls. Kinds tell which call stands at which place. */
struct piece {
  const char *name;
  unsigned calls;
  void (*whole)(struct caller *c, uint64_t sequence, void *coll);
  void (*timed)(struct caller *c, uint64_t sequence, void *coll);
  const char *kinds[KINDS_MOST];
  uint8_t kind_at[CALLS_MOST];
};

static void allreduce_whole(struct caller *c, uint64_t sequence, void *coll)
{
  (void)coll;
  allreduce_calls(c, sequence, CHANNELS, false);
}
static void allreduce_timed(struct caller *c, uint64_t sequence, void *coll)
{
  (void)coll;
  allreduce_calls(c, sequence, CHANNELS, true);
}

/* Sends and receives in turn. Every other sequence is a timed one, so both get both. */
static int own_pid;
static void transfer_whole(struct caller *c, uint64_t sequence, void *coll)
{
  transfer_calls(c, coll, 0, sequence / 2 % 2, STEPS, own_pid, false);
}
static void transfer_timed(struct caller *c, uint64_t sequence, void *coll)
{
  transfer_calls(c, coll, 0, sequence / 2 % 2, STEPS, own_pid, true);
}

/* The kernel ran just before. */
CALLS_INLINE void channels(struct caller *c, void *coll, bool timed)
{
  const uint64_t now = timer_monotonic();
  for (unsigned i = 0; i < CHANNELS; i++) {
    void *handle = channel_start(c, coll, i, now - 2000, timed);
    channel_stop(c, handle, now - 1000, timed);
  }
}
static void channels_whole(struct caller *c, uint64_t sequence, void *coll)
{
  (void)sequence;
  channels(c, coll, false);
}
static void channels_timed(struct caller *c, uint64_t sequence, void *coll)
{
  (void)sequence;
  channels(c, coll, true);
}

enum { OP_START, OP_STATE, STEP_START, STEP_STATE, STEP_STOP, OP_STOP };
#define STEP STEP_START, STEP_STATE, STEP_STATE, STEP_STATE, STEP_STOP
enum { CHANNEL_START, CHANNEL_STATE, CHANNEL_STOP };
#define CHANNEL CHANNEL_START, CHANNEL_STATE, CHANNEL_STOP

static const struct piece pieces[] = {
    {.name = "application",
     .calls = ALLREDUCE_CALLS,
     .whole = allreduce_whole,
     .timed = allreduce_timed,
     .kinds = {"GroupApi start", "GroupApi state", "CollApi start", "CollApi stop", "KernelLaunch start", "KernelLaunch stop",
               "Group start", "Coll start", "Coll stop", "Group stop", "GroupApi stop"},
     .kind_at = {0, 1, 2, 3, 1, 4, 5, 6, 7, 8, 9, 10}},
    {.name = "proxy",
     .calls = TRANSFER_CALLS(STEPS),
     .whole = transfer_whole,
     .timed = transfer_timed,
     .kinds = {"ProxyOp start", "ProxyOp state", "ProxyStep start", "ProxyStep state", "ProxyStep stop", "ProxyOp stop"},
     .kind_at = {OP_START, OP_STATE, STEP, STEP, STEP, STEP, STEP, STEP, STEP, STEP, OP_STOP}},
    {.name = "kernel",
     .calls = CHANNELS * CHANNEL_CALLS,
     .whole = channels_whole,
     .timed = channels_timed,
     .kinds = {"KernelCh start", "KernelCh state", "KernelCh stop"},
     .kind_at = {CHANNEL, CHANNEL, CHANNEL, CHANNEL, CHANNEL, CHANNEL, CHANNEL, CHANNEL}},
};

static const struct piece *piece;
static uint64_t warm_up, sequences, stride, period_ns;
static unsigned threads;
static double timer_cost, timer_step; /* ticks between begin and end with nothing in between, the mean; the least
                                         by which two times differ */
static pthread_barrier_t ready;

struct worker {
  pthread_t thread;
  struct caller caller;
  uint32_t *samples;
  uint64_t timed;      /* sequences whose calls were timed */
  uint32_t *whole_ticks; /* of those taken as a whole, but for the interrupted ones */
  uint64_t whole;
  uint64_t interrupted, interrupted_most;
  uint64_t late;       /* that began more than a period after their time */
  uint64_t begin, end; /* ticks */
  struct caller before; /* counts at the end of the warm-up */
};

/* Waits for the next period; one thread by looking at the clock, as several would keep each other from working. */
static void pace(struct worker *w, uint64_t *next)
{
  *next += period_ns;
  uint64_t now = timer_monotonic();
  if (now > *next + period_ns) {
    w->late++;
    *next = now;
  } else if (threads == 1) {
    while (timer_monotonic() < *next) timer_pause();
  } else {
    const struct timespec until = {.tv_sec = (time_t)(*next / 1000000000u), .tv_nsec = (long)(*next % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
  }
}

static void *work(void *of)
{
  struct worker *w = of;
  struct caller *c = &w->caller;
  const bool needs_parent = piece->whole != allreduce_whole;
  const uint64_t interrupted = timer_ticks(INTERRUPTED_NS);
  prctl(PR_SET_TIMERSLACK, 1UL);
  uint64_t next = timer_monotonic();
  for (uint64_t i = 0; i < warm_up + sequences; i++) {
    if (i == warm_up) {
      w->before = *c;
      c->samples = w->samples;
      w->timed = w->whole = w->interrupted = w->interrupted_most = w->late = 0;
      pthread_barrier_wait(&ready);
      w->begin = timer_read();
      next = timer_monotonic();
    }
    if (period_ns) pace(w, &next);
    void *coll = needs_parent ? allreduce_calls(c, i, CHANNELS, false) : NULL;
    if (i % stride == 0) {
      if (i < warm_up) c->samples = w->samples;
      piece->timed(c, i, coll);
      w->timed++;
      continue;
    }
    const uint64_t begin = timer_begin();
    piece->whole(c, i, coll);
    const uint64_t took = timer_end() - begin;
    if (took > interrupted) {
      w->interrupted++;
      if (took > w->interrupted_most) w->interrupted_most = took;
    } else {
      w->whole_ticks[w->whole] = (uint32_t)took;
      if (i >= warm_up) w->whole++;
    }
  }
  w->end = timer_read();
  return NULL;
}

static int compare_ticks(const void *a, const void *b)
{
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static void measure_timer(void)
{
  enum { TRIES = 100000 };
  uint32_t *ticks = host_allocate(TRIES, sizeof *ticks);
  struct caller c = {.samples = ticks};
  for (int i = 0; i < TRIES; i++) {
    const uint64_t begin = timer_begin();
    take_sample(&c, timer_end() - begin);
  }
  qsort(ticks, TRIES, sizeof *ticks, compare_ticks);
  enum { MOST = TRIES / 100 * 99 }; /* the rest was interrupted */
  double sum = 0;
  timer_step = (double)ticks[MOST];
  for (int i = 0; i < MOST; i++) {
    sum += ticks[i];
    const uint32_t step = i ? ticks[i] - ticks[i - 1] : 0;
    if (step && step < timer_step) timer_step = step;
  }
  timer_cost = sum / MOST;
  free(ticks);
}

/* Prints the distribution of times, sorting them: in ns per call, without the timer's cost. The mean leaves out what
 * was interrupted. */
static void print_distribution(uint32_t *ticks, uint64_t count, unsigned calls)
{
  const double ns = timer_ns_per_tick / calls;
  qsort(ticks, count, sizeof *ticks, compare_ticks);
  const uint64_t interrupted = timer_ticks(INTERRUPTED_NS);
  double sum = 0;
  uint64_t summed = 0;
  for (; summed < count && ticks[summed] <= interrupted; summed++) sum += ticks[summed] - timer_cost;
  printf("{\"samples\":%llu,\"mean_ns\":%.3f", (unsigned long long)count, summed ? sum / (double)summed * ns : 0);
  static const struct {
    const char *name;
    double share;
  } points[] = {{"p50_ns", 0.5}, {"p99_ns", 0.99}, {"p999_ns", 0.999}, {"max_ns", 1}};
  for (unsigned i = 0; i < sizeof points / sizeof *points; i++) {
    uint64_t at = (uint64_t)(points[i].share * (double)count);
    if (at >= count) at = count - 1;
    const double found = count && ticks[at] > timer_cost ? ticks[at] - timer_cost : 0;
    printf(",\"%s\":%.3f", points[i].name, found * ns);
  }
  printf("}");
}

static void print(struct worker *workers)
{
  uint64_t samples = 0, calls = 0, refused = 0, starts = 0, whole = 0, interrupted = 0, most = 0, late = 0;
  uint64_t begin = UINT64_MAX, end = 0;
  for (unsigned t = 0; t < threads; t++) {
    struct worker *w = &workers[t];
    samples += w->timed * piece->calls;
    for (unsigned k = 0; k < CALL_KINDS; k++) calls += w->caller.calls[k] - w->before.calls[k];
    starts += w->caller.calls[CALL_START] - w->before.calls[CALL_START];
    for (unsigned k = 0; k <= NCCLOTF2_CE_BATCH; k++) refused += w->caller.refused[k] - w->before.refused[k];
    whole += w->whole;
    interrupted += w->interrupted;
    if (w->interrupted_most > most) most = w->interrupted_most;
    late += w->late;
    if (w->begin < begin) begin = w->begin;
    if (w->end > end) end = w->end;
  }
  printf("{\"timer_ns\":%.2f,\"timer_step_ns\":%.2f,\"seconds\":%.6f,\"calls\":%llu,\"starts\":%llu,\"refused\":%llu,"
         "\"late\":%llu,\"interrupted\":%llu,\"interrupted_most_ns\":%.0f,\"sequences\":",
         timer_cost * timer_ns_per_tick, timer_step * timer_ns_per_tick, (double)(end - begin) * timer_ns_per_tick / 1e9,
         (unsigned long long)calls, (unsigned long long)starts, (unsigned long long)refused, (unsigned long long)late,
         (unsigned long long)interrupted, (double)most * timer_ns_per_tick);
  uint32_t *sorted = host_allocate(samples > whole ? samples : whole, sizeof *sorted);
  uint64_t count = 0;
  for (unsigned t = 0; t < threads; t++) {
    memcpy(sorted + count, workers[t].whole_ticks, workers[t].whole * sizeof *sorted);
    count += workers[t].whole;
  }
  print_distribution(sorted, count, piece->calls);
  printf(",\"single\":");
  count = 0;
  for (unsigned t = 0; t < threads; t++) {
    memcpy(sorted + count, workers[t].samples, workers[t].timed * piece->calls * sizeof *sorted);
    count += workers[t].timed * piece->calls;
  }
  print_distribution(sorted, count, 1);
  printf(",\"callbacks\":[");
  for (unsigned kind = 0; kind < KINDS_MOST && piece->kinds[kind]; kind++) {
    count = 0;
    for (unsigned t = 0; t < threads; t++)
      for (uint64_t i = 0; i < workers[t].timed * piece->calls; i++)
        if (piece->kind_at[i % piece->calls] == kind) sorted[count++] = workers[t].samples[i];
    printf("%s{\"name\":\"%s\",\"single\":", kind ? "," : "", piece->kinds[kind]);
    print_distribution(sorted, count, 1);
    printf("}");
  }
  printf("]}\n");
  free(sorted);
}

int cost_main(char **arguments)
{
  for (unsigned i = 0; i < sizeof pieces / sizeof *pieces; i++)
    if (strcmp(arguments[0], pieces[i].name) == 0) piece = &pieces[i];
  if (!piece) host_fail("no such piece", arguments[0]);
  threads = (unsigned)host_count(strtoul(arguments[1], NULL, 10));
  warm_up = strtoull(arguments[2], NULL, 10);
  sequences = strtoull(arguments[3], NULL, 10);
  period_ns = strtoull(arguments[4], NULL, 10);
  if (sequences < 2) host_fail("too few sequences", arguments[3]);
  own_pid = (int)getpid();
  /* Half of the sequences as a whole, and no more timed ones than there is room for. */
  stride = sequences * piece->calls / SAMPLES_MOST + 2;
  timer_calibrate();
  measure_timer();
  pthread_barrier_init(&ready, NULL, threads);
  struct worker *workers = host_allocate(threads, sizeof *workers);
  for (unsigned t = 0; t < threads; t++) {
    workers[t].samples = host_allocate((sequences / stride + 1) * piece->calls + CALLS_MOST, sizeof(uint32_t));
    workers[t].whole_ticks = host_allocate(sequences + 1, sizeof(uint32_t));
    workers[t].caller = (struct caller){.plugin = host_plugin, .context = host_init(0xc057 + t, 2, 0), .peer = 1};
  }
  for (unsigned t = 0; t < threads; t++)
    if (pthread_create(&workers[t].thread, NULL, work, &workers[t]) != 0) host_fail("no thread", strerror(errno));
  for (unsigned t = 0; t < threads; t++) pthread_join(workers[t].thread, NULL);
  timer_calibrate_again();
  for (unsigned t = 0; t < threads; t++) host_plugin->finalize(workers[t].caller.context);
  print(workers);
  for (unsigned t = 0; t < threads; t++) {
    free(workers[t].samples);
    free(workers[t].whole_ticks);
  }
  free(workers);
  return 0;
}
