/* SPDX-License-Identifier: Apache-2.0 */
#include "scorep.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi.h"
#include "futex.h"
#include "instrumented.h"
#include "log.h"
#include "scorep_library.h"
#include "session.h"
#include "settings.h"

static struct scorep_functions scorep; /* written before ncclotf2_fast.scorep is set */
static bool any_thread;                /* likewise: not only the main thread may call it */
static bool points;                    /* likewise: nothing may be open between two callbacks */

/* One region per operation, by NCCL's name of it. */
enum { ALL_TO_ALL, GATHER, SCATTER, SEND_RECV, OTHER, NAMED };
static struct {
  const char *operation, *region;
  void *handle;
} regions[] = {
    [ALL_TO_ALL] = {"AlltoAll", "ncclAlltoAll", NULL},
    [GATHER] = {"Gather", "ncclGather", NULL},
    [SCATTER] = {"Scatter", "ncclScatter", NULL},
    [SEND_RECV] = {"SendRecv", "ncclSendRecv", NULL},
    [OTHER] = {NULL, "ncclOther", NULL}, /* of a name that is not in this table */
    [NAMED] = {"AllReduce", "ncclAllReduce", NULL},
    {"AllGather", "ncclAllGather", NULL},
    {"ReduceScatter", "ncclReduceScatter", NULL},
    {"Send", "ncclSend", NULL},
    {"Recv", "ncclRecv", NULL},
    {"Broadcast", "ncclBroadcast", NULL},
    {"Reduce", "ncclReduce", NULL},
};
enum { REGIONS = sizeof regions / sizeof *regions };
static uint32_t metric;

/* Where the regions come from, as Score-P and its filter files see it. */
static const char region_file[] = "NCCL";

static uint32_t defined; /* futex: whether the handles are there */
enum { NOT_YET = 0, BEING_DEFINED = 1, DEFINED = 2 };

/* What this thread is in. */
static __thread struct {
  uint64_t call;   /* handle of the plain call, or 0 */
  void *entered;   /* its region, or NULL */
  uint64_t sent, received;
  uint32_t sends, receives; /* inside it; its name is known when all of them have come */
  uint32_t comm;
  bool mixed;      /* … on several communicators */
  bool unsized;    /* … of a datatype whose size is not known */
  uint8_t standing; /* enum: whether the thread may call Score-P */
} thread;
enum { UNKNOWN = 0, MAY, MAY_NOT, NEW /* it may, and Score-P has perhaps not counted it yet */, NO_MEMORY };

/* What Score-P needs for a thread that it gets to know: of its memory, whose size is fixed when it begins (SCOREP_TOTAL_MEMORY),
 * and which it does not get back when the thread ends. Where none is left it ends the program. Seen with 8.4: 1.1 MiB where it
 * traces, 20 KiB where it makes a profile only. When it had to flush its trace's memory before the end, it crashes with the next
 * thread that it gets to know, however much there is. */
enum { TRACED_THREAD = 5 << 18, PROFILED_THREAD = 128 << 10 };
static uint32_t new_threads;

static struct ncclotf2_header *header(void) { return ncclotf2_header_at(ncclotf2_session.base); }

static bool measures(void) { return __atomic_load_n(scorep.phase, __ATOMIC_RELAXED) == SCOREP_PHASE_WITHIN; }

static bool is_main(void) { return syscall(SYS_gettid) == getpid(); }

/* Whether one more thread fits. There is no asking whether Score-P knows this one already: the program's own threads, if they were
 * created by its instrumentation, are counted before they come here. */
static uint8_t take_room(void) {
  if (!scorep.location_count || !scorep.is_tracing || !scorep.total_memory || !scorep.has_flushed) return NO_MEMORY;
  const bool tracing = scorep.is_tracing();
  if (tracing && scorep.has_flushed()) return NO_MEMORY;
  const uint64_t room = scorep.total_memory() / (tracing ? TRACED_THREAD : PROFILED_THREAD);
  const uint64_t coming = __atomic_add_fetch(&new_threads, 1, __ATOMIC_ACQ_REL); /* read before the count: twice rather than never */
  const uint64_t count = scorep.location_count();
  if (count + coming <= room) return NEW;
  __atomic_sub_fetch(&new_threads, 1, __ATOMIC_RELEASE);
  return count + 1 <= room ? UNKNOWN /* with fewer at a time it may fit */ : NO_MEMORY;
}

