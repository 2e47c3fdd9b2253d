/* SPDX-License-Identifier: Apache-2.0 */
#include "consumer.h"

#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include "clock.h"
#include "collector.h"
#include "config.h"
#include "futex.h"
#include "log.h"
#include "losses.h"
#include "prepare.h"
#include "session.h"
#include "spool.h"
#include "thread.h"

static enum {
  NOBODY,       /* not started yet, or nothing could be */
  COLLECTOR,
  LATE,         /* a collector that may yet get ready */
  REFUSED,      /* the settings are at fault: there will be none */
  SPOOL_THREAD,
  SPOOL_CALLER  /* no thread to be had; written at requests */
} state;

static pid_t collector;
static pid_t watched; /* the same while it is at work, for threads without the lock; else 0 */
static uint64_t looked; /* when a starved thread last looked after it, CLOCK_MONOTONIC in ns */
static bool restarted;
static uint32_t known_types;
static uint32_t printed; /* the last message_number that was logged */
static bool problem_logged;

static struct ncclotf2_header *header(void) { return ncclotf2_header_at(ncclotf2_session.base); }

/* What a message is about: its beginning and its last words, without numbers. Collectors that follow each other say the same. */
static uint64_t cause(const char *text) {
  const char *first = strstr(text, ": "), *last = first;
  for (const char *next = first; next; next = strstr(next + 2, ": ")) last = next;
  uint64_t hash = 14695981039346656037u; /* FNV-1a */
  for (const char *at = text; *at; at++) {
    if (at == first) at = last;
    if (*at < '0' || *at > '9') hash = (hash ^ (uint8_t)*at) * 1099511628211u;
  }
  return hash;
}

static bool is_news(const char *text) {
  enum { MOST = 16 }; /* what is beyond is said each time */
  static uint64_t said[MOST];
  const uint64_t about = cause(text);
  for (unsigned i = 0; i < MOST; i++) {
    if (said[i] == about) return false;
    if (said[i]) continue;
    said[i] = about;
    break;
  }
  return true;
}

void ncclotf2_consumer_messages(void) {
  uint32_t number = __atomic_load_n(&header()->message_number, __ATOMIC_ACQUIRE);
  if (number != printed) {
    char text[sizeof header()->message];
    for (size_t i = 0; i < sizeof text; i++) text[i] = __atomic_load_n(&header()->message[i], __ATOMIC_RELAXED);
    text[sizeof text - 1] = '\0';
    printed = number;
    ncclotf2_losses_heard(number);
    if (*text && is_news(text)) ncclotf2_log(NCCLOTF2_LOG_WARN, "%s", text); /* it only says what is amiss */
  }
  int problem = ncclotf2_spool_problem();
  if (problem && !problem_logged) {
    problem_logged = true;
    ncclotf2_log(NCCLOTF2_LOG_WARN, "the spool file cannot be written (%s); records wait in memory: make room in %s", strerror(problem), header()->place);
  }
}

void ncclotf2_consumer_introduce(void) {
  static bool introduced;
  if (introduced || !ncclotf2_consumer_ready()) return;
  introduced = true;
  if (state == COLLECTOR)
    ncclotf2_log(NCCLOTF2_LOG_INFO, "this process is recorded in %s, by process %u", header()->place, header()->collector_pid);
  else
    ncclotf2_log(NCCLOTF2_LOG_INFO, "this process is recorded in %s; `nccl-otf2 unify` makes an archive of it", header()->place);
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
  uint32_t mask = ncclotf2_config_events(known_types, why, sizeof why);
  if (*why) ncclotf2_log(NCCLOTF2_LOG_WARN, "%s", why);
  const uint32_t before = __atomic_load_n(&header()->record_mask, __ATOMIC_RELAXED);
  if (!before) { /* else a collector has died, which had said */
    __atomic_store_n(&header()->cupti_kinds, ncclotf2_config_cupti(why, sizeof why), __ATOMIC_RELAXED);
    if (*why) ncclotf2_log(NCCLOTF2_LOG_WARN, "%s", why);
  }
  uint64_t first, last;
  uint32_t window = before & NCCLOTF2_RECORD_WINDOW; /* a collector's, that has died */
  if (!before && ncclotf2_config_window(&first, &last, why, sizeof why)) {
    window = NCCLOTF2_RECORD_WINDOW;
    set_window(first, last);
  }
  if (*why) ncclotf2_log(NCCLOTF2_LOG_WARN, "%s", why);
  __atomic_store_n(&header()->event_mask, mask, __ATOMIC_RELEASE);
  __atomic_store_n(&header()->record_mask, (mask & ~header()->withheld) | window, __ATOMIC_RELEASE);
  __atomic_store_n(&header()->collector_state, NCCLOTF2_COLLECTOR_SPOOL, __ATOMIC_RELEASE);
  state = ncclotf2_spool_thread() ? SPOOL_THREAD : SPOOL_CALLER;
  return true;
}

