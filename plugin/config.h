/* SPDX-License-Identifier: Apache-2.0
 *
 * The few settings the library itself must know. All others belong to the collector, which reads
 * them (from the environment and the file named by NCCL_OTF2_CONFIG) and puts what comes of them
 * into the shared memory. Those of the second group below are used only where the library has to do
 * without a collector.
 */
#ifndef NCCLOTF2_CONFIG_H
#define NCCLOTF2_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NCCL_OTF2_ENABLE: false for 0, off, false, no. */
bool ncclotf2_config_enabled(void);

/* NCCL_OTF2_DEBUG is set, and to none of those. */
bool ncclotf2_config_debug(void);

/* NCCL_OTF2_MEMORY in bytes (suffixes K, M, G; default 256 MiB, at least NCCLOTF2_MEMORY_LEAST).
 * *why is one line if the setting is not understood, else NULL. */
uint64_t ncclotf2_config_memory(const char **why);
#define NCCLOTF2_MEMORY_DEFAULT (256ULL << 20)
#define NCCLOTF2_MEMORY_LEAST (4ULL << 20)

/* NCCL_OTF2_RING is "shm". *why is one line if it is neither that nor "memfd", else NULL. */
bool ncclotf2_config_ring_in_shm(const char **why);

/* NCCL_OTF2_START_LIMIT in seconds (1 … 600, default 2): how long a collector may take to be ready. */
unsigned ncclotf2_config_start_limit(void);

/* NCCL_OTF2_COLLECTOR is "spool". */
bool ncclotf2_config_spool(void);

/* NCCL_OTF2_SCOREP. *why is one line if it is none of these, else NULL. */
enum ncclotf2_scorep_setting {
  NCCLOTF2_SCOREP_SET_AUTO, /* forward calls where there is a Score-P that can be told of them */
  NCCLOTF2_SCOREP_SET_OFF,
  NCCLOTF2_SCOREP_SET_ON    /* … and say so where there is none */
};
enum ncclotf2_scorep_setting ncclotf2_config_scorep(const char **why);

/* NCCL_OTF2_CUPTI_LIBRARY, or NULL. */
const char *ncclotf2_config_cupti_library(void);

/* NCCL of this API version can be asked for stamps of kernels as NCCL's own settings are: from 2.29 on (version 6) not its
 * way of AllGatherV for Broadcasts (NCCL_ALLGATHERV_ENABLE=0), or from 2.31 on (7) its other way of enqueueing, which does
 * without (NCCL_ENQUEUE_REARCH_ENABLE=1). NCCL puts what its own settings files say into the environment. */
bool ncclotf2_config_stamps(unsigned version);

/* ---- without a collector ---- */

/* The activity kinds that NCCL_OTF2_CUPTI asks for, as bits of header.cupti_kinds; 0: CUPTI is left alone. `why` gets
 * one line if the setting is not understood (then that is so, too), else "". */
uint64_t ncclotf2_config_cupti(char *why, size_t why_size);

/* The event mask from NCCL_OTF2_EVENTS, else NCCL_PROFILE_EVENT_MASK, else the default; within
 * `known`. `why` gets one line if a setting is not understood (then the default holds), else "". */
uint32_t ncclotf2_config_events(uint32_t known, char *why, size_t why_size);

/* The window of NCCL_OTF2_START and NCCL_OTF2_WINDOW; false if there is none. `why` as above. */
bool ncclotf2_config_window(uint64_t *first, uint64_t *last, char *why, size_t why_size);

/* The experiment directory: NCCL_OTF2_DIR, else one named after the job's step and attempt, else
 * after the first communicator. False if it does not fit. */
bool ncclotf2_config_directory(uint64_t first_comm_id, char *path, size_t size);

#endif
