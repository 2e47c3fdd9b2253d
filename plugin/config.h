/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings that the plugin reads itself. The collector reads all others, from the environment and
 * the file that NCCL_OTF2_CONFIG names, and writes the result into the shared memory.
 */
#ifndef NCCLOTF2_CONFIG_H
#define NCCLOTF2_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns whether NCCL_OTF2_COLLECTOR is "spool". */
bool ncclotf2_config_spool(void);

/* Returns whether NCCL of this API version may be asked for kernel stamps, given NCCL's own settings (internal/hidden/stamps.go). NCCL puts
 * the contents of its settings files into the environment. */
bool ncclotf2_config_stamps(unsigned version);

/* ---- without a collector ---- */

/* Returns the event mask from NCCL_OTF2_EVENTS, else from NCCL_PROFILE_EVENT_MASK, else the default, limited to
 * `known`. Sets `why` to one line if the number is invalid and the default is used, else to "". */
uint32_t ncclotf2_config_events(uint32_t known, char *why, size_t why_size);

/* Reads the window of NCCL_OTF2_START and NCCL_OTF2_WINDOW; returns false if there is none. Sets `why` to one line if nothing will be recorded. */
bool ncclotf2_config_window(uint64_t *first, uint64_t *last, char *why, size_t why_size);

/* Writes the path of the experiment directory: NCCL_OTF2_DIR, else a name made of the job's step and attempt, else of
 * the first communicator. Returns false if it does not fit. */
bool ncclotf2_config_directory(uint64_t first_comm_id, char *path, size_t size);

/* Turns a host name or job id, in place, into a safe part of a file name: it cannot lead to another folder, hide the file, or contain
 * control characters. The buffer must have room for one character and the closing NUL. */
void ncclotf2_config_file_name(char *text);

#endif
