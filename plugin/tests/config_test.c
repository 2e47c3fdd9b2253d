/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings that the library reads itself.
 */
#include "../config.h"

#include "../abi.h"
#include "test.h"

static void set(const char *name, const char *value) {
  if (value)
    setenv(name, value, 1);
  else
    unsetenv(name);
}

static void memory(void) {
  static const struct {
    const char *setting;
    uint64_t bytes;
    bool complains;
  } cases[] = {
      {NULL, 256ULL << 20, false},      {"", 256ULL << 20, false},          {"8388608", 8ULL << 20, false},
      {"8192K", 8ULL << 20, false},     {"32M", 32ULL << 20, false},        {"32m", 32ULL << 20, false},
      {"2G", 2ULL << 30, false},        {"64MiB", 64ULL << 20, false},      {"64MB", 64ULL << 20, false},
      {"1M", 4ULL << 20, true},         {"0", 4ULL << 20, true},            {"lots", 256ULL << 20, true},
      {"-5", 256ULL << 20, true},       {"12Q", 256ULL << 20, true},        {"M", 256ULL << 20, true},
      {"99999999999999999999", 256ULL << 20, true}, {"9999999999G", 256ULL << 20, true}, {"4M4", 256ULL << 20, true},
  };
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *why;
    set("NCCL_OTF2_MEMORY", cases[i].setting);
    EQUAL(ncclotf2_config_memory(&why), cases[i].bytes, cases[i].setting ? cases[i].setting : "(unset)");
    CHECK((why != NULL) == cases[i].complains, "%s: %s", cases[i].setting, why ? why : "no complaint");
  }
}

static void enabled(void) {
  static const struct {
    const char *setting;
    bool enabled;
  } cases[] = {{NULL, true}, {"", true}, {"1", true}, {"on", true}, {"0", false}, {"off", false}, {"OFF", false}, {"false", false}, {"No", false}};
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    set("NCCL_OTF2_ENABLE", cases[i].setting);
    EQUAL(ncclotf2_config_enabled(), cases[i].enabled, cases[i].setting ? cases[i].setting : "(unset)");
    set("NCCL_OTF2_DEBUG", cases[i].setting);
    EQUAL(ncclotf2_config_debug(), cases[i].setting && *cases[i].setting && cases[i].enabled, "debug");
  }
}

static void start_limit(void) {
  static const struct {
    const char *setting;
    unsigned seconds;
  } cases[] = {{NULL, 2}, {"", 2}, {"1", 1}, {"600", 600}, {"601", 2}, {"0", 2}, {"-3", 2}, {"5s", 2}, {"soon", 2}};
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    set("NCCL_OTF2_START_LIMIT", cases[i].setting);
    EQUAL(ncclotf2_config_start_limit(), cases[i].seconds, cases[i].setting ? cases[i].setting : "(unset)");
  }
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
      {"all", NULL, NCCLOTF2_KNOWN_V6, 0x7fff, false},
      {"all", NULL, NCCLOTF2_KNOWN_V5, 0x0fff, false},
      {"ALL", NULL, NCCLOTF2_KNOWN_V5, 0x0fff, false},
      {"coll", NULL, NCCLOTF2_KNOWN_V6, 1u << 1, false},
      {" Coll, kernelch ,,PROXYCTRL", NULL, NCCLOTF2_KNOWN_V6, 1u << 1 | 1u << 6 | 1u << 5, false},
      {"light,NetPlugin", NULL, NCCLOTF2_KNOWN_V6, 0x0f07 | 1u << 7, false},
      {"KernelPhase", NULL, NCCLOTF2_KNOWN_V6, 0, false},
      {"Coll,Kernel", NULL, NCCLOTF2_KNOWN_V6, 0x0f47, true},
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

static void cupti(void) {
  const uint64_t kernels = 1ULL << 10 | 1ULL << 4 | 1ULL << 39, copies = 1ULL << 1 | 1ULL << 22;
  const struct {
    const char *setting;
    uint64_t kinds;
    bool complains;
  } cases[] = {{NULL, 0, false},
               {"", 0, false},
               {"off", 0, false},
               {"0", 0, false},
               {"on", kernels, false},
               {"1", kernels, false},
               {"memcpy", kernels | copies, false},
               {"MEMSET", kernels | 1ULL << 2, false},
               {"sync, memory", kernels | 1ULL << 38 | 1ULL << 49, false},
               {"all", kernels | copies | 1ULL << 2 | 1ULL << 38 | 1ULL << 49, false},
               {" , ", 0, false},
               {"kernels", 0, true},
               {"memcpy,nvtx", 0, true},
               {"on,memcpy", 0, true},
               {"all,memcpy", 0, true}};
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    char why[256];
    set("NCCL_OTF2_CUPTI", cases[i].setting);
    EQUAL(ncclotf2_config_cupti(why, sizeof why), cases[i].kinds, cases[i].setting ? cases[i].setting : "(unset)");
    CHECK((*why != '\0') == cases[i].complains, "%s: \"%s\"", cases[i].setting, why);
  }
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

TEST_MAIN({"memory has units and a least", memory}, {"the plugin can be switched off", enabled},
          {"the start limit is a number of seconds", start_limit},
          {"events are presets, names or a number", events}, {"CUPTI is off, on, or a list of activities", cupti},
          {"the directory is named after the job", directory})
