/* SPDX-License-Identifier: Apache-2.0
 *
 * Score-P: calls of NCCL as regions of the measurement that the application is part of (NCCL_OTF2_SCOREP).
 *
 * Score-P aborts a program that breaks its rules, so only calls that follow them are forwarded:
 *
 * - It accepts no time stamps: a region begins and ends when Score-P is called, on the calling thread.
 * - It is called only while it measures; an earlier call would start it, perhaps on a thread of NCCL's.
 * - The threading model is chosen when the program is linked. In one model any thread may call Score-P, in the others
 *   only the process's main thread.
 * - It needs memory for each thread that calls it, and ends the program when it runs out: a thread calls it only if memory is
 *   left.
 * - A plain call (a GroupApi event of depth 1) is a region until its stop: NCCL (2.28 and later) makes that stop
 *   on every way out, on the same thread, and no code of the application runs in between. Nor does any other that tells
 *   Score-P of its begins and ends, unless NCCL itself was compiled so: then a plain call is a region without length, too.
 * - A call within a group of the user's is a region without length, within one callback: where such a call fails NCCL
 *   does not stop its event. The group itself is none: the application's own code runs in it.
 * - At most one of the plugin's regions is open on a thread, and only that thread ends it.
 *
 * A call that is not recorded has no handle, and NCCL does not report its end, so it is not forwarded either.
 */
#ifndef NCCLOTF2_SCOREP_H
#define NCCLOTF2_SCOREP_H

#include <stdint.h>

#include "shm.h"

/* Finds out, once in a process, whether calls can be forwarded, and sets ncclotf2_fast.scorep if so. When the collector is
 * ready; caller: an address in the library that calls. The life lock is held. */
void ncclotf2_scorep_begin(unsigned api_version, const void *caller);

/* Defines the regions, if that has not been done and may be done on this thread. Without the life lock: Score-P has
 * locks of its own. */
void ncclotf2_scorep_prepare(void);

/* The log line about what was not forwarded since the last such line. Caller holds the life lock. */
void ncclotf2_scorep_report(void);

/* ---- while ncclotf2_fast.scorep is set, on the calling thread ---- */

/* A record of a GroupApi, CollApi or P2pApi event that has just been committed. */
void ncclotf2_scorep_started(uint8_t *base, const struct ncclotf2_record *record);

/* NCCL has collected what the call of this handle consists of, and launches it. */
void ncclotf2_scorep_launches(uint8_t *base, uint64_t handle);

/* An event of any type has ended. */
void ncclotf2_scorep_stopped(uint8_t *base, uint64_t handle);

#endif
