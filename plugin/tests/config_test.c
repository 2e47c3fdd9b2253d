/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings that the library reads itself.
 */
#include "../config.h"

#include "../abi.h"
#include "../cupti_abi.h"
#include "../settings.h"
#include "../shm.h"
#include "test.h"

static void set(const char *name, const char *value) {
  if (value)
    setenv(name, value, 1);
  else
    unsetenv(name);
}

/* What one setting makes of texts; those that are not understood are as if unset, and it says so. */
struct reading {
  const char *text;
  uint64_t number;
  bool complains;
};

static void reads(enum ncclotf2_setting setting, const char *name, const struct reading *cases, size_t count) {
  for (size_t i = 0; i < count; i++) {
    char why[256];
    set(name, cases[i].text);
    const char *text = cases[i].text ? cases[i].text : "(unset)";
    EQUAL(ncclotf2_setting(setting).number, cases[i].number, text);
    CHECK(ncclotf2_setting_problem(setting, why, sizeof why) == cases[i].complains, "%s: %s", text, cases[i].complains ? "no complaint" : why);
    EQUAL(ncclotf2_setting(setting).understood, !cases[i].complains, text);
  }
}
#define READS(key, ...)                                    \
  do {                                                     \
    static const struct reading cases_[] = {__VA_ARGS__};  \
    reads(NCCLOTF2_SETTING_##key, "NCCL_OTF2_" #key, cases_, sizeof cases_ / sizeof *cases_); \
  } while (0)

static void memory(void) {
  READS(MEMORY, {NULL, 256ULL << 20, false}, {"", 256ULL << 20, false}, {" ", 256ULL << 20, false}, {"8388608", 8ULL << 20, false},
        {"8192K", 8ULL << 20, false}, {"32M", 32ULL << 20, false}, {"32m", 32ULL << 20, false}, {"2G", 2ULL << 30, false},
        {"64MiB", 64ULL << 20, false}, {"64MB", 64ULL << 20, false}, {"64 M", 64ULL << 20, false}, {"1M", 256ULL << 20, true},
        {"0", 256ULL << 20, true}, {"lots", 256ULL << 20, true}, {"-5", 256ULL << 20, true}, {"12Q", 256ULL << 20, true},
        {"M", 256ULL << 20, true}, {"99999999999999999999", 256ULL << 20, true}, {"9999999999G", 256ULL << 20, true},
        {"4M4", 256ULL << 20, true});
  char why[256];
  ncclotf2_setting_problem(NCCLOTF2_SETTING_MEMORY, why, sizeof why);
  CHECK(strcmp(why, "NCCL_OTF2_MEMORY: \"4M4\" is not a size such as 256M or 1GiB, or is out of bounds; it is as if it were 256MiB") == 0, "%s", why);
}

static void choices(void) {
  READS(ENABLE, {NULL, 1, false}, {"on", 1, false}, {"0", 0, false}, {"OFF", 0, false}, {"No ", 0, false}, {"maybe", 1, true});
  READS(DEBUG, {NULL, 0, false}, {"on", 1, false}, {"0", 0, false}, {"2", 0, true});
  READS(RING, {NULL, NCCLOTF2_CHOICE_RING_MEMFD, false}, {"SHM", NCCLOTF2_CHOICE_RING_SHM, false}, {"disk", NCCLOTF2_CHOICE_RING_MEMFD, true});
  READS(START_LIMIT, {NULL, 2, false}, {"1", 1, false}, {"600", 600, false}, {"601", 2, true}, {"0", 2, true}, {"-3", 2, true}, {"5s", 2, true});
}

static void events(void) {
  static const struct {
    const char *events, *mask;
    uint32_t known, want;
    bool complains;
  } cases[] = {
      {NULL, NULL, NCCLOTF2_KNOWN_V6, 0x0f47, false},
      {"gpu", NULL, NCCLOTF2_KNOWN_V6, 0x0f47, false},
      {"light", NULL, NCCLOTF2_KNOWN_V6, 0x0f07, false},
      {"net", NULL, NCCLOTF2_KNOWN_V6, 0x0f5f, false},
      {"net-sums", NULL, NCCLOTF2_KNOWN_V6, 0x0f5f | NCCLOTF2_RECORD_NET_SUMS, false},
      {"all, Net-Sums", NULL, NCCLOTF2_KNOWN_V5, 0x0fff | NCCLOTF2_RECORD_NET_SUMS, false},
      {NULL, "0x80000fff", NCCLOTF2_KNOWN_V6, 0x0fff, false},
      {"all", NULL, NCCLOTF2_KNOWN_V6, 0x7fff, false},
      {"all", NULL, NCCLOTF2_KNOWN_V5, 0x0fff, false},
      {"ALL", NULL, NCCLOTF2_KNOWN_V5, 0x0fff, false},
      {"coll", NULL, NCCLOTF2_KNOWN_V6, 1u << 1, false},
      {" Coll, kernelch ,,PROXYCTRL", NULL, NCCLOTF2_KNOWN_V6, 1u << 1 | 1u << 6 | 1u << 5, false},
      {"light,NetPlugin", NULL, NCCLOTF2_KNOWN_V6, 0x0f07 | 1u << 7, false},
      {"KernelPhase", NULL, NCCLOTF2_KNOWN_V6, 0, false},
      {"Coll,Kernel", NULL, NCCLOTF2_KNOWN_V6, 0x0f47, false},
      {"coll", "4095", NCCLOTF2_KNOWN_V6, 1u << 1, false},
      {NULL, "4095", NCCLOTF2_KNOWN_V6, 0x0fff, false},
      {NULL, "0xFfF", NCCLOTF2_KNOWN_V6, 0x0fff, false},
      {NULL, "010", NCCLOTF2_KNOWN_V6, 10, false},
      {NULL, "65535", NCCLOTF2_KNOWN_V6, 0x7fff, false},
      {NULL, "0", NCCLOTF2_KNOWN_V6, 0, false},
      {NULL, "0x", NCCLOTF2_KNOWN_V6, 0x0f47, true},
      {NULL, "-1", NCCLOTF2_KNOWN_V6, 0x0f47, true},
      {NULL, "12 34", NCCLOTF2_KNOWN_V6, 0x0f47, true},
  };
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    char why[256];
    set("NCCL_OTF2_EVENTS", cases[i].events);
    set("NCCL_PROFILE_EVENT_MASK", cases[i].mask);
    char what[128];
    snprintf(what, sizeof what, "mask for events %s, number %s", cases[i].events ? cases[i].events : "(unset)",
             cases[i].mask ? cases[i].mask : "(unset)");
    EQUAL(ncclotf2_config_events(cases[i].known, why, sizeof why), cases[i].want, what);
    CHECK((*why != '\0') == cases[i].complains, "%s: %s", what, why);
  }
}

