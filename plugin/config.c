/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "settings.h"
#include "shm.h"

bool ncclotf2_config_spool(void) {
  const char *collector = ncclotf2_setting(NCCLOTF2_SETTING_COLLECTOR).text;
  return collector && strcmp(collector, "spool") == 0;
}

bool ncclotf2_config_stamps(unsigned version) {
  static const struct {
    unsigned version;
    const char *name;
    bool otherwise, on;
  } safe[] = {
#define X(version, name, otherwise, on) {version, name, otherwise, on},
      NCCLOTF2_SAFE_STAMPS(X)
#undef X
  };
  if (version < NCCLOTF2_UNSAFE_STAMPS) return true;
  for (unsigned i = 0; i < sizeof safe / sizeof *safe; i++)
    if (version >= safe[i].version && ncclotf2_nccl_switch(safe[i].name, safe[i].otherwise) == safe[i].on) return true;
  return false;
}

uint32_t ncclotf2_config_events(uint32_t known, char *why, size_t why_size) {
  *why = '\0';
  const struct ncclotf2_value events = ncclotf2_setting(NCCLOTF2_SETTING_EVENTS), mask = ncclotf2_event_mask();
  if (!events.text && mask.text && mask.understood) return (uint32_t)mask.number & known;
  if (!events.text && mask.text)
    snprintf(why, why_size, "%s=%.64s is not a decimal or 0x number of 32 bits; it is as if it were unset", NCCLOTF2_MASK_VARIABLE, mask.text);
  return (uint32_t)events.number & (known | NCCLOTF2_RECORD_NET_SUMS);
}

bool ncclotf2_config_window(uint64_t *first, uint64_t *last, char *why, size_t why_size) {
  *why = '\0';
  const struct ncclotf2_value window = ncclotf2_setting(NCCLOTF2_SETTING_WINDOW);
  *first = window.number;
  *last = window.last;
  if (window.text) return window.understood;
  if (ncclotf2_setting(NCCLOTF2_SETTING_START).number != NCCLOTF2_CHOICE_START_PAUSED) return false;
  snprintf(why, why_size, "NCCL_OTF2_START=paused needs a collector, which is what starts recording; nothing is recorded");
  *first = *last = UINT64_MAX;
  return true;
}

void ncclotf2_config_file_name(char *text) {
  enum { LONGEST = 200 }; /* bytes; a name can have 255 */
  if (!*text) memcpy(text, "_", 2);
  if (*text == '.') *text = '_';
  size_t i = 0;
  for (; i < LONGEST && text[i]; i++) {
    const unsigned char c = (unsigned char)text[i];
    if (c == '/' || c < ' ' || c == 0x7f) text[i] = '_';
  }
  text[i] = '\0';
}

bool ncclotf2_config_directory(uint64_t first_comm_id, char *path, size_t size) {
  const char *directory = ncclotf2_setting(NCCLOTF2_SETTING_DIR).text;
  if (directory) return (size_t)snprintf(path, size, "%s", directory) < size;
  static const struct {
    const char *job, *step, *attempt;
  } jobs[] = {
#define X(job, step, attempt) {job, step, attempt},
      NCCLOTF2_JOB_STEPS(X)
#undef X
  };
  static const char *const no_steps[] = {
#define X(id) id,
      NCCLOTF2_NO_STEPS(X)
#undef X
  };
  for (unsigned i = 0; i < sizeof jobs / sizeof *jobs; i++) {
    const char *id = ncclotf2_variable(jobs[i].job);
    if (!id || strcmp(id, NCCLOTF2_NO_JOB) == 0) continue;
    const char *step = ncclotf2_variable(jobs[i].step), *attempt = ncclotf2_variable(jobs[i].attempt);
    for (unsigned k = 0; step && k < sizeof no_steps / sizeof *no_steps; k++)
      if (strcmp(step, no_steps[k]) == 0) step = NULL;
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s%s%s%s%s", id, step ? "." : "", step ? step : "", attempt ? "." : "", attempt ? attempt : "");
    ncclotf2_config_file_name(name);
    return (size_t)snprintf(path, size, "nccl-otf2-%s", name) < size;
  }
  return (size_t)snprintf(path, size, "nccl-otf2-%016" PRIx64, first_comm_id) < size;
}
