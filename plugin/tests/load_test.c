/* SPDX-License-Identifier: Apache-2.0
 *
 * The built library, loaded and unloaded the way NCCL does it.
 */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>

#include "host.h"
#include "test.h"

static void *load(void) {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
  CHECK(length > 0, "who am I");
  path[length] = '\0';
  for (int i = 0; i < 3; i++) *strrchr(path, '/') = '\0'; /* BUILD/plugin/tests/load_test */
  strcat(path, "/libnccl-profiler-otf2.so");
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  CHECK(library, "%s", dlerror());
  return library;
}

static struct ncclotf2_plugin_v6 *plugin(void *library) {
  struct ncclotf2_plugin_v6 *found = dlsym(library, "ncclProfiler_v6");
  CHECK(found, "%s", dlerror());
  return found;
}

static bool exports(void *library, const char *name) {
  /* This program has the names too (it is linked with the objects), so where they lie decides. */
  void *symbol = dlsym(library, name);
  Dl_info ours, theirs;
  CHECK(dladdr(plugin(library), &theirs), "dladdr");
  return symbol && dladdr(symbol, &ours) && ours.dli_fbase == theirs.dli_fbase;
}

static void symbols(void) {
  void *library = load();
  CHECK(strcmp(plugin(library)->name, "nccl-otf2") == 0, "name %s", plugin(library)->name);
  static const char *const exported[] = {"ncclProfiler_v1", "ncclProfiler_v2", "ncclProfiler_v3", "ncclProfiler_v4",
                                         "ncclProfiler_v5", "ncclProfiler_v6", "ncclProfiler_v7",
                                         "nccl_otf2_phase_begin", "nccl_otf2_phase_end", "nccl_otf2_mark"};
  for (unsigned i = 0; i < sizeof exported / sizeof *exported; i++)
    CHECK(exports(library, exported[i]), "%s is not exported", exported[i]);
  static const char *const hidden[] = {"ncclotf2_session", "ncclotf2_init",       "ncclotf2_ring", "ncclotf2_stop",
                                       "ncclotf2_fast",    "ncclotf2_identify",   "ncclotf2_life", "ncclotf2_window_admits",
                                       "ncclProfiler_v8",  "ncclProfiler_v0"};
  for (unsigned i = 0; i < sizeof hidden / sizeof *hidden; i++)
    CHECK(!exports(library, hidden[i]), "%s is exported", hidden[i]);
}

static struct ncclotf2_plugin_v6 *present;
static void *context;

static void *record(void *unused) {
  for (int i = 0; i < 1000; i++) {
    struct ncclotf2_descr_v6 d = host_descr(NCCLOTF2_COLL);
    void *handle = NULL;
    present->startEvent(context, &handle, &d);
    CHECK(handle, "refused");
    present->stopEvent(handle);
  }
  return unused;
}

static void unloading(void) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/experiment", host_folder());
  setenv("NCCL_OTF2_DIR", path, 1);
  setenv("NCCL_OTF2_COLLECTOR", "spool", 1);
  setenv("NCCL_OTF2_EVENTS", "all", 1);
  struct ncclotf2_plugin_v6 *first = NULL;
  void *previous = NULL;
  for (int life = 0; life < 4; life++) {
    void *library = load();
    present = plugin(library);
    if (!first) first = present;
    CHECK(present == first, "the library was loaded to another place");
    int mask = 0;
    EQUAL(present->init(&context, 1, &mask, NULL, 1, 2, 0, host_logger), 0, "init");
    EQUAL(mask, 0x7fff, "mask");
    CHECK(context != previous, "the context is that of an earlier communicator");
    previous = context;
    record(NULL);
    pthread_t thread; /* ends after the library was closed; its ring is given back then */
    pthread_create(&thread, NULL, record, NULL);
    pthread_join(thread, NULL);
    EQUAL(present->finalize(context), 0, "finalize");
    EQUAL(dlclose(library), 0, "dlclose");
  }
}

TEST_MAIN({"only what NCCL looks up is exported", symbols},
          {"the library may be closed and opened again", unloading})
