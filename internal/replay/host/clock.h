/* SPDX-License-Identifier: Apache-2.0
 *
 * The clock that the plugin can take its ticks from (struct ncclotf2_host_clock in plugin/shm.h),
 * and the pace of the playing.
 */
#ifndef REPLAY_HOST_CLOCK_H
#define REPLAY_HOST_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct program;

/* recorded: the exported clock tells each thread the recorded time of the callback it is in, a
 * thread that makes none the latest such time. Otherwise it tells CLOCK_MONOTONIC_RAW. */
void clock_begin(const struct program *program, bool recorded);

/* The calling thread makes the call recorded at this time. */
void clock_enter(uint64_t recorded);

/* Sleeps until it is the call's turn: start_at, a CLOCK_MONOTONIC time in ns, is that of
 * program->base. */
void clock_pace(uint64_t start_at, uint64_t base, uint64_t recorded);

#endif
