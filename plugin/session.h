/* SPDX-License-Identifier: Apache-2.0
 *
 * The session is the one shared memory of this process, created by the first init and kept until the
 * process ends. NCCL closes the library after its last communicator, but the library is linked
 * with -z nodelete, so the session outlives that and the next init continues with it.
 */
#ifndef NCCLOTF2_SESSION_H
#define NCCLOTF2_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shm.h"

/* The priority of a record when memory runs out: each class may use the chunks below its limit. The least
 * informative records are refused first, operations last. Stops have chunks in reserve, so that an event whose
 * start was recorded does not lose its end. */
enum ncclotf2_class {
  NCCLOTF2_CLASS_CONTROL,   /* what NCCL's progress thread does: 10/16 of the chunks */
  NCCLOTF2_CLASS_STEP,      /* network transfers: 12/16 */
  NCCLOTF2_CLASS_CHANNEL,   /* parts of operations: 14/16 */
  NCCLOTF2_CLASS_OPERATION, /* operations and calls, and states of anything: 15/16 */
  NCCLOTF2_CLASS_STOP,      /* all */
  NCCLOTF2_CLASSES
};

/* Where the largest pages of the architecture begin. */
#if defined(__x86_64__)
#define NCCLOTF2_LARGEST_PAGE 4096
#else
#define NCCLOTF2_LARGEST_PAGE 65536
#endif

/* Read by every callback: one cache line that is written only during setup. It has a page of its own, which the kernel empties
 * in a child that gets a copy of this process's memory, without a fork handler (Linux 4.14). */
struct ncclotf2_fast {
  uint8_t *base;            /* the mapping; NULL: record nothing (no session, or a forked child) */
  uint64_t tag_bits;        /* tag << NCCLOTF2_TAG_SHIFT */
  uint64_t context_bits;
  uint64_t (*host_now)(void);
  uint32_t limit[NCCLOTF2_CLASSES]; /* offset in the mapping / NCCLOTF2_CHUNK_SIZE of the first chunk that the
                                       class may not use */
  uint32_t clock;           /* enum ncclotf2_clock_source */
  uint32_t intern_epoch;    /* string addresses of an earlier epoch are invalid */
  uint16_t cupti;           /* 1 while CUPTI is on: launches pass it their handles */
  uint8_t scorep;           /* 1 once calls are forwarded to Score-P; never again 0, as regions may be open */
  uint8_t measured;         /* 1 once there is a measurement that has a say in what is recorded (measurement.h) */
} __attribute__((aligned(NCCLOTF2_LARGEST_PAGE)));
_Static_assert(offsetof(struct ncclotf2_fast, measured) < 64, "one cache line");
_Static_assert(sizeof(struct ncclotf2_fast) == NCCLOTF2_LARGEST_PAGE, "a page to itself");
extern struct ncclotf2_fast ncclotf2_fast;

/* The rest, for slow paths. */
struct ncclotf2_session {
  uint8_t *base; /* stays in a forked child, unlike ncclotf2_fast.base */
  int memfd; /* -1: no other process can have the memory */
  pid_t owner;
  uint64_t memfd_device, memfd_inode; /* to notice when the program closed our descriptor */
};
extern struct ncclotf2_session ncclotf2_session;

/* Removes the memory's file, if it has one, when nobody will read it later. The memory stays mapped. */
void ncclotf2_session_drop_file(void);

/* Returns false in a forked child, also in one made by a bare clone system call. */
bool ncclotf2_session_is_owner(void);

/* Whether this is such a child of a process with a session. Any thread, without the life lock, which in a child may be taken for ever. */
bool ncclotf2_session_is_foreign(void);

static inline struct ncclotf2_header *ncclotf2_header_at(uint8_t *base) {
  return (struct ncclotf2_header *)(void *)base;
}
static inline uint32_t *ncclotf2_chunk_states_at(uint8_t *base) {
  return (uint32_t *)(void *)(base + ncclotf2_header_at(base)->chunk_state_offset);
}
static inline struct ncclotf2_ring *ncclotf2_ring_at(uint8_t *base, uint32_t ring) {
  return (struct ncclotf2_ring *)(void *)(base + ncclotf2_header_at(base)->ring_offset) + ring;
}
static inline struct ncclotf2_comm *ncclotf2_comm_at(uint8_t *base, uint32_t comm) {
  return (struct ncclotf2_comm *)(void *)(base + ncclotf2_header_at(base)->comm_offset) + comm;
}
static inline struct ncclotf2_string *ncclotf2_string_at(uint8_t *base, uint64_t offset) {
  return (struct ncclotf2_string *)(void *)(base + ncclotf2_header_at(base)->string_offset + offset);
}
static inline uint64_t ncclotf2_chunk_offset(const struct ncclotf2_header *header, uint32_t chunk) {
  return header->chunk_offset + (uint64_t)chunk * NCCLOTF2_CHUNK_SIZE;
}
static inline struct ncclotf2_chunk *ncclotf2_chunk_at(uint8_t *base, uint32_t chunk) {
  return (struct ncclotf2_chunk *)(void *)(base + ncclotf2_chunk_offset(ncclotf2_header_at(base), chunk));
}

/* Counters are sums without an order. */
static inline void ncclotf2_count(uint64_t *counter) {
  __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* A reason in the header: one line, cut where it is too long, or "". By words, because the thread of a spool may copy the header meanwhile. */
static inline void ncclotf2_store_reason(char (*to)[NCCLOTF2_REASON_SIZE], const char *line) {
  uint64_t words[NCCLOTF2_REASON_SIZE / sizeof(uint64_t)] = {0};
  for (size_t i = 0; i < NCCLOTF2_REASON_SIZE - 1 && line[i]; i++) ((char *)words)[i] = line[i];
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    __atomic_store_n((uint64_t *)(void *)*to + i, words[i], __ATOMIC_RELAXED);
}

#endif
