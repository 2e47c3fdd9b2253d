/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers what the library makes of settings, for tests that compare it with what the collector makes of them
 * (config/plugin_test.go). A question is a line of words, hexadecimal but the first:
 *
 *   KEY TEXT                   understood number last
 *   MASK TEXT                  the same, of NCCL_PROFILE_EVENT_MASK
 *   stamps VERSION NAME VALUE… whether NCCL of this API version can be asked for stamps
 *   directory NAME VALUE…      the experiment directory
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../config.h"
#include "../settings.h"

enum { WORDS = 32 };

static void decode(char *word) {
  char *out = word;
  for (; word[0] && word[1]; word += 2) {
    const char digits[] = {word[0], word[1], '\0'};
    *out++ = (char)strtoul(digits, NULL, 16);
  }
  *out = '\0';
}

static void answer(const char *variable, const char *text, enum ncclotf2_setting setting) {
  setenv(variable, text, 1);
  const struct ncclotf2_value value = ncclotf2_setting(setting);
  printf("%d %" PRIu64 " %" PRIu64 "\n", value.understood, value.number, value.last);
  unsetenv(variable);
}

static void answer_mask(const char *text) {
  char why[256];
  setenv(NCCLOTF2_MASK_VARIABLE, text, 1);
  const uint32_t mask = ncclotf2_config_events(UINT32_MAX >> 16, why, sizeof why);
  printf("%d %" PRIu32 " %" PRIu64 "\n", !*why, mask, UINT64_MAX);
  unsetenv(NCCLOTF2_MASK_VARIABLE);
}

static void ask(const char *word[], unsigned count) {
#define X(key, kind, usual, least, most, choices, wrong) \
  if (strcmp(word[0], #key) == 0) {                      \
    answer("NCCL_OTF2_" #key, word[1], NCCLOTF2_SETTING_##key); \
    return;                                              \
  }
  NCCLOTF2_SETTING_ROWS(X)
#undef X
  if (strcmp(word[0], "MASK") == 0) {
    answer_mask(word[1]);
    return;
  }
  const bool stamps = strcmp(word[0], "stamps") == 0;
  const unsigned first = stamps ? 2 : 1;
  for (unsigned i = first; i + 1 < count; i += 2) setenv(word[i], word[i + 1], 1);
  char path[PATH_MAX];
  if (stamps)
    printf("%d\n", ncclotf2_config_stamps((unsigned)atoi(word[1])));
  else
    puts(ncclotf2_config_directory(0xdeadbeef, path, sizeof path) ? path : "");
  for (unsigned i = first; i + 1 < count; i += 2) unsetenv(word[i]);
}

int main(void) {
  static char line[1 << 20];
  while (fgets(line, sizeof line, stdin)) {
    const char *words[WORDS] = {""};
    unsigned count = 0;
    line[strcspn(line, "\n")] = '\0';
    char *rest = line;
    for (char *word; count < WORDS && (word = strsep(&rest, " ")); count++) {
      if (count) decode(word);
      words[count] = word;
    }
    ask(words, count);
    fflush(stdout);
  }
  return 0;
}
