/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin as a client of CUPTI, played by tests/fakecupti: what is recorded, what is lost is counted, and whatever
 * CUPTI does, NCCL does not notice.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "../../tests/fakecupti/fakecupti.h"
#include "../clock.h"
#include "../cupti.h"
#include "../cupti_buffers.h"
#include "../cupti_library.h"
#include "../cupti_records.h"
#include "host.h"
#include "test.h"

#define KERNELS (1ULL << 10 | 1ULL << 39 | 1ULL << 4)
enum { LAUNCH_EX = 652, GET_DEVICE = 17 };

/* The CUDA driver of this program. */
static int driver_answer = 201; /* CUDA_ERROR_INVALID_CONTEXT */
__attribute__((visibility("default"))) int cuCtxGetDevice(int *device);
int cuCtxGetDevice(int *device) {
  *device = 0;
  return __atomic_load_n(&driver_answer, __ATOMIC_RELAXED);
}

static const struct gpu_hooks *cuda;

static const char *library(const char *name) {
  static char path[PATH_MAX];
  char program[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  CHECK(length > 0, "who am I: %s", strerror(errno));
  program[length] = '\0';
  for (int i = 0; i < 3; i++) *strrchr(program, '/') = '\0';
  snprintf(path, sizeof path, "%s/fakecupti/%s", program, name);
  CHECK(access(path, R_OK) == 0, "%s is not built", path);
  return path;
}

static void set_number(const char *name, unsigned long long value) {
  char text[32];
  snprintf(text, sizeof text, "%llu", value);
  setenv(name, text, 1);
}

static void prepare(uint32_t version, const char *faults, uint64_t kinds) {
  set_number("FAKECUPTI_VERSION", version);
  setenv("FAKECUPTI_FAULTS", faults, 1);
  setenv("NCCL_OTF2_CUPTI_LIBRARY", library("libcupti.so.12"), 1);
  set_number("STUB_CUPTI", kinds);
  host_use_stub("ready", 0xf47);
}

static void take_hooks(const char *path) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  cuda = handle ? dlsym(handle, "replay_gpu") : NULL;
  CHECK(cuda, "the library is not loaded: %s", host_line);
}

static void *begin(uint32_t version, const char *faults, uint64_t kinds) {
  prepare(version, faults, kinds);
  void *context = host_init(1, 2, 0);
  take_hooks(getenv("NCCL_OTF2_CUPTI_LIBRARY"));
  return context;
}

static uint32_t is_on(void) { return __atomic_load_n(&ncclotf2_fast.cupti, __ATOMIC_RELAXED); }

static void check_on(void) {
  EQUAL(host_header()->cupti_state, NCCLOTF2_CUPTI_ON, "state");
  EQUAL(is_on(), 1, "on");
}

static uint32_t launch(const char *name) {
  return cuda->launch(1, LAUNCH_EX, &(struct gpu_kernel){.device = 0, .stream = 7, .name = name, .end = 1000});
}

/* One that is still running at the end: its buffer comes back when it must, and not before. */
static void launch_endless(void) {
  cuda->launch(1, LAUNCH_EX, &(struct gpu_kernel){.name = "endless", .end = 3600000000000});
}

/* A launch as NCCL makes it. */
static uint64_t nccl_launch(void *context, uint32_t *correlation) {
  void *handle = host_start(context, host_descr(NCCLOTF2_KERNEL_LAUNCH));
  const uint32_t id = launch("ncclDevKernel_AllReduce");
  if (correlation) *correlation = id;
  ncclProfiler_v6.stopEvent(handle);
  return (uint64_t)(uintptr_t)handle;
}

static void finalize(void *context) {
  cuda->synchronize();
  EQUAL(ncclProfiler_v6.finalize(context), 0, "finalize");
}

/* ---- what is in the rings ---- */

enum { MOST = 200000 };
static struct activity {
  uint32_t kind, size, name;
  uint8_t bytes[NCCLOTF2_CUPTI_MOST];
} *activities;
static uint64_t activity_count, of_kind[64], clocks, clock_least, clock_most;
static uint32_t activity_version;

static void take_record(uint32_t ring, const struct ncclotf2_record *record, void *closure) {
  (void)ring;
  (void)closure;
  if (record->kind == NCCLOTF2_RECORD_CUPTI_CLOCK) {
    const struct ncclotf2_cupti_clock *clock = (const void *)record;
    EQUAL(record->units, 2, "units");
    /* Both are the real-time clock, but for what the library adds. */
    const uint64_t ahead = record->handle - clock->real + 1000000000;
    if (!clocks++ || ahead < clock_least) clock_least = ahead;
    if (ahead > clock_most) clock_most = ahead;
  }
  if (record->kind != NCCLOTF2_RECORD_CUPTI) return;
  const uint8_t *bytes = (const uint8_t *)record + sizeof *record;
  CHECK(record->handle <= NCCLOTF2_CUPTI_MOST && record->units == 1 + (record->handle + 31) / 32, "%u units for %llu bytes",
        record->units, (unsigned long long)record->handle);
  for (uint64_t i = record->handle; i < (record->units - 1) * 32u; i++) EQUAL(bytes[i], 0, "padding");
  CHECK(activity_count < MOST, "too many records");
  struct activity *a = &activities[activity_count++];
  memcpy(&a->kind, bytes, sizeof a->kind);
  a->size = (uint32_t)record->handle;
  a->name = record->aux;
  memcpy(a->bytes, bytes, record->handle);
  of_kind[a->kind]++;
  activity_version = (uint32_t)record->arg;
}

static void read_all(void) {
  static struct reader *reader;
  if (!reader) {
    reader = calloc(1, sizeof *reader);
    activities = calloc(MOST, sizeof *activities);
  }
  reader_drain(reader, take_record, NULL);
}

static uint64_t field(const struct activity *a, unsigned offset, unsigned size) {
  uint64_t value = 0;
  memcpy(&value, a->bytes + offset, size);
  return value;
}

/* The external id of a correlation id, 0 if there is none. */
static uint64_t external_of(uint32_t correlation) {
  for (uint64_t i = 0; i < activity_count; i++)
    if (activities[i].kind == 39 && field(&activities[i], 16, 4) == correlation) return field(&activities[i], 8, 8);
  return 0;
}

