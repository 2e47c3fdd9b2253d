/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "library.h"

nccl_logger library_open(const char *name, int release, library_sink sink)
{
  char self[PATH_MAX] = "", path[PATH_MAX + 32], version[16];
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) {
    perror("replay-host: /proc/self/exe");
    exit(1);
  }
  snprintf(version, sizeof version, "%d", release);
  setenv("REPLAY_HOST_VERSION", version, 0);
  snprintf(path, sizeof path, "%s/callers/%s", dirname(self), strcmp(name, "rccl") == 0 ? "librccl.so.1" : "libnccl.so.2");
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  nccl_logger log = library ? (nccl_logger)dlsym(library, "caller_log") : NULL;
  void (*log_to)(library_sink) = library ? (void (*)(library_sink))dlsym(library, "caller_log_to") : NULL;
  if (!log || !log_to) {
    fprintf(stderr, "replay-host: %s\n", dlerror());
    exit(1);
  }
  log_to(sink);
  return log;
}
