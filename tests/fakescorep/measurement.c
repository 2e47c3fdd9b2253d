/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fakescorep.h"
#include "substrates.h"

#define EXPORTED __attribute__((visibility("default")))

enum { NONE = 0, OMP = 1, PTHREAD = 2 };
#ifndef FAKESCOREP_MODEL
#define FAKESCOREP_MODEL NONE
#endif

enum { DEEPEST = 64, REGIONS_MOST = 256, METRICS_MOST = 16 };

struct region {
  char name[96], file[64];
  bool user, named;
};

struct location {
  struct SCOREP_Location self; /* id 0: the main thread's */
  struct region *open[DEEPEST];
  uint32_t depth;
};

struct event {
  uint32_t thread;
  enum { ENTER, LEAVE, VALUE } kind;
  const char *name, *file;
  double value;
};

#ifndef FAKESCOREP_OLD
EXPORTED int scorep_measurement_phase;
#define phase scorep_measurement_phase
#else
static int phase;
#endif
#ifndef FAKESCOREP_NO_USER
EXPORTED void *scorep_user_region_mutex;
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool recording = true, swift;
static struct region regions[REGIONS_MOST];
static uint32_t region_count;
static char metrics[METRICS_MOST][64];
static uint32_t metric_count;
static struct event *events;
static uint64_t event_count, event_room;
static uint64_t enters, leaves, values, sum, ignored, closed;
static uint64_t memory;
static bool flushed;
static struct location main_location;
static uint32_t location_count = 1;
static const char *last = "";
static pthread_key_t orphan_key;
static __thread struct location *orphan;

EXPORTED void fakescorep_die(const char *why)
{
  fprintf(stderr, "fakescorep: %s\n", why);
  abort();
}

static int phase_now(void) { return __atomic_load_n(&phase, __ATOMIC_RELAXED); }

static void add(struct event event)
{
  pthread_mutex_lock(&lock);
  if (event_count == event_room) {
    event_room = event_room ? 2 * event_room : 1024;
    events = realloc(events, event_room * sizeof *events);
    if (!events) fakescorep_die("out of memory");
  }
  events[event_count++] = event;
  pthread_mutex_unlock(&lock);
}

/* Each thread takes what it needs to be traced, also those whose threads have ended. */
static void take_memory(uint32_t locations)
{
  if (__atomic_load_n(&flushed, __ATOMIC_RELAXED)) fakescorep_die("a new thread after a flush");
  enum { EACH = 1100 << 10 };
  if ((uint64_t)locations * EACH > memory) fakescorep_die("No free memory page available: Out of memory. Please increase SCOREP_TOTAL_MEMORY");
}

/* The calling thread's, as the model has it. */
static struct location *here(void)
{
  if (syscall(SYS_gettid) == getpid()) return &main_location;
  if (FAKESCOREP_MODEL == OMP) fakescorep_die("Invalid OpenMP thread specific data object");
  if (FAKESCOREP_MODEL == NONE) fakescorep_die("a second thread writes into the one location");
  if (orphan) return orphan;
  orphan = calloc(1, sizeof *orphan);
  if (!orphan) fakescorep_die("out of memory");
  pthread_mutex_lock(&lock);
  /* The plugin asks for their count without the lock, as it does of Score-P. */
  orphan->self.id = __atomic_fetch_add(&location_count, 1, __ATOMIC_RELAXED);
  take_memory(orphan->self.id + 1);
  pthread_mutex_unlock(&lock);
  pthread_setspecific(orphan_key, orphan);
  substrates_activate(&orphan->self);
  return orphan;
}

EXPORTED bool fakescorep_measures(void)
{
  if (phase_now() < 0) fakescorep_die("this call would begin the measurement on a thread of a library's");
  if (phase_now() > 0) {
    __atomic_add_fetch(&ignored, 1, __ATOMIC_RELAXED);
    return false;
  }
  if (!swift) here();
  return true;
}

EXPORTED bool fakescorep_recording(void) { return __atomic_load_n(&recording, __ATOMIC_RELAXED); }
EXPORTED void fakescorep_record(bool on)
{
  if (on) __atomic_store_n(&recording, on, __ATOMIC_RELAXED);
  substrates_switch(&here()->self, on);
  __atomic_store_n(&recording, on, __ATOMIC_RELAXED);
}

static struct region *make(const char *name, const char *file, bool user, bool named)
{
  if (region_count == REGIONS_MOST) fakescorep_die("too many regions");
  struct region *region = &regions[region_count++];
  snprintf(region->name, sizeof region->name, "%s", name);
  snprintf(region->file, sizeof region->file, "%s", file);
  region->user = user;
  region->named = named;
  return region;
}

EXPORTED void *fakescorep_define(const char *name, const char *file)
{
  if (!name || !file) fakescorep_die("a region without a name or a file");
  pthread_mutex_lock(&lock);
  struct region *region = make(name, file, true, false);
  pthread_mutex_unlock(&lock);
  return region;
}