static const struct activity *kernel_of(uint32_t correlation) {
  for (uint64_t i = 0; i < activity_count; i++)
    if (activities[i].kind == 10 && field(&activities[i], 92, 4) == correlation) return &activities[i];
  return NULL;
}

/* All that came back is in the rings or counted. */
static void check_counts(void) {
  read_all();
  EQUAL(of_kind[10] + of_kind[39] + of_kind[4] + of_kind[1] + of_kind[2] + of_kind[38] + of_kind[49] + host_header()->cupti_lost,
        cuda->delivered(10) + cuda->delivered(39) + cuda->delivered(4) + cuda->delivered(1) + cuda->delivered(2) +
            cuda->delivered(38) + cuda->delivered(49),
        "records");
}

static void check_ended(void) {
  EQUAL(host_header()->cupti_why[0], '\0', "reason");
  EQUAL(host_header()->cupti_state, NCCLOTF2_CUPTI_ENDED, "state");
  EQUAL(host_header()->cupti_error, 0, "error");
  EQUAL(is_on(), 0, "on");
  EQUAL(cuda->outstanding(), 0, "outstanding buffers");
}

/* ---- cases ---- */

static const struct version {
  uint32_t version, kernel, memcpy, memset, synchronization, memory;
} versions[] = {{18, 200, 88, 88, 40, 120},      {22, 208, 88, 88, 40, 120},      {26, 208, 96, 88, 56, 128},
                {130000, 216, 96, 88, 56, 128},  {130100, 224, 96, 88, 56, 128},  {130400, 248, 112, 104, 56, 128},
                {140000, 248, 112, 104, 56, 128}};

static void all_of_a_version(const struct version *v) {
  void *context = begin(v->version, "", KERNELS | 1ULL << 1 | 1ULL << 22 | 1ULL << 2 | 1ULL << 38 | 1ULL << 49);
  check_on();
  uint32_t ours, other;
  const uint64_t handle = nccl_launch(context, &ours);
  other = launch("someone's kernel");
  if (v->version >= 23) cuda->call(1, GET_DEVICE);
  static const int kinds[] = {1, 2, 38, 49};
  for (unsigned i = 0; i < 4; i++) cuda->activity(kinds[i], 7, 4096, cuda->now() - 100, cuda->now());
  finalize(context);
  check_ended();
  EQUAL(host_header()->cupti_version, v->version, "version");
  check_counts();
  EQUAL(activity_version, v->version, "version of records");
  EQUAL(of_kind[10], 2, "kernels");
  EQUAL(of_kind[4], 2, "launches");
  EQUAL(of_kind[39], 1, "external ids");
  EQUAL(external_of(ours), handle, "external id");
  EQUAL(external_of(other), 0, "external id of the other");
  const uint32_t sizes[64] = {[10] = v->kernel, [1] = v->memcpy, [2] = v->memset, [38] = v->synchronization,
                              [49] = v->memory, [4] = 40, [39] = 24};
  for (uint64_t i = 0; i < activity_count; i++) {
    EQUAL(activities[i].size, sizes[activities[i].kind], "size");
    if (activities[i].kind == 4) EQUAL(field(&activities[i], 4, 4), LAUNCH_EX, "callback id");
  }
  EQUAL(kernel_of(ours)->name, host_string_id("ncclDevKernel_AllReduce"), "name");
  EQUAL(kernel_of(other)->name, host_string_id("someone's kernel"), "name");
  EQUAL(field(kernel_of(ours), 24, 8) - field(kernel_of(ours), 16, 8), 1000, "duration");
  for (unsigned i = 0; i < 4; i++) EQUAL(of_kind[kinds[i]], 1, "other activities");
  CHECK(clocks >= 2 && clock_most - clock_least < 1000000000, "%llu clock records, %llu ns apart", (unsigned long long)clocks,
        (unsigned long long)(clock_most - clock_least));
}

/* Names of kernels tell their template arguments: what differs far behind is not the same kernel. */
static void long_names(void) {
  char name[2000], other[2000];
  memset(name, 'x', sizeof name);
  name[999] = '\0';
  memcpy(other, name, sizeof other);
  other[998] = 'y';
  void *context = begin(22, "", KERNELS);
  const uint32_t first = launch(name), second = launch(other), again = launch(name);
  memset(name + 999, 'z', 1000);
  name[1999] = '\0';
  const uint32_t longer = launch(name);
  finalize(context);
  read_all();
  other[998] = 'x';
  EQUAL(kernel_of(first)->name, host_string_id(other), "name");
  EQUAL(kernel_of(again)->name, kernel_of(first)->name, "the same name");
  other[998] = 'y';
  EQUAL(kernel_of(second)->name, host_string_id(other), "name");
  name[NCCLOTF2_KERNEL_NAME_MAX] = '\0';
  EQUAL(kernel_of(longer)->name, host_string_id(name), "name that was cut");
}

/* The string of a module that is gone may be another's. */
static void name_at_a_known_address(void) {
  void *context = begin(22, "", KERNELS);
  const uint32_t first = launch("of the first module");
  finalize(context);
  read_all();
  char *name;
  memcpy(&name, kernel_of(first)->bytes + 104, sizeof name);
  strcpy(name, "of the second");
  context = host_init(2, 2, 0);
  const uint32_t second = launch("of the second"), again = launch("of the second");
  finalize(context);
  read_all();
  EQUAL(field(kernel_of(second), 104, 8), (uintptr_t)name, "address");
  EQUAL(kernel_of(first)->name, host_string_id("of the first module"), "name");
  EQUAL(kernel_of(second)->name, host_string_id("of the second"), "name");
  EQUAL(kernel_of(again)->name, kernel_of(second)->name, "name");
}

