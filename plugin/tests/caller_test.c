/* SPDX-License-Identifier: Apache-2.0
 *
 * Which library calls, by stand-ins under the names that the real ones have.
 */
#include <dlfcn.h>
#include <limits.h>
#include <sys/stat.h>

#include "host.h"
#include "test.h"

static char path[PATH_MAX]; /* of the stand-in */

static void *load_as(const char *name, int mode) {
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
  CHECK(length > 0, "who am I");
  path[length] = '\0';
  strcpy(strrchr(path, '/') + 1, name);
  void *library = dlopen(path, RTLD_NOW | mode);
  CHECK(library, "%s", dlerror());
  return library;
}

static void *load(const char *name) { return load_as(name, RTLD_LOCAL); }

static void expect(uint32_t library, int version, const char *file) {
  CHECK(ncclotf2_session.base, "no session");
  EQUAL(host_header()->library, library, "library");
  EQUAL(host_header()->library_version, version, "version");
  CHECK(strcmp(host_header()->library_path, file) == 0, "path %s, want %s", host_header()->library_path, file);
}

/* By its logger, which is all that a plugin gets of it from v4 on. */
static void by_logger(const char *name, uint32_t library, int version) {
  host_use_stub("ready", 0xf47);
  int (*init)(struct ncclotf2_plugin_v6 *, void **, int *) =
      (int (*)(struct ncclotf2_plugin_v6 *, void **, int *))dlsym(load(name), "fake_init_v6");
  CHECK(init, "%s", dlerror());
  void *context = NULL;
  EQUAL(init(&ncclProfiler_v6, &context, &host_mask), 0, "init");
  CHECK(context, "NULL context");
  expect(library, version, path);
}

/* By who calls init: v1 to v3 have no logger. */
static void by_caller(const char *name, uint32_t library, int version) {
  host_use_stub("ready", 0x3f);
  int (*init)(struct ncclotf2_plugin_v1 *, void **, int *) =
      (int (*)(struct ncclotf2_plugin_v1 *, void **, int *))dlsym(load(name), "fake_init_v1");
  CHECK(init, "%s", dlerror());
  void *context = NULL;
  EQUAL(init(&ncclProfiler_v1, &context, &host_mask), 0, "init");
  CHECK(context, "NULL context");
  expect(library, version, path);
}

static void nccl(void) { by_logger("libnccl.so.2", NCCLOTF2_LIBRARY_NCCL, 22907); }
static void rccl(void) { by_logger("librccl.so.1", NCCLOTF2_LIBRARY_RCCL, 22707); }
static void nccl_without_logger(void) { by_caller("libnccl.so.2", NCCLOTF2_LIBRARY_NCCL, 22907); }
static void rccl_without_logger(void) { by_caller("librccl.so.1", NCCLOTF2_LIBRARY_RCCL, 22707); }
static void torch_cuda(void) { by_logger("libtorch_cuda.so", NCCLOTF2_LIBRARY_NCCL, 22707); }
static void torch_hip(void) { by_logger("libtorch_hip.so", NCCLOTF2_LIBRARY_RCCL, 22707); }
static void framework(void) { by_logger("libframework.so", NCCLOTF2_LIBRARY_NCCL, 22707); }
static void framework_on_hip(void) {
  load_as("libamdhip64.so.6", RTLD_GLOBAL);
  by_logger("libframework.so", NCCLOTF2_LIBRARY_RCCL, 22707);
}
static void no_version(void) { by_logger("libother.so", NCCLOTF2_LIBRARY_UNKNOWN, 0); }
static void version_fails(void) { by_logger("libnccl-failing.so", NCCLOTF2_LIBRARY_NCCL, 0); }

/* A program that has the library in itself, or tests as these. */
static void the_program(void) {
  host_use_stub("ready", 0xf47);
  host_init(1, 2, 0);
  EQUAL(host_header()->library, NCCLOTF2_LIBRARY_UNKNOWN, "library");
  EQUAL(host_header()->library_version, 0, "version");
  struct stat ours, said;
  CHECK(stat("/proc/self/exe", &ours) == 0 && stat(host_header()->library_path, &said) == 0 && ours.st_ino == said.st_ino,
        "path %s", host_header()->library_path);
}

static void no_logger(void) {
  host_use_stub("ready", 0xf47);
  void *context = NULL;
  EQUAL(ncclProfiler_v6.init(&context, 1, &host_mask, NULL, 1, 2, 0, NULL), 0, "init");
  CHECK(context, "NULL context");
  EQUAL(host_mask, 0xf47, "mask");
  EQUAL(host_header()->library_version, 0, "version");
  ncclProfiler_v6.finalize(context);
}

/* The first communicator's is told: there is one session for life. */
static void two_libraries(void) {
  by_logger("librccl.so.1", NCCLOTF2_LIBRARY_RCCL, 22707);
  char first[PATH_MAX];
  strcpy(first, path);
  int (*init)(struct ncclotf2_plugin_v6 *, void **, int *) =
      (int (*)(struct ncclotf2_plugin_v6 *, void **, int *))dlsym(load("libnccl.so.2"), "fake_init_v6");
  void *context = NULL;
  EQUAL(init(&ncclProfiler_v6, &context, &host_mask), 0, "init");
  expect(NCCLOTF2_LIBRARY_RCCL, 22707, first);
}

TEST_MAIN({"NCCL", nccl}, {"RCCL", rccl}, {"NCCL without a logger", nccl_without_logger},
          {"RCCL without a logger", rccl_without_logger}, {"a framework for CUDA", torch_cuda},
          {"a framework for HIP", torch_hip}, {"a framework of neither name", framework},
          {"a framework of neither name, beside HIP", framework_on_hip}, {"a library without a version", no_version},
          {"a version that cannot be had", version_fails}, {"the program itself", the_program},
          {"init without a logger", no_logger}, {"the first of two libraries is told", two_libraries})
