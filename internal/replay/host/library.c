/* SPDX-License-Identifier: Apache-2.0
 *
 * What a plugin can see of the library that calls it: where its logger lies, and the version that
 * the library tells. Built as libnccl.so.2 and as librccl.so.1.
 *
 *   REPLAY_HOST_VERSION     what ncclGetVersion tells, 22907 for 2.29.7
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "library.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int ncclGetVersion(int *version);
EXPORTED void caller_log(int level, unsigned long flags, const char *file, int line, const char *fmt, ...)
  __attribute__((format(printf, 5, 6)));
EXPORTED void caller_log_to(library_sink to);

static library_sink sink;

int ncclGetVersion(int *version)
{
  const char *text = getenv("REPLAY_HOST_VERSION");
  if (!version) return 4; /* ncclInvalidArgument */
  *version = text ? atoi(text) : 0;
  return 0;
}

void caller_log_to(library_sink to) { sink = to; }

void caller_log(int level, unsigned long flags, const char *file, int line, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  if (sink) sink(level, flags, file, line, fmt, ap);
  va_end(ap);
}
