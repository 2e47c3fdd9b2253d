/* SPDX-License-Identifier: Apache-2.0
 *
 * Starting the collector, `nccl-otf2 collect --fd N`, without the host program noticing.
 */
#ifndef NCCLOTF2_COLLECTOR_H
#define NCCLOTF2_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum ncclotf2_start {
  NCCLOTF2_START_READY,
  NCCLOTF2_START_REFUSED, /* header.message says why */
  NCCLOTF2_START_FAILED,  /* could not be started, or ended before it was ready */
  NCCLOTF2_START_LATE     /* runs, but is not ready in time */
};

/* Starts it and waits until it is ready, at most 2 s. meanwhile does some microseconds of work at a time while there
 * is any, and returns whether it did; may be NULL. *why is one line for FAILED. Leaves *pid 0 if there is no process. */
enum ncclotf2_start ncclotf2_collector_start(pid_t *pid, bool (*meanwhile)(void), char *why, size_t why_size);

/* False once the process has ended, even before it is reaped. */
bool ncclotf2_process_alive(pid_t pid);

/* What keeps a process that should be at work from it, in a few words; NULL if it has work and no processor. */
const char *ncclotf2_process_holdup(pid_t pid);

#endif
