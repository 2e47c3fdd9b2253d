/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "config.h"
#include "handle.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

_Static_assert(sizeof(struct ncclotf2_header) == 8192, "header");
_Static_assert(offsetof(struct ncclotf2_header, ring_used) == 2048, "header");
_Static_assert(offsetof(struct ncclotf2_header, collector_state) == 6144, "header");
_Static_assert(sizeof(struct ncclotf2_chunk) == NCCLOTF2_CHUNK_HEAD, "chunk head");
_Static_assert(sizeof(struct ncclotf2_ring) % 64 == 0, "rings share no cache line");
_Static_assert(sizeof(struct ncclotf2_comm) == 192, "communicator");
#define UNITS(record, units) _Static_assert(sizeof(struct record) == (units) * NCCLOTF2_UNIT, #record)
UNITS(ncclotf2_record, 1);
UNITS(ncclotf2_thread_record, 2);
UNITS(ncclotf2_group_api, 2);
UNITS(ncclotf2_coll_api, 3);
UNITS(ncclotf2_kernel_launch, 2);
UNITS(ncclotf2_coll, 4);
UNITS(ncclotf2_p2p, 3);
UNITS(ncclotf2_proxy_op, 3);
UNITS(ncclotf2_proxy_step, 2);
UNITS(ncclotf2_kernel_ch, 2);
UNITS(ncclotf2_net_plugin, 3);
UNITS(ncclotf2_ce_coll, 4);
UNITS(ncclotf2_ce_sync, 2);
UNITS(ncclotf2_ce_batch, 2);
UNITS(ncclotf2_kernel_phase, 2);
#undef UNITS

struct ncclotf2_fast ncclotf2_fast;
struct ncclotf2_session ncclotf2_session = {.memfd = -1};

static pid_t owner(void) { return __atomic_load_n(&ncclotf2_session.owner, __ATOMIC_RELAXED); }

bool ncclotf2_session_is_owner(void) { return ncclotf2_session.base && owner() == getpid(); }

bool ncclotf2_session_is_foreign(void) { return owner() && owner() != getpid(); }

uint32_t ncclotf2_class_chunks(const struct ncclotf2_header *header, enum ncclotf2_class class) {
  static const uint8_t sixteenths[NCCLOTF2_CLASSES] = {[NCCLOTF2_CLASS_CONTROL] = 10,
                                                       [NCCLOTF2_CLASS_STEP] = 12,
                                                       [NCCLOTF2_CLASS_CHANNEL] = 14,
                                                       [NCCLOTF2_CLASS_OPERATION] = 15,
                                                       [NCCLOTF2_CLASS_STOP] = 16};
  if (class == NCCLOTF2_CLASS_STOP) return header->chunk_count;
  if (class == NCCLOTF2_CLASS_OPERATION) return header->chunk_count - header->chunk_reserve;
  return (uint32_t)((uint64_t)header->chunk_count * sixteenths[class] / 16);
}

static uint64_t align(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

/* Where everything lies for a given number of chunks. Chunks are aligned to their size, so that the
 * hot path finds a chunk's head from the position in it. */
static struct ncclotf2_header layout(uint32_t chunks) {
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

/* A file of our own in /dev/shm: nobody else's, nowhere else, readable by its owner alone. It is locked as long as this
 * process or its collector has it open: who finds it afterwards can tell that by no other means where processes have
 * numbers of their own (containers). */
static int create_shm_file(const struct ncclotf2_header *who, char *path, size_t size) {
  snprintf(path, size, "/dev/shm/nccl-otf2-%u-%u-%04x-%llu", who->uid, who->pid, who->tag,
           (unsigned long long)who->pid_start);
  const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd >= 0) flock(fd, LOCK_SH | LOCK_NB);
  return fd;
}

/* In /dev/shm there must be room for all of it from the beginning: NCCL uses it, too, and a page that cannot
 * be had when it is touched kills the program. A signal makes the call give back all that it had; a profiler's timer
 * would never let it end. */
static bool reserve(int fd, uint64_t size) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int problem = posix_fallocate(fd, 0, (off_t)size);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (problem) errno = problem;
  return problem == 0;
}