static void works(void) {
  state = COLLECTOR;
  __atomic_store_n(&watched, collector, __ATOMIC_RELEASE);
  ncclotf2_prepare_start();
}

static bool start_collector(void) {
  char why[512] = "";
  switch (ncclotf2_collector_start(&collector, why, sizeof why)) {
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
                   ncclotf2_config_start_limit());
      return false;
    default:
      ncclotf2_log(NCCLOTF2_LOG_WARN, "%s; spool files are written instead, for `nccl-otf2 unify`", why);
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

void ncclotf2_consumer_check(void) {
  if (state != COLLECTOR || ncclotf2_process_alive(collector)) return;
  __atomic_store_n(&watched, 0, __ATOMIC_RELEASE);
  ncclotf2_consumer_messages(); /* its last words */
  if (restarted) {
    ncclotf2_log(NCCLOTF2_LOG_WARN, "the collector ended again; spool files are written instead, for `nccl-otf2 unify`");
    start_spool();
    return;
  }
  restarted = true;
  ncclotf2_log(NCCLOTF2_LOG_WARN, "the collector ended; a new one is started");
  start_collector();
}

static void *replace_collector(void *unused) {
  pthread_mutex_lock(&ncclotf2_life);
  ncclotf2_consumer_check();
  pthread_mutex_unlock(&ncclotf2_life);
  return unused;
}

void ncclotf2_consumer_starved(void) {
  const uint64_t second = 1000000000, now = ncclotf2_clock_monotonic();
  uint64_t last = __atomic_load_n(&looked, __ATOMIC_RELAXED);
  if (now - last < second ||
      !__atomic_compare_exchange_n(&looked, &last, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    return; /* another thread does it */
  pid_t pid = __atomic_load_n(&watched, __ATOMIC_ACQUIRE);
  if (pid && !ncclotf2_process_alive(pid)) ncclotf2_thread_start(replace_collector);
}

static bool answered(uint32_t request) {
  return (int32_t)(__atomic_load_n(&header()->answered, __ATOMIC_ACQUIRE) - request) >= 0;
}

void ncclotf2_consumer_without_thread(void) {
  pthread_mutex_lock(&ncclotf2_life);
  state = SPOOL_CALLER;
  pthread_mutex_unlock(&ncclotf2_life);
}

void ncclotf2_consumer_flush(unsigned seconds) {
  const uint64_t deadline = ncclotf2_clock_monotonic() + (uint64_t)seconds * 1000000000u;
  const uint32_t request = __atomic_add_fetch(&header()->request, 1, __ATOMIC_ACQ_REL);
  ncclotf2_futex_wake(&header()->request);
  ncclotf2_consumer_ready(); /* notices a collector that was late */
  while (!answered(request) && ncclotf2_clock_monotonic() < deadline) {
    ncclotf2_consumer_check();
    if (state == SPOOL_CALLER) {
      ncclotf2_spool_flush();
      __atomic_store_n(&header()->answered, request, __ATOMIC_RELEASE);
    }
    if (state != COLLECTOR && state != SPOOL_THREAD && state != SPOOL_CALLER) return;
    uint32_t seen = __atomic_load_n(&header()->answered, __ATOMIC_ACQUIRE);
    if (!answered(request)) ncclotf2_futex_wait(&header()->answered, seen, 20);
  }
}
