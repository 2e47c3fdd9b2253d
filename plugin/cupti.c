/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "abi.h"
#include "clock.h"
#include "cuda.h"
#include "cupti_buffers.h"
#include "cupti_library.h"
#include "cupti_records.h"
#include "futex.h"
#include "handle.h"
#include "log.h"
#include "session.h"
#include "thread.h"

enum {
  PERIOD_MS = 500,          /* between flushes: CUPTI itself gives back full buffers only */
  DRIVER_FILTER = 23,       /* CUPTI of CUDA 12.5: records of single driver calls can be switched off */
  CBIDS_MOST = 4096,        /* … whose ids are below this; CUDA 13.4 has some 800 */
  CBIDS_UNKNOWN = 64        /* so many unknown ids in a row end the search */
};

/* Kinds in the order in which they are switched on. Without the first three the rest is of no use. */
static const struct {
  uint8_t kind;
  bool needed;
} order[] = {{CUPTI_EXTERNAL_CORRELATION, true}, {CUPTI_CONCURRENT_KERNEL, true}, {CUPTI_DRIVER, true},
             {CUPTI_MEMCPY, false},              {CUPTI_MEMSET, false},           {CUPTI_SYNCHRONIZATION, false},
             {CUPTI_MEMORY2, false}};
enum { ORDER = sizeof order / sizeof *order };

enum { NO_THREAD = 0, WORKS = 1 };

static struct cupti_functions cupti; /* written before ncclotf2_fast.cupti is set */
static bool have_functions;
static char path[PATH_MAX]; /* of the library */
static uint32_t version;
static void *subscriber;
static uint64_t enabled; /* kinds */
static uint32_t works;   /* futex: NO_THREAD or WORKS */
static uint32_t ending;  /* 1: the thread is to switch off and end */

/* The id that this thread has pushed, or 0. */
static __thread uint64_t pushed;

static struct ncclotf2_header *header(void) { return ncclotf2_header_at(ncclotf2_session.base); }

/* `why`: one line, or "". */
static void set_state(enum ncclotf2_cupti_state state, int error, const char *why) {
  ncclotf2_store_reason(&header()->cupti_why, why);
  __atomic_store_n(&header()->cupti_error, error, __ATOMIC_RELAXED);
  __atomic_store_n(&header()->cupti_state, state, __ATOMIC_RELEASE);
}

static const char *text_of(int result) {
  const char *text = NULL;
  if (!cupti.result_string || cupti.result_string(result, &text) != CUPTI_OK || !text) text = "an error it has no name for";
  return text;
}

/* Programs that make and end communicators all the time hear it once. */
static void give_up(enum ncclotf2_cupti_state state, int error, const char *line) {
  static char said[PATH_MAX + 256];
  set_state(state, error, line);
  if (strncmp(said, line, sizeof said - 1) == 0) return;
  snprintf(said, sizeof said, "%s", line);
  ncclotf2_log(NCCLOTF2_LOG_WARN, "kernels are not recorded: %s", line);
}

static void failed(int result) {
  static const struct {
    int result;
    const char *advice;
  } advices[] = {
      {CUPTI_NOT_COMPATIBLE, "; another tool in this process uses what excludes it"},
      {CUPTI_NOT_INITIALIZED, "; there is no NVIDIA driver, or it is too old for this library: see NCCL_OTF2_CUPTI_LIBRARY"},
      {CUPTI_INSUFFICIENT_PRIVILEGES, "; the driver keeps it for administrators (NVreg_RestrictProfilingToAdminUsers)"},
  };
  const char *advice = "";
  for (unsigned i = 0; i < sizeof advices / sizeof *advices; i++)
    if (advices[i].result == result) advice = advices[i].advice;
  char line[PATH_MAX + 256];
  snprintf(line, sizeof line, "%s: %s (%d)%s", path, text_of(result), result, advice);
  give_up(NCCLOTF2_CUPTI_FAILED, result, line);
}

