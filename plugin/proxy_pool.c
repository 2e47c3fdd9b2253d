/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy_pool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "session.h"
#include "settings.h"

#define SHM "/dev/shm"

enum {
  RANKS_UNKNOWN = 8, /* on a node: up to v3, the API does not say how many there are */
  LOOKED_AT = 4096,  /* communicators; if more are alive, they need more room than any machine has */
  TWINS = 64,        /* ranks of a communicator in one process are made one after the other */
  FILES = 128        /* free descriptors: NCCL needs some for a pool, and others before it makes one */
};

static unsigned long long mebibytes(uint64_t bytes) { return (bytes + (1 << 20) - 1) >> 20; }

/* Each has a pool. A single rank has no operations. */
static uint64_t ranks_on_node(const struct ncclotf2_comm *comm) {
  if (comm->nranks <= 0 || comm->nnodes <= 0) return RANKS_UNKNOWN;
  return comm->nranks == 1 ? 0 : ((uint64_t)comm->nranks - 1) / (uint64_t)comm->nnodes + 1;
}

/* Another rank of the communicator is in this process, and ranks_on_node has counted both. */
static bool is_counted(uint8_t *base, uint32_t index) {
  const struct ncclotf2_comm *comm = ncclotf2_comm_at(base, index);
  for (uint32_t i = index; comm->api_version >= 4 && i > 0 && index - i < TWINS; i--) {
    const struct ncclotf2_comm *other = ncclotf2_comm_at(base, i - 1);
    if (other->comm_id == comm->comm_id && !other->final_ticks) return true;
  }
  return false;
}

/* Bytes that the pools of all communicators of this process take on this node. */
static uint64_t pools(uint8_t *base, uint32_t newest) {
  uint64_t ranks = 0;
  for (uint32_t i = newest < LOOKED_AT ? 0 : newest - LOOKED_AT; i <= newest; i++) {
    const struct ncclotf2_comm *comm = ncclotf2_comm_at(base, i);
    if (!comm->final_ticks && !is_counted(base, i)) ranks += ranks_on_node(comm);
  }
  return ranks * NCCLOTF2_PROXY_POOL;
}

/* Makes a small file as NCCL makes a pool; 0 or why that is impossible. Recordings have other names. */
static int try_file(void) {
  char path[] = SHM "/nccl-otf2.XXXXXX";
  const int fd = mkostemp(path, O_CLOEXEC);
  if (fd < 0) return errno;
  unlink(path);
  const int problem = fallocate(fd, 0, 0, NCCLOTF2_PAGE) == 0 ? 0 : errno;
  close(fd);
  return problem;
}

static bool has_descriptors(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
  rlim_t open = 0;
  DIR *files = opendir("/proc/self/fd");
  while (files && open < limit.rlim_cur && readdir(files)) open++;
  if (files) closedir(files);
  return files ? limit.rlim_cur - open >= FILES : limit.rlim_cur >= 2 * FILES;
}

/* A pool is mapped twice, by the thread that makes it and by the one that uses it. */
static bool has_address_space(void) {
  void *space = mmap(NULL, 2 * NCCLOTF2_PROXY_POOL, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space != MAP_FAILED) munmap(space, 2 * NCCLOTF2_PROXY_POOL);
  return space != MAP_FAILED;
}

static bool has_file_size(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= NCCLOTF2_PROXY_POOL;
}

bool ncclotf2_proxy_pools_fit(uint32_t newest, char *why, size_t why_size) {
  static uint64_t first_free; /* when the first of the communicators that are alive was made, and no pool was there yet */
  uint8_t *const base = ncclotf2_session.base;
  const uint64_t ranks = ranks_on_node(ncclotf2_comm_at(base, newest)), mine = ranks * NCCLOTF2_PROXY_POOL, all = pools(base, newest);
  if (!has_file_size()) { /* otherwise to try it would raise a signal that kills */
    snprintf(why, why_size, "the limit on the size of files (ulimit -f) is low");
    return false;
  }
  struct statvfs info;
  const int problem = statvfs(SHM, &info) != 0 ? errno : try_file();
  if (problem && problem != ENOSPC) {
    snprintf(why, why_size, "no file can be made in " SHM " (%s)", strerror(problem));
    return false;
  }
  const uint64_t free = info.f_blocks ? (uint64_t)info.f_bavail * info.f_frsize : UINT64_MAX; /* no blocks: no limit */
  if (all == mine || free > first_free) first_free = free;
  if (free / NCCLOTF2_POOLS_SHARE < mine || first_free / NCCLOTF2_POOLS_SHARE < all) {
    snprintf(why, why_size, SHM " has %llu MiB free and should have %llu (in a container: --shm-size)", mebibytes(free),
             mebibytes(all * NCCLOTF2_POOLS_SHARE));
    return false;
  }
  const char *const limit = problem || (info.f_files && info.f_favail < 2 * ranks) ? "files in " SHM " (nr_inodes)"
                            : !has_descriptors()                                  ? "open files (ulimit -n)"
                            : !has_address_space()                                ? "address space (ulimit -v)"
                                                                                  : NULL;
  if (limit) snprintf(why, why_size, "the limit on %s is low", limit);
  return !limit;
}
