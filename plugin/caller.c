/* SPDX-License-Identifier: Apache-2.0 */
#include "caller.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* RCCL's file is librccl.so…; a framework that links either library statically is recognized by its name, or
 * by which of the two vendors' runtimes is in the process. */
static uint32_t library_of(const char *path, bool has_version) {
  const char *slash = strrchr(path, '/');
  const char *file = slash ? slash + 1 : path;
  const bool named = strncmp(file, "lib", 3) == 0;
  if (named && (strstr(file, "rccl") || strstr(file, "hip"))) return NCCLOTF2_LIBRARY_RCCL;
  if (named && (strstr(file, "nccl") || strstr(file, "cuda"))) return NCCLOTF2_LIBRARY_NCCL;
  if (!has_version) return NCCLOTF2_LIBRARY_UNKNOWN;
  return dlsym(RTLD_DEFAULT, "hipGetDeviceCount") ? NCCLOTF2_LIBRARY_RCCL : NCCLOTF2_LIBRARY_NCCL;
}

void ncclotf2_caller_identify(struct ncclotf2_header *header, ncclotf2_logger logger, const void *caller) {
  Dl_info info;
  const void *address = logger ? (const void *)(uintptr_t)logger : caller;
  if (!address || !dladdr(address, &info) || !info.dli_fname) return;
  snprintf(header->library_path, sizeof header->library_path, "%s", info.dli_fname);
  /* A function of one store; NULL for the program itself, whose name is no library's. */
  int (*get_version)(int *version) = NULL;
  void *library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library) get_version = (int (*)(int *))dlsym(library, "ncclGetVersion");
  int version = 0;
  if (get_version && get_version(&version) == 0) header->library_version = version;
  header->library = library_of(info.dli_fname, get_version != NULL);
  if (library) dlclose(library);
}