static uint8_t *map(int fd, uint64_t size) {
  void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  return base == MAP_FAILED ? NULL : base;
}

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
    if (getrandom(&tag, sizeof tag, 0) != (ssize_t)sizeof tag) {
      /* Very old kernels and some sandboxes; good enough to tell processes of one host apart. */
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

/* The mark in a chunk's head says that this process has its pages in place: it goes with them when the
 * collector returns the pages of long unused chunks to the system. */
enum { MARK = 0x70616765 };

bool ncclotf2_chunk_map(uint32_t index) {
  struct ncclotf2_chunk *chunk = ncclotf2_chunk_at(ncclotf2_session.base, index);
  uint32_t *mark = &chunk->pad[0];
  if (__atomic_load_n(mark, __ATOMIC_RELAXED) == MARK) return true;
  if (madvise(chunk, NCCLOTF2_CHUNK_SIZE, MADV_POPULATE_WRITE) != 0) {
    /* Where the kernel knows the call, its failure is no memory: touching the pages would kill us. */
    if (errno != EINVAL) return false;
    for (unsigned i = 0; i < NCCLOTF2_CHUNK_SIZE; i += NCCLOTF2_PAGE) *((volatile uint8_t *)chunk + i) = 0;
  }
  __atomic_store_n(mark, MARK, __ATOMIC_RELAXED);
  return true;
}

/* Some slots get a chunk with its pages in place, so that the first threads find theirs ready; the others are filled
 * once there is a thread for it (prepare.c). */
static void prepare_spares(struct ncclotf2_header *header) {
  enum { FIRST = 8 };
  uint32_t *states = ncclotf2_chunk_states_at(ncclotf2_session.base);
  for (uint32_t i = 0; i < FIRST && i < header->chunk_count - header->chunk_reserve; i++) {
    if (!ncclotf2_chunk_map(i)) return;
    __atomic_store_n(&states[i], NCCLOTF2_CHUNK_SPARE, __ATOMIC_RELAXED);
    __atomic_store_n(&header->spare[i], i + 1, __ATOMIC_RELEASE);
  }
}

/* Makes the memory as large as can be had, down to the least that works. */
static uint8_t *make(int fd, uint64_t memory, bool in_shm, struct ncclotf2_header *wanted) {
  /* Chunk numbers, their successors and a mark must fit 32 bits. */
  if (memory / NCCLOTF2_CHUNK_SIZE > INT32_MAX - 2) memory = (uint64_t)(INT32_MAX - 2) * NCCLOTF2_CHUNK_SIZE;
  for (; memory >= NCCLOTF2_MEMORY_LEAST; memory /= 2) {
    *wanted = layout((uint32_t)(memory / NCCLOTF2_CHUNK_SIZE));
    uint8_t *base = NULL;
    if (set_size(fd, wanted->total_size) && (!in_shm || reserve(fd, wanted->total_size))) base = map(fd, wanted->total_size);
    if (base) return base;
    if (in_shm && ftruncate(fd, 0) != 0) break; /* what was reserved in vain */
  }
  return NULL;
}

bool ncclotf2_session_open(uint64_t memory, bool in_shm, uint32_t clock, uint32_t api_version, char *why,
                           size_t why_size) {
  struct ncclotf2_header who = {0}, wanted;
  identify(&who);
  uint8_t *base = NULL;
  int fd = -1;
  *why = '\0';
  if (in_shm) {
    fd = above_standard_streams(create_shm_file(&who, who.memory_path, sizeof who.memory_path));
    if (fd >= 0) base = make(fd, memory, true, &wanted);
    if (!base) {
      snprintf(why, why_size, "no memory in /dev/shm (%s); memory that ends with the processes is used", strerror(errno));
      if (fd >= 0) {
        unlink(who.memory_path);
        close(fd);
      }
      who.memory_path[0] = '\0';
    } else {
      who.memory_kind = NCCLOTF2_MEMORY_SHM;
    }
  }
  if (!base) {
    fd = above_standard_streams(memfd_create("nccl-otf2", MFD_CLOEXEC));
    if (fd < 0) {
      snprintf(why, why_size, "no shared memory (memfd_create: %s); nothing is recorded", strerror(errno));
      return false;
    }
    base = make(fd, memory, false, &wanted);
  }
  if (!base) {
    snprintf(why, why_size, "no shared memory, not even %llu MiB (%s; see ulimit -v, -f); nothing is recorded",
             (unsigned long long)(layout(NCCLOTF2_MEMORY_LEAST / NCCLOTF2_CHUNK_SIZE).total_size >> 20),
             strerror(errno));
    close(fd);
    return false;
  }

  struct ncclotf2_header *header = ncclotf2_header_at(base);
  /* The layout, and who we are: the two know nothing of each other's members. */
  *header = wanted;
  memcpy(header->hostname, who.hostname, sizeof who.hostname);
  memcpy(header->boot_id, who.boot_id, sizeof who.boot_id);
  memcpy(header->executable, who.executable, sizeof who.executable);
  memcpy(header->memory_path, who.memory_path, sizeof who.memory_path);
  header->memory_kind = who.memory_kind;
  header->uid = who.uid;
  header->pid = who.pid;
  header->pid_start = who.pid_start;
  header->tag = who.tag;
  header->clock_source = clock;
  header->clock_hz = ncclotf2_clock_hz(clock);
  header->api_version = api_version;
  header->window_last = UINT64_MAX;

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
  ncclotf2_fast.clock = clock;
  const struct ncclotf2_host_clock *host = clock == NCCLOTF2_CLOCK_HOST ? ncclotf2_clock_host() : NULL;
  if (host) ncclotf2_fast.host_now = host->now;
  header->created = ncclotf2_clock_tuple();
  prepare_spares(header);
  __atomic_store_n(&ncclotf2_fast.base, base, __ATOMIC_RELEASE);
  return true;
}

void ncclotf2_session_drop_file(void) {
  const char *path = ncclotf2_header_at(ncclotf2_session.base)->memory_path;
  if (*path) unlink(path);
}
