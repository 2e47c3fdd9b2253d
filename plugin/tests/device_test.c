/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU of a communicator, from a driver or a runtime that the program has loaded one way or another.
 */
#include "../device.h"

#include <dlfcn.h>
#include <limits.h>

#include "host.h"
#include "test.h"

static void *load(const char *name, int mode) {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
  CHECK(length > 0, "who am I");
  path[length] = '\0';
  strcpy(strrchr(path, '/') + 1, name);
  void *library = dlopen(path, RTLD_NOW | mode);
  CHECK(library, "%s", dlerror());
  return library;
}

static void load_driver(int mode) { load("libcuda.so.1", mode); }

static const struct ncclotf2_comm *made(void) {
  host_use_stub("ready", 1);
  host_init(1, 2, 0);
  return ncclotf2_comm_at(ncclotf2_session.base, 0);
}

/* A communicator that a library of that name makes. */
static const struct ncclotf2_comm *made_by(const char *name) {
  host_use_stub("ready", 1);
  int (*init)(struct ncclotf2_plugin_v6 *, void **, int *) =
      (int (*)(struct ncclotf2_plugin_v6 *, void **, int *))dlsym(load(name, RTLD_LOCAL), "fake_init_v6");
  CHECK(init, "%s", dlerror());
  void *context = NULL;
  EQUAL(init(&ncclProfiler_v6, &context, &host_mask), 0, "init");
  return ncclotf2_comm_at(ncclotf2_session.base, 0);
}

static void expect_pci(const struct ncclotf2_comm *comm, const char *pci) {
  EQUAL(comm->device, 3, "device");
  CHECK(strcmp((const char *)comm->pci, pci) == 0, "pci %s, want %s", (const char *)comm->pci, pci);
}

static void expect_device(const char *pci) {
  const struct ncclotf2_comm *comm = made();
  expect_pci(comm, pci);
  EQUAL(comm->has_uuid, 1, "has uuid");
  for (int i = 0; i < 16; i++) EQUAL(comm->uuid[i], 48 + i, "uuid");
}

static void expect_none(const struct ncclotf2_comm *comm) {
  EQUAL(comm->device, -1, "device");
  EQUAL(comm->has_uuid, 0, "has uuid");
  EQUAL(comm->pci[0], 0, "pci");
}

static void in_global_scope(void) {
  load_driver(RTLD_GLOBAL);
  expect_device("0000:33:00.0");
}

static void loaded_privately(void) {
  load_driver(RTLD_LOCAL);
  expect_device("0000:33:00.0");
}

static void long_domain(void) {
  setenv("FAKE_DOMAIN", "00000001", 1);
  load_driver(RTLD_LOCAL);
  expect_device("00000001:33:00");
}

static void without_context(void) {
  setenv("FAKE_NO_CONTEXT", "1", 1);
  load_driver(RTLD_LOCAL);
  expect_none(made());
}

static void without_driver(void) {
  expect_none(made());
  CHECK(!dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "the plugin loaded a driver");
}

/* HIP's runtime tells the device and its address. What it calls a UUID is not asked for. */
static void expect_hip_device(const char *runtime, int mode) {
  load(runtime, mode);
  const struct ncclotf2_comm *comm = made_by("librccl.so.1");
  expect_pci(comm, "0000:33:00.0");
  EQUAL(comm->has_uuid, 0, "has uuid");
}

static void hip_in_global_scope(void) { expect_hip_device("libamdhip64.so.7", RTLD_GLOBAL); }
static void hip_loaded_privately(void) { expect_hip_device("libamdhip64.so.7", RTLD_LOCAL); }
static void older_hip(void) { expect_hip_device("libamdhip64.so.5", RTLD_LOCAL); }

static void hip_fails(void) {
  setenv("FAKE_NO_CONTEXT", "1", 1);
  load("libamdhip64.so.7", RTLD_LOCAL);
  expect_none(made_by("librccl.so.1"));
}

/* Each library's own maker is asked, and no other. */
static void nccl_beside_hip(void) {
  load("libamdhip64.so.7", RTLD_LOCAL);
  expect_none(made_by("libnccl.so.2"));
}

static void rccl_beside_cuda(void) {
  load_driver(RTLD_LOCAL);
  expect_none(made_by("librccl.so.1"));
  CHECK(!dlopen("libamdhip64.so.7", RTLD_NOW | RTLD_NOLOAD), "the plugin loaded a runtime");
}

TEST_MAIN({"a driver in the global scope is asked", in_global_scope},
          {"a driver that was loaded privately is asked", loaded_privately},
          {"a long PCI id loses its function, not its device", long_domain},
          {"without a context the device is unknown", without_context},
          {"no driver is loaded", without_driver},
          {"HIP in the global scope is asked for RCCL", hip_in_global_scope},
          {"HIP that was loaded privately is asked for RCCL", hip_loaded_privately},
          {"an older HIP is asked for RCCL", older_hip},
          {"what HIP does not know is unknown", hip_fails},
          {"HIP is not asked for NCCL", nccl_beside_hip},
          {"CUDA is not asked for RCCL", rccl_beside_cuda})
