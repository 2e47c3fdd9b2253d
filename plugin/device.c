/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* Results and devices are ints in both interfaces, a UUID is 16 bytes; 0 is success. */
typedef int (*get_device)(int *device);
typedef int (*get_uuid)(uint8_t uuid[16], int device);
typedef int (*get_pci)(char *text, int size, int device);

/* A maker's functions, and the files that have them, newest first. What HIP calls a UUID is text, and not NVIDIA's kind:
 * the address identifies the GPU. */
static const struct maker {
  const char *files[4], *device, *uuid[3], *pci;
} cuda = {{"libcuda.so.1"}, "cuCtxGetDevice", {"cuDeviceGetUuid_v2", "cuDeviceGetUuid"}, "cuDeviceGetPCIBusId"},
  hip = {{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}, "hipGetDevice", {NULL}, "hipDeviceGetPCIBusId"};

void *ncclotf2_symbol(void *library, const char *name) {
  void *symbol = dlsym(RTLD_DEFAULT, name);
  return symbol || !library ? symbol : dlsym(library, name);
}

static void keep_pci(struct ncclotf2_comm *comm, char *text) {
  char *function = strrchr(text, '.'); /* always .0; with a domain of eight digits it does not fit */
  if (strlen(text) >= sizeof comm->pci && function) *function = '\0';
  memcpy(comm->pci, text, strnlen(text, sizeof comm->pci - 1));
}

void ncclotf2_device(struct ncclotf2_comm *comm, enum ncclotf2_library caller) {
  comm->device = -1;
  const struct maker *maker = caller == NCCLOTF2_LIBRARY_RCCL ? &hip : &cuda;
  void *library = NULL; /* mostly opened privately, so that its symbols are not in the global scope */
  for (const char *const *file = maker->files; !library && *file; file++) library = dlopen(*file, RTLD_NOW | RTLD_NOLOAD);
  get_device device_of = (get_device)ncclotf2_symbol(library, maker->device);
  get_pci pci_of = (get_pci)ncclotf2_symbol(library, maker->pci);
  get_uuid uuid_of = NULL;
  for (const char *const *name = maker->uuid; !uuid_of && *name; name++) uuid_of = (get_uuid)ncclotf2_symbol(library, *name);

  int device = -1;
  if (device_of && device_of(&device) == 0 && device >= 0) {
    comm->device = device;
    if (uuid_of && uuid_of(comm->uuid, device) == 0) comm->has_uuid = 1;
    char text[32] = "";
    if (pci_of && pci_of(text, sizeof text - 1, device) == 0) keep_pci(comm, text);
  }
  if (library) dlclose(library);
}
