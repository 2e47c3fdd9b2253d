/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../plugin/shm.h"
#include "internal.h"

#define EXPORTED __attribute__((visibility("default")))

struct settings settings;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t owner;

/* ---- settings ------------------------------------------------------------------------------- */

static bool is_set(const char *name)
{
  const char *value = getenv(name);
  return value && *value && strcmp(value, "0") != 0;
}

static uint32_t number(const char *name, uint32_t otherwise)
{
  const char *value = getenv(name);
  return value && *value ? (uint32_t)strtoul(value, NULL, 0) : otherwise;
}

void fault(const char *format, ...)
{
  char line[512];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  fprintf(stderr, "fakecupti: %s\n", line);
  abort();
}

static void read_faults(const char *list)
{
  static const struct { const char *name; uint32_t *number; bool *flag; } faults[] = {
    { "zero", &settings.zero, NULL }, { "reversed", &settings.reversed, NULL }, { "early", &settings.early, NULL },
    { "drop", &settings.drop, NULL }, { "unknown", &settings.unknown, NULL }, { "truncated", &settings.truncated, NULL },
    { "clock", &settings.clock, NULL }, { "slow", &settings.slow, NULL }, { "slower", &settings.slower, NULL },
    { "enable", &settings.enable, NULL }, { "subscribe", &settings.subscribe, NULL }, { "callbacks", &settings.callbacks, NULL }, { "foreign", NULL, &settings.foreign }, { "late", &settings.late, NULL },
    { "flush", NULL, &settings.flush },
  };
  for (const char *at = list; at && *at;) {
    size_t length = strcspn(at, ":,"), i = 0;
    while (i < sizeof faults / sizeof *faults && (strlen(faults[i].name) != length || strncmp(faults[i].name, at, length) != 0)) i++;
    if (i == sizeof faults / sizeof *faults) fault("FAKECUPTI_FAULTS: %s is no fault", at);
    at += length;
    char *end = (char *)(uintptr_t)at;
    unsigned long n = *at == ':' ? strtoul(at + 1, &end, 10) : 1;
    if (faults[i].number) *faults[i].number = (uint32_t)n;
    else *faults[i].flag = true;
    at = *end == ',' ? end + 1 : end;
  }
}

/* ---- the clock ------------------------------------------------------------------------------ */

static const struct ncclotf2_host_clock *host_clock;
static _Atomic int64_t ahead;

uint64_t clock_now(void)
{
  struct timespec t;
  uint64_t now;
  if (host_clock) {
    now = host_clock->anchor.real + (host_clock->now() - host_clock->anchor.ticks);
  } else {
    clock_gettime(CLOCK_REALTIME, &t);
    now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
  }
  return now + (uint64_t)ahead;
}

/* ---- state ---------------------------------------------------------------------------------- */

static void *subscribed; /* the handle that is out */
static bool kinds[KIND_COUNT];
static bool off[3][1024]; /* [domain][callback id]: filtered out */
static uint32_t next_correlation = 1, launches, flushes;
static uint64_t latest_end;

static _Thread_local struct { uint64_t ids[STACK_MOST]; int count; } stacks[EXTERNAL_KINDS];

static pthread_t worker;
static bool working;
static _Atomic bool worker_ends;

static void *work(void *unused)
{
  while (!worker_ends) {
    pthread_mutex_lock(&lock);
    if (on_complete) buffers_deliver(true, false, false);
    pthread_mutex_unlock(&lock);
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
  }
  return unused;
}

static void __attribute__((constructor)) load(void)
{
  owner = getpid();
  settings = (struct settings){ .version = number("FAKECUPTI_VERSION", 22), .no_driver = is_set("FAKECUPTI_NO_DRIVER"),
                                .busy = is_set("FAKECUPTI_BUSY"), .worker = is_set("FAKECUPTI_WORKER"),
                                .shuffle = is_set("FAKECUPTI_SHUFFLE"),
                                .swift = is_set("FAKECUPTI_SWIFT"), .first = number("FAKECUPTI_FIRST", 1),
                                .truth = getenv("FAKECUPTI_TRUTH") };
  const char *clock = getenv("FAKECUPTI_CLOCK");
  if (clock && strcmp(clock, "host") == 0) host_clock = dlsym(RTLD_DEFAULT, "ncclotf2_host_clock");
  next_correlation = settings.first;
  read_faults(getenv("FAKECUPTI_FAULTS"));
}

