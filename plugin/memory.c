/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "session.h"
#include "settings.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#define SHM "/dev/shm"
#define NAME "nccl-otf2-" /* of our files there */

static uint64_t align(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

/* Where everything lies for a given number of chunks. Chunks are aligned to their size, so that the
 * hot path finds a chunk's head from the position in it. */
static struct ncclotf2_header layout(uint64_t bytes) {
  const uint32_t chunks = (uint32_t)(bytes / NCCLOTF2_CHUNK_SIZE);
  struct ncclotf2_header header = {.magic = NCCLOTF2_SHM_MAGIC,
                                   .version = NCCLOTF2_SHM_VERSION,
                                   .header_size = sizeof header,
                                   .chunk_count = chunks,
                                   .chunk_reserve = chunks / 16};
  header.chunk_state_offset = sizeof header;
  header.ring_offset = align(header.chunk_state_offset + sizeof(uint32_t) * (uint64_t)chunks, NCCLOTF2_PAGE);
  header.comm_offset =
      align(header.ring_offset + sizeof(struct ncclotf2_ring) * (uint64_t)NCCLOTF2_RING_MAX, NCCLOTF2_PAGE);
  header.string_offset = header.comm_offset + sizeof(struct ncclotf2_comm) * (uint64_t)NCCLOTF2_COMM_MAX;
  header.chunk_offset = align(header.string_offset + NCCLOTF2_STRING_SIZE, NCCLOTF2_CHUNK_SIZE);
  header.total_size = header.chunk_offset + (uint64_t)chunks * NCCLOTF2_CHUNK_SIZE;
  return header;
}

static unsigned long long mebibytes(uint64_t bytes) { return bytes >> 20; }

static uint64_t least_size(void) { return layout(NCCLOTF2_MEMORY_LEAST).total_size; }

/* Sandboxes let calls fail that the kernel has; so do kernels that do not have them. */
static bool is_forbidden(int problem) {
  return problem == ENOSYS || problem == EPERM || problem == EACCES || problem == EINVAL || problem == EOPNOTSUPP;
}

/* ---- pages ---- */

enum placed { NO_MEMORY, PLACED, NOT_STATED };

static enum placed try_to_place(void *at, size_t size) {
  if (madvise(at, size, MADV_POPULATE_WRITE) == 0) return PLACED;
  if (is_forbidden(errno)) return NOT_STATED;
  errno = ENOMEM; /* for any reason it had */
  return NO_MEMORY;
}

bool ncclotf2_memory_place(void *at, size_t size) {
  const enum placed placed = try_to_place(at, size);
  /* Pages that cannot be had are none of this memory's, where the call cannot be made: is_safe has seen to that. */
  if (placed == NOT_STATED)
    for (size_t i = 0; i < size; i += NCCLOTF2_PAGE) __atomic_fetch_or((uint8_t *)at + i, 0, __ATOMIC_RELAXED);
  return placed != NO_MEMORY;
}

bool ncclotf2_memory_reaches(uint8_t *base, enum ncclotf2_table table, uint64_t bytes) {
  enum { STEP = 64 << 10 };
  static uint64_t placed[NCCLOTF2_TABLES];
  const struct ncclotf2_header *header = ncclotf2_header_at(base);
  uint64_t have = __atomic_load_n(&placed[table], __ATOMIC_ACQUIRE);
  if (bytes <= have) return true;
  const uint64_t begins[NCCLOTF2_TABLES + 1] = {header->ring_offset, header->comm_offset, header->string_offset, header->chunk_offset};
  const uint64_t size = begins[table + 1] - begins[table], rounded = align(bytes, STEP), end = rounded < size ? rounded : size;
  if (!ncclotf2_memory_place(base + begins[table] + have, end - have)) return false;
  while (have < end && !__atomic_compare_exchange_n(&placed[table], &have, end, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
  }
  return true;
}

/* Under strict accounting (vm.overcommit_memory=2) also a page of a shared file can be refused. */
static bool is_accounted_strictly(void) {
  char mode = '0';
  const int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    if (read(fd, &mode, 1) != 1) mode = '0';
    close(fd);
  }
  return mode == '2';
}

static bool reserved;

/* All of it from the beginning. A signal makes the call give back all that it had; a profiler's timer
 * would never let it end. */
static bool reserve(int fd, uint64_t size) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int problem = posix_fallocate(fd, 0, (off_t)size);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (problem) errno = problem;
  reserved = problem == 0;
  return reserved;
}

void ncclotf2_memory_return(void *at, size_t size) {
  if (!reserved) madvise(at, size, MADV_REMOVE); /* what cannot be returned is kept */
}

static bool scarce;

bool ncclotf2_memory_is_scarce(void) { return scarce; }

