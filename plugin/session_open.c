/* SPDX-License-Identifier: Apache-2.0 */
#include "session_open.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "chunk.h"
#include "clock.h"
#include "handle.h"
#include "memory.h"
#include "session.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

static void read_file(const char *path, char *text, size_t size) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);
  if (fd >= 0) close(fd);
  text[got > 0 ? got : 0] = '\0';
  text[strcspn(text, "\n")] = '\0';
}

/* Field 22 of /proc/self/stat; the second one is the program's name and may contain anything. */
static uint64_t start_time(void) {
  char stat[1024];
  read_file("/proc/self/stat", stat, sizeof stat);
  char *at = strrchr(stat, ')');
  for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
  return at ? strtoull(at, NULL, 10) : 0;
}

static uint32_t draw_tag(void) {
  uint16_t tag = 0;
  while (tag == 0 || tag == 0xffff)
    if (syscall(SYS_getrandom, &tag, sizeof tag, 0) != (ssize_t)sizeof tag) {
      /* Very old kernels and some sandboxes; good enough to distinguish the processes of one host. */
      uint64_t mixed = (ncclotf2_clock_monotonic() ^ (uint64_t)getpid() << 20) * 0x9e3779b97f4a7c15ULL;
      tag = (uint16_t)(mixed >> 48);
    }
  return tag;
}

static void identify(struct ncclotf2_header *header) {
  gethostname(header->hostname, sizeof header->hostname - 1);
  read_file("/proc/sys/kernel/random/boot_id", header->boot_id, sizeof header->boot_id);
  if (readlink("/proc/self/exe", header->executable, sizeof header->executable - 1) < 0) header->executable[0] = '\0';
  header->pid = (uint32_t)getpid();
  header->uid = (uint32_t)geteuid();
  header->pid_start = start_time();
  header->tag = draw_tag();
}

/* The first of everything, and some slots get a chunk with its pages in place, so that the first threads find theirs ready; the others are filled
 * once there is a thread for it (consumer.c). */
static void prepare_spares(struct ncclotf2_header *header) {
  enum { FIRST = 8 };
  for (unsigned table = 0; table < NCCLOTF2_TABLES; table++) ncclotf2_memory_reaches(ncclotf2_session.base, (enum ncclotf2_table)table, 1);
  uint32_t *states = ncclotf2_chunk_states_at(ncclotf2_session.base);
  for (uint32_t i = 0; i < FIRST && i < header->chunk_count - header->chunk_reserve; i++) {
    if (!ncclotf2_chunk_map(i)) return;
    __atomic_store_n(&states[i], NCCLOTF2_CHUNK_SPARE, __ATOMIC_RELAXED);
    __atomic_store_n(&header->spare[i], i + 1, __ATOMIC_RELEASE);
  }
}

bool ncclotf2_session_open(const struct ncclotf2_session_wish *wish, char *why, size_t why_size) {
  struct ncclotf2_header who = {0};
  identify(&who);
  struct ncclotf2_memory memory;
  /* Chunk numbers, their successors and a mark must fit 32 bits. */
  const uint64_t most = (uint64_t)(INT32_MAX - 2) * NCCLOTF2_CHUNK_SIZE;
  const struct ncclotf2_memory_wish memory_wish = {.bytes = wish->memory < most ? wish->memory : most,
                                                   .in_shm = wish->in_shm,
                                                   .processes = wish->processes ? wish->processes : 1,
                                                   .header = &who};
  if (!ncclotf2_memory_open(&memory_wish, &memory, why, why_size)) return false;
  uint8_t *const base = memory.base;
  const int fd = memory.fd;

  struct ncclotf2_header *header = ncclotf2_header_at(base);
  /* The layout, and who we are: the two know nothing of each other's members. */
  *header = memory.layout;
  memcpy(header->hostname, who.hostname, sizeof who.hostname);
  memcpy(header->boot_id, who.boot_id, sizeof who.boot_id);
  memcpy(header->executable, who.executable, sizeof who.executable);
  header->uid = who.uid;
  header->pid = who.pid;
  header->pid_start = who.pid_start;
  header->tag = who.tag;
  header->clock_source = wish->clock;
  header->clock_hz = ncclotf2_clock_hz(wish->clock);
  header->api_version = wish->api_version;
  header->window_last = UINT64_MAX;
  header->preparer = 1;

  ncclotf2_session.base = base;
  ncclotf2_session.memfd = fd;
  __atomic_store_n(&ncclotf2_session.owner, getpid(), __ATOMIC_RELAXED);
  madvise(&ncclotf2_fast, sizeof ncclotf2_fast, MADV_WIPEONFORK); /* without it, pthread_atfork's handler has to do */
  struct stat info;
  if (fstat(fd, &info) == 0) {
    ncclotf2_session.memfd_device = info.st_dev;
    ncclotf2_session.memfd_inode = info.st_ino;
  }
  ncclotf2_fast.tag_bits = (uint64_t)header->tag << NCCLOTF2_TAG_SHIFT;
  ncclotf2_fast.context_bits = ncclotf2_context_bits(header->tag);
  for (unsigned class = 0; class < NCCLOTF2_CLASSES; class++)
    ncclotf2_fast.limit[class] =
        (uint32_t)(header->chunk_offset / NCCLOTF2_CHUNK_SIZE) + ncclotf2_class_chunks(header, class);
  ncclotf2_fast.clock = wish->clock;
  const struct ncclotf2_host_clock *host = wish->clock == NCCLOTF2_CLOCK_HOST ? ncclotf2_clock_host() : NULL;
  if (host) ncclotf2_fast.host_now = host->now;
  header->created = ncclotf2_clock_tuple();
  prepare_spares(header);
  __atomic_store_n(&ncclotf2_fast.base, base, __ATOMIC_RELEASE);
  return true;
}