/* ---- on NCCL's threads ---- */

void ncclotf2_cupti_launch(uint64_t handle) {
  if (pushed) cupti.pop(CUPTI_EXTERNAL_CUSTOM2, NULL);
  pushed = handle && cupti.push(CUPTI_EXTERNAL_CUSTOM2, handle) == CUPTI_OK ? handle : 0;
}

void ncclotf2_cupti_stopped(uint64_t handle) {
  if (!pushed || (pushed != handle && ncclotf2_handle_type(handle) != NCCLOTF2_GROUP_API)) return;
  cupti.pop(CUPTI_EXTERNAL_CUSTOM2, NULL);
  pushed = 0;
}

/* ---- the thread ---- */

static void count_dropped(void) {
  size_t dropped = 0; /* since the last such call */
  if (cupti.dropped(NULL, 0, &dropped) == CUPTI_OK && dropped)
    __atomic_fetch_add(&header()->cupti_dropped, dropped, __ATOMIC_RELAXED);
}

static void count_buffers(void) {
  __atomic_store_n(&header()->cupti_buffers_strange, ncclotf2_cupti_buffers_strange(), __ATOMIC_RELAXED);
  __atomic_store_n(&header()->cupti_buffers_overwritten, ncclotf2_cupti_buffers_overwritten(), __ATOMIC_RELAXED);
}

/* Counts records in buffers that CUPTI has not returned; none of them was written into a ring. */
static void count_out(void) {
  __atomic_store_n(&header()->cupti_buffers_out, ncclotf2_cupti_buffers_out(), __ATOMIC_RELAXED);
}

static void disable(void) {
  for (unsigned i = ORDER; i-- > 0;)
    if (enabled >> order[i].kind & 1) cupti.disable(order[i].kind);
  enabled = 0;
}

/* Records that still arrive are subject to the same choice of kinds. */
static void drain(void) {
  ncclotf2_cupti_drain(&cupti, version, __atomic_load_n(&header()->cupti_kinds, __ATOMIC_RELAXED));
}

/* CUPTI may give back the last buffers on a thread of its own. */
static void take_late(void) {
  const uint64_t deadline = ncclotf2_clock_monotonic() + ncclotf2_cupti_limits.late_ms * 1000000ull;
  while (ncclotf2_cupti_buffers_out() && ncclotf2_clock_monotonic() < deadline)
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  drain();
}

static void switch_off(void) {
  int result = CUPTI_NOT_INITIALIZED;
  const bool gone = ncclotf2_cuda_is_gone();
  if (!gone) {
    disable();
    result = cupti.flush_all(CUPTI_FLUSH_FORCED);
  }
  drain();
  if (!ncclotf2_cuda_is_gone()) {
    count_dropped();
    ncclotf2_cupti_clock(&cupti);
    cupti.unsubscribe(subscriber);
    take_late();
  }
  count_buffers();
  count_out();
  if (result == CUPTI_OK) {
    set_state(NCCLOTF2_CUPTI_ENDED, result, "");
    return;
  }
  char why[128];
  snprintf(why, sizeof why, "it did not give back its last records: %s", gone ? "the driver was gone" : text_of(result));
  set_state(NCCLOTF2_CUPTI_FAILED, result, why);
}

static void *run(void *unused) {
  (void)unused;
  pthread_setname_np(pthread_self(), "nccl-otf2 cupti");
  ncclotf2_thread_stays();
  while (!ncclotf2_thread_is_left_alone()) {
    const uint32_t wake = __atomic_load_n(&ncclotf2_cupti_wake, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&ending, __ATOMIC_ACQUIRE) || ncclotf2_cuda_is_gone()) {
      __atomic_store_n(&ncclotf2_fast.cupti, 0, __ATOMIC_RELAXED);
      switch_off();
      break;
    }
    cupti.flush_all(0);
    drain();
    ncclotf2_cupti_clock(&cupti);
    count_dropped();
    count_buffers();
    ncclotf2_cupti_buffers_prepare();
    ncclotf2_futex_wait(&ncclotf2_cupti_wake, wake, PERIOD_MS);
  }
  ncclotf2_thread_leaves();
  __atomic_store_n(&works, NO_THREAD, __ATOMIC_RELEASE);
  ncclotf2_futex_wake(&works);
  return NULL;
}

