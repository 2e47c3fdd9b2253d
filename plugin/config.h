/* SPDX-License-Identifier: Apache-2.0
 *
 * What the library decides by settings itself. All others belong to the collector, which reads
 * them (from the environment and the file named by NCCL_OTF2_CONFIG) and puts what comes of them
 * into the shared memory.
 */
#ifndef NCCLOTF2_CONFIG_H
#define NCCLOTF2_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NCCL_OTF2_COLLECTOR is "spool". */
bool ncclotf2_config_spool(void);

/* NCCL of this API version can be asked for stamps of kernels as NCCL's own settings are (internal/hidden/stamps.go). NCCL puts
 * what its own settings files say into the environment. */
bool ncclotf2_config_stamps(unsigned version);

/* ---- without a collector ---- */

/* The event mask from NCCL_OTF2_EVENTS, else NCCL_PROFILE_EVENT_MASK, else the default; within
 * `known`. `why` gets one line if the number is not understood (then the default holds), else "". */
uint32_t ncclotf2_config_events(uint32_t known, char *why, size_t why_size);

/* The window of NCCL_OTF2_START and NCCL_OTF2_WINDOW; false if there is none. `why` gets one line if nothing will be recorded. */
bool ncclotf2_config_window(uint64_t *first, uint64_t *last, char *why, size_t why_size);

/* The experiment directory: NCCL_OTF2_DIR, else one named after the job's step and attempt, else
 * after the first communicator. False if it does not fit. */
bool ncclotf2_config_directory(uint64_t first_comm_id, char *path, size_t size);

/* Makes of a text that others chose (the name of a host, the id of a job) a part of a file's name, in place: nothing in it leads to
 * another folder, hides the file, or is acted upon by a terminal. The buffer has room for a byte and the end. */
void ncclotf2_config_file_name(char *text);

#endif
