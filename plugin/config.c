/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "abi.h"
#include "cupti_abi.h"

static const char *setting(const char *name) {
  const char *value = getenv(name);
  return value && *value ? value : NULL;
}

static bool is_off(const char *value) {
  static const char *const off[] = {"0", "off", "false", "no"};
  for (unsigned i = 0; i < sizeof off / sizeof *off; i++)
    if (strcasecmp(value, off[i]) == 0) return true;
  return false;
}

bool ncclotf2_config_enabled(void) {
  const char *value = setting("NCCL_OTF2_ENABLE");
  return !value || !is_off(value);
}

bool ncclotf2_config_debug(void) {
  const char *value = setting("NCCL_OTF2_DEBUG");
  return value && !is_off(value);
}

bool ncclotf2_config_spool(void) {
  const char *value = setting("NCCL_OTF2_COLLECTOR");
  return value && strcmp(value, "spool") == 0;
}

uint64_t ncclotf2_config_memory(const char **why) {
  static const char *const not_understood =
      "NCCL_OTF2_MEMORY is not a size such as 256M or 1G; 256M is used";
  *why = NULL;
  const char *value = setting("NCCL_OTF2_MEMORY");
  if (!value) return NCCLOTF2_MEMORY_DEFAULT;
  char *end;
  errno = 0;
  unsigned long long number = strtoull(value, &end, 10);
  unsigned shift = 0;
  switch (toupper((unsigned char)*end)) {
    case 'K': shift = 10; end++; break;
    case 'M': shift = 20; end++; break;
    case 'G': shift = 30; end++; break;
    default: break;
  }
  if (shift && strcasecmp(end, "iB") == 0) end += 2;
  if (shift && strcasecmp(end, "B") == 0) end += 1;
  if (!isdigit((unsigned char)*value) || *end || errno || number > (UINT64_MAX >> 1) >> shift) {
    *why = not_understood;
    return NCCLOTF2_MEMORY_DEFAULT;
  }
  uint64_t bytes = (uint64_t)number << shift;
  if (bytes < NCCLOTF2_MEMORY_LEAST) {
    *why = "NCCL_OTF2_MEMORY is below the least that works; 4M is used";
    return NCCLOTF2_MEMORY_LEAST;
  }
  return bytes;
}

bool ncclotf2_config_ring_in_shm(const char **why) {
  *why = NULL;
  const char *value = setting("NCCL_OTF2_RING");
  if (!value || strcasecmp(value, "memfd") == 0) return false;
  if (strcasecmp(value, "shm") == 0) return true;
  *why = "NCCL_OTF2_RING is neither memfd nor shm; memfd is used";
  return false;
}

enum ncclotf2_scorep_setting ncclotf2_config_scorep(const char **why) {
  *why = NULL;
  const char *value = setting("NCCL_OTF2_SCOREP");
  if (!value || strcasecmp(value, "auto") == 0) return NCCLOTF2_SCOREP_SET_AUTO;
  if (strcasecmp(value, "on") == 0) return NCCLOTF2_SCOREP_SET_ON;
  if (strcasecmp(value, "off") == 0) return NCCLOTF2_SCOREP_SET_OFF;
  *why = "NCCL_OTF2_SCOREP is none of auto, on, off; auto is used";
  return NCCLOTF2_SCOREP_SET_AUTO;
}

unsigned ncclotf2_config_start_limit(void) {
  enum { DEFAULT = 2, MOST = 600 };
  const char *value = setting("NCCL_OTF2_START_LIMIT");
  if (!value) return DEFAULT;
  char *end;
  unsigned long seconds = strtoul(value, &end, 10);
  /* What is wrong with it the collector says: it reads all settings. */
  return isdigit((unsigned char)*value) && !*end && seconds >= 1 && seconds <= MOST ? (unsigned)seconds : DEFAULT;
}

/* A switch of NCCL's, read as NCCL reads it. */
static bool nccl_switch(const char *name, bool otherwise) {
  const char *value = setting(name);
  if (!value) return otherwise;
  errno = 0;
  const bool on = strtoll(value, NULL, 0) != 0;
  return errno ? otherwise : on;
}

bool ncclotf2_config_stamps(unsigned version) {
  return version < 6 || !nccl_switch("NCCL_ALLGATHERV_ENABLE", true) ||
         (version > 6 && nccl_switch("NCCL_ENQUEUE_REARCH_ENABLE", false));
}

#define BIT(type) (1u << (type))
#define LIGHT                                                                                       \
  (BIT(NCCLOTF2_GROUP_API) | BIT(NCCLOTF2_COLL_API) | BIT(NCCLOTF2_P2P_API) | BIT(NCCLOTF2_KERNEL_LAUNCH) | \
   BIT(NCCLOTF2_GROUP) | BIT(NCCLOTF2_COLL) | BIT(NCCLOTF2_P2P))
