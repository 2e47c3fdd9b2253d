/* SPDX-License-Identifier: Apache-2.0
 *
 * Which library the plugin is to think it was called by: the host itself, or one of two (library.c)
 * in the folder callers beside it: not in its own, which may be on the loader's path for the plugin.
 */
#ifndef REPLAY_HOST_LIBRARY_H
#define REPLAY_HOST_LIBRARY_H

#include <stdarg.h>

#include "profiler.h"

typedef void (*library_sink)(int level, unsigned long flags, const char *file, int line, const char *fmt, va_list ap);

/* The logger to pass to init: that of libnccl.so.2 for "nccl", of librccl.so.1 for "rccl". Its lines
 * go to sink. If the library is not to be had this is said in one line, and the process ends with
 * status 1. release: what ncclGetVersion is to tell, unless REPLAY_HOST_VERSION says otherwise. */
nccl_logger library_open(const char *name, int release, library_sink sink);

#endif