/* Each version in a process of its own. */
static void every_version(void) {
  for (unsigned i = 0; i < sizeof versions / sizeof *versions; i++) {
    pid_t pid = fork();
    if (pid == 0) {
      all_of_a_version(&versions[i]);
      exit(0);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    CHECK(status == 0, "version %u", versions[i].version);
  }
}

static void not_asked_for(void) {
  prepare(22, "", 0);
  void *context = host_init(1, 2, 0);
  CHECK(!dlopen(getenv("NCCL_OTF2_CUPTI_LIBRARY"), RTLD_NOW | RTLD_NOLOAD), "the library was loaded");
  EQUAL(host_header()->cupti_state, NCCLOTF2_CUPTI_OFF, "state");
  EQUAL(is_on(), 0, "on");
  ncclProfiler_v6.stopEvent(host_start(context, host_descr(NCCLOTF2_KERNEL_LAUNCH)));
  ncclProfiler_v6.finalize(context);
}

static void stale_ids(void) {
  void *context = begin(22, "", KERNELS);
  check_on();
  /* NCCL gives up between start and stop. */
  void *call = host_start(context, host_descr(NCCLOTF2_GROUP_API));
  void *failed = host_start(context, host_descr(NCCLOTF2_KERNEL_LAUNCH));
  EQUAL(cuda->depth(), 1, "depth");
  ncclProfiler_v6.stopEvent(call);
  EQUAL(cuda->depth(), 0, "depth after the call");
  const uint32_t behind = launch("behind");
  ncclProfiler_v6.stopEvent(failed); /* much later, and nothing to pop */
  EQUAL(cuda->depth(), 0, "depth");
  /* The call's end is not seen: the next launch takes the old id away. */
  host_start(context, host_descr(NCCLOTF2_KERNEL_LAUNCH));
  uint32_t next;
  const uint64_t handle = nccl_launch(context, &next);
  EQUAL(cuda->depth(), 0, "depth");
  ncclProfiler_v6.stopEvent((void *)(uintptr_t)handle); /* twice */
  ncclProfiler_v6.stopEvent(failed);
  /* A launch that was refused has no id to push. */
  host_header()->record_mask = 0;
  CHECK(!host_start(context, host_descr(NCCLOTF2_KERNEL_LAUNCH)), "recorded");
  EQUAL(cuda->depth(), 0, "depth");
  host_header()->record_mask = 0xf47;
  /* … and does not run under the one that was left before it, whatever it is refused for. */
  host_start(context, host_descr(NCCLOTF2_KERNEL_LAUNCH));
  EQUAL(cuda->depth(), 1, "depth");
  host_header()->record_mask = 0xf47 | NCCLOTF2_RECORD_FULL;
  CHECK(!host_start(context, host_descr(NCCLOTF2_KERNEL_LAUNCH)), "recorded");
  EQUAL(cuda->depth(), 0, "depth");
  host_header()->record_mask = 0xf47;
  finalize(context);
  read_all();
  EQUAL(external_of(behind), 0, "external id behind");
  EQUAL(external_of(next), handle, "external id");
  EQUAL(of_kind[39], 1, "external ids");
}

static void *stop_it(void *handle) {
  ncclProfiler_v6.stopEvent(handle);
  EQUAL(cuda->depth(), 0, "depth");
  return NULL;
}

static void stop_elsewhere(void) {
  void *context = begin(22, "", KERNELS);
  void *handle = host_start(context, host_descr(NCCLOTF2_KERNEL_LAUNCH));
  pthread_t thread;
  pthread_create(&thread, NULL, stop_it, handle);
  pthread_join(thread, NULL);
  EQUAL(cuda->depth(), 1, "depth");
  nccl_launch(context, NULL);
  EQUAL(cuda->depth(), 0, "depth");
  finalize(context);
  check_ended();
}

/* What keeps CUPTI off, and says so. */
static void refused(const char *variable, const char *value, const char *faults, enum ncclotf2_cupti_state state, int error,
                    const char *line) {
  pid_t pid = fork();
  if (pid == 0) {
    setenv(variable, value, 1);
    prepare(22, faults, KERNELS);
    void *context = host_init(1, 2, 0);
    EQUAL(host_header()->cupti_state, state, "state");
    EQUAL(host_header()->cupti_error, error, "error");
    EQUAL(is_on(), 0, "on");
    CHECK(host_logged(line), "no line like \"%s\": %s", line, host_line);
    CHECK(!host_logged("kernels are recorded by CUPTI"), "it is said that kernels are recorded");
    CHECK(*host_header()->cupti_why, "no reason");
    EQUAL(host_mask, 0xf47, "mask");
    CHECK(host_start(context, host_descr(NCCLOTF2_KERNEL_LAUNCH)), "not recorded");
    /* Nothing is left behind. */
    void *handle = dlopen(getenv("NCCL_OTF2_CUPTI_LIBRARY"), RTLD_NOW | RTLD_NOLOAD), *subscriber;
    int (*subscribe)(void **, cupti_callback, void *) = handle ? (int (*)(void **, cupti_callback, void *))dlsym(handle, "cuptiSubscribe") : NULL;
    if (subscribe && state == NCCLOTF2_CUPTI_FAILED && error != CUPTI_NOT_INITIALIZED && !strstr(faults, "subscribe"))
      EQUAL(subscribe(&subscriber, (cupti_callback)(uintptr_t)&subscriber, NULL), 0, "the subscription was kept");
    EQUAL(ncclProfiler_v6.finalize(context), 0, "finalize");
    exit(0);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  CHECK(status == 0, "%s=%s %s", variable, value, faults);
}

static void refusals(void) {
  refused("FAKECUPTI_BUSY", "1", "", NCCLOTF2_CUPTI_BUSY, 39, "another profiler");
  refused("SCOREP_CUDA_ENABLE", "kernel,memcpy", "", NCCLOTF2_CUPTI_BUSY, 0, "SCOREP_CUDA_ENABLE");
  refused("FAKECUPTI_NO_DRIVER", "1", "", NCCLOTF2_CUPTI_FAILED, 15,
          "libcupti.so.12: CUPTI_ERROR_NOT_INITIALIZED (15); there is no NVIDIA driver, or it is too old for this library");
  refused("X", "", "enable:39", NCCLOTF2_CUPTI_FAILED, 35, "INSUFFICIENT_PRIVILEGES (35); the driver keeps it for administrators");
  refused("X", "", "enable:10", NCCLOTF2_CUPTI_FAILED, 35, "kernels are not recorded");
  refused("X", "", "enable:4", NCCLOTF2_CUPTI_FAILED, 35, "kernels are not recorded");
  refused("X", "", "subscribe:14", NCCLOTF2_CUPTI_FAILED, 14, "NOT_COMPATIBLE (14); another tool in this process");
  refused("X", "", "subscribe:33", NCCLOTF2_CUPTI_FAILED, 33, "an error it has no name for (33)");
  refused("X", "", "callbacks:14", NCCLOTF2_CUPTI_FAILED, 14, "NOT_COMPATIBLE (14)");
}

static void no_memory_for_buffers(void) {
  ncclotf2_cupti_limits.size = 1ULL << 46;
  refused("X", "", "", NCCLOTF2_CUPTI_FAILED, 0, "no memory for CUPTI's buffers");
}

/* Neither for the collector, so there is none and the setting is read here. */
static void no_thread(void) {
  CHECK(dlopen(library("libcupti.so.12"), RTLD_NOW | RTLD_LOCAL), "%s", dlerror()); /* while we may see it */
  /* Root is exempt from the limit. */
  if (getuid() == 0) CHECK(setgid(65534) == 0 && setuid(65534) == 0, "cannot become nobody: %s", strerror(errno));
  prctl(PR_SET_DUMPABLE, 1);
  char directory[PATH_MAX];
  snprintf(directory, sizeof directory, "%s/experiment", host_folder());
  setenv("NCCL_OTF2_DIR", directory, 1);
  setenv("NCCL_OTF2_COLLECTOR", "spool", 1);
  setenv("NCCL_OTF2_CUPTI", "on", 1);
  struct rlimit limit, before;
  getrlimit(RLIMIT_NPROC, &before);
  limit = before;
  limit.rlim_cur = 0;
  setrlimit(RLIMIT_NPROC, &limit);
  void *context = host_init(1, 2, 0);
  setrlimit(RLIMIT_NPROC, &before); /* the leak sanitizer needs a process at the end */
  EQUAL(host_header()->cupti_state, NCCLOTF2_CUPTI_FAILED, "state");
  CHECK(host_logged("no thread can be started"), "%s", host_line);
  EQUAL(is_on(), 0, "on");
  CHECK(host_start(context, host_descr(NCCLOTF2_KERNEL_LAUNCH)), "not recorded");
  EQUAL(ncclProfiler_v6.finalize(context), 0, "finalize");
}

static void refused_again(void) {
  setenv("FAKECUPTI_BUSY", "1", 1);
  prepare(22, "", KERNELS);
  int lines = 0;
  for (uint64_t life = 1; life <= 3; life++) {
    void *context = host_init(life, 2, 0);
    EQUAL(host_header()->cupti_state, NCCLOTF2_CUPTI_BUSY, "state");
    ncclProfiler_v6.finalize(context);
    if (life == 1) lines = host_lines;
  }
  EQUAL(host_lines, lines, "lines");
}

/* Who uses CUPTI may let go of it between two communicators. That kernels are recorded is said when they are. */
static void free_later(void) {
  prepare(22, "", KERNELS);
  void *handle = dlopen(getenv("NCCL_OTF2_CUPTI_LIBRARY"), RTLD_NOW | RTLD_LOCAL), *other = NULL;
  CHECK(handle, "%s", dlerror());
  int (*subscribe)(void **, cupti_callback, void *) = (int (*)(void **, cupti_callback, void *))dlsym(handle, "cuptiSubscribe");
  int (*unsubscribe)(void *) = (int (*)(void *))dlsym(handle, "cuptiUnsubscribe");
  EQUAL(subscribe(&other, (cupti_callback)(uintptr_t)&other, NULL), 0, "another client");
  void *context = host_init(1, 2, 0);
  EQUAL(host_header()->cupti_state, NCCLOTF2_CUPTI_BUSY, "state");
  CHECK(host_logged("another profiler"), "%s", host_line);
  CHECK(!host_logged("kernels are recorded by CUPTI"), "it is said that kernels are recorded");
  ncclProfiler_v6.finalize(context);
  EQUAL(unsubscribe(other), 0, "unsubscribe");
  context = host_init(2, 2, 0);
  check_on();
  CHECK(host_logged("kernels are recorded by CUPTI, version 22"), "%s", host_line);
  EQUAL(ncclProfiler_v6.finalize(context), 0, "finalize");
}

static void scorep_without_cuda(void) {
  setenv("SCOREP_CUDA_ENABLE", "no", 1);
  void *context = begin(22, "", KERNELS);
  check_on();
  finalize(context);
}

static void optional_kind_refused(void) {
  void *context = begin(22, "enable:1", KERNELS | 1ULL << 1 | 1ULL << 2);
  check_on();
  CHECK(host_logged("activities of kind 1"), "%s", host_line);
  cuda->activity(1, 7, 1, cuda->now(), cuda->now());
  cuda->activity(2, 7, 1, cuda->now(), cuda->now());
  finalize(context);
  check_ended();
  check_counts();
  EQUAL(of_kind[1], 0, "copies");
  EQUAL(of_kind[2], 1, "settings");
}

/* ---- which library ---- */

static void make_folder(const char *path) {
  char part[PATH_MAX];
  snprintf(part, sizeof part, "%s", path);
  for (char *at = part + 1;; at++) {
    const char was = *at;
    if (was && was != '/') continue;
    *at = '\0';
    mkdir(part, 0700);
    if (!was) return;
    *at = was;
  }
}

static void link_library(const char *folder, const char *file, const char *from) {
  char path[PATH_MAX];
  make_folder(folder);
  snprintf(path, sizeof path, "%s/%s", folder, file);
  CHECK(symlink(from, path) == 0, "%s: %s", path, strerror(errno));
}

/* Searches in a process of its own, and says which library was found: the end of its path. */
static void found(const char *nccl, const char *want, const char *complaint) {
  pid_t pid = fork();
  if (pid == 0) {
    struct cupti_functions functions = {0};
    char path[PATH_MAX] = "", why[PATH_MAX + 256];
    const bool got = ncclotf2_cupti_library(nccl, &functions, path, sizeof path, why, sizeof why);
    const size_t length = want ? strlen(want) : 0;
    CHECK(got == (want != NULL), "%s: %s", path, why);
    CHECK(!want || (strlen(path) >= length && strcmp(path + strlen(path) - length, want) == 0), "%s, want %s", path, want);
    CHECK(complaint ? strstr(why, complaint) != NULL : !*why, "\"%s\"", why);
    _exit(0);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  CHECK(status == 0, "looking for %s", want ? want : "none");
}

static void search_order(void) {
  char root[PATH_MAX], text[2 * PATH_MAX], nccl[2 * PATH_MAX], whole[PATH_MAX];
  snprintf(root, sizeof root, "%s", host_folder());
  snprintf(whole, sizeof whole, "%s", library("libcupti.so.12"));
  unsetenv("CUDA_PATH");
  unsetenv("CONDA_PREFIX");
  snprintf(text, sizeof text, "%s/cuda", root);
  setenv("CUDA_HOME", text, 1);
  snprintf(nccl, sizeof nccl, "%s/site/nvidia/nccl/lib/libnccl.so.2", root);
  found(nccl, NULL, "NCCL_OTF2_CUPTI_LIBRARY");
  found(NULL, NULL, "no libcupti.so was found");
  found("libnccl.so.2", NULL, "no libcupti.so was found");
  /* From the last place to the first. */
  snprintf(text, sizeof text, "%s/cuda/lib64", root);
  link_library(text, "libcupti.so.12", whole);
  found(nccl, "cuda/lib64/libcupti.so.12", NULL);
  snprintf(text, sizeof text, "%s/cuda/extras/CUPTI/lib64", root);
  link_library(text, "libcupti.so.12", whole);
  found(nccl, "extras/CUPTI/lib64/libcupti.so.12", NULL);
  link_library(text, "libcupti.so.13", whole);
  found(nccl, "extras/CUPTI/lib64/libcupti.so.13", NULL);
  snprintf(text, sizeof text, "%s/site/nvidia/nccl/lib", root);
  make_folder(text);
  snprintf(text, sizeof text, "%s/site/nvidia/cuda_cupti/lib", root);
  link_library(text, "libcupti.so.12", whole);
  found(nccl, "nvidia/nccl/lib/../../cuda_cupti/lib/libcupti.so.12", NULL);
  snprintf(text, sizeof text, "%s/site/nvidia/cu13/lib", root);
  link_library(text, "libcupti.so.13", whole);
  found(nccl, "nvidia/nccl/lib/../../cu13/lib/libcupti.so.13", NULL);
  setenv("NCCL_OTF2_CUPTI_LIBRARY", whole, 1);
  found(nccl, "fakecupti/libcupti.so.12", NULL);
  setenv("NCCL_OTF2_CUPTI_LIBRARY", "/nowhere/libcupti.so.12", 1);
  found(nccl, NULL, "/nowhere/libcupti.so.12");
  /* One that is mapped is taken whatever is set: there must not be two. */
  CHECK(dlopen(whole, RTLD_NOW | RTLD_LOCAL), "%s", dlerror());
  found(nccl, "fakecupti/libcupti.so.12", "the program has loaded");
  unsetenv("NCCL_OTF2_CUPTI_LIBRARY");
  found(nccl, "fakecupti/libcupti.so.12", NULL);
}

static void lacks_what_is_needed(void) {
  prepare(22, "", KERNELS);
  setenv("NCCL_OTF2_CUPTI_LIBRARY", library("broken/libcupti.so.12"), 1);
  void *context = host_init(1, 2, 0);
  EQUAL(host_header()->cupti_state, NCCLOTF2_CUPTI_NO_LIBRARY, "state");
  CHECK(host_logged("lacks cuptiActivityFlushAll"), "%s", host_line);
  ncclProfiler_v6.finalize(context);
}

static void lacks_what_is_not_needed(void) {
  prepare(24, "", KERNELS);
  setenv("NCCL_OTF2_CUPTI_LIBRARY", library("lacking/libcupti.so.12"), 1);
  void *context = host_init(1, 2, 0);
  take_hooks(library("lacking/libcupti.so.12"));
  check_on();
  nccl_launch(context, NULL);
  cuda->call(1, GET_DEVICE); /* comes, and is thrown away */
  finalize(context);
  check_ended();
  read_all();
  EQUAL(cuda->delivered(4), 2, "records of calls");
  EQUAL(of_kind[4], 1, "records of launches");
}

static void only_launches_are_traced(void) {
  void *context = begin(24, "", KERNELS);
  for (unsigned i = 1; i < 700; i++) cuda->call(1, i);
  finalize(context);
  read_all();
  EQUAL(cuda->delivered(4), 8, "records of calls");
  EQUAL(of_kind[4], 8, "launches");
}

/* ---- what CUPTI does wrong ---- */

static uint64_t zeroed(void) {
  uint64_t n = 0;
  for (uint64_t i = 0; i < activity_count; i++) n += activities[i].kind == 10 && !field(&activities[i], 16, 8);
  return n;
}

static void stamps(void) {
  void *context = begin(22, "zero:3,reversed:5,early:7", KERNELS);
  for (int i = 0; i < 105; i++) nccl_launch(context, NULL);
  finalize(context);
  check_counts();
  EQUAL(of_kind[10], 105, "kernels");
  EQUAL(zeroed(), 35, "kernels without times");
}

static void unfinished(void) {
  void *context = begin(22, "", KERNELS);
  nccl_launch(context, NULL);
  launch_endless();
  ncclProfiler_v6.finalize(context);
  check_ended();
  check_counts();
  EQUAL(of_kind[10], 2, "kernels");
  EQUAL(zeroed(), 1, "kernels without times");
}

static void dropped(void) {
  void *context = begin(22, "drop:4", KERNELS);
  for (int i = 0; i < 100; i++) nccl_launch(context, NULL);
  finalize(context);
  check_counts();
  EQUAL(of_kind[10], 75, "kernels");
  EQUAL(host_header()->cupti_dropped, 25, "dropped");
}

static void unreadable(uint32_t version, const char *faults, bool is_error) {
  pid_t pid = fork();
  if (pid == 0) {
    void *context = begin(version, faults, KERNELS);
    for (int i = 0; i < 10; i++) nccl_launch(context, NULL);
    finalize(context);
    check_ended();
    check_counts();
    EQUAL(host_header()->cupti_unknown, cuda->unreadable(), "unknown");
    EQUAL(host_header()->cupti_unknown > 0, is_error, "unknown");
    CHECK(activity_count > 0 && of_kind[10] < 10, "%llu records, %llu kernels", (unsigned long long)activity_count,
          (unsigned long long)of_kind[10]);
    exit(0);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  CHECK(status == 0, "version %u, %s", version, faults);
}

static void unreadable_buffers(void) {
  unreadable(18, "unknown", true);
  unreadable(22, "unknown", true);
  unreadable(130400, "unknown", true);
  unreadable(22, "truncated", false); /* the end is the end */
}

static void foreign_buffers(void) {
  void *context = begin(22, "foreign", KERNELS);
  nccl_launch(context, NULL);
  finalize(context);
  check_ended();
  check_counts();
  EQUAL(of_kind[10], 1, "kernels");
  CHECK(host_header()->cupti_buffers_strange > 0, "no foreign buffer was seen");
  EQUAL(host_header()->cupti_buffers_strange, ncclotf2_cupti_buffers_strange(), "foreign buffers");
}

/* Another client's callbacks, which take what they are given and keep it. */
static void other_request(uint8_t **buffer, size_t *size, size_t *most) {
  static uint8_t memory[16][4096] __attribute__((aligned(8)));
  static unsigned used;
  CHECK(used < 16, "too many buffers");
  *buffer = memory[used++];
  *size = sizeof memory[0];
  *most = 0;
}
static void other_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
  (void)context;
  (void)stream;
  (void)buffer;
  (void)size;
  (void)valid;
}

static void second_client(void) {
  void *context = begin(22, "", KERNELS);
  nccl_launch(context, NULL);
  void *handle = dlopen(getenv("NCCL_OTF2_CUPTI_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
  int (*register_callbacks)(cupti_request, cupti_complete) =
      (int (*)(cupti_request, cupti_complete))dlsym(handle, "cuptiActivityRegisterCallbacks");
  EQUAL(register_callbacks(other_request, other_complete), 0, "registration");
  nccl_launch(context, NULL);
  EQUAL(register_callbacks(ncclotf2_cupti_request, ncclotf2_cupti_complete), 0, "registration");
  for (int i = 0; i < 10; i++) nccl_launch(context, NULL); /* … in the other's buffer, which comes to us */
  finalize(context);
  check_ended();
}

static void comes_late(void) {
  ncclotf2_cupti_limits.late_ms = 60000;
  void *context = begin(22, "late:20", KERNELS);
  launch_endless();
  ncclProfiler_v6.finalize(context);
  check_ended();
  EQUAL(host_header()->cupti_buffers_out, 0, "out");
  check_counts();
  EQUAL(of_kind[10], 1, "kernels");
}

static void comes_after_the_end(void) {
  ncclotf2_cupti_limits.late_ms = 0;
  void *context = begin(22, "late:600", KERNELS);
  launch_endless();
  ncclProfiler_v6.finalize(context);
  EQUAL(host_header()->cupti_state, NCCLOTF2_CUPTI_ENDED, "state");
  EQUAL(host_header()->cupti_buffers_out, 1, "out");
  while (cuda->outstanding()) usleep(1000); /* … comes when nobody listens */
  /* The next life finds it. */
  context = host_init(2, 2, 0);
  check_on();
  ncclProfiler_v6.finalize(context);
  EQUAL(host_header()->cupti_buffers_out, 0, "out");
  read_all();
  EQUAL(of_kind[10], 1, "kernels");
}

static void foreign_clock(void) {
  void *context = begin(22, "clock:2", KERNELS);
  do {
    usleep(10000);
    read_all();
  } while (clock_most - clock_least < 90000000000000); /* else the case's time runs out */
  finalize(context);
  check_ended();
}

static void flush_fails(void) {
  void *context = begin(22, "flush", KERNELS);
  nccl_launch(context, NULL);
  EQUAL(ncclProfiler_v6.finalize(context), 0, "finalize");
  EQUAL(host_header()->cupti_state, NCCLOTF2_CUPTI_FAILED, "state");
  EQUAL(host_header()->cupti_error, 999, "error");
  CHECK(strstr(host_header()->cupti_why, "did not give back"), "%s", host_header()->cupti_why);
  EQUAL(host_header()->cupti_buffers_out, 1, "out");
  read_all();
  CHECK(clocks >= 2, "%llu clock records", (unsigned long long)clocks);
}

static void shuffled(void) {
  setenv("FAKECUPTI_SHUFFLE", "1", 1);
  void *context = begin(130000, "", KERNELS);
  for (int i = 0; i < 20000; i++) nccl_launch(context, NULL);
  finalize(context);
  check_ended();
  check_counts();
  EQUAL(of_kind[10], 20000, "kernels");
  EQUAL(of_kind[39], 20000, "external ids");
}

/* ---- memory ---- */

static void pool_at_its_cap(void) {
  ncclotf2_cupti_limits = (struct ncclotf2_cupti_limits){.size = 4096, .count = 2, .ready = 2, .scrap_size = 1024, .scrap_count = 4096, .late_ms = 200};
  void *context = begin(22, "slower:300", KERNELS); /* … so the thread comes rarely */
  for (int i = 0; i < 3000; i++) nccl_launch(context, NULL);
  finalize(context);
  check_ended();
  check_counts();
  CHECK(host_header()->cupti_lost > 0 && of_kind[10] > 0, "%llu lost, %llu kernels", (unsigned long long)host_header()->cupti_lost,
        (unsigned long long)of_kind[10]);
  EQUAL(host_header()->cupti_unknown, 0, "unknown");
}

/* Even the small buffers are out: all that CUPTI has left is one that it fills again and again. */
static void even_scraps_are_out(void) {
  setenv("FAKECUPTI_SHARED", "1", 1);
  ncclotf2_cupti_limits = (struct ncclotf2_cupti_limits){.size = 1024, .count = 1, .ready = 1, .scrap_size = 1024, .scrap_count = 1, .late_ms = 200};
  void *context = begin(130000, "slower:300", KERNELS);
  for (int i = 0; i < 500; i++) nccl_launch(context, NULL);
  finalize(context);
  EQUAL(host_header()->cupti_state, NCCLOTF2_CUPTI_ENDED, "state");
  CHECK(host_header()->cupti_buffers_overwritten > 0, "nothing was overwritten");
  EQUAL(host_header()->cupti_buffers_strange, 0, "foreign buffers");
}

static void no_room_in_rings(void) {
  setenv("NCCL_OTF2_MEMORY", "4M", 1);
  void *context = begin(22, "", KERNELS);
  for (int i = 0; i < 30000; i++) nccl_launch(context, NULL);
  finalize(context);
  check_ended();
  CHECK(host_header()->cupti_lost > 0, "nothing is lost");
  check_counts();
}

static void disk_is_full(void) {
  void *context = begin(22, "", KERNELS);
  launch_endless();
  nccl_launch(context, NULL);
  __atomic_or_fetch(&host_header()->record_mask, NCCLOTF2_RECORD_FULL, __ATOMIC_RELAXED);
  ncclProfiler_v6.finalize(context);
  check_counts();
  EQUAL(of_kind[10], 0, "kernels");
  EQUAL(host_header()->cupti_lost, 5, "lost");
}

/* ---- threads ---- */

enum { THREADS = 8, ROUNDS = 2000 };
static uint64_t handle_of[2 * THREADS * ROUNDS]; /* by correlation id; 0: no launch of NCCL's */

static void *launch_many(void *context) {
  for (int i = 0; i < ROUNDS; i++) {
    uint32_t correlation;
    const uint64_t handle = nccl_launch(context, &correlation);
    handle_of[correlation] = handle;
    if (i % 3 == 0) launch("someone's kernel");
  }
  return NULL;
}

static void many_threads(uint32_t version) {
  setenv("FAKECUPTI_WORKER", "1", 1);
  ncclotf2_cupti_limits.size = 16 << 10;
  void *context = begin(version, "", KERNELS);
  pthread_t threads[THREADS];
  for (unsigned i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, launch_many, context);
  for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  finalize(context);
  check_ended();
  check_counts();
  EQUAL(of_kind[39] + host_header()->cupti_lost >= THREADS * ROUNDS, 1, "external ids");
  for (uint64_t i = 0; i < activity_count; i++)
    if (activities[i].kind == 39) EQUAL(field(&activities[i], 8, 8), handle_of[field(&activities[i], 16, 4)], "external id");
}

static void one_buffer_for_all_threads(void) { many_threads(26); }
static void buffers_of_each_thread(void) { many_threads(130000); }

/* ---- life ---- */

static void several_lives(void) {
  for (uint64_t life = 1; life <= 4; life++) {
    prepare(22, "", KERNELS);
    void *context = host_init(life, 2, 0), *second = host_init(life + 100, 2, 0);
    if (!cuda) take_hooks(getenv("NCCL_OTF2_CUPTI_LIBRARY"));
    check_on();
    nccl_launch(context, NULL);
    ncclProfiler_v6.finalize(second);
    check_on();
    nccl_launch(context, NULL);
    finalize(context);
    check_ended();
    check_counts();
    EQUAL(of_kind[10], 2 * life, "kernels");
    launch("between lives");
    EQUAL(cuda->outstanding(), 0, "buffers between lives");
  }
}

static void left_to_the_exit_handler(void) {
  void *context = begin(22, "", KERNELS);
  nccl_launch(context, NULL);
  cuda->synchronize();
}

/* Registered before the plugin's, so it runs when those have. */
static void after_exit(void) {
  if (host_header()->cupti_state != NCCLOTF2_CUPTI_ENDED) _exit(9);
  read_all();
  if (of_kind[10] != 1 || cuda->outstanding()) _exit(8);
}

static void exit_without_finalize(void) {
  host_folder();
  atexit(after_exit);
  left_to_the_exit_handler();
}

static void after_exit_without_driver(void) {
  if (host_header()->cupti_state != NCCLOTF2_CUPTI_FAILED || host_header()->cupti_error != 15) _exit(9);
  void *handle = dlopen(getenv("NCCL_OTF2_CUPTI_LIBRARY"), RTLD_NOW | RTLD_NOLOAD), *subscriber;
  int (*subscribe)(void **, cupti_callback, void *) = (int (*)(void **, cupti_callback, void *))dlsym(handle, "cuptiSubscribe");
  if (subscribe(&subscriber, (cupti_callback)(uintptr_t)&subscriber, NULL) != 39) _exit(8); /* it was unsubscribed */
}

static void driver_goes(void) { __atomic_store_n(&driver_answer, 4, __ATOMIC_RELAXED); }

static void exit_after_the_driver(void) {
  host_folder();
  atexit(after_exit_without_driver);
  void *context = begin(22, "", KERNELS);
  atexit(driver_goes);
  nccl_launch(context, NULL);
}

/* The thread sees it by itself, and flushes no more. */
static void driver_goes_first(void) {
  void *context = begin(22, "foreign", KERNELS);
  nccl_launch(context, NULL);
  driver_goes();
  while (__atomic_load_n(&host_header()->cupti_state, __ATOMIC_ACQUIRE) == NCCLOTF2_CUPTI_ON) usleep(1000);
  const uint64_t flushes = ncclotf2_cupti_buffers_strange();
  EQUAL(host_header()->cupti_error, 15, "error");
  EQUAL(is_on(), 0, "on");
  void *handle = host_start(context, host_descr(NCCLOTF2_KERNEL_LAUNCH));
  EQUAL(cuda->depth(), 0, "depth");
  ncclProfiler_v6.stopEvent(handle);
  EQUAL(ncclProfiler_v6.finalize(context), 0, "finalize");
  EQUAL(ncclotf2_cupti_buffers_strange(), flushes, "flushes");
}

static void slow_flush(void) {
  void *context = begin(22, "slow:3600000", KERNELS);
  launch_endless(); /* which only the flush that is slow gives back */
  ncclProfiler_v6.finalize(context);
  EQUAL(__atomic_load_n(&host_header()->cupti_state, __ATOMIC_RELAXED), NCCLOTF2_CUPTI_ON, "state: finalize was held");
  CHECK(host_logged("has not given back"), "%s", host_line);
  EQUAL(__atomic_load_n(&host_header()->cupti_buffers_out, __ATOMIC_RELAXED), 1, "out");
  /* It is still at it: the next life does without. */
  context = host_init(2, 2, 0);
  EQUAL(is_on(), 0, "on");
  EQUAL(host_header()->cupti_state, NCCLOTF2_CUPTI_FAILED, "state");
  CHECK(host_logged("has not ended"), "%s", host_line);
  ncclProfiler_v6.finalize(context);
}

static void in_child(void *context) {
  CHECK(!host_start(context, host_descr(NCCLOTF2_KERNEL_LAUNCH)), "recorded");
  ncclProfiler_v6.finalize(context);
}

static void forked_child(void) {
  void *context = begin(22, "", KERNELS);
  void *handle = host_start(context, host_descr(NCCLOTF2_KERNEL_LAUNCH));
  pid_t pid = fork();
  if (pid == 0) {
    ncclProfiler_v6.stopEvent(handle);
    in_child(context);
    exit(0); /* the library ends a process that calls it here */
  }
  int status = -1;
  waitpid(pid, &status, 0);
  EQUAL(status, 0, "the child's end");
  pid = host_bare_fork();
  if (pid == 0) {
    ncclProfiler_v6.finalize(context);
    exit(0);
  }
  waitpid(pid, &status, 0);
  EQUAL(status, 0, "the end of a bare clone's child");
  ncclProfiler_v6.stopEvent(handle);
  EQUAL(cuda->depth(), 0, "depth");
  nccl_launch(context, NULL);
  finalize(context);
  check_ended();
}

static void spool_asks_for_itself(void) {
  prepare(22, "", 0);
  setenv("NCCL_OTF2_COLLECTOR", "spool", 1);
  setenv("NCCL_OTF2_CUPTI", "memcpy", 1);
  char directory[PATH_MAX];
  snprintf(directory, sizeof directory, "%s/experiment", host_folder());
  setenv("NCCL_OTF2_DIR", directory, 1);
  void *context = host_init(1, 2, 0);
  take_hooks(getenv("NCCL_OTF2_CUPTI_LIBRARY"));
  check_on();
  EQUAL(host_header()->cupti_kinds, KERNELS | 1ULL << 1 | 1ULL << 22, "kinds");
  nccl_launch(context, NULL);
  finalize(context);
  check_ended();
}

static void late_collector(void) {
  prepare(22, "", KERNELS);
  host_use_stub("late", 0xf47);
  setenv("NCCL_OTF2_START_LIMIT", "1", 1);
  const char *gate = host_gate();
  void *first = host_init(1, 2, 0);
  EQUAL(host_header()->cupti_state, NCCLOTF2_CUPTI_OFF, "state");
  CHECK(unlink(gate) == 0, "%s: %s", gate, strerror(errno));
  EVENTUALLY(__atomic_load_n(&host_header()->collector_state, __ATOMIC_ACQUIRE) == NCCLOTF2_COLLECTOR_READY);
  void *second = host_init(2, 2, 0); /* the first may be at work on the GPU */
  EQUAL(host_header()->cupti_state, NCCLOTF2_CUPTI_FAILED, "state");
  CHECK(host_logged("too late"), "%s", host_line);
  ncclProfiler_v6.finalize(first);
  ncclProfiler_v6.finalize(second);
  void *third = host_init(3, 2, 0);
  check_on();
  ncclProfiler_v6.finalize(third);
}

TEST_MAIN({"records of every version come as they are, launches with their handles", every_version},
          {"long names are kept apart", long_names},
          {"a name's address may come to mean another", name_at_a_known_address},
          {"not asked for, CUPTI is not touched", not_asked_for},
          {"an id that NCCL leaves behind is taken away", stale_ids},
          {"what another thread pushed is not popped", stop_elsewhere},
          {"what keeps CUPTI off is said, and nothing else happens", refusals},
          {"what keeps it off again and again is said once", refused_again},
          {"it is said to be on when it is", free_later},
          {"without memory for buffers it stays off", no_memory_for_buffers},
          {"without a thread it stays off", no_thread},
          {"Score-P without CUDA is no obstacle", scorep_without_cuda},
          {"an activity that is refused leaves the others", optional_kind_refused},
          {"the library is searched in order, and never twice in a process", search_order},
          {"a library that lacks a function is not used", lacks_what_is_needed},
          {"functions that can be missed may be missing", lacks_what_is_not_needed},
          {"calls that launch nothing are switched off where that is possible", only_launches_are_traced},
          {"wrong stamps come as they are", stamps},
          {"unfinished kernels come without times", unfinished},
          {"what CUPTI drops is counted", dropped},
          {"what cannot be read ends its buffer", unreadable_buffers},
          {"buffers of others are left alone", foreign_buffers},
          {"another client may register its callbacks", second_client},
          {"buffers that come late are waited for", comes_late},
          {"a buffer that comes after the end is counted, and kept for the next life", comes_after_the_end},
          {"a clock that jumps is seen to jump", foreign_clock},
          {"flushes may fail", flush_fails},
          {"records may come in any order", shuffled},
          {"beyond the pool's cap records are counted as lost", pool_at_its_cap},
          {"CUPTI gets a buffer even when there is none", even_scraps_are_out},
          {"what finds no room is counted", no_room_in_rings},
          {"with the disk full nothing more is recorded", disk_is_full},
          {"threads may launch at one time", one_buffer_for_all_threads},
          {"threads may have buffers of their own", buffers_of_each_thread},
          {"CUPTI goes on and off with the communicators", several_lives},
          {"without finalize the exit handler takes the rest", exit_without_finalize},
          {"when the driver is gone nothing is called", exit_after_the_driver},
          {"a driver that is gone is seen to be gone", driver_goes_first},
          {"a slow flush does not hold the program", slow_flush},
          {"forked children leave CUPTI alone", forked_child},
          {"without a collector the setting is read here", spool_asks_for_itself},
          {"CUPTI is not switched on while NCCL may be at work", late_collector})