#define GPU (LIGHT | BIT(NCCLOTF2_KERNEL_CH))
#define NET (GPU | BIT(NCCLOTF2_PROXY_OP) | BIT(NCCLOTF2_PROXY_STEP))
#define ALL                                                                                          \
  (NET | BIT(NCCLOTF2_PROXY_CTRL) | BIT(NCCLOTF2_NET_PLUGIN) | BIT(NCCLOTF2_CE_COLL) | BIT(NCCLOTF2_CE_SYNC) | \
   BIT(NCCLOTF2_CE_BATCH) | BIT(NCCLOTF2_KERNEL_PHASE))

static const struct {
  const char *name;
  uint32_t mask;
} events[] = {
    {"light", LIGHT},
    {"gpu", GPU},
    {"net", NET},
    {"all", ALL},
    {"Group", BIT(NCCLOTF2_GROUP)},
    {"Coll", BIT(NCCLOTF2_COLL)},
    {"P2p", BIT(NCCLOTF2_P2P)},
    {"ProxyOp", BIT(NCCLOTF2_PROXY_OP)},
    {"ProxyStep", BIT(NCCLOTF2_PROXY_STEP)},
    {"ProxyCtrl", BIT(NCCLOTF2_PROXY_CTRL)},
    {"KernelCh", BIT(NCCLOTF2_KERNEL_CH)},
    {"NetPlugin", BIT(NCCLOTF2_NET_PLUGIN)},
    {"GroupApi", BIT(NCCLOTF2_GROUP_API)},
    {"CollApi", BIT(NCCLOTF2_COLL_API)},
    {"P2pApi", BIT(NCCLOTF2_P2P_API)},
    {"KernelLaunch", BIT(NCCLOTF2_KERNEL_LAUNCH)},
    {"CeColl", BIT(NCCLOTF2_CE_COLL)},
    {"CeSync", BIT(NCCLOTF2_CE_SYNC)},
    {"CeBatch", BIT(NCCLOTF2_CE_BATCH)},
    {"KernelPhase", BIT(NCCLOTF2_KERNEL_PHASE)},
};
enum { PRESETS_THEN_NAMES = sizeof events / sizeof *events };
static const uint32_t default_events = GPU;

static uint32_t mask_of(const char *name, size_t length) {
  for (unsigned i = 0; i < PRESETS_THEN_NAMES; i++)
    if (strlen(events[i].name) == length && strncasecmp(events[i].name, name, length) == 0) return events[i].mask;
  return 0;
}

uint32_t ncclotf2_config_events(uint32_t known, char *why, size_t why_size) {
  *why = '\0';
  const char *list = setting("NCCL_OTF2_EVENTS");
  if (list) {
    uint32_t mask = 0;
    static const char separators[] = ", \t";
    for (const char *at = list + strspn(list, separators); *at; at += strspn(at, separators)) {
      size_t length = strcspn(at, separators);
      uint32_t found = mask_of(at, length);
      if (!found) {
        snprintf(why, why_size, "NCCL_OTF2_EVENTS: no event or preset is called \"%.*s\"; gpu is used",
                 (int)(length < 64 ? length : 64), at);
        return default_events & known;
      }
      mask |= found;
      at += length;
    }
    return mask & known;
  }
  const char *number = setting("NCCL_PROFILE_EVENT_MASK");
  if (number) {
    bool hex = number[0] == '0' && (number[1] == 'x' || number[1] == 'X');
    char *end;
    errno = 0;
    unsigned long long mask = strtoull(number, &end, hex ? 16 : 10);
    if (isdigit((unsigned char)*number) && !*end && !errno) return (uint32_t)mask & known;
    snprintf(why, why_size, "NCCL_PROFILE_EVENT_MASK is not a decimal or 0x number; gpu is used");
  }
  return default_events & known;
}

const char *ncclotf2_config_cupti_library(void) { return setting("NCCL_OTF2_CUPTI_LIBRARY"); }

#define KIND(kind) (1ULL << (kind))
/* A launch is joined to its kernels through its driver record. The runtime's records are not asked for: the calls that
 * KernelLaunch events lie around (NCCL 2.28 and later) are driver calls, a runtime call that launches a graph ends in a
 * driver call under the same correlation id, and before CUPTI of CUDA 12.5 records of all runtime calls would have to be
 * taken for it. */
#define KERNELS (KIND(CUPTI_CONCURRENT_KERNEL) | KIND(CUPTI_EXTERNAL_CORRELATION) | KIND(CUPTI_DRIVER))

/* The collector has the same table (config/). */
static const struct {
  const char *name;
  uint64_t kinds;
} activities[] = {
    {"memcpy", KERNELS | KIND(CUPTI_MEMCPY) | KIND(CUPTI_MEMCPY2)},
    {"memset", KERNELS | KIND(CUPTI_MEMSET)},
    {"sync", KERNELS | KIND(CUPTI_SYNCHRONIZATION)},
    {"memory", KERNELS | KIND(CUPTI_MEMORY2)},
};
enum { ACTIVITIES = sizeof activities / sizeof *activities };

