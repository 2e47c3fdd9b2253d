/* SPDX-License-Identifier: Apache-2.0 */
#include "consumer.h"

#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "chunk.h"
#include "clock.h"
#include "collector.h"
#include "config.h"
#include "futex.h"
#include "log.h"
#include "loss_notices.h"
#include "message.h"
#include "session.h"
#include "settings.h"
#include "spool.h"
#include "thread.h"

static enum {
  NOBODY,       /* not started yet, or nothing could be */
  COLLECTOR,
  LATE,         /* a collector that may yet get ready */
  REFUSED,      /* the settings are at fault: there will be none */
  SPOOL_THREAD,
  SPOOL_CALLER  /* no thread could be started; records are written at requests */
} state;

/* How long an answer is waited for. What is not on disk by then is not lost with the process: it is in memory that the
 * collector has, too, or that has a name in /dev/shm. Some wait longer: a memfd and the spool's thread end with the process; a
 * container's first process takes collector and memory with it; and a program with a clock of its own (tests) lets it stand still until
 * what it has done is on disk. */
struct ncclotf2_patience ncclotf2_patience = {.collector_ms = 1000, .longest_ms = 5000};

pthread_mutex_t ncclotf2_life = PTHREAD_MUTEX_INITIALIZER;

static pid_t collector;
static bool restarted;
static uint32_t in_vain; /* the request that was last waited for in vain; until it is answered no other is waited for */
static uint32_t known_types;

static struct ncclotf2_header *header(void) { return ncclotf2_header_at(ncclotf2_session.base); }

void ncclotf2_consumer_messages(void) { ncclotf2_message_tell(); }

void ncclotf2_consumer_introduce(void) {
  static bool introduced;
  if (introduced || !ncclotf2_consumer_ready()) return;
  introduced = true;
  if (state == COLLECTOR)
    ncclotf2_log(NCCLOTF2_LOG_INFO, "this process is recorded in %s, by process %u", header()->place, header()->collector_pid);
  else
    ncclotf2_log(NCCLOTF2_LOG_INFO, "this process is recorded in %s; `nccl-otf2 unify` makes an archive of it", header()->place);
}

/* ---- threads of this library ---- */

/* About once a second: logs losses and messages, and replaces a collector that has died while a thread of NCCL's found no prepared chunk. */
static void look(void) {
  if (pthread_mutex_trylock(&ncclotf2_life) != 0) return; /* the next time */
  if (ncclotf2_log_is_there()) {
    ncclotf2_consumer_messages();
    ncclotf2_log_new_losses();
  }
  if (ncclotf2_chunks_ran_out() && !__atomic_load_n(&header()->ended, __ATOMIC_RELAXED))
    ncclotf2_consumer_check();
  pthread_mutex_unlock(&ncclotf2_life);
}

static bool prepares; /* the thread below that keeps chunks ready was started */

static void *write_spool(void *unused) {
  enum { ROUNDS = 100 }; /* between looks */
  pthread_setname_np(pthread_self(), "nccl-otf2 spool");
  ncclotf2_thread_stays();
  for (unsigned round = 1; round % ROUNDS || !ncclotf2_thread_is_left_alone(); round++) {
    if (round % ROUNDS == 0) look();
    if (!__atomic_load_n(&prepares, __ATOMIC_RELAXED)) ncclotf2_chunks_prepare(ncclotf2_clock_monotonic()); /* a collector that has died has left that thread */
    ncclotf2_spool_round();
  }
  /* The C library now ends the process from here; its exit handlers write the rest. */
  ncclotf2_thread_leaves();
  pthread_mutex_lock(&ncclotf2_life);
  state = SPOOL_CALLER;
  pthread_mutex_unlock(&ncclotf2_life);
  return unused;
}

/* Pages are in place per process, so the collector cannot see to it. Without this thread recording threads put them in place themselves.
 * It is back soon while chunks are used up, or were lately, and seldom in an idle process. */
static void *prepare_pages(void *unused) {
  enum { PERIOD_MS = 1000 }; /* how late it notices messages, and the end of the program */
  enum { SHORTEST_MS = 2 };
  static const long longest_ms[] = {[NCCLOTF2_USE_IDLE] = 64, [NCCLOTF2_USE_LATELY] = 8, [NCCLOTF2_USE_NOW] = SHORTEST_MS};
  pthread_setname_np(pthread_self(), "nccl-otf2 pages");
  ncclotf2_thread_stays();
  uint64_t looked = ncclotf2_clock_monotonic();
  for (long pause = SHORTEST_MS;;) {
    const uint64_t now = ncclotf2_clock_monotonic();
    const long longest = longest_ms[ncclotf2_chunks_prepare(now)];
    pause = 2 * pause < longest ? 2 * pause : longest;
    if (now - looked >= PERIOD_MS * 1000000ULL) {
      if (ncclotf2_thread_is_left_alone()) break;
      look();
      looked = now;
    }
    nanosleep(&(struct timespec){.tv_nsec = pause * 1000000}, NULL);
  }
  __atomic_store_n(&header()->preparer, 0, __ATOMIC_RELEASE);
  ncclotf2_thread_leaves();
  return unused;
}