EXPORTED void *fakescorep_named(const char *name, bool wanted)
{
  struct region *region = NULL;
  pthread_mutex_lock(&lock);
  for (uint32_t i = 0; i < region_count && !region; i++)
    if (regions[i].named && strcmp(regions[i].name, name) == 0) region = &regions[i];
  if (!region && wanted) region = make(name, "", true, true);
  pthread_mutex_unlock(&lock);
  return region;
}

EXPORTED void fakescorep_begin(void *handle)
{
  struct region *region = handle;
  if (swift) {
    __atomic_add_fetch(&enters, 1, __ATOMIC_RELAXED);
    return;
  }
  struct location *location = here();
  if (!fakescorep_recording()) return;
  if (location->depth == DEEPEST) fakescorep_die("regions nested too deep");
  location->open[location->depth++] = region;
  if (region->user) {
    __atomic_add_fetch(&enters, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&last, region->name, __ATOMIC_RELAXED);
  }
  add((struct event){ .thread = location->self.id, .kind = ENTER, .name = region->name, .file = region->file });
}

EXPORTED void fakescorep_end(void *handle)
{
  struct region *region = handle;
  if (swift) {
    __atomic_add_fetch(&leaves, 1, __ATOMIC_RELAXED);
    return;
  }
  struct location *location = here();
  if (!fakescorep_recording()) return;
  if (location->depth == 0) fakescorep_die("Task stack underflow");
  if (location->open[location->depth - 1] != region)
    fakescorep_die("Exit event for other than current region; Cannot continue profiling (Inconsistent profile)");
  location->depth--;
  if (region->user) __atomic_add_fetch(&leaves, 1, __ATOMIC_RELAXED);
  add((struct event){ .thread = location->self.id, .kind = LEAVE, .name = region->name, .file = region->file });
}

EXPORTED uint32_t fakescorep_metric(const char *name, const char *unit)
{
  if (!name || !unit) fakescorep_die("a metric without a name or a unit");
  if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(name)) fakescorep_die("a metric's name that is to be changed");
  pthread_mutex_lock(&lock);
  if (metric_count == METRICS_MOST) fakescorep_die("too many metrics");
  snprintf(metrics[metric_count++], sizeof metrics[0], "%s", name);
  uint32_t handle = metric_count;
  pthread_mutex_unlock(&lock);
  return handle;
}

EXPORTED void fakescorep_value(uint32_t metric, double value)
{
  if (!metric || metric > metric_count) fakescorep_die("a value of no metric");
  if (swift) return;
  struct location *location = here();
  if (!fakescorep_recording()) return;
  __atomic_add_fetch(&values, 1, __ATOMIC_RELAXED);
  __atomic_add_fetch(&sum, (uint64_t)value, __ATOMIC_RELAXED);
  add((struct event){ .thread = location->self.id, .kind = VALUE, .name = metrics[metric - 1], .value = value });
}

/* ---- the application's instrumentation ---- */

static void app_enter(const char *name)
{
  if (phase_now() != 0) return;
  pthread_mutex_lock(&lock);
  struct region *region = NULL;
  for (uint32_t i = 0; i < region_count && !region; i++)
    if (!regions[i].user && strcmp(regions[i].name, name) == 0) region = &regions[i];
  if (!region) region = make(name, "app.c", false, false);
  pthread_mutex_unlock(&lock);
  fakescorep_begin(region);
}

static void app_leave(const char *name)
{
  if (phase_now() != 0) return;
  struct location *location = here();
  if (!fakescorep_recording()) return;
  if (location->depth == 0 || strcmp(location->open[location->depth - 1]->name, name) != 0)
    fakescorep_die("Inconsistent profile: a region is open where the function around it returns");
  fakescorep_end(location->open[location->depth - 1]);
}

/* ---- the measurement's life ---- */

/* What is open on threads that Score-P does not know it closes itself when they end. */
static void orphan_ends(void *data)
{
  struct location *location = data;
  if (phase_now() == 0) substrates_deactivate(&location->self);
  if (phase_now() == 0)
    while (location->depth) {
      fakescorep_end(location->open[location->depth - 1]);
      __atomic_add_fetch(&closed, 1, __ATOMIC_RELAXED);
    }
  free(location);
  orphan = NULL;
}

static void write_truth(void)
{
  static const char *const kinds[] = { "enter", "leave", "metric" };
  const char *pattern = getenv("FAKESCOREP_TRUTH");
  if (!pattern) return;
  char path[4096];
  const char *at = strstr(pattern, "%p");
  if (at) snprintf(path, sizeof path, "%.*s%d%s", (int)(at - pattern), pattern, getpid(), at + 2);
  else snprintf(path, sizeof path, "%s", pattern);
  FILE *file = fopen(path, "w");
  if (!file) fakescorep_die("the truth cannot be written");
  pthread_mutex_lock(&lock);
  for (uint64_t i = 0; i < event_count; i++)
    fprintf(file, "{\"thread\":%u,\"event\":\"%s\",\"name\":\"%s\",\"file\":\"%s\",\"value\":%.0f}\n", events[i].thread,
            kinds[events[i].kind], events[i].name, events[i].file ? events[i].file : "", events[i].value);
  fprintf(file, "{\"event\":\"counts\",\"ignored\":%llu,\"closed\":%llu,\"regions\":%u}\n", (unsigned long long)ignored,
          (unsigned long long)closed, region_count);
  pthread_mutex_unlock(&lock);
  if (fclose(file) != 0) fakescorep_die("the truth cannot be written");
}

