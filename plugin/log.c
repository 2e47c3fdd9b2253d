/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>

static ncclotf2_logger logger;

void ncclotf2_log_use(ncclotf2_logger function) { __atomic_store_n(&logger, function, __ATOMIC_RELEASE); }

bool ncclotf2_log_is_there(void) { return __atomic_load_n(&logger, __ATOMIC_ACQUIRE) != NULL; }

void ncclotf2_log(enum ncclotf2_log_level level, const char *format, ...) {
  ncclotf2_logger function = __atomic_load_n(&logger, __ATOMIC_ACQUIRE);
  if (!function) return;
  char line[768];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  const unsigned long subsystems =
      level == NCCLOTF2_LOG_WARN ? NCCLOTF2_LOG_ALL : NCCLOTF2_LOG_INIT | NCCLOTF2_LOG_PROFILE;
  function(level, subsystems, "nccl-otf2", __LINE__, "NCCL_OTF2: %s", line);
}
