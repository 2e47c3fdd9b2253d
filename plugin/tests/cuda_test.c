/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU of a communicator, from a driver that the program has loaded one way or another.
 */
#include "../cuda.h"

#include <dlfcn.h>
#include <limits.h>

#include "host.h"
#include "test.h"

static void load_driver(int mode) {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 16);
  CHECK(length > 0, "who am I");
  path[length] = '\0';
  strcpy(strrchr(path, '/') + 1, "libcuda.so.1");
  CHECK(dlopen(path, RTLD_NOW | mode), "%s", dlerror());
}

static void expect_device(const char *pci) {
  host_use_stub("ready", 1);
  host_init(1, 2, 0);
  const struct ncclotf2_comm *comm = ncclotf2_comm_at(ncclotf2_session.base, 0);
  EQUAL(comm->device, 3, "device");
  EQUAL(comm->has_uuid, 1, "has uuid");
  for (int i = 0; i < 16; i++) EQUAL(comm->uuid[i], 48 + i, "uuid");
  CHECK(strcmp((const char *)comm->pci, pci) == 0, "pci %s, want %s", (const char *)comm->pci, pci);
}

static void expect_none(void) {
  host_use_stub("ready", 1);
  host_init(1, 2, 0);
  const struct ncclotf2_comm *comm = ncclotf2_comm_at(ncclotf2_session.base, 0);
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
  expect_none();
}

static void without_driver(void) {
  expect_none();
  CHECK(!dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "the plugin loaded a driver");
}

TEST_MAIN({"a driver in the global scope is asked", in_global_scope},
          {"a driver that was loaded privately is asked", loaded_privately},
          {"a long PCI id loses its function, not its device", long_domain},
          {"without a context the device is unknown", without_context},
          {"no driver is loaded", without_driver})
