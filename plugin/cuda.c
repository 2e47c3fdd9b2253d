/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* Driver API signatures: CUresult and CUdevice are ints, CUuuid is 16 bytes; 0 is success. */
typedef int (*get_device)(int *device);
typedef int (*get_uuid)(uint8_t uuid[16], int device);
typedef int (*get_pci)(char *text, int size, int device);

static void *driver_symbol(void *library, const char *name) {
  void *symbol = dlsym(RTLD_DEFAULT, name);
  return symbol || !library ? symbol : dlsym(library, name);
}

/* libnccl opens the driver privately, so its symbols are mostly not in the global scope. */
static void *driver(void) { return dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD); }

int ncclotf2_cuda_driver_version(void) {
  void *library = driver();
  int version = 0;
  int (*get_version)(int *) = (int (*)(int *))driver_symbol(library, "cuDriverGetVersion");
  if (!get_version || get_version(&version) != 0) version = 0;
  if (library) dlclose(library);
  return version;
}

bool ncclotf2_cuda_is_gone(void) {
  enum { CUDA_ERROR_DEINITIALIZED = 4 };
  static get_device device_of; /* and its library with it */
  if (!device_of) device_of = (get_device)driver_symbol(driver(), "cuCtxGetDevice");
  int device;
  return device_of && device_of(&device) == CUDA_ERROR_DEINITIALIZED;
}

void ncclotf2_cuda_device(struct ncclotf2_comm *comm) {
  comm->device = -1;
  void *library = driver();
  get_device device_of = (get_device)driver_symbol(library, "cuCtxGetDevice");
  get_uuid uuid_of = (get_uuid)driver_symbol(library, "cuDeviceGetUuid_v2");
  if (!uuid_of) uuid_of = (get_uuid)driver_symbol(library, "cuDeviceGetUuid");
  get_pci pci_of = (get_pci)driver_symbol(library, "cuDeviceGetPCIBusId");

  int device = -1;
  if (device_of && device_of(&device) == 0 && device >= 0) {
    comm->device = device;
    if (uuid_of && uuid_of(comm->uuid, device) == 0) comm->has_uuid = 1;
    char text[32] = "";
    if (pci_of && pci_of(text, sizeof text - 1, device) == 0) {
      char *function = strrchr(text, '.'); /* always .0; with a domain of eight digits it does not fit */
      if (strlen(text) >= sizeof comm->pci && function) *function = '\0';
      memcpy(comm->pci, text, strnlen(text, sizeof comm->pci - 1));
    }
  }
  if (library) dlclose(library);
}