/* The head of the memory is there, and the rest can be put in place or is there, too. */
static bool is_safe(int fd, uint8_t *base, const struct ncclotf2_header *header) {
  const enum placed placed = try_to_place(base, header->ring_offset);
  const bool strict = is_accounted_strictly();
  scarce = strict && placed == PLACED;
  return placed == PLACED || (placed == NOT_STATED && (!strict || reserve(fd, header->total_size)));
}

/* ---- files ---- */

/* A descriptor below 3 would be taken for a standard stream by whoever opens one there. */
static int above_standard_streams(int fd) {
  if (fd < 0 || fd > 2) return fd;
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  close(fd);
  return moved;
}

/* Exceeding the limit on file sizes is not only an error but a signal that kills the program. */
static bool set_size(int fd, uint64_t size) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur) {
    errno = EFBIG;
    return false;
  }
  return ftruncate(fd, (off_t)size) == 0;
}

static uint8_t *map(int fd, uint64_t size) {
  void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
  return base == MAP_FAILED ? NULL : base;
}

/* As large as can be had, down to the least that works; with errno if that cannot be had either. In /dev/shm there must be room for
 * all of it from the beginning: NCCL uses it, too. */
static bool make(struct ncclotf2_memory *memory, uint64_t bytes, bool in_shm) {
  for (; bytes >= NCCLOTF2_MEMORY_LEAST; bytes /= 2) {
    memory->layout = layout(bytes);
    const uint64_t size = memory->layout.total_size;
    const bool sized = memory->fd < 0 || (set_size(memory->fd, size) && (!in_shm || reserve(memory->fd, size)));
    memory->base = sized ? map(memory->fd, size) : NULL;
    if (memory->base && (in_shm || memory->fd < 0 || is_safe(memory->fd, memory->base, &memory->layout))) return true;
    const int problem = errno;
    if (memory->base) munmap(memory->base, size);
    if (memory->fd >= 0 && ftruncate(memory->fd, 0) != 0) break; /* what was reserved in vain */
    errno = problem;
  }
  return false;
}

static void give_back(struct ncclotf2_memory *memory) {
  if (memory->fd >= 0) close(memory->fd);
  memory->fd = -1;
  memory->base = NULL;
}

/* ---- /dev/shm ---- */

/* Nobody has it open: its process was killed, and the collector. What it takes is not free, and of no recording's part. */
static bool is_abandoned(int directory, const char *name) {
  const int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  const bool abandoned = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
  if (fd >= 0) close(fd);
  return abandoned;
}

/* What recordings have taken of it or are about to take; and what of that they have. */
static void count_ours(uint64_t *taken, uint64_t *held) {
  *taken = *held = 0;
  DIR *files = opendir(SHM);
  for (const struct dirent *file; files && (file = readdir(files));) {
    struct stat info;
    if (strncmp(file->d_name, NAME, strlen(NAME)) != 0 || fstatat(dirfd(files), file->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        is_abandoned(dirfd(files), file->d_name))
      continue;
    const uint64_t blocks = (uint64_t)info.st_blocks * 512, size = (uint64_t)info.st_size;
    *held += blocks;
    *taken += blocks > size ? blocks : size;
  }
  if (files) closedir(files);
}

/* Others hold what keeps us from it for a moment only. */
static bool lock(int fd, int kind) {
  enum { PATIENCE_MS = 1000 };
  for (int i = 0; flock(fd, kind | LOCK_NB) != 0; i++) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || i == PATIENCE_MS) return false;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  return true;
}

/* Bytes that a file of ours may take there: all recordings together a quarter of what is free without them, for
 * NCCL needs room there; and of that, each of the job's processes on the node as much as the others. */
static uint64_t share(uint32_t processes, char *why, size_t why_size) {
  struct statfs info;
  uint64_t taken, held;
  count_ours(&taken, &held); /* before what is free: what others put in place meanwhile counts in neither, never in both */
  if (statfs(SHM, &info) != 0) {
    snprintf(why, why_size, "statfs: %s", strerror(errno));
    return 0;
  }
  if (info.f_type != TMPFS_MAGIC && info.f_type != RAMFS_MAGIC) {
    snprintf(why, why_size, "it is not in memory");
    return 0;
  }
  if (info.f_blocks == 0) return UINT64_MAX; /* without a limit */
  const uint64_t free = (uint64_t)info.f_bavail * (uint64_t)info.f_bsize;
  const uint64_t quarter = (free + held) / 4, left = quarter > taken ? quarter - taken : 0, mine = quarter / processes;
  const uint64_t most = left < mine ? left : mine;
  if (most < least_size())
    snprintf(why, why_size, "recordings may take a quarter of %llu MiB, and have %llu MiB; %u here at once need %llu MiB each; in a container: --shm-size",
             mebibytes(free + held), mebibytes(taken), processes, mebibytes(least_size()) + 1);
  return most;
}

