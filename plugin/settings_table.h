/* SPDX-License-Identifier: Apache-2.0
 *
 * Made by `make generate` of the tables in config/, which are to be changed in its place.
 */
#ifndef NCCLOTF2_SETTINGS_TABLE_H
#define NCCLOTF2_SETTINGS_TABLE_H

enum ncclotf2_setting {
  NCCLOTF2_SETTING_DIR,
  NCCLOTF2_SETTING_EVENTS,
  NCCLOTF2_SETTING_START,
  NCCLOTF2_SETTING_WINDOW,
  NCCLOTF2_SETTING_CUPTI,
  NCCLOTF2_SETTING_DEBUG,
  NCCLOTF2_SETTING_ENABLE,
  NCCLOTF2_SETTING_MEMORY,
  NCCLOTF2_SETTING_RING,
  NCCLOTF2_SETTING_CLOCK,
  NCCLOTF2_SETTING_COLLECTOR,
  NCCLOTF2_SETTING_START_LIMIT,
  NCCLOTF2_SETTING_SCOREP,
  NCCLOTF2_SETTING_CUPTI_LIBRARY,
  NCCLOTF2_SETTINGS
};

/* Values of those that are a choice. */
enum { NCCLOTF2_CHOICE_START_ON, NCCLOTF2_CHOICE_START_PAUSED };
enum { NCCLOTF2_CHOICE_RING_MEMFD, NCCLOTF2_CHOICE_RING_SHM };
enum { NCCLOTF2_CHOICE_CLOCK_AUTO, NCCLOTF2_CHOICE_CLOCK_TSC, NCCLOTF2_CHOICE_CLOCK_MONOTONIC, NCCLOTF2_CHOICE_CLOCK_HOST };
enum { NCCLOTF2_CHOICE_SCOREP_AUTO, NCCLOTF2_CHOICE_SCOREP_ON, NCCLOTF2_CHOICE_SCOREP_OFF };

/* Key, kind, default, least, most, choices, what a text is that is not understood. */
#define NCCLOTF2_SETTING_ROWS(X) \
  X(DIR, PATH, "", 0, UINT64_MAX, "", "") \
  X(EVENTS, EVENTS, "gpu", 0, UINT64_MAX, "", "is not a list of presets (light, gpu, net, net-sums, all) and events") \
  X(START, CHOICE, "on", 0, UINT64_MAX, "on paused", "is unknown; use on or paused") \
  X(WINDOW, WINDOW, "", 0, UINT64_MAX, "", "is not a window such as ops:1000-2000, ops:1000- or ops:-2000") \
  X(CUPTI, ACTIVITIES, "off", 0, UINT64_MAX, "", "is unknown; use off, on, all, memcpy, memset, sync or memory") \
  X(DEBUG, SWITCH, "off", 0, UINT64_MAX, "", "is neither on nor off") \
  X(ENABLE, SWITCH, "on", 0, UINT64_MAX, "", "is neither on nor off") \
  X(MEMORY, SIZE, "256MiB", 4194304, UINT64_MAX, "", "is not a size such as 256M or 1GiB, or is out of bounds") \
  X(RING, CHOICE, "memfd", 0, UINT64_MAX, "memfd shm", "is unknown; use memfd or shm") \
  X(CLOCK, CHOICE, "auto", 0, UINT64_MAX, "auto tsc monotonic host", "is unknown; use auto, tsc, monotonic or host") \
  X(COLLECTOR, PATH, "", 0, UINT64_MAX, "", "") \
  X(START_LIMIT, SECONDS, "2", 1, 600, "", "is not a number of seconds, or is out of bounds") \
  X(SCOREP, CHOICE, "auto", 0, UINT64_MAX, "auto on off", "is unknown; use auto, on or off") \
  X(CUPTI_LIBRARY, PATH, "", 0, UINT64_MAX, "", "")

/* Words of a switch. */
#define NCCLOTF2_SWITCH_WORDS(X) \
  X("1", 1) \
  X("on", 1) \
  X("true", 1) \
  X("yes", 1) \
  X("0", 0) \
  X("off", 0) \
  X("false", 0) \
  X("no", 0)

/* Units of sizes, as powers of two. */
#define NCCLOTF2_SIZE_UNITS(X) \
  X("", 0) \
  X("B", 0) \
  X("K", 10) \
  X("KB", 10) \
  X("Ki", 10) \
  X("KiB", 10) \
  X("M", 20) \
  X("MB", 20) \
  X("Mi", 20) \
  X("MiB", 20) \
  X("G", 30) \
  X("GB", 30) \
  X("Gi", 30) \
  X("GiB", 30)

