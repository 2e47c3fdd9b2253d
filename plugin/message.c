/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "log.h"
#include "session.h"

/* What a message is about: its beginning and its last words, without numbers. Collectors that follow each other say the same. */
static uint64_t cause(const char *text) {
  const char *first = strstr(text, ": "), *last = first;
  for (const char *next = first; next; next = strstr(next + 2, ": ")) last = next;
  uint64_t hash = 14695981039346656037u; /* FNV-1a */
  for (const char *at = text; *at; at++) {
    if (at == first) at = last;
    if (*at < '0' || *at > '9') hash = (hash ^ (uint8_t)*at) * 1099511628211u;
  }
  return hash;
}

static bool is_news(const char *text) {
  enum { MOST = 16 }; /* what is beyond is said each time */
  static uint64_t said[MOST];
  const uint64_t about = cause(text);
  for (unsigned i = 0; i < MOST; i++) {
    if (said[i] == about) return false;
    if (said[i]) continue;
    said[i] = about;
    break;
  }
  return true;
}

void ncclotf2_message_tell(void) {
  static uint32_t printed; /* the last message_number that was logged */
  const struct ncclotf2_header *header = ncclotf2_header_at(ncclotf2_session.base);
  const uint32_t number = __atomic_load_n(&header->message_number, __ATOMIC_ACQUIRE);
  if (number == printed) return;
  char text[sizeof header->message];
  for (size_t i = 0; i < sizeof text; i++) text[i] = __atomic_load_n(&header->message[i], __ATOMIC_RELAXED);
  text[sizeof text - 1] = '\0';
  printed = number;
  if (*text && is_news(text)) ncclotf2_log(NCCLOTF2_LOG_WARN, "%s", text); /* the collector only reports problems */
}
