/* SPDX-License-Identifier: Apache-2.0
 *
 * CUPTI: records of the kernels that run on the GPU, and which launch of NCCL's each belongs to.
 *
 * It is switched on, if it is asked for (header.cupti_kinds), before the first communicator of a life has launched
 * anything, and off after the last is finalized; never in between: switching allocates on the GPU, and behind an NCCL
 * kernel that waits for its peers that is a deadlock. A thread of this library takes the records out. Around the launch
 * of an NCCL kernel the handle of its KernelLaunch event is the external correlation id of the calling thread.
 *
 * An error here only disables the records of GPU kernels; it is reported in one log line and in header.cupti_state.
 */
#ifndef NCCLOTF2_CUPTI_H
#define NCCLOTF2_CUPTI_H

#include <stdbool.h>
#include <stdint.h>

/* Switches CUPTI on if that is requested and not done yet; `early`: no communicator has existed in this life. Returns
 * whether it did. The caller holds the life lock. */
bool ncclotf2_cupti_begin(bool early);

/* Switches CUPTI off if it is on, and waits at most `seconds` until its records are in the rings; after that, the thread
 * continues alone. The caller holds the life lock. */
void ncclotf2_cupti_end(unsigned seconds);

/* A launch begins on this thread, with the handle 0 if it is not recorded; called while ncclotf2_fast.cupti is set. */
void ncclotf2_cupti_launch(uint64_t handle);

/* An event of this thread has ended, likewise. NCCL leaves a KernelLaunch open when the launch fails; its id goes when
 * the call ends, or before that of the next launch. */
void ncclotf2_cupti_stopped(uint64_t handle);

#endif
