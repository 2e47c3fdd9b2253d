/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t in_use = PTHREAD_MUTEX_INITIALIZER; /* the logger: it is not forgotten while a thread of this library is inside of it */
static ncclotf2_logger logger;

void ncclotf2_log_use(ncclotf2_logger function) {
  pthread_mutex_lock(&in_use);
  __atomic_store_n(&logger, function, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&in_use);
}

bool ncclotf2_log_is_there(void) { return __atomic_load_n(&logger, __ATOMIC_ACQUIRE) != NULL; }

/* Bytes of the UTF-8 character at a place, 0 if there is none or it is not to be shown: control characters, those without width, and
 * those that reorder what stands beside them or end a line. */
static unsigned shown(const unsigned char *at) {
  if (*at < 0x80) return *at >= ' ' && *at != 0x7f;
  const unsigned length = *at >= 0xf0 && *at < 0xf5 ? 4 : *at >= 0xe0 && *at < 0xf0 ? 3 : *at >= 0xc2 && *at < 0xe0 ? 2 : 0;
  uint32_t character = *at & (0xffu >> (length + 1));
  for (unsigned i = 1; i < length; i++) {
    if ((at[i] & 0xc0) != 0x80) return 0;
    character = character << 6 | (at[i] & 0x3f);
  }
  static const struct {
    uint32_t first, last;
  } hidden[] = {{0, 0x9f}, {0xad, 0xad}, {0x61c, 0x61c}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0xd800, 0xdfff}, {0xfeff, 0xfeff}, {0xe0000, 0xe007f}};
  for (unsigned i = 0; i < sizeof hidden / sizeof *hidden; i++)
    if (character >= hidden[i].first && character <= hidden[i].last) return 0;
  return length;
}

/* Names of hosts, files and variables can hold what a terminal acts upon. */
static void escape(char *to, size_t size, const char *from) {
  const unsigned char *at = (const unsigned char *)from;
  size_t used = 0;
  while (*at && used + 5 < size) { /* four bytes and the end */
    const unsigned length = shown(at);
    if (length)
      memcpy(to + used, at, length);
    else
      snprintf(to + used, 5, "\\x%02x", *at);
    used += length ? length : 4;
    at += length ? length : 1;
  }
  to[used] = '\0';
}

void ncclotf2_log(enum ncclotf2_log_level level, const char *format, ...) {
  if (!ncclotf2_log_is_there()) return;
  char line[768], escaped[2 * sizeof line];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  escape(escaped, sizeof escaped, line);
  const unsigned long subsystems =
      level == NCCLOTF2_LOG_WARN ? NCCLOTF2_LOG_ALL : NCCLOTF2_LOG_INIT | NCCLOTF2_LOG_PROFILE;
  pthread_mutex_lock(&in_use);
  if (logger) logger(level, subsystems, "nccl-otf2", __LINE__, "NCCL_OTF2: %s", escaped);
  pthread_mutex_unlock(&in_use);
}
