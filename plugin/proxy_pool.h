/* SPDX-License-Identifier: Apache-2.0
 *
 * Room for what NCCL up to 2.30 makes when it is asked for stamps of kernels: a pool of proxy operations in /dev/shm, for each
 * rank of each communicator, with the first operation. NCCL does not notice that it could not make it, and crashes.
 */
#ifndef NCCLOTF2_PROXY_POOL_H
#define NCCLOTF2_PROXY_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the pools of all communicators that are alive can be made, by all ranks on this node, the newest communicator being
 * `newest`; *why says why not. Called for each communicator when it is made: NCCL makes the pools later, and by then others may
 * have taken the room, so they may have half of what is free. Caller holds the life lock. */
bool ncclotf2_proxy_pools_fit(uint32_t newest, char *why, size_t why_size);

#endif