/* Runs after the exit handlers of the program and of who has called atexit. */
static void __attribute__((destructor)) unload(void)
{
  if (getpid() != owner) return;
  if (working) {
    worker_ends = true;
    pthread_join(worker, NULL);
  }
  truth_write();
}

/* At the door of every function but GetNextRecord. */
static void enter(const char *function)
{
  if (in_request) fault("%s is called from within the request callback: a deadlock", function);
  if (getpid() != owner) fault("%s is called in a forked child: it would wait for ever", function);
}

static int begin(const char *function)
{
  enter(function);
  if (settings.no_driver) return CODE_INITIALIZED;
  pthread_mutex_lock(&lock);
  return CODE_OK;
}

static int end(int code)
{
  pthread_mutex_unlock(&lock);
  return code;
}

/* ---- the API -------------------------------------------------------------------------------- */

EXPORTED int cuptiGetVersion(uint32_t *version);
int cuptiGetVersion(uint32_t *version)
{
  enter("cuptiGetVersion");
  if (!version) return CODE_PARAMETER;
  *version = settings.version;
  return CODE_OK;
}

EXPORTED int cuptiGetTimestamp(uint64_t *stamp);
int cuptiGetTimestamp(uint64_t *stamp)
{
  enter("cuptiGetTimestamp");
  if (!stamp) return CODE_PARAMETER;
  *stamp = clock_now();
  return CODE_OK;
}

EXPORTED int cuptiSubscribe(void **handle, void (*callback)(void *, int, uint32_t, const void *), void *user);
int cuptiSubscribe(void **handle, void (*callback)(void *, int, uint32_t, const void *), void *user)
{
  (void)user;
  int code = begin("cuptiSubscribe");
  if (code) return code;
  if (!handle || !callback) return end(CODE_PARAMETER);
  if (settings.subscribe) return end((int)settings.subscribe);
  if (settings.busy || subscribed) return end(CODE_SUBSCRIBERS);
  static char token[16];
  subscribed = *handle = token;
  return end(CODE_OK);
}

static void *come_late(void *unused)
{
  nanosleep(&(struct timespec){ .tv_sec = settings.late / 1000, .tv_nsec = settings.late % 1000 * 1000000l }, NULL);
  pthread_mutex_lock(&lock);
  buffers_late();
  pthread_mutex_unlock(&lock);
  return unused;
}

EXPORTED int cuptiUnsubscribe(void *handle);
int cuptiUnsubscribe(void *handle)
{
  int code = begin("cuptiUnsubscribe");
  if (code) return code;
  if (!handle || handle != subscribed) return end(CODE_PARAMETER);
  subscribed = NULL;
  if (settings.late) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, come_late, NULL) == 0) pthread_detach(thread);
  }
  return end(CODE_OK);
}

EXPORTED int cuptiActivityRegisterCallbacks(request_callback request, complete_callback complete);
int cuptiActivityRegisterCallbacks(request_callback request, complete_callback complete)
{
  enter("cuptiActivityRegisterCallbacks");
  if (!request || !complete) return CODE_PARAMETER;
  if (settings.callbacks) return (int)settings.callbacks;
  pthread_mutex_lock(&lock);
  on_request = request;
  on_complete = complete;
  return end(CODE_OK);
}

EXPORTED int cuptiActivityEnable(int kind);
int cuptiActivityEnable(int kind)
{
  int code = begin("cuptiActivityEnable");
  if (code) return code;
  if (kind <= 0 || kind >= KIND_COUNT) return end(CODE_KIND);
  if (settings.enable && (uint32_t)kind == settings.enable) return end(CODE_PRIVILEGES);
  if ((kind == KIND_KERNEL && kinds[KIND_CONCURRENT_KERNEL]) || (kind == KIND_CONCURRENT_KERNEL && kinds[KIND_KERNEL]))
    return end(CODE_COMPATIBLE);
  kinds[kind] = true;
  if (kind == KIND_DRIVER || kind == KIND_RUNTIME) memset(off[kind == KIND_DRIVER ? 1 : 2], 0, sizeof off[0]);
  if (settings.worker && !working) working = pthread_create(&worker, NULL, work, NULL) == 0;
  return end(CODE_OK);
}

EXPORTED int cuptiActivityDisable(int kind);
int cuptiActivityDisable(int kind)
{
  int code = begin("cuptiActivityDisable");
  if (code) return code;
  if (kind <= 0 || kind >= KIND_COUNT) return end(CODE_KIND);
  kinds[kind] = false;
  return end(CODE_OK);
}

