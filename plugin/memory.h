/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the shared memory lies, and its pages. In order of preference:
 *
 *   a file in /dev/shm, if that is asked for: outlives this process and its collector
 *   a memfd
 *   a file in /dev/shm without a name, where a sandbox forbids memfds: as a memfd
 *   memory that no other process can have, where it forbids both: for the spool's thread
 *
 * Who writes to a page that cannot be had is killed by a signal. So pages are put in place before they are written to, by a
 * call that can fail, or are reserved as a whole.
 */
#ifndef NCCLOTF2_MEMORY_H
#define NCCLOTF2_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm.h"

/* What is wanted. `header` says who this process is, for the name of a file. */
struct ncclotf2_memory_wish {
  uint64_t bytes;      /* of records */
  bool in_shm;         /* asked for by the user */
  uint32_t processes;  /* of the job on this node, as far as that is known; at least 1 */
  const struct ncclotf2_header *header;
};

struct ncclotf2_memory {
  uint8_t *base;
  int fd;                        /* -1: no other process can have it */
  struct ncclotf2_header layout; /* where everything lies; kind and path; else 0 */
};

/* Makes it, as large as can be had. False if there is none; *why is one line about that, or about what is not as it was wished,
 * else empty. */
bool ncclotf2_memory_open(const struct ncclotf2_memory_wish *wish, struct ncclotf2_memory *memory, char *why, size_t why_size);

/* Puts pages in place, so that writing to them neither faults nor kills. False if there is no memory for them. Any thread;
 * a system call. `at` is the begin of a page. */
bool ncclotf2_memory_place(void *at, size_t size);

/* Gives the pages back to the system, where they may be had again later: not those that were reserved as a whole. Reads as zero afterwards where
 * they were given back. For who owns what lies there; a system call. */
void ncclotf2_memory_return(void *at, size_t size);

/* Whether a page may not be had when it is touched, be it only for reading: under strict accounting (vm.overcommit_memory=2), where not
 * all are reserved. */
bool ncclotf2_memory_is_scarce(void);

/* Tables whose pages are put in place as they fill. */
enum ncclotf2_table { NCCLOTF2_TABLE_RINGS, NCCLOTF2_TABLE_COMMS, NCCLOTF2_TABLE_STRINGS, NCCLOTF2_TABLES };

/* Whether the first `bytes` of a table can be written to; if not, there is no memory for them. Any thread; a system call once in
 * 64 KiB of the table. */
bool ncclotf2_memory_reaches(uint8_t *base, enum ncclotf2_table table, uint64_t bytes);

#endif
