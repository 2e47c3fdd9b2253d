/* SPDX-License-Identifier: Apache-2.0
 *
 * How a session begins: who this process is, what memory it gets, and when callbacks see it.
 */
#ifndef NCCLOTF2_SESSION_OPEN_H
#define NCCLOTF2_SESSION_OPEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ncclotf2_session_wish {
  uint64_t memory;      /* bytes of records */
  bool in_shm;          /* in /dev/shm, so that they outlive this process and its collector */
  uint32_t processes;   /* of the job on this node; 0 if unknown */
  uint32_t clock;       /* enum ncclotf2_clock_source */
  uint32_t api_version;
};

/* Creates the memory and publishes it to the callbacks. False if it cannot be had; *why is one line about that, or about memory that
 * is not as it was wished, else empty. Caller holds the life lock. */
bool ncclotf2_session_open(const struct ncclotf2_session_wish *wish, char *why, size_t why_size);

#endif