static bool is_on(const char *value) {
  static const char *const on[] = {"1", "on", "true", "yes"};
  for (unsigned i = 0; i < sizeof on / sizeof *on; i++)
    if (strcasecmp(value, on[i]) == 0) return true;
  return false;
}

uint64_t ncclotf2_config_cupti(char *why, size_t why_size) {
  *why = '\0';
  const char *list = setting("NCCL_OTF2_CUPTI");
  if (!list || is_off(list)) return 0;
  if (is_on(list)) return KERNELS;
  const bool all = strcasecmp(list, "all") == 0;
  uint64_t kinds = 0;
  for (unsigned i = 0; all && i < ACTIVITIES; i++) kinds |= activities[i].kinds;
  static const char separators[] = ", \t";
  for (const char *at = list + strspn(list, separators); !all && *at; at += strspn(at, separators)) {
    const size_t length = strcspn(at, separators);
    unsigned i = 0;
    while (i < ACTIVITIES && (strlen(activities[i].name) != length || strncasecmp(activities[i].name, at, length) != 0)) i++;
    if (i == ACTIVITIES) {
      snprintf(why, why_size, "NCCL_OTF2_CUPTI: \"%.*s\" is none of off, on, all, memcpy, memset, sync, memory; no kernels are "
               "recorded", (int)(length < 64 ? length : 64), at);
      return 0;
    }
    kinds |= activities[i].kinds;
    at += length;
  }
  return kinds;
}

/* A decimal number at *text, which moves behind it. */
static bool number_at(const char **text, uint64_t *number) {
  if (!isdigit((unsigned char)**text)) return false;
  char *end;
  errno = 0;
  *number = strtoull(*text, &end, 10);
  *text = end;
  return errno == 0;
}

bool ncclotf2_config_window(uint64_t *first, uint64_t *last, char *why, size_t why_size) {
  *why = '\0';
  *first = 0;
  *last = UINT64_MAX;
  const char *start = setting("NCCL_OTF2_START"), *window = setting("NCCL_OTF2_WINDOW");
  if (window) {
    const char *at = strncasecmp(window, "ops:", 4) == 0 ? window + 4 : "?";
    const bool has_first = number_at(&at, first), dash = *at == '-';
    if (dash) at++;
    const bool has_last = dash && number_at(&at, last);
    if (dash && !*at && (has_first || has_last) && *first < *last) return true;
    snprintf(why, why_size, "NCCL_OTF2_WINDOW is not like ops:1000-2000; everything is recorded");
    *first = 0;
    *last = UINT64_MAX;
    return false;
  }
  if (start && strcasecmp(start, "paused") == 0) {
    snprintf(why, why_size, "NCCL_OTF2_START=paused needs a collector, which is what starts recording; nothing is recorded");
    *first = *last = UINT64_MAX;
    return true;
  }
  return false;
}

/* Who starts jobs, and what tells one of its steps and attempts from the next. The first whose id is
 * set is taken; the parts are joined by dots. The collector has the same table (config/). */
static const struct {
  const char *id, *step, *attempt;
} launchers[] = {
    {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"},
    {"PMIX_NAMESPACE", NULL, NULL},
    {"LSB_JOBID", NULL, NULL},
    {"PBS_JOBID", NULL, NULL},
    {"FLUX_JOB_ID", NULL, NULL},
    {"TORCHELASTIC_RUN_ID", NULL, "TORCHELASTIC_RESTART_COUNT"},
};

/* torchelastic's value for "none was given". */
static bool is_id(const char *value) { return value && strcmp(value, "none") != 0; }

bool ncclotf2_config_directory(uint64_t first_comm_id, char *path, size_t size) {
  const char *directory = setting("NCCL_OTF2_DIR");
  if (directory) return (size_t)snprintf(path, size, "%s", directory) < size;
  for (unsigned i = 0; i < sizeof launchers / sizeof *launchers; i++) {
    const char *id = setting(launchers[i].id);
    if (!is_id(id)) continue;
    const char *step = launchers[i].step ? setting(launchers[i].step) : NULL;
    const char *attempt = launchers[i].attempt ? setting(launchers[i].attempt) : NULL;
    int length = snprintf(path, size, "nccl-otf2-%s%s%s%s%s", id, step ? "." : "", step ? step : "",
                          attempt ? "." : "", attempt ? attempt : "");
    for (char *at = path; *at; at++)
      if (*at == '/') *at = '_'; /* one directory, whatever the id */
    return length > 0 && (size_t)length < size;
  }
  return (size_t)snprintf(path, size, "nccl-otf2-%016" PRIx64, first_comm_id) < size;
}
