/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda.h"

#include <dlfcn.h>

#include "device.h"

/* libnccl opens the driver privately, so its symbols are mostly not in the global scope. */
static void *driver(void) { return dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD); }

int ncclotf2_cuda_driver_version(void) {
  void *library = driver();
  int version = 0;
  int (*get_version)(int *) = (int (*)(int *))ncclotf2_symbol(library, "cuDriverGetVersion");
  if (!get_version || get_version(&version) != 0) version = 0;
  if (library) dlclose(library);
  return version;
}

bool ncclotf2_cuda_is_gone(void) {
  enum { CUDA_ERROR_DEINITIALIZED = 4 };
  static int (*device_of)(int *device); /* and its library with it */
  if (!device_of) device_of = (int (*)(int *))ncclotf2_symbol(driver(), "cuCtxGetDevice");
  int device;
  return device_of && device_of(&device) == CUDA_ERROR_DEINITIALIZED;
}