/* Presets, and names of events. */
#define NCCLOTF2_EVENT_WORDS(X) \
  X("light", 1u << NCCLOTF2_GROUP | 1u << NCCLOTF2_COLL | 1u << NCCLOTF2_P2P | 1u << NCCLOTF2_GROUP_API | 1u << NCCLOTF2_COLL_API | 1u << NCCLOTF2_P2P_API | 1u << NCCLOTF2_KERNEL_LAUNCH) \
  X("gpu", 1u << NCCLOTF2_GROUP | 1u << NCCLOTF2_COLL | 1u << NCCLOTF2_P2P | 1u << NCCLOTF2_KERNEL_CH | 1u << NCCLOTF2_GROUP_API | 1u << NCCLOTF2_COLL_API | 1u << NCCLOTF2_P2P_API | 1u << NCCLOTF2_KERNEL_LAUNCH) \
  X("net", 1u << NCCLOTF2_GROUP | 1u << NCCLOTF2_COLL | 1u << NCCLOTF2_P2P | 1u << NCCLOTF2_PROXY_OP | 1u << NCCLOTF2_PROXY_STEP | 1u << NCCLOTF2_KERNEL_CH | 1u << NCCLOTF2_GROUP_API | 1u << NCCLOTF2_COLL_API | 1u << NCCLOTF2_P2P_API | 1u << NCCLOTF2_KERNEL_LAUNCH) \
  X("net-sums", 1u << NCCLOTF2_GROUP | 1u << NCCLOTF2_COLL | 1u << NCCLOTF2_P2P | 1u << NCCLOTF2_PROXY_OP | 1u << NCCLOTF2_PROXY_STEP | 1u << NCCLOTF2_KERNEL_CH | 1u << NCCLOTF2_GROUP_API | 1u << NCCLOTF2_COLL_API | 1u << NCCLOTF2_P2P_API | 1u << NCCLOTF2_KERNEL_LAUNCH | NCCLOTF2_RECORD_NET_SUMS) \
  X("all", 1u << NCCLOTF2_GROUP | 1u << NCCLOTF2_COLL | 1u << NCCLOTF2_P2P | 1u << NCCLOTF2_PROXY_OP | 1u << NCCLOTF2_PROXY_STEP | 1u << NCCLOTF2_PROXY_CTRL | 1u << NCCLOTF2_KERNEL_CH | 1u << NCCLOTF2_NET_PLUGIN | 1u << NCCLOTF2_GROUP_API | 1u << NCCLOTF2_COLL_API | 1u << NCCLOTF2_P2P_API | 1u << NCCLOTF2_KERNEL_LAUNCH | 1u << NCCLOTF2_CE_COLL | 1u << NCCLOTF2_CE_SYNC | 1u << NCCLOTF2_CE_BATCH | 1u << NCCLOTF2_KERNEL_PHASE) \
  X("Group", 1u << NCCLOTF2_GROUP) \
  X("Coll", 1u << NCCLOTF2_COLL) \
  X("P2p", 1u << NCCLOTF2_P2P) \
  X("ProxyOp", 1u << NCCLOTF2_PROXY_OP) \
  X("ProxyStep", 1u << NCCLOTF2_PROXY_STEP) \
  X("ProxyCtrl", 1u << NCCLOTF2_PROXY_CTRL) \
  X("KernelCh", 1u << NCCLOTF2_KERNEL_CH) \
  X("NetPlugin", 1u << NCCLOTF2_NET_PLUGIN) \
  X("GroupApi", 1u << NCCLOTF2_GROUP_API) \
  X("CollApi", 1u << NCCLOTF2_COLL_API) \
  X("P2pApi", 1u << NCCLOTF2_P2P_API) \
  X("KernelLaunch", 1u << NCCLOTF2_KERNEL_LAUNCH) \
  X("CeColl", 1u << NCCLOTF2_CE_COLL) \
  X("CeSync", 1u << NCCLOTF2_CE_SYNC) \
  X("CeBatch", 1u << NCCLOTF2_CE_BATCH) \
  X("KernelPhase", 1u << NCCLOTF2_KERNEL_PHASE)

/* Kinds of CUPTI's records of kernels alone. */
#define NCCLOTF2_KERNEL_KINDS UINT64_C(0x8000000410)

/* What CUPTI can record beside kernels, as bits of its kinds. The first stands alone, the others can be a list. */
#define NCCLOTF2_ACTIVITY_WORDS(X) \
  X("all", UINT64_C(0x200c000400416)) \
  X("memcpy", UINT64_C(0x8000400412)) \
  X("memset", UINT64_C(0x8000000414)) \
  X("sync", UINT64_C(0xc000000410)) \
  X("memory", UINT64_C(0x2008000000410))

/* How systems that start jobs name a job, its step, and the attempt at it. */
#define NCCLOTF2_JOB_STEPS(X) \
  X("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT") \
  X("PMIX_NAMESPACE", "", "") \
  X("LSB_JOBID", "", "") \
  X("PBS_JOBID", "", "") \
  X("FLUX_JOB_ID", "", "") \
  X("TORCHELASTIC_RUN_ID", "", "TORCHELASTIC_RESTART_COUNT")

/* Numbers by which Slurm means no step of srun's. */
#define NCCLOTF2_NO_STEPS(X) \
  X("4294967290") \
  X("4294967291")

/* Settings of NCCL's that make stamps of kernels safe: from which version of the API on, name, default, whether it must be on. */
#define NCCLOTF2_SAFE_STAMPS(X) \
  X(6, "NCCL_ALLGATHERV_ENABLE", true, false) \
  X(7, "NCCL_ENQUEUE_REARCH_ENABLE", false, true)

/* The first version of the API that needs one of them. */
#define NCCLOTF2_UNSAFE_STAMPS 6

/* The last version of the API whose releases read stamps in their proxy's thread; more than a pool of its operations takes, bytes; the part of
 * /dev/shm that pools may take; NCCL's setting with which they are made with the communicator. */
#define NCCLOTF2_PROXIED_STAMPS 6
#define NCCLOTF2_PROXY_POOL UINT64_C(37748736)
#define NCCLOTF2_POOLS_SHARE 2
#define NCCLOTF2_RUNTIME_CONNECT "NCCL_RUNTIME_CONNECT"

/* The least memory for records, bytes. */
#define NCCLOTF2_MEMORY_LEAST UINT64_C(4194304)

/* How a window begins, what a job without an id is called, and the variable of other profilers. */
#define NCCLOTF2_WINDOW_UNIT "ops:"
#define NCCLOTF2_NO_JOB "none"
#define NCCLOTF2_MASK_VARIABLE "NCCL_PROFILE_EVENT_MASK"

#endif
