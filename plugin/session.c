/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <unistd.h>

_Static_assert(sizeof(struct ncclotf2_header) == 8192, "header");
_Static_assert(offsetof(struct ncclotf2_header, ring_used) == 2048, "header");
_Static_assert(offsetof(struct ncclotf2_header, collector_state) == 6144, "header");
_Static_assert(sizeof(struct ncclotf2_chunk) == NCCLOTF2_CHUNK_HEAD, "chunk head");
_Static_assert(sizeof(struct ncclotf2_ring) % 64 == 0, "rings share no cache line");
_Static_assert(sizeof(struct ncclotf2_comm) == 192, "communicator");
#define UNITS(record, units) _Static_assert(sizeof(struct record) == (units) * NCCLOTF2_UNIT, #record)
UNITS(ncclotf2_record, 1);
UNITS(ncclotf2_thread_record, 2);
#undef UNITS

struct ncclotf2_fast ncclotf2_fast;
struct ncclotf2_session ncclotf2_session = {.memfd = -1};

static pid_t owner(void) { return __atomic_load_n(&ncclotf2_session.owner, __ATOMIC_RELAXED); }

bool ncclotf2_session_is_owner(void) { return ncclotf2_session.base && owner() == getpid(); }

bool ncclotf2_session_is_foreign(void) { return owner() && owner() != getpid(); }

void ncclotf2_session_drop_file(void) {
  const char *path = ncclotf2_header_at(ncclotf2_session.base)->memory_path;
  if (*path) unlink(path);
}