EXPORTED int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record);
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record)
{
  if (!buffer || !record) return CODE_PARAMETER;
  uint32_t kind;
  uint8_t *next = buffer;
  if (*record) {
    memcpy(&kind, *record, sizeof kind);
    next = *record + record_size(kind);
  }
  if (next + sizeof kind > buffer + valid) return CODE_LIMIT;
  memcpy(&kind, next, sizeof kind);
  const size_t size = record_size(kind);
  if (!size) return settings.version == 18 ? CODE_UNKNOWN : CODE_KIND;
  if (next + size > buffer + valid) return CODE_LIMIT;
  *record = next;
  return CODE_OK;
}

EXPORTED int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped);
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
  (void)stream;
  int code = begin("cuptiActivityGetNumDroppedRecords");
  if (code) return code;
  if (context || !dropped) return end(CODE_PARAMETER);
  *dropped = buffers_dropped(true);
  return end(CODE_OK);
}

EXPORTED int cuptiActivityFlushAll(uint32_t flag);
int cuptiActivityFlushAll(uint32_t flag)
{
  enter("cuptiActivityFlushAll");
  if (in_complete) fault("cuptiActivityFlushAll is called from within the completion callback: a deadlock");
  if (settings.no_driver) return CODE_INITIALIZED;
  if (settings.flush) return CODE_UNKNOWN;
  const uint32_t wait = flag && settings.slow ? settings.slow : settings.slower;
  if (wait) nanosleep(&(struct timespec){ .tv_sec = wait / 1000, .tv_nsec = wait % 1000 * 1000000l }, NULL);
  pthread_mutex_lock(&lock);
  if (!on_complete) return end(CODE_OPERATION);
  if (settings.clock && ++flushes == settings.clock) ahead += 100000000000000;
  if (settings.foreign) buffers_foreign();
  buffers_deliver(false, flag & 1, settings.late && flag & 1);
  return end(CODE_OK);
}

EXPORTED int cuptiActivityFlushPeriod(uint32_t ms);
int cuptiActivityFlushPeriod(uint32_t ms)
{
  (void)ms; /* full buffers come back at once */
  int code = begin("cuptiActivityFlushPeriod");
  return code ? code : end(CODE_OK);
}

EXPORTED int cuptiActivityPushExternalCorrelationId(int kind, uint64_t id);
int cuptiActivityPushExternalCorrelationId(int kind, uint64_t id)
{
  if (!settings.swift) enter("cuptiActivityPushExternalCorrelationId");
  if (kind < 1 || kind >= EXTERNAL_KINDS) return CODE_PARAMETER;
  if (settings.no_driver) return CODE_INITIALIZED;
  if (stacks[kind].count == STACK_MOST) fault("external ids of kind %d are pushed and not popped", kind);
  stacks[kind].ids[stacks[kind].count++] = id;
  return CODE_OK;
}

EXPORTED int cuptiActivityPopExternalCorrelationId(int kind, uint64_t *id);
int cuptiActivityPopExternalCorrelationId(int kind, uint64_t *id)
{
  if (!settings.swift) enter("cuptiActivityPopExternalCorrelationId");
  if (kind < 1 || kind >= EXTERNAL_KINDS) return CODE_PARAMETER;
  if (settings.no_driver) return CODE_INITIALIZED;
  if (stacks[kind].count == 0) return CODE_EMPTY;
  stacks[kind].count--;
  if (id) *id = stacks[kind].ids[stacks[kind].count];
  return CODE_OK;
}

EXPORTED int cuptiFinalize(void);
int cuptiFinalize(void)
{
  enter("cuptiFinalize");
  pthread_mutex_lock(&lock);
  memset(kinds, 0, sizeof kinds);
  subscribed = NULL;
  return end(CODE_OK);
}

#ifdef FAKECUPTI_WHOLE /* what an older or an odd library may lack */
EXPORTED int cuptiSetThreadIdType(int type);
int cuptiSetThreadIdType(int type)
{
  int code = begin("cuptiSetThreadIdType");
  return code ? code : end(type < 0 || type > 1 ? CODE_PARAMETER : CODE_OK);
}