/* For the communicators that are there and those to come. */
static void set_window(uint64_t first, uint64_t last) {
  __atomic_store_n(&header()->window_first, first, __ATOMIC_RELAXED);
  __atomic_store_n(&header()->window_last, last, __ATOMIC_RELAXED);
  for (uint32_t i = 0; i < header()->comm_used; i++) {
    struct ncclotf2_comm *comm = ncclotf2_comm_at(ncclotf2_session.base, i);
    __atomic_store_n(&comm->first, first, __ATOMIC_RELAXED);
    __atomic_store_n(&comm->last, last, __ATOMIC_RELAXED);
  }
}

static bool start_spool(void) {
  char why[512];
  if (!ncclotf2_spool_open(why, sizeof why)) {
    ncclotf2_log(NCCLOTF2_LOG_WARN, "%s; nothing is recorded: set NCCL_OTF2_DIR to where this process can write", why);
    __atomic_store_n(&header()->record_mask, 0, __ATOMIC_RELEASE);
    state = NOBODY;
    ncclotf2_session_drop_file();
    return false;
  }
  /* A collector, which reads all settings, reports problems with them. */
  for (enum ncclotf2_setting i = 0; i < NCCLOTF2_SETTINGS; i++)
    if (ncclotf2_setting_problem(i, why, sizeof why)) ncclotf2_log(NCCLOTF2_LOG_WARN, "%s", why);
  uint32_t mask = ncclotf2_config_events(known_types, why, sizeof why);
  if (*why) ncclotf2_log(NCCLOTF2_LOG_WARN, "%s", why);
  const uint32_t before = __atomic_load_n(&header()->record_mask, __ATOMIC_RELAXED);
  if (!before) /* else a collector that has died had logged it */
    __atomic_store_n(&header()->cupti_kinds, ncclotf2_setting(NCCLOTF2_SETTING_CUPTI).number, __ATOMIC_RELAXED);
  uint64_t first, last;
  uint32_t window = before & NCCLOTF2_RECORD_WINDOW; /* set by a collector that has died */
  if (!before && ncclotf2_config_window(&first, &last, why, sizeof why)) {
    window = NCCLOTF2_RECORD_WINDOW;
    set_window(first, last);
  }
  if (*why) ncclotf2_log(NCCLOTF2_LOG_WARN, "%s", why);
  __atomic_store_n(&header()->event_mask, mask & known_types, __ATOMIC_RELEASE);
  __atomic_store_n(&header()->record_mask, (mask & ~header()->withheld) | window, __ATOMIC_RELEASE);
  __atomic_store_n(&header()->collector_state, NCCLOTF2_COLLECTOR_SPOOL, __ATOMIC_RELEASE);
  state = ncclotf2_thread_start(write_spool) ? SPOOL_THREAD : SPOOL_CALLER;
  return true;
}

static void works(void) {
  static bool tried;
  state = COLLECTOR;
  if (tried) return;
  tried = true;
  __atomic_store_n(&prepares, true, __ATOMIC_RELAXED);
  if (ncclotf2_thread_start(prepare_pages)) return;
  __atomic_store_n(&prepares, false, __ATOMIC_RELAXED);
  __atomic_store_n(&header()->preparer, 0, __ATOMIC_RELEASE);
}

static bool start_collector(void) {
  char why[512] = "";
  /* A burst may begin with the first operation: while the collector gets ready, so do the first chunks. */
  switch (ncclotf2_collector_start(&collector, prepares ? NULL : ncclotf2_chunks_prepare_one, why, sizeof why)) {
    case NCCLOTF2_START_READY:
      works();
      return true;
    case NCCLOTF2_START_REFUSED:
      state = REFUSED;
      ncclotf2_consumer_messages();
      __atomic_store_n(&header()->record_mask, 0, __ATOMIC_RELEASE);
      __atomic_store_n(&header()->event_mask, 0, __ATOMIC_RELEASE);
      ncclotf2_session_drop_file();
      return false;
    case NCCLOTF2_START_LATE:
      state = LATE;
      ncclotf2_log(NCCLOTF2_LOG_WARN, "the collector is not ready after %u s; nothing is recorded: raise NCCL_OTF2_START_LIMIT",
                   (unsigned)ncclotf2_setting(NCCLOTF2_SETTING_START_LIMIT).number);
      return false;
    default:
      ncclotf2_log(NCCLOTF2_LOG_WARN, "%s; raw files are written instead: run `nccl-otf2 unify` after the job", why);
      return start_spool();
  }
}