/* ---- on and off ---- */

/* Score-P's CUDA adapter uses CUPTI without checking for other clients. */
static bool scorep_has_it(void) {
  static const char *const off[] = {"", "0", "no", "none", "off", "false"};
  const char *value = getenv("SCOREP_CUDA_ENABLE");
  if (!value) return false;
  for (unsigned i = 0; i < sizeof off / sizeof *off; i++)
    if (strcasecmp(value, off[i]) == 0) return false;
  return true;
}

/* The subscription has no callbacks: it keeps other clients out, and us where they are. */
static void ignore(void *user, int domain, uint32_t cbid, const void *data) {
  (void)user;
  (void)domain;
  (void)cbid;
  (void)data;
}

/* Driver calls that launch nothing need no records. Where that cannot be said they come and are thrown away. */
static void only_launches(void) {
  if (version < DRIVER_FILTER || !cupti.enable_driver_api) return;
  for (uint32_t cbid = 1, unknown = 0; cbid < CBIDS_MOST && unknown < CBIDS_UNKNOWN; cbid++)
    if (!ncclotf2_cupti_is_launch(CUPTI_DRIVER, cbid))
      unknown = cupti.enable_driver_api(cbid, 0) == CUPTI_INVALID_PARAMETER ? unknown + 1 : 0;
}

static bool enable(uint64_t kinds) {
  static uint64_t said; /* which do not work: once in all lives of communicators */
  for (unsigned i = 0; i < ORDER; i++) {
    if (!(kinds >> order[i].kind & 1)) continue;
    const int result = cupti.enable(order[i].kind);
    if (result == CUPTI_OK) {
      enabled |= 1ULL << order[i].kind;
      if (order[i].kind == CUPTI_DRIVER) only_launches();
    } else if (order[i].needed) {
      failed(result);
      return false;
    } else if (!(said >> order[i].kind & 1)) {
      said |= 1ULL << order[i].kind;
      ncclotf2_log(NCCLOTF2_LOG_WARN, "CUPTI does not record activities of kind %u: %s (%d)", order[i].kind, text_of(result),
                   result);
    }
  }
  return true;
}

/* Programs that make and end communicators all the time hear it once. */
static void say_on(void) {
  static bool said;
  if (!said) ncclotf2_log(NCCLOTF2_LOG_INFO, "kernels are recorded by CUPTI, version %u (%s)", version, path);
  said = true;
}

static bool attach(uint64_t kinds) {
  int result = cupti.subscribe(&subscriber, ignore, NULL);
  if (result == CUPTI_MULTIPLE_SUBSCRIBERS) {
    give_up(NCCLOTF2_CUPTI_BUSY, result,
            "another profiler (Nsight, torch.profiler, …) uses CUPTI; run without it, or without NCCL_OTF2_CUPTI");
    return false;
  }
  if (result != CUPTI_OK) {
    failed(result);
    return false;
  }
  if (!ncclotf2_cupti_buffers_open()) {
    give_up(NCCLOTF2_CUPTI_FAILED, 0, "no memory for CUPTI's buffers");
  } else if ((result = cupti.register_callbacks(ncclotf2_cupti_request, ncclotf2_cupti_complete)) != CUPTI_OK) {
    failed(result);
  } else {
    if (cupti.set_thread_id_type) cupti.set_thread_id_type(CUPTI_THREAD_ID_SYSTEM);
    if (enable(kinds)) {
      __atomic_store_n(&ending, 0, __ATOMIC_RELAXED);
      __atomic_store_n(&works, WORKS, __ATOMIC_RELAXED);
      (void)ncclotf2_cuda_is_gone(); /* so that the loader's lock is not taken by the thread, which forks go past */
      set_state(NCCLOTF2_CUPTI_ON, 0, "");
      ncclotf2_cupti_clock(&cupti); /* before any launch: on a loaded machine the thread may begin late */
      __atomic_store_n(&ncclotf2_fast.cupti, 1, __ATOMIC_RELEASE);
      if (ncclotf2_thread_start(run)) {
        say_on();
        return true;
      }
      __atomic_store_n(&ncclotf2_fast.cupti, 0, __ATOMIC_RELAXED);
      __atomic_store_n(&works, NO_THREAD, __ATOMIC_RELAXED);
      give_up(NCCLOTF2_CUPTI_FAILED, 0, "no thread can be started (see ulimit -u)");
    }
    disable();
  }
  cupti.unsubscribe(subscriber);
  return false;
}