/* A file of our own: nobody else's, nowhere else, readable by its owner alone. One with a name is locked as long as this
 * process or its collector has it open: who finds it afterwards can tell that by no other means where processes have
 * numbers of their own (containers). */
static bool create_in_shm(const struct ncclotf2_memory_wish *wish, bool named, struct ncclotf2_memory *memory, char *path, char *why, size_t why_size) {
  const struct ncclotf2_header *who = wish->header;
  snprintf(path, sizeof who->memory_path, SHM "/" NAME "%u-%u-%04x-%llu", who->uid, who->pid, who->tag, (unsigned long long)who->pid_start);
  /* One process at a time looks how much there is, and says how much of it it takes. */
  const int directory = open(SHM, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  /* Without locks at all it has to go on without, unless the file itself needs one. */
  if (directory < 0 || (!lock(directory, LOCK_EX) && (named || !is_forbidden(errno)))) {
    snprintf(why, why_size, "%s%s", directory < 0 ? "" : "flock: ", strerror(errno));
    if (directory >= 0) close(directory);
    return false;
  }
  const uint64_t most = share(wish->processes, why, why_size);
  if (most >= least_size()) {
    memory->fd = above_standard_streams(open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    const uint64_t records = most - layout(0).total_size;
    uint64_t bytes = wish->bytes < records ? wish->bytes : records;
    if (memory->fd < 0)
      snprintf(why, why_size, "%s", strerror(errno));
    else if (named && !lock(memory->fd, LOCK_SH))
      snprintf(why, why_size, "flock: %s", strerror(errno));
    else if (!set_size(memory->fd, layout(bytes).total_size)) /* from now on others count it */
      snprintf(why, why_size, "%s", strerror(errno));
    else
      memory->layout.chunk_count = (uint32_t)(bytes / NCCLOTF2_CHUNK_SIZE);
  }
  close(directory);
  return !*why;
}

/* *why says why not. */
static bool open_in_shm(const struct ncclotf2_memory_wish *wish, bool named, struct ncclotf2_memory *memory, char *why, size_t why_size) {
  char path[sizeof wish->header->memory_path];
  *why = '\0';
  bool made = create_in_shm(wish, named, memory, path, why, why_size);
  if (made && !(made = make(memory, memory->layout.chunk_count * (uint64_t)NCCLOTF2_CHUNK_SIZE, true))) snprintf(why, why_size, "%s", strerror(errno));
  if (memory->fd >= 0 && !(made && named)) unlink(path);
  if (!made) {
    give_back(memory);
    return false;
  }
  memory->layout.memory_kind = NCCLOTF2_MEMORY_SHM;
  if (named) memcpy(memory->layout.memory_path, path, sizeof path);
  return true;
}

/* ---- the order of preference ---- */

/* False with errno; *call is the call that failed. The C library has a function for memfd_create from glibc 2.27 on; the plugin is
 * built for 2.17. */
static bool open_memfd(const struct ncclotf2_memory_wish *wish, struct ncclotf2_memory *memory, const char **call) {
  *call = "memfd_create";
  memory->fd = above_standard_streams((int)syscall(SYS_memfd_create, "nccl-otf2", MFD_CLOEXEC));
  if (memory->fd < 0) return false;
  *call = "ftruncate";
  if (make(memory, wish->bytes, false)) return true;
  const int problem = errno;
  give_back(memory);
  errno = problem;
  return false;
}

bool ncclotf2_memory_open(const struct ncclotf2_memory_wish *wish, struct ncclotf2_memory *memory, char *why, size_t why_size) {
  *memory = (struct ncclotf2_memory){.fd = -1};
  char in_shm[192] = "";
  const char *call;
  *why = '\0';
  if (wish->in_shm) {
    if (open_in_shm(wish, true, memory, in_shm, sizeof in_shm)) return true;
    snprintf(why, why_size, "no memory in " SHM " (%s); memory that ends with the processes is used", in_shm);
  }
  if (open_memfd(wish, memory, &call)) return true;
  const int problem = errno;
  if (!is_forbidden(problem)) {
    snprintf(why, why_size, "no shared memory, not even %llu MiB (%s; see ulimit -v, -f, -n); nothing is recorded", mebibytes(least_size()),
             strerror(problem));
    return false;
  }
  if (open_in_shm(wish, false, memory, in_shm, sizeof in_shm)) {
    snprintf(why, why_size, "%s is not allowed here (%s): the records' memory lies in " SHM, call, strerror(problem));
    return true;
  }
  if (make(memory, wish->bytes, false)) {
    snprintf(why, why_size, "no memory that a collector could share (%s: %s; " SHM ": %s)", call, strerror(problem), in_shm);
    return true;
  }
  snprintf(why, why_size, "no memory (%s: %s; mmap: %s); nothing is recorded", call, strerror(problem), strerror(errno));
  return false;
}