#define KIND(kind) (1ULL << CUPTI_##kind)
#define KERNELS (KIND(CONCURRENT_KERNEL) | KIND(EXTERNAL_CORRELATION) | KIND(DRIVER))
#define COPIES (KIND(MEMCPY) | KIND(MEMCPY2))

static void cupti(void) {
  READS(CUPTI, {NULL, 0, false}, {"off", 0, false}, {"0", 0, false}, {"on", KERNELS, false}, {"memcpy", KERNELS | COPIES, false},
        {"MEMSET", KERNELS | KIND(MEMSET), false}, {"sync, memory", KERNELS | KIND(SYNCHRONIZATION) | KIND(MEMORY2), false},
        {"all", KERNELS | COPIES | KIND(MEMSET) | KIND(SYNCHRONIZATION) | KIND(MEMORY2), false}, {" , ", 0, false},
        {"kernels", 0, true}, {"memcpy,nvtx", 0, true}, {"on,memcpy", 0, true}, {"all,memcpy", 0, true});
}

static void directory(void) {
  static const char *const variables[] = {"NCCL_OTF2_DIR",  "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT", "PMIX_NAMESPACE",
                                          "LSB_JOBID",      "PBS_JOBID",    "FLUX_JOB_ID",   "TORCHELASTIC_RUN_ID",
                                          "TORCHELASTIC_RESTART_COUNT"};
  static const struct {
    const char *environment; /* NAME=value NAME=value … */
    const char *want;
  } cases[] = {
      {"", "nccl-otf2-00000000deadbeef"},
      {"NCCL_OTF2_DIR=/tmp/here SLURM_JOB_ID=5", "/tmp/here"},
      {"SLURM_JOB_ID=12 SLURM_STEP_ID=3", "nccl-otf2-12.3"},
      {"SLURM_JOB_ID=12 SLURM_STEP_ID=3 SLURM_RESTART_COUNT=1 PMIX_NAMESPACE=x", "nccl-otf2-12.3.1"},
      {"SLURM_JOB_ID=12", "nccl-otf2-12"},
      {"SLURM_JOB_ID=12 SLURM_STEP_ID=4294967290 SLURM_RESTART_COUNT=1", "nccl-otf2-12.1"},
      {"PMIX_NAMESPACE=prterun-a/b@1", "nccl-otf2-prterun-a_b@1"},
      {"LSB_JOBID=7", "nccl-otf2-7"},
      {"PBS_JOBID=7.server", "nccl-otf2-7.server"},
      {"FLUX_JOB_ID=f123", "nccl-otf2-f123"},
      {"TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=0", "nccl-otf2-00000000deadbeef"},
      {"TORCHELASTIC_RUN_ID=abc TORCHELASTIC_RESTART_COUNT=2", "nccl-otf2-abc.2"},
      {"TORCHELASTIC_RUN_ID=abc", "nccl-otf2-abc"},
  };
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (unsigned k = 0; k < sizeof variables / sizeof *variables; k++) unsetenv(variables[k]);
    char text[256];
    snprintf(text, sizeof text, "%s", cases[i].environment);
    for (char *rest = text, *pair; (pair = strtok_r(rest, " ", &rest));) {
      char *equals = strchr(pair, '=');
      *equals = '\0';
      setenv(pair, equals + 1, 1);
    }
    char path[256];
    CHECK(ncclotf2_config_directory(0xdeadbeef, path, sizeof path), "%s", cases[i].environment);
    CHECK(strcmp(path, cases[i].want) == 0, "%s: %s, want %s", cases[i].environment, path, cases[i].want);
    CHECK(!ncclotf2_config_directory(0xdeadbeef, path, 5), "fits into nothing");
  }
}

TEST_MAIN({"memory has units and a least", memory}, {"switches, choices and numbers have their words and bounds", choices},
          {"events are presets, names or a number", events}, {"CUPTI is off, on, or a list of activities", cupti},
          {"the directory is named after the job", directory})