static pid_t measured;

static void measurement_ends(void)
{
  if (getpid() != measured) return;
  if (phase_now() == 0) {
    if (syscall(SYS_gettid) == getpid() && fakescorep_recording() && !swift) app_leave("main");
    __atomic_store_n(&phase, 1, __ATOMIC_RELAXED);
    substrates_deactivate(&main_location.self);
    substrates_end();
  }
  write_truth();
}

EXPORTED void SCOREP_InitMeasurement(void);
EXPORTED void SCOREP_InitMeasurement(void)
{
  if (measured == getpid()) return;
  measured = getpid();
  pthread_key_create(&orphan_key, orphan_ends);
  const char *begin = getenv("FAKESCOREP_PHASE"), *record = getenv("FAKESCOREP_RECORDING"), *megabytes = getenv("FAKESCOREP_MEMORY");
  memory = megabytes ? strtoull(megabytes, NULL, 10) << 20 : 16375808;
  phase = begin ? atoi(begin) : 0;
  recording = !record || strcmp(record, "off") != 0;
  swift = getenv("FAKESCOREP_SWIFT") != NULL;
  substrates_begin(&main_location.self);
  if (!swift) app_enter("main");
  if (!recording) substrates_switch(&main_location.self, false);
  atexit(measurement_ends);
}

static void __attribute__((constructor)) load(void) { SCOREP_InitMeasurement(); }

/* The instrumentation of main() saw it begin if the measurement had begun. */
static void set_phase(int to)
{
  const int from = phase_now();
  __atomic_store_n(&phase, to, __ATOMIC_RELAXED);
  if (from < 0 && to == 0) app_enter("main");
}

/* ---- its state, as far as anybody asks for it ---- */

#ifndef FAKESCOREP_LEAN
EXPORTED uint32_t SCOREP_Location_GetCountOfLocations(void);
EXPORTED uint32_t SCOREP_Location_GetCountOfLocations(void) { return __atomic_load_n(&location_count, __ATOMIC_RELAXED); }
EXPORTED uint64_t SCOREP_Env_GetTotalMemory(void);
EXPORTED uint64_t SCOREP_Env_GetTotalMemory(void)
{
  if (phase_now() < 0) fakescorep_die("the settings have not been read");
  return memory;
}
EXPORTED bool SCOREP_IsTracingEnabled(void);
EXPORTED bool SCOREP_IsTracingEnabled(void)
{
  if (phase_now() < 0) fakescorep_die("the settings have not been read");
  return true;
}
EXPORTED bool SCOREP_Status_HasOtf2Flushed(void);
EXPORTED bool SCOREP_Status_HasOtf2Flushed(void) { return __atomic_load_n(&flushed, __ATOMIC_RELAXED); }
#endif

static void flush(void) { __atomic_store_n(&flushed, true, __ATOMIC_RELAXED); }

static uint64_t get(const uint64_t *counter) { return __atomic_load_n(counter, __ATOMIC_RELAXED); }
static uint64_t get_enters(void) { return get(&enters); }
static uint64_t get_leaves(void) { return get(&leaves); }
static uint64_t get_values(void) { return get(&values); }
static uint64_t get_sum(void) { return get(&sum); }
static uint64_t get_ignored(void) { return get(&ignored); }
static const char *get_last(void) { return __atomic_load_n(&last, __ATOMIC_RELAXED); }
static uint64_t get_depth(void) { return here()->depth; }
static uint64_t get_regions(void)
{
  uint64_t n = 0;
  pthread_mutex_lock(&lock);
  for (uint32_t i = 0; i < region_count; i++) n += regions[i].user;
  pthread_mutex_unlock(&lock);
  return n;
}
static uint64_t get_locations(void)
{
  pthread_mutex_lock(&lock);
  const uint64_t n = location_count;
  pthread_mutex_unlock(&lock);
  return n;
}

EXPORTED const struct fakescorep fakescorep = {
  .set_phase = set_phase, .flush = flush, .end = measurement_ends, .enter = app_enter, .leave = app_leave, .enters = get_enters, .leaves = get_leaves, .values = get_values,
  .sum = get_sum, .regions = get_regions, .ignored = get_ignored, .last = get_last, .depth = get_depth, .locations = get_locations,
};

/* ---- by which the model is recognized; only instrumentation calls them ---- */

#if FAKESCOREP_MODEL == 2
EXPORTED void SCOREP_ThreadCreateWait_Begin(void);
EXPORTED void SCOREP_ThreadCreateWait_Begin(void) { fakescorep_die("SCOREP_ThreadCreateWait_Begin was called"); }
#elif FAKESCOREP_MODEL == 1
EXPORTED void SCOREP_ThreadForkJoin_Fork(void);
EXPORTED void SCOREP_ThreadForkJoin_Fork(void) { fakescorep_die("SCOREP_ThreadForkJoin_Fork was called"); }
#endif