static bool find_functions(void) {
  char why[PATH_MAX + 256];
  if (have_functions) return true;
  have_functions = ncclotf2_cupti_library(header()->library_path, &cupti, path, sizeof path, why, sizeof why);
  if (!have_functions) {
    give_up(NCCLOTF2_CUPTI_NO_LIBRARY, 0, why);
    return false;
  }
  if (*why) ncclotf2_log(NCCLOTF2_LOG_WARN, "%s", why);
  const int result = cupti.get_version(&version);
  if (result != CUPTI_OK) {
    failed(result);
    have_functions = false;
    return false;
  }
  __atomic_store_n(&header()->cupti_version, version, __ATOMIC_RELAXED);
  return true;
}

bool ncclotf2_cupti_begin(bool early) {
  const uint64_t kinds = __atomic_load_n(&header()->cupti_kinds, __ATOMIC_ACQUIRE);
  if (!kinds || __atomic_load_n(&ncclotf2_fast.cupti, __ATOMIC_RELAXED)) return false;
  if (!early) {
    if (__atomic_load_n(&header()->cupti_state, __ATOMIC_RELAXED) == NCCLOTF2_CUPTI_OFF)
      give_up(NCCLOTF2_CUPTI_FAILED, 0, "the collector was ready too late (NCCL_OTF2_START_LIMIT), and NCCL may be at work");
    return false;
  }
  if (scorep_has_it()) {
    give_up(NCCLOTF2_CUPTI_BUSY, 0, "Score-P records them (SCOREP_CUDA_ENABLE); unset either that or NCCL_OTF2_CUPTI");
    return false;
  }
  if (__atomic_load_n(&works, __ATOMIC_ACQUIRE) != NO_THREAD) {
    give_up(NCCLOTF2_CUPTI_FAILED, 0, "CUPTI has not ended since the last communicator");
    return false;
  }
  return find_functions() && attach(kinds);
}

void ncclotf2_cupti_end(unsigned seconds) {
  if (!__atomic_exchange_n(&ncclotf2_fast.cupti, 0, __ATOMIC_RELAXED)) return;
  __atomic_store_n(&ending, 1, __ATOMIC_RELEASE);
  __atomic_add_fetch(&ncclotf2_cupti_wake, 1, __ATOMIC_RELEASE);
  ncclotf2_futex_wake(&ncclotf2_cupti_wake);
  const uint64_t deadline = ncclotf2_clock_monotonic() + (uint64_t)seconds * 1000000000u;
  while (__atomic_load_n(&works, __ATOMIC_ACQUIRE) == WORKS && ncclotf2_clock_monotonic() < deadline)
    ncclotf2_futex_wait(&works, WORKS, 20);
  if (__atomic_load_n(&works, __ATOMIC_ACQUIRE) != WORKS) return;
  count_out(); /* as it is by now */
  static bool said;
  if (!said) ncclotf2_log(NCCLOTF2_LOG_WARN, "CUPTI has not given back its records within %u s; the last ones may be missing", seconds);
  said = true;
}