bool ncclotf2_consumer_start(uint32_t known) {
  known_types = known;
  return ncclotf2_config_spool() ? start_spool() : start_collector();
}

bool ncclotf2_consumer_ready(void) {
  if (state == LATE &&
      __atomic_load_n(&header()->collector_state, __ATOMIC_ACQUIRE) == NCCLOTF2_COLLECTOR_READY)
    works();
  return state == COLLECTOR || state == SPOOL_THREAD || state == SPOOL_CALLER;
}

bool ncclotf2_consumer_check(void) {
  if (state != COLLECTOR || ncclotf2_process_alive(collector)) return false;
  ncclotf2_consumer_messages(); /* its last messages */
  in_vain = 0;
  if (restarted) {
    ncclotf2_log(NCCLOTF2_LOG_WARN, "the collector ended again; raw files are written instead: run `nccl-otf2 unify` after the job");
    start_spool();
    return true;
  }
  restarted = true;
  ncclotf2_log(NCCLOTF2_LOG_WARN, "the collector ended; a new one is started");
  start_collector();
  return true;
}

static bool answered(uint32_t request) {
  return (int32_t)(__atomic_load_n(&header()->answered, __ATOMIC_ACQUIRE) - request) >= 0;
}

static bool stuck(void) { return in_vain && !answered(in_vain); }

static uint64_t patience_ms(void) {
  if (stuck()) return 0;
  const bool mortal = state == SPOOL_THREAD && !*header()->memory_path;
  return mortal || getpid() == 1 || ncclotf2_fast.clock == NCCLOTF2_CLOCK_HOST ? ncclotf2_patience.longest_ms : ncclotf2_patience.collector_ms;
}

/* Warned is once per process: a second time it says nothing new. */
static void log_in_vain(double seconds) {
  static bool reported;
  const char *why = state == COLLECTOR ? ncclotf2_process_holdup(collector) : "";
  if (!why) { /* the machine is busy, and nothing is wrong */
    ncclotf2_log(NCCLOTF2_LOG_INFO, "the collector, process %d, got no processor to answer within %.1f s: it writes the records later", (int)collector, seconds);
    return;
  }
  if (reported || !ncclotf2_log_is_there()) return;
  reported = true;
  if (state == SPOOL_THREAD) {
    ncclotf2_log(NCCLOTF2_LOG_WARN, "the raw file was not written within %.1f s; the job does not wait for it again, and what is not written when this process ends is lost: "
                 "see why the disk of %s does not respond", seconds, header()->place);
  } else {
    ncclotf2_log(NCCLOTF2_LOG_WARN, "the collector, process %d, did not answer within %.1f s (%s); the job does not wait for it again until it does. Records stay in memory (NCCL_OTF2_MEMORY) "
                 "and are written when it continues, even after the job: kill -CONT %d, or see why the disk of %s does not respond", (int)collector, seconds, why, (int)collector, header()->place);
  }
}

static void give_up(uint32_t request, double seconds) {
  __atomic_fetch_add(&header()->unanswered, 1, __ATOMIC_RELAXED);
  if (stuck()) return;
  in_vain = request;
  log_in_vain(seconds);
}

void ncclotf2_consumer_flush(void) {
  const uint32_t request = __atomic_add_fetch(&header()->request, 1, __ATOMIC_ACQ_REL);
  ncclotf2_futex_wake(&header()->request);
  ncclotf2_consumer_ready(); /* notices a collector that was late */
  const uint64_t begun = ncclotf2_clock_monotonic();
  for (uint64_t since = begun; !answered(request);) {
    const uint32_t seen = __atomic_load_n(&header()->answered, __ATOMIC_ACQUIRE);
    if (ncclotf2_consumer_check()) since = ncclotf2_clock_monotonic(); /* restart the wait for the new collector */
    if (state == SPOOL_CALLER) {
      ncclotf2_spool_flush();
      __atomic_store_n(&header()->answered, request, __ATOMIC_RELEASE);
    }
    if ((state != COLLECTOR && state != SPOOL_THREAD) || answered(request)) break;
    const uint64_t waited = ncclotf2_clock_monotonic() - since;
    if (waited >= patience_ms() * 1000000) {
      give_up(request, (double)waited / 1e9);
      break;
    }
    ncclotf2_futex_wait(&header()->answered, seen, 20);
  }
  __atomic_fetch_add(&header()->waited, ncclotf2_clock_monotonic() - begun, __ATOMIC_RELAXED);
}
