/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests do in NCCL's place, and a reader of the shared memory in the collector's place.
 */
#ifndef NCCLOTF2_TEST_HOST_H
#define NCCLOTF2_TEST_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "../api_versions.h"
#include "../session.h"
#include "../shm.h"

extern struct ncclotf2_plugin_v1 ncclProfiler_v1;
extern struct ncclotf2_plugin_v2 ncclProfiler_v2;
extern struct ncclotf2_plugin_v3 ncclProfiler_v3;
extern struct ncclotf2_plugin_v4 ncclProfiler_v4;
extern struct ncclotf2_plugin_v5 ncclProfiler_v5;
extern struct ncclotf2_plugin_v6 ncclProfiler_v6;
extern struct ncclotf2_plugin_v7 ncclProfiler_v7;

/* Mask and lines that the plugin handed to "NCCL". */
extern int host_mask;
extern _Atomic int host_lines; /* warnings that NCCL would show */
extern char host_line[1024]; /* the last line, shown or not */
extern unsigned long host_subsystems; /* NCCL_DEBUG_SUBSYS; at first NCCL's default: INIT, ENV, BOOTSTRAP */
void host_logger(int level, unsigned long flags, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
bool host_logged(const char *part); /* whether any line that NCCL would show contained the part */

/* fork() by the bare system call, past the fork handlers. */
pid_t host_bare_fork(void);

/* The folder of the case, made under $TMPDIR and removed by host_clean (at exit). */
const char *host_folder(void);

/* Settings for a session whose records stay in memory: a stub says it is the collector, and records
 * what `mask` says. */
void host_use_stub(const char *behavior, uint32_t mask);

/* Makes a file that a late stub waits to see gone, however long that takes. */
const char *host_gate(void);

/* init of v6 for a communicator; never NULL. */
void *host_init(uint64_t comm_id, int nranks, int rank);

/* How many bytes the process's spool file has; 0 if there is none. */
uint64_t host_spooled(void);

static inline struct ncclotf2_header *host_header(void) { return ncclotf2_header_at(ncclotf2_session.base); }

/* A descriptor of the type with NULL in what need not be set. */
struct ncclotf2_descr_v6 host_descr(unsigned type);

/* startEvent of v6; the handle slot is garbage before the call. */
void *host_start(void *context, struct ncclotf2_descr_v6 descr);

/* `size` bytes of garbage behind which nothing may be read: the next page is not there. Never freed. */
void *host_guarded(size_t size);

/* The id of a text that must be in the string heap exactly once. */
uint32_t host_string_id(const char *text);

/* Fills what no record uses of the first chunks with garbage: records must not show what chunks held before. */
void host_fill_free_chunks(void);

/* ---- the reader ---- */

struct reader {
  struct {
    uint32_t chunk, bytes;
    uint64_t sequence;
    uint64_t records;
  } rings[NCCLOTF2_RING_MAX];
  bool keep; /* do not give chunks back */
};

/* Hands every record not seen yet to `each`, ring by ring, in order; checks the chunk list on the
 * way and gives chunks back. Returns how many records there were. */
uint64_t reader_drain(struct reader *reader, void (*each)(uint32_t ring, const struct ncclotf2_record *record, void *closure),
                      void *closure);

/* The latest record of the calling thread's ring. */
const void *reader_last(void);

/* The records of the calling thread's ring so far, oldest first: at most `most` of them are put into list;
 * returns how many there are. Valid as long as no chunk was given back. */
size_t reader_own(const struct ncclotf2_record **list, size_t most);

/* Compares a record with what it should be, byte by byte; of `want` only what follows the head and the head's
 * flags, aux, handle and arg must be filled in, the rest is told. */
void host_same_record(const void *got, void *want, size_t size, unsigned kind, unsigned type);

#endif