EXPORTED int cuptiGetResultString(int result, const char **text);
int cuptiGetResultString(int result, const char **text)
{
  enter("cuptiGetResultString");
  static const struct { int code; const char *name; } names[] = {
    { CODE_INITIALIZED, "CUPTI_ERROR_NOT_INITIALIZED" }, { CODE_SUBSCRIBERS, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" },
    { CODE_PRIVILEGES, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" }, { CODE_KIND, "CUPTI_ERROR_INVALID_KIND" },
    { CODE_COMPATIBLE, "CUPTI_ERROR_NOT_COMPATIBLE" } };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i].code == result) {
      *text = names[i].name;
      return CODE_OK;
    }
  *text = "<unknown>";
  return CODE_PARAMETER;
}

static int filter(int domain, uint32_t cbid, uint8_t on, const char *function)
{
  int code = begin(function);
  if (code) return code;
  if (cbid >= (domain == 1 ? 800u : 500u)) return end(CODE_PARAMETER);
  off[domain][cbid] = !on;
  return end(CODE_OK);
}

EXPORTED int cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t on);
int cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t on)
{
  if (settings.version < 23) return CODE_SUPPORTED;
  return filter(1, cbid, on, "cuptiActivityEnableDriverApi");
}

EXPORTED int cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t on);
int cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t on)
{
  if (settings.version < 23) return CODE_SUPPORTED;
  return filter(2, cbid, on, "cuptiActivityEnableRuntimeApi");
}
#endif

/* ---- what the program plays ----------------------------------------------------------------- */

/* Graphs: their nodes, and those of the executable graphs made from them. */
struct graph {
  struct { uint64_t node, source, captured, event, handle; const char *name; uint32_t stream, device; } nodes[64];
  uint32_t count;
};
static struct graph graphs[128]; /* an executable graph has an odd number, one more than what it was made from */
static uint32_t graph_count = 2;
static uint64_t next_node = 1;
static _Thread_local uint32_t capturing;

static uint64_t top(int kind) { return stacks[kind].count ? stacks[kind].ids[stacks[kind].count - 1] : 0; }

static void emit_call(int domain, uint32_t cbid, uint32_t correlation, uint64_t start)
{
  const int kind = domain == 1 ? KIND_DRIVER : KIND_RUNTIME;
  if (!kinds[kind]) return;
  const bool filtered = off[domain][cbid % 1024];
  struct item item;
  if (!filtered || settings.version < 26)
    for (int k = 1; k < EXTERNAL_KINDS && kinds[KIND_EXTERNAL]; k++)
      if (stacks[k].count) {
        make_external(&item, k, top(k), correlation);
        buffers_put(&item);
      }
  if (filtered) return;
  make_api(&item, domain, cbid, correlation, start, clock_now());
  buffers_put(&item);
}

static void run(struct truth *t, uint64_t launched)
{
  if (t->end > latest_end) latest_end = t->end;
  if (!kinds[KIND_CONCURRENT_KERNEL] && !kinds[KIND_KERNEL]) {
    t->fate = FATE_OFF;
    return;
  }
  launches++;
  if (settings.drop && launches % settings.drop == 0) {
    struct item lost;
    make_kernel(&lost, t);
    buffers_drop(&lost);
    return;
  }
  struct truth shown = *t;
  if (settings.zero && launches % settings.zero == 0) {
    shown.start = shown.end = 0;
    t->fate = FATE_ZEROED;
  } else if (settings.reversed && launches % settings.reversed == 0) {
    shown.start = t->end + 1;
    shown.end = t->start;
  } else if (settings.early && launches % settings.early == 0) {
    shown.start = launched - 1000;
  }
  struct item item;
  make_kernel(&item, &shown);
  item.truth = t;
  item.complete = t->end;
  buffers_put(&item);
}

static uint32_t correlate(void)
{
  const uint32_t id = next_correlation++;
  if (next_correlation == 0) next_correlation = 1;
  return id;
}

static uint32_t launch(int domain, uint32_t cbid, const struct gpu_kernel *k)
{
  pthread_mutex_lock(&lock);
  const uint64_t now = clock_now();
  const uint32_t id = correlate();
  emit_call(domain, cbid, id, now);
  if (capturing) {
    struct graph *g = &graphs[capturing];
    if (g->count == 64) fault("too many nodes in a graph");
    const uint64_t node = next_node++;
    g->nodes[g->count].node = g->nodes[g->count].source = node;
    g->nodes[g->count].captured = top(5);
    g->nodes[g->count].event = k->event;
    g->nodes[g->count].handle = k->handle;
    g->nodes[g->count].name = truth_name(k->name);
    g->nodes[g->count].stream = k->stream;
    g->nodes[g->count++].device = k->device;
  } else {
    struct truth *t = truth_add();
    *t = (struct truth){ .correlation = id, .stream = k->stream, .device = k->device, .thread = (uint32_t)syscall(SYS_gettid),
                         .event = k->event, .handle = k->handle, .external = top(5), .start = k->start ? k->start : now + 1000,
                         .end = k->start ? k->end : now + 1000 + k->end, .name = truth_name(k->name) };
    run(t, now);
  }
  pthread_mutex_unlock(&lock);
  return id;
}

