/* SPDX-License-Identifier: Apache-2.0 */
#include "scorep_library.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The library with the functions for user regions that lies beside the measurement's. */
static bool beside_measurement(const void *measurement, char *path, size_t size) {
  static const char begin[] = "libscorep_adapter_user_event.so";
  Dl_info info;
  if (!measurement || !dladdr(measurement, &info) || !info.dli_fname) return false;
  const char *slash = strrchr(info.dli_fname, '/');
  char folder[PATH_MAX];
  if (!slash || (size_t)snprintf(folder, sizeof folder, "%.*s", (int)(slash - info.dli_fname), info.dli_fname) >= sizeof folder)
    return false;
  DIR *files = opendir(folder);
  char found[NAME_MAX + 1] = "";
  for (const struct dirent *file; files && (file = readdir(files));)
    if (strncmp(file->d_name, begin, sizeof begin - 1) == 0 && (!*found || strcmp(file->d_name, found) < 0))
      snprintf(found, sizeof found, "%s", file->d_name);
  if (files) closedir(files);
  return *found && (size_t)snprintf(path, size, "%s/%s", folder, found) < size;
}

/* The program is instrumented, and its user regions are out of reach. */
static void explain(const void *measurement, char *why, size_t size) {
  char path[PATH_MAX];
  /* Without it the library cannot be loaded: it is a part of what `scorep --user` links. */
  if (!dlsym(RTLD_DEFAULT, "scorep_user_region_mutex"))
    snprintf(why, size, "the program is instrumented without user regions; link it by scorep --user");
  else if (beside_measurement(measurement, path, sizeof path))
    snprintf(why, size, "the program has not loaded Score-P's user regions; start it with LD_PRELOAD=%s, or use a macro of "
             "scorep/SCOREP_User.h in it", path);
  else
    snprintf(why, size, "the program has not loaded Score-P's user regions; use a macro of scorep/SCOREP_User.h in it");
}

/* By the functions that the compiler's and the thread library's instrumentation call. Both together are none that is known. */
static enum ncclotf2_scorep_model find_model(void) {
  const bool create = dlsym(RTLD_DEFAULT, "SCOREP_ThreadCreateWait_Begin"), fork = dlsym(RTLD_DEFAULT, "SCOREP_ThreadForkJoin_Fork");
  return fork ? NCCLOTF2_SCOREP_FORK_JOIN : create ? NCCLOTF2_SCOREP_CREATE_WAIT : NCCLOTF2_SCOREP_SINGLE;
}

bool ncclotf2_scorep_library(struct scorep_functions *functions, enum ncclotf2_scorep_model *model, char *why,
                             size_t why_size) {
  *why = '\0';
  const char *missing = NULL;
  const void *measurement = dlsym(RTLD_DEFAULT, "SCOREP_InitMeasurement");
#define TAKE(needed, member, symbol, result, parameters)                    \
  functions->member = (result(*) parameters)dlsym(RTLD_DEFAULT, #symbol);   \
  if ((needed) && !functions->member && !missing) missing = #symbol;
  SCOREP_FUNCTIONS(TAKE)
#undef TAKE
  functions->phase = dlsym(RTLD_DEFAULT, "scorep_measurement_phase");
  if (!measurement && !functions->phase && !functions->region_enter) return false;
  if (missing) {
    explain(measurement, why, why_size);
    return false;
  }
  if (!functions->phase) {
    snprintf(why, why_size, "this Score-P does not report its state (scorep_measurement_phase); use Score-P 8 or newer");
    return false;
  }
  *model = find_model();
  return true;
}
