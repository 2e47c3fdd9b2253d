/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cuda.h"
#include "settings.h"

/* Sonames, newest first; those of CUDA 11 have the minor version. A CUPTI newer than the driver refuses everything,
 * an older one works. */
static const struct {
  int major;
  const char *soname;
  const char *wheel; /* where the wheel for it lies, seen from site-packages/nvidia */
} releases[] = {
    {13, "libcupti.so.13", "cu13/lib"},
    {12, "libcupti.so.12", "cuda_cupti/lib"},
    {11, "libcupti.so.11.8", "cuda_cupti/lib"},
};
enum { RELEASES = sizeof releases / sizeof *releases };

struct search {
  char *path;
  size_t size;
  int major; /* of the driver; if unknown, of the newest release */
};

static int is_cupti(struct dl_phdr_info *info, size_t size, void *closure) {
  (void)size;
  struct search *search = closure;
  const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
  const char *file = slash ? slash + 1 : info->dlpi_name;
  static const char begin[] = "libcupti.so";
  if (!file || strncmp(file, begin, sizeof begin - 1) != 0) return 0;
  snprintf(search->path, search->size, "%s", info->dlpi_name);
  return 1;
}

static void *mapped(struct search *search) {
  return dl_iterate_phdr(is_cupti, search) ? dlopen(search->path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) : NULL;
}

static void *load(struct search *search, const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library) snprintf(search->path, search->size, "%s", path);
  return library;
}

/* In a folder: "%s/%s/<soname>". */
static void *in_folder(struct search *search, const char *folder, const char *below, unsigned release) {
  char path[PATH_MAX];
  struct stat info;
  if ((size_t)snprintf(path, sizeof path, "%s/%s/%s", folder, below, releases[release].soname) >= sizeof path ||
      stat(path, &info) != 0)
    return NULL;
  return load(search, path);
}

/* NCCL in …/nvidia/nccl/lib. */
static void *beside_nccl(struct search *search, const char *nccl, unsigned release) {
  char folder[PATH_MAX];
  const char *slash = nccl ? strrchr(nccl, '/') : NULL;
  if (!slash || (size_t)snprintf(folder, sizeof folder, "%.*s/../..", (int)(slash - nccl), nccl) >= sizeof folder) return NULL;
  return in_folder(search, folder, releases[release].wheel, release);
}

static void *in_toolkit(struct search *search, unsigned release) {
  static const char *const below[] = {"extras/CUPTI/lib64", "lib64",
#if defined(__aarch64__)
                                      "targets/sbsa-linux/lib",
#else
                                      "targets/x86_64-linux/lib",
#endif
                                      "lib"};
  char numbered[64];
  snprintf(numbered, sizeof numbered, "/usr/local/cuda-%d", releases[release].major);
  const char *const folders[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), getenv("CONDA_PREFIX"),
                                 "/usr/local/cuda",   numbered,            "/opt/cuda"};
  for (unsigned i = 0; i < sizeof folders / sizeof *folders; i++)
    for (unsigned k = 0; folders[i] && *folders[i] && k < sizeof below / sizeof *below; k++) {
      void *library = in_folder(search, folders[i], below[k], release);
      if (library) return library;
    }
  return NULL;
}

static void *by_release(struct search *search, const char *nccl) {
  void *library = NULL;
  for (unsigned i = 0; !library && i < RELEASES; i++)
    if (releases[i].major <= search->major) library = beside_nccl(search, nccl, i);
  for (unsigned i = 0; !library && i < RELEASES; i++)
    if (releases[i].major <= search->major) library = load(search, releases[i].soname);
  for (unsigned i = 0; !library && i < RELEASES; i++)
    if (releases[i].major <= search->major) library = in_toolkit(search, i);
  return library;
}

static bool same_file(const char *a, const char *b) {
  struct stat one, other;
  return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

static void *find(struct search *search, const char *nccl, char *why, size_t why_size) {
  const char *wanted = ncclotf2_setting(NCCLOTF2_SETTING_CUPTI_LIBRARY).text;
  void *library = mapped(search);
  if (library) {
    if (wanted && !same_file(wanted, search->path))
      snprintf(why, why_size, "NCCL_OTF2_CUPTI_LIBRARY is not used: the program has loaded %s", search->path);
    return library;
  }
  if (wanted) {
    library = load(search, wanted);
    if (!library) {
      const char *problem = dlerror();
      snprintf(why, why_size, "NCCL_OTF2_CUPTI_LIBRARY: %s", problem ? problem : wanted);
    }
    return library;
  }
  library = by_release(search, nccl);
  if (!library)
    snprintf(why, why_size, "no libcupti.so was found beside NCCL, by the loader or under CUDA_HOME: name it in "
             "NCCL_OTF2_CUPTI_LIBRARY");
  return library;
}

bool ncclotf2_cupti_library(const char *nccl, struct cupti_functions *functions, char *path, size_t path_size, char *why,
                            size_t why_size) {
  *why = '\0';
  const int version = ncclotf2_cuda_driver_version();
  struct search search = {.path = path, .size = path_size, .major = version ? version / 1000 : releases[0].major};
  if (search.major > releases[0].major) search.major = releases[0].major;
  void *library = find(&search, nccl, why, why_size);
  if (!library) return false;
  const char *missing = NULL;
#define TAKE(needed, member, symbol, parameters)                     \
  functions->member = (int(*) parameters)dlsym(library, #symbol);    \
  if ((needed) && !functions->member && !missing) missing = #symbol;
  CUPTI_FUNCTIONS(TAKE)
#undef TAKE
  if (missing) snprintf(why, why_size, "%s lacks %s", path, missing);
  return !missing;
}