static void capture_begin(void)
{
  pthread_mutex_lock(&lock);
  if (graph_count == 128) fault("too many graphs");
  capturing = graph_count;
  graph_count += 2;
  pthread_mutex_unlock(&lock);
}

static uint32_t capture_end(void)
{
  const uint32_t graph = capturing;
  capturing = 0;
  return graph;
}

static uint32_t instantiate(uint32_t graph)
{
  pthread_mutex_lock(&lock);
  struct graph *exec = &graphs[graph + 1];
  *exec = graphs[graph];
  for (uint32_t i = 0; i < exec->count; i++) exec->nodes[i].node = (uint64_t)(graph + 1) << 32 | next_node++;
  pthread_mutex_unlock(&lock);
  return graph + 1;
}

static uint32_t graph_launch(int domain, uint32_t cbid, uint32_t exec, const struct gpu_kernel *times, uint32_t count)
{
  pthread_mutex_lock(&lock);
  const uint64_t now = clock_now();
  const uint32_t id = correlate();
  emit_call(domain, cbid, id, now);
  const struct graph *g = &graphs[exec];
  for (uint32_t i = 0; i < g->count && i < count; i++) {
    struct truth *t = truth_add();
    *t = (struct truth){ .correlation = id, .stream = g->nodes[i].stream, .device = g->nodes[i].device,
                         .thread = (uint32_t)syscall(SYS_gettid), .event = g->nodes[i].event, .handle = g->nodes[i].handle,
                         .external = top(5),
                         .captured = g->nodes[i].captured, .start = times[i].start ? times[i].start : now + 1000,
                         .end = times[i].start ? times[i].end : now + 1000 + times[i].end, .graph = exec, .node = g->nodes[i].node,
                         .source = g->nodes[i].source, .name = g->nodes[i].name };
    run(t, now);
  }
  pthread_mutex_unlock(&lock);
  return id;
}

static uint32_t call(int domain, uint32_t cbid)
{
  pthread_mutex_lock(&lock);
  const uint32_t id = correlate();
  emit_call(domain, cbid, id, clock_now());
  pthread_mutex_unlock(&lock);
  return id;
}

static void activity(int kind, uint32_t stream, uint64_t bytes, uint64_t start, uint64_t end_of_it)
{
  pthread_mutex_lock(&lock);
  struct item item;
  if (kind > 0 && kind < KIND_COUNT && kinds[kind] && record_size((uint32_t)kind)) {
    make_activity(&item, kind, stream, correlate(), bytes, start, end_of_it);
    buffers_put(&item);
  }
  pthread_mutex_unlock(&lock);
}

static void memory(const struct gpu_memory *m)
{
  pthread_mutex_lock(&lock);
  if (kinds[KIND_MEMORY2]) {
    struct item item;
    make_memory(&item, m, correlate());
    buffers_put(&item);
    truth_memory(m);
  }
  pthread_mutex_unlock(&lock);
}

static void synchronize(void)
{
  for (;;) {
    pthread_mutex_lock(&lock);
    const bool done = clock_now() >= latest_end;
    pthread_mutex_unlock(&lock);
    if (done || host_clock) return;
    nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
  }
}

static void advance(int64_t ns) { ahead += ns; }

static uint64_t delivered(int kind)
{
  pthread_mutex_lock(&lock);
  const uint64_t n = buffers_delivered(kind);
  pthread_mutex_unlock(&lock);
  return n;
}

static uint64_t unreadable(void)
{
  pthread_mutex_lock(&lock);
  const uint64_t n = buffers_unreadable();
  pthread_mutex_unlock(&lock);
  return n;
}

static uint64_t outstanding(void)
{
  pthread_mutex_lock(&lock);
  const uint64_t n = buffers_outstanding();
  pthread_mutex_unlock(&lock);
  return n;
}

static uint64_t depth(void) { return (uint64_t)stacks[5].count; }

EXPORTED const struct gpu_hooks replay_gpu = { launch, capture_begin, capture_end, instantiate, graph_launch, call, activity,
                                                    clock_now, synchronize, advance, delivered, unreadable, outstanding, depth, memory };
