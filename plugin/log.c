/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

static pthread_mutex_t in_use = PTHREAD_MUTEX_INITIALIZER; /* the logger: it is not forgotten while a thread of this library is inside of it */
static ncclotf2_logger logger;

void ncclotf2_log_use(ncclotf2_logger function) {
  pthread_mutex_lock(&in_use);
  __atomic_store_n(&logger, function, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&in_use);
}

bool ncclotf2_log_is_there(void) { return __atomic_load_n(&logger, __ATOMIC_ACQUIRE) != NULL; }

void ncclotf2_log(enum ncclotf2_log_level level, const char *format, ...) {
  if (!ncclotf2_log_is_there()) return;
  char line[768];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  const unsigned long subsystems =
      level == NCCLOTF2_LOG_WARN ? NCCLOTF2_LOG_ALL : NCCLOTF2_LOG_INIT | NCCLOTF2_LOG_PROFILE;
  pthread_mutex_lock(&in_use);
  if (logger) logger(level, subsystems, "nccl-otf2", __LINE__, "NCCL_OTF2: %s", line);
  pthread_mutex_unlock(&in_use);
}