/* While Score-P measures. */
static bool thread_may(void) {
  if (thread.standing == UNKNOWN) thread.standing = is_main() ? MAY : any_thread ? take_room() : MAY_NOT;
  return thread.standing == MAY || thread.standing == NEW;
}

/* Whether the handles are there afterwards. */
static bool define(void) {
  uint32_t before = __atomic_load_n(&defined, __ATOMIC_ACQUIRE);
  if (before == DEFINED) return true;
  if (before != NOT_YET ||
      !__atomic_compare_exchange_n(&defined, &before, BEING_DEFINED, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
    return before == DEFINED;
  for (unsigned i = 0; i < REGIONS; i++) {
    const char *last_name = NULL;
    uint32_t last_file = 0;
    scorep.region_init(&regions[i].handle, &last_name, &last_file, regions[i].region, SCOREP_REGION_FUNCTION, region_file, 0);
  }
  if (scorep.init_metric && scorep.trigger_uint64)
    scorep.init_metric(&metric, "nccl_bytes", "bytes", SCOREP_METRIC_UINT64, SCOREP_METRIC_GLOBAL);
  __atomic_store_n(&defined, DEFINED, __ATOMIC_RELEASE);
  ncclotf2_futex_wake(&defined);
  return true;
}

/* ---- on NCCL's threads ---- */

static void *keep(uint8_t *base, enum ncclotf2_scorep_kept reason) {
  ncclotf2_count(&ncclotf2_header_at(base)->scorep_kept[reason]);
  return NULL;
}

/* The region that was entered, or NULL. Bytes are a value of the metric unless they are not known. */
static void *enter_region(uint8_t *base, unsigned region, uint64_t bytes, bool known) {
  if (!measures()) return keep(base, NCCLOTF2_SCOREP_KEPT_OUTSIDE);
  if (!thread_may())
    return keep(base, thread.standing == MAY_NOT ? NCCLOTF2_SCOREP_KEPT_THREAD : NCCLOTF2_SCOREP_KEPT_MEMORY);
  if (scorep.recording_enabled && !scorep.recording_enabled()) return keep(base, NCCLOTF2_SCOREP_KEPT_PAUSED);
  void *handle = define() ? regions[region].handle : NULL;
  if (!handle) return keep(base, NCCLOTF2_SCOREP_KEPT_UNDEFINED);
  scorep.region_enter(handle);
  if (thread.standing == NEW) {
    thread.standing = MAY;
    __atomic_sub_fetch(&new_threads, 1, __ATOMIC_RELEASE);
  }
  if (known && metric) scorep.trigger_uint64(metric, bytes);
  ncclotf2_count(&ncclotf2_header_at(base)->scorep_forwarded);
  return handle;
}

static void leave_region(void *handle) {
  if (handle && measures()) scorep.region_end(handle);
}

/* What is open in it, if it may stay so. */
static void *stay(void *handle) {
  if (!points) return handle;
  leave_region(handle);
  return NULL;
}

static const char *text_of(uint8_t *base, uint32_t id) {
  return id ? ncclotf2_string_at(base, (uint64_t)(id - 1) * 8)->bytes : "";
}

static unsigned region_of(const char *operation) {
  for (unsigned i = REGIONS; i-- > 0;)
    if (regions[i].operation && strcmp(regions[i].operation, operation) == 0) return i;
  return OTHER;
}

/* In bytes; 0 if it is not known (NCCL has no name for its 8-bit unsigned integer, "Unknown"). */
static uint64_t size_of(const char *datatype) {
  static const struct {
    const char *name;
    uint64_t size;
  } sizes[] = {{"ncclFloat32", 4}, {"ncclBfloat16", 2}, {"ncclFloat16", 2},    {"ncclFloat64", 8},    {"ncclInt8", 1},  {"ncclInt32", 4},
               {"ncclInt64", 8},   {"ncclUint8", 1},    {"ncclUint32", 4},     {"ncclUint64", 8},     {"ncclFloat8e4m3", 1},
               {"ncclFloat8e5m2", 1}};
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (strcmp(sizes[i].name, datatype) == 0) return sizes[i].size;
  return 0;
}

/* The calls that NCCL carries out as sends and receives; no event names them. */
static unsigned series_region(uint8_t *base) {
  const uint32_t sends = thread.sends, receives = thread.receives;
  if (sends + receives == 1) return region_of(sends ? "Send" : "Recv");
  const uint32_t ranks =
      thread.mixed || thread.comm == NCCLOTF2_NONE ? 0 : (uint32_t)ncclotf2_comm_at(base, thread.comm)->nranks;
  if (ranks > 1 && sends == ranks && receives == ranks) return ALL_TO_ALL;
  if (ranks && sends == 1 && receives == ranks) return GATHER;
  if (ranks && sends == ranks && receives == 1) return SCATTER;
  return SEND_RECV;
}

static void *enter_series(uint8_t *base) {
  const uint64_t bytes = thread.sent > thread.received ? thread.sent : thread.received;
  void *handle = enter_region(base, series_region(base), bytes, !thread.unsized);
  thread.sends = thread.receives = 0;
  return stay(handle);
}

static void begin_call(uint64_t handle) {
  leave_region(thread.entered);
  thread.call = handle;
  thread.entered = NULL;
  thread.sent = thread.received = 0;
  thread.sends = thread.receives = 0;
  thread.mixed = thread.unsized = false;
}

void ncclotf2_scorep_started(uint8_t *base, const struct ncclotf2_record *record) {
  if (record->type == NCCLOTF2_GROUP_API) {
    begin_call(((const struct ncclotf2_group_api *)(const void *)record)->group_depth == 1 ? record->handle : 0);
    return;
  }
  const struct ncclotf2_coll_api *call = (const void *)record;
  const uint64_t size = size_of(text_of(base, call->datatype)), bytes = call->count * size;
  const unsigned region = region_of(text_of(base, call->func));
  const bool plain = thread.call && record->arg == thread.call;
  if (!plain || thread.entered || (record->type == NCCLOTF2_COLL_API && thread.sends + thread.receives)) {
    leave_region(enter_region(base, region, bytes, size != 0));
    return;
  }
  if (record->type == NCCLOTF2_COLL_API) {
    thread.entered = stay(enter_region(base, region, bytes, size != 0));
    return;
  }
  if (thread.sends + thread.receives == 0) thread.comm = record->aux;
  if (thread.comm != record->aux) thread.mixed = true;
  if (!size) thread.unsized = true;
  if (strcmp(regions[region].region, "ncclSend") == 0) {
    thread.sends++;
    thread.sent += bytes;
  } else {
    thread.receives++;
    thread.received += bytes;
  }
}

void ncclotf2_scorep_launches(uint8_t *base, uint64_t handle) {
  if (handle == thread.call && handle && !thread.entered && thread.sends + thread.receives) thread.entered = enter_series(base);
}

void ncclotf2_scorep_stopped(uint8_t *base, uint64_t handle) {
  if (handle != thread.call || !handle) return;
  if (!thread.entered && thread.sends + thread.receives) thread.entered = enter_series(base);
  begin_call(0);
}

/* ---- once in a process ---- */

static void set_state(enum ncclotf2_scorep_state state, const char *why) {
  ncclotf2_store_reason(&header()->scorep_why, why);
  __atomic_store_n(&header()->scorep_state, state, __ATOMIC_RELEASE);
  if (*why) ncclotf2_log(NCCLOTF2_LOG_WARN, "NCCL's calls are not forwarded to Score-P: %s", why);
}

/* Who sets these expects a measurement. */
static bool measurement_is_expected(void) {
  static const char *const names[] = {"SCOREP_ENABLE_TRACING", "SCOREP_ENABLE_PROFILING", "SCOREP_EXPERIMENT_DIRECTORY"};
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
    if (getenv(names[i])) return true;
  return false;
}

void ncclotf2_scorep_begin(unsigned api_version, const void *caller) {
  static bool begun;
  if (begun) return;
  begun = true;
  const uint64_t setting = ncclotf2_setting(NCCLOTF2_SETTING_SCOREP).number;
  if (setting == NCCLOTF2_CHOICE_SCOREP_OFF) return;
  char why[sizeof header()->scorep_why];
  enum ncclotf2_scorep_model model;
  if (!ncclotf2_scorep_library(&scorep, &model, why, sizeof why)) {
    if (*why)
      set_state(NCCLOTF2_SCOREP_UNUSABLE, why);
    else if (setting == NCCLOTF2_CHOICE_SCOREP_ON || measurement_is_expected())
      set_state(NCCLOTF2_SCOREP_ABSENT, "this process shows none; instrument the program (scorep --user), and if its libraries are "
                "static link it with -rdynamic, or set NCCL_OTF2_SCOREP=off");
    return;
  }
  __atomic_store_n(&header()->scorep_model, model, __ATOMIC_RELAXED);
  const uint32_t calls = 1u << NCCLOTF2_COLL_API | 1u << NCCLOTF2_P2P_API;
  if (api_version < 5) {
    set_state(NCCLOTF2_SCOREP_NO_CALLS, "NCCL before 2.28 does not tell of calls; use a newer one");
  } else if (!(__atomic_load_n(&header()->record_mask, __ATOMIC_ACQUIRE) & calls)) {
    set_state(NCCLOTF2_SCOREP_NO_CALLS, "they are not recorded; NCCL_OTF2_EVENTS must have CollApi and P2pApi, and NCCL_OTF2_RANKS "
              "this process");
  } else {
    any_thread = model == NCCLOTF2_SCOREP_CREATE_WAIT;
    set_state(NCCLOTF2_SCOREP_ON, "");
    ncclotf2_log(NCCLOTF2_LOG_INFO, "NCCL's calls are forwarded to Score-P, from %s",
                 any_thread ? "all threads" : "the main thread (that is what its thread model allows)");
    points = ncclotf2_is_instrumented(caller);
    __atomic_store_n(&header()->scorep_points, points, __ATOMIC_RELAXED);
    if (points)
      ncclotf2_log(NCCLOTF2_LOG_WARN, "NCCL itself is instrumented: its calls are regions without duration in Score-P; build it without "
                   "(SCOREP_WRAPPER=off, or scorep --nocompiler)");
    __atomic_store_n(&ncclotf2_fast.scorep, 1, __ATOMIC_RELEASE);
  }
}

void ncclotf2_scorep_prepare(void) {
  if (!__atomic_load_n(&ncclotf2_fast.scorep, __ATOMIC_ACQUIRE) || !measures() || !(any_thread || is_main())) return;
  while (!define()) ncclotf2_futex_wait(&defined, BEING_DEFINED, 20); /* another thread does it: calls are to find them */
}

void ncclotf2_scorep_report(void) {
  static const char *const reasons[NCCLOTF2_SCOREP_KEPT_REASONS] = {
      [NCCLOTF2_SCOREP_KEPT_THREAD] = "from other threads than the main one (link the program by scorep --thread=pthread)",
      [NCCLOTF2_SCOREP_KEPT_OUTSIDE] = "while Score-P did not measure",
      [NCCLOTF2_SCOREP_KEPT_PAUSED] = "while its recording was off",
      [NCCLOTF2_SCOREP_KEPT_UNDEFINED] = "for which it had no region",
      [NCCLOTF2_SCOREP_KEPT_MEMORY] = "from new threads for which it had no memory (raise SCOREP_TOTAL_MEMORY: 2 MiB for each, and so that its trace need not be flushed)",
  };
  static uint64_t reported[NCCLOTF2_SCOREP_KEPT_REASONS];
  char line[512] = "";
  size_t used = 0;
  enum ncclotf2_log_level level = NCCLOTF2_LOG_INFO; /* of what was warned of in an earlier life */
  for (unsigned i = 0; i < NCCLOTF2_SCOREP_KEPT_REASONS; i++) {
    const uint64_t kept = __atomic_load_n(&header()->scorep_kept[i], __ATOMIC_RELAXED);
    /* Pauses are the user's own wish. */
    if (i == NCCLOTF2_SCOREP_KEPT_PAUSED || kept == reported[i]) continue;
    const int length = snprintf(line + used, sizeof line - used, "%s%llu %s", used ? "; " : "",
                                (unsigned long long)(kept - reported[i]), reasons[i]);
    if (!reported[i]) level = NCCLOTF2_LOG_WARN;
    reported[i] = kept;
    if (length > 0 && (size_t)length < sizeof line - used) used += (size_t)length;
  }
  if (used) ncclotf2_log(level, "calls not forwarded to Score-P: %s", line);
}
