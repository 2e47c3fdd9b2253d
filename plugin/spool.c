/* SPDX-License-Identifier: Apache-2.0 */
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "chunk.h"
#include "clock.h"
#include "config.h"
#include "futex.h"
#include "log.h"
#include "session.h"

enum {
  PERIOD_MS = 10,
  HEADER_MS = 100, /* the header's counters are repeated no more often than this, */
  CLOCK_MS = 1000, /* and the clock even if nothing was recorded for so long */
  RETRY_MS = 100   /* after a failure */
};

/* How far a ring has been written, and how far it shall be this time. Chunks as index + 1. */
struct progress {
  uint32_t chunk, bytes;         /* next to write: this many bytes of this chunk are written */
  uint32_t end_chunk, end_bytes; /* what was committed when this flush began */
};

static struct {
  int fd;
  char path[PATH_MAX];
  dev_t device;
  ino_t inode;
  off_t size;         /* of whole frames */
  uint64_t strings;   /* bytes of the heap that are written */
  struct progress *rings;       /* [NCCLOTF2_RING_MAX] */
  uint64_t *comms;              /* [NCCLOTF2_COMM_MAX]: 1 + final_ticks as last written, 0 never */
  uint32_t comms_open;          /* communicators below this have been finalized and written so */
  uint64_t header_written, clock_written; /* CLOCK_MONOTONIC, ns; 0 never */
  uint64_t retry; /* not before that time, after a failure */
  bool ended;
  int problem;  /* errno of the latest flush, 0 if it wrote all that was there */
  off_t failed; /* the size for which the file says that it failed */
  bool ours;    /* whether the descriptor was ours in that flush */
} spool = {.fd = -1};

/* The descriptor under a high number, if there is one to be had. */
static int high(int fd) {
  enum { HIGH = 1000 };
  struct rlimit limit;
  rlim_t from = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur <= HIGH ? limit.rlim_cur / 2 : HIGH;
  const int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, (int)from);
  if (moved >= 0) close(fd);
  return moved >= 0 ? moved : fd;
}

/* Tells who converts the file that more may come. Where files cannot be locked they go by the process. */
static void hold(void) {
  while (flock(spool.fd, LOCK_EX | LOCK_NB) != 0 && errno == EINTR) {}
}

/* A program that closes all descriptors closes this one too, and the number may then be a file of
 * its own: nothing must ever be written there. The number is a high one, which a program that goes on opening files
 * does not come to soon. */
static bool reopen_if_lost(void) {
  struct stat info;
  if (fstat(spool.fd, &info) == 0 && info.st_dev == spool.device && info.st_ino == spool.inode) {
    errno = ENOENT;
    return info.st_nlink > 0; /* a removed file is unwanted, and must not fill the disk without a name */
  }
  int fd = (int)TEMP_FAILURE_RETRY(open(spool.path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (fd < 0) return false;
  if (fstat(fd, &info) != 0 || info.st_dev != spool.device || info.st_ino != spool.inode) {
    close(fd);
    errno = ESTALE;
    return false;
  }
  spool.fd = high(fd);
  hold();
  return true;
}

/* A frame is whole or not there: after a failure the next one begins where it began. */
static bool put_frame(uint32_t kind, uint64_t index, uint64_t position, const void *body, uint64_t length) {
  static const uint8_t zero[8];
  struct ncclotf2_frame frame = {
      .magic = NCCLOTF2_FRAME_MAGIC, .kind = kind, .index = index, .position = position, .length = length};
  struct iovec parts[3] = {{&frame, sizeof frame}, {(void *)(uintptr_t)body, length}, {(void *)(uintptr_t)zero, -length & 7}};
  const size_t total = sizeof frame + length + (-length & 7);
  size_t written = 0;
  struct iovec *part = parts;
  while (written < total) {
    ssize_t got = pwritev(spool.fd, part, (int)(parts + 3 - part), spool.size + (off_t)written);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      spool.problem = got < 0 ? errno : EIO;
      if (written && ftruncate(spool.fd, spool.size) != 0) {
        /* The half frame at the end stays; readers stop before it, and the next flush overwrites it. */
      }
      return false;
    }
    written += (size_t)got;
    for (size_t done = (size_t)got; part < parts + 3;) {
      size_t step = done < part->iov_len ? done : part->iov_len;
      part->iov_base = (uint8_t *)part->iov_base + step;
      part->iov_len -= step;
      done -= step;
      if (part->iov_len) break;
      part++;
    }
  }
  spool.size += (off_t)total;
  return true;
}

static void copy_header(uint8_t *base, struct ncclotf2_header *copy) {
  memcpy(copy, base, offsetof(struct ncclotf2_header, ring_used));
  /* From here on words change under us; each is right by itself. */
  const uint32_t *from = (const uint32_t *)(const void *)(base + offsetof(struct ncclotf2_header, ring_used));
  uint32_t *to = (uint32_t *)(void *)((uint8_t *)copy + offsetof(struct ncclotf2_header, ring_used));
  const size_t words = (sizeof *copy - offsetof(struct ncclotf2_header, ring_used)) / sizeof *to;
  for (size_t i = 0; i < words; i += 2) {
    uint64_t pair = __atomic_load_n((const uint64_t *)(const void *)(from + i), __ATOMIC_RELAXED);
    memcpy(to + i, &pair, sizeof pair);
  }
}

static bool put_header(uint8_t *base) {
  struct ncclotf2_header copy;
  copy_header(base, &copy);
  return put_frame(NCCLOTF2_FRAME_HEADER, 0, 0, &copy, sizeof copy);
}

/* Only complete strings, in the heap's order: nothing is known of what follows a string that is being written. */
static bool put_strings(uint8_t *base) {
  uint64_t used = __atomic_load_n(&ncclotf2_header_at(base)->string_used, __ATOMIC_ACQUIRE);
  uint64_t end = spool.strings;
  while (end < used) {
    uint32_t length = __atomic_load_n(&ncclotf2_string_at(base, end)->length, __ATOMIC_ACQUIRE);
    if (!length) break;
    end += (offsetof(struct ncclotf2_string, bytes) + (uint64_t)length + 7) & ~7ULL;
  }
  if (end == spool.strings) return true;
  if (!put_frame(NCCLOTF2_FRAME_STRINGS, spool.strings, 0, ncclotf2_string_at(base, spool.strings), end - spool.strings))
    return false;
  spool.strings = end;
  return true;
}

static bool put_comms(uint8_t *base) {
  uint32_t used = __atomic_load_n(&ncclotf2_header_at(base)->comm_used, __ATOMIC_ACQUIRE);
  bool all_final = true;
  for (uint32_t i = spool.comms_open; i < used; i++) {
    struct ncclotf2_comm *comm = ncclotf2_comm_at(base, i);
    if (__atomic_load_n(&comm->ready, __ATOMIC_ACQUIRE) != 1) {
      all_final = false;
      continue;
    }
    uint64_t final = __atomic_load_n(&comm->final_ticks, __ATOMIC_ACQUIRE);
    if (spool.comms[i] != final + 1) {
      /* The counters go on changing and are of no use in a file. */
      struct ncclotf2_comm copy = {0};
      memcpy(&copy, comm, offsetof(struct ncclotf2_comm, final_ticks));
      copy.final_ticks = final;
      const size_t rest = offsetof(struct ncclotf2_comm, init_tid), end = offsetof(struct ncclotf2_comm, collectives);
      memcpy((uint8_t *)&copy + rest, (const uint8_t *)comm + rest, end - rest);
      if (!put_frame(NCCLOTF2_FRAME_COMM, i, 0, &copy, sizeof copy)) return false;
      spool.comms[i] = final + 1;
    }
    all_final = all_final && final;
    if (all_final) spool.comms_open = i + 1;
  }
  return true;
}

/* Sets how far each ring goes this time, and says whether that is further than before. Later records
 * may name strings and communicators that are not in the file yet; earlier ones cannot. */
static bool mark_ends(uint8_t *base, uint32_t used) {
  bool news = false;
  for (uint32_t i = 0; i < used; i++) {
    struct progress *ring = &spool.rings[i];
    if (!ring->chunk) {
      ring->chunk = __atomic_load_n(&ncclotf2_ring_at(base, i)->first, __ATOMIC_ACQUIRE);
      if (!ring->chunk) continue;
    }
    ring->end_chunk = ring->chunk;
    for (;;) {
      struct ncclotf2_chunk *chunk = ncclotf2_chunk_at(base, ring->end_chunk - 1);
      uint32_t next = __atomic_load_n(&chunk->next, __ATOMIC_ACQUIRE);
      ring->end_bytes = __atomic_load_n(&chunk->committed, __ATOMIC_ACQUIRE);
      if (!next) break;
      ring->end_chunk = next;
    }
    news = news || ring->end_chunk != ring->chunk || ring->end_bytes != ring->bytes;
  }
  return news;
}

static bool put_ring(uint8_t *base, uint32_t index) {
  struct progress *ring = &spool.rings[index];
  if (!ring->chunk) return true;
  for (;;) {
    struct ncclotf2_chunk *chunk = ncclotf2_chunk_at(base, ring->chunk - 1);
    bool last = ring->chunk == ring->end_chunk;
    uint32_t end = last ? ring->end_bytes : __atomic_load_n(&chunk->committed, __ATOMIC_ACQUIRE);
    if (end > ring->bytes) {
      uint32_t length = end - ring->bytes;
      if (!put_frame(NCCLOTF2_FRAME_RING, index, chunk->sequence << 32 | ring->bytes,
               (const uint8_t *)chunk + NCCLOTF2_CHUNK_HEAD + ring->bytes, length))
        return false;
      ring->bytes = end;
    }
    if (last) return true;
    uint32_t next = __atomic_load_n(&chunk->next, __ATOMIC_ACQUIRE);
    __atomic_store_n(&ncclotf2_ring_at(base, index)->first, next, __ATOMIC_RELEASE);
    ncclotf2_chunk_free(ring->chunk - 1);
    ring->chunk = next;
    ring->bytes = 0;
  }
}

/* Adds what a ring has that is not in the file to the losses of a header; returns the number of events. */
static uint64_t count_unwritten(uint8_t *base, uint32_t index, struct ncclotf2_header *into) {
  const struct progress *ring = &spool.rings[index];
  uint32_t at = ring->chunk ? ring->chunk : __atomic_load_n(&ncclotf2_ring_at(base, index)->first, __ATOMIC_ACQUIRE);
  uint32_t from = ring->chunk ? ring->bytes : 0;
  uint64_t events = 0;
  while (at) {
    struct ncclotf2_chunk *chunk = ncclotf2_chunk_at(base, at - 1);
    at = __atomic_load_n(&chunk->next, __ATOMIC_ACQUIRE);
    const uint32_t end = __atomic_load_n(&chunk->committed, __ATOMIC_ACQUIRE);
    while (from < end) {
      const struct ncclotf2_record *record = (const void *)((const uint8_t *)chunk + NCCLOTF2_CHUNK_HEAD + from);
      if (record->kind == NCCLOTF2_RECORD_START && record->type < NCCLOTF2_TYPES) {
        into->lost[NCCLOTF2_LOSS_DISK][record->type]++;
        events++;
      }
      into->lost_marks += record->kind == NCCLOTF2_RECORD_MARK;
      into->cupti_lost += record->kind == NCCLOTF2_RECORD_CUPTI;
      if (!record->units) break;
      from += record->units * NCCLOTF2_UNIT;
    }
    from = 0;
  }
  return events;
}

/* Says at the file's beginning that what is in memory could not be written, and how much that is. It takes no room that the file does not
 * have. Returns the number of events; it grows with those that are yet to come. */
static uint64_t state_failure(uint8_t *base) {
  struct ncclotf2_header copy;
  copy_header(base, &copy);
  uint64_t events = 0;
  for (uint32_t i = 0; i < copy.ring_used; i++) events += count_unwritten(base, i, &copy);
  struct ncclotf2_frame frame = {.magic = NCCLOTF2_FRAME_MAGIC,
                                 .kind = NCCLOTF2_FRAME_FAILED,
                                 .index = (uint64_t)spool.problem,
                                 .position = (uint64_t)spool.size,
                                 .length = sizeof copy};
  const struct iovec parts[] = {{&frame, sizeof frame}, {&copy, sizeof copy}};
  if (!spool.ours || !spool.header_written || TEMP_FAILURE_RETRY(pwritev(spool.fd, parts, 2, 0)) < 0) return events; /* the missing END says it alone */
  spool.failed = spool.size;
  return events;
}

/* Each is said once: that records wait, and that the program has asked for them in vain. */
static void log_failure(const struct ncclotf2_header *header, bool asked, uint64_t events) {
  static bool said_waiting, said_lost;
  const char *why = strerror(spool.problem);
  if (asked && !said_lost) {
    said_lost = true;
    ncclotf2_log(NCCLOTF2_LOG_WARN, *header->memory_path ? "%llu events could not be written to the raw file (%s) and stay in memory: make room in %s, then run `nccl-otf2 unify` on this machine"
                                                         : "%llu events could not be written to the raw file (%s); they are lost when this process ends, unless there is room in %s before that",
                 (unsigned long long)events, why, header->place);
  } else if (!said_waiting && !said_lost) {
    ncclotf2_log(NCCLOTF2_LOG_WARN, "the raw file cannot be written (%s); records wait in memory, and are lost if it cannot be when this process ends: make room in %s",
                 why, header->place);
  }
  said_waiting = true;
}

/* A round: the header now and then, the clock, then what was recorded by that time. */
static bool flush(uint8_t *base, bool asked) {
  spool.problem = 0;
  spool.ours = reopen_if_lost();
  if (!spool.ours) {
    spool.problem = errno;
    return false;
  }
  const bool ended = __atomic_load_n(&ncclotf2_header_at(base)->ended, __ATOMIC_ACQUIRE);
  const struct ncclotf2_clock_tuple now = ncclotf2_clock_tuple();
  const uint64_t time = ncclotf2_clock_monotonic();
  const uint32_t rings = __atomic_load_n(&ncclotf2_header_at(base)->ring_used, __ATOMIC_ACQUIRE);
  const bool news = mark_ends(base, rings);
  if (!asked && !news && spool.clock_written && time - spool.clock_written < CLOCK_MS * 1000000ULL) return true;
  if (asked || !spool.header_written || time - spool.header_written >= HEADER_MS * 1000000ULL) {
    if (!put_header(base)) return false;
    spool.header_written = time;
  }
  if (!put_frame(NCCLOTF2_FRAME_CLOCK, 0, 0, &now, sizeof now)) return false;
  spool.clock_written = time;
  if (!put_strings(base) || !put_comms(base)) return false;
  for (uint32_t i = 0; i < rings; i++)
    if (!put_ring(base, i)) return false;
  if (ended) {
    if (!put_frame(NCCLOTF2_FRAME_END, 0, 0, NULL, 0)) return false;
    spool.ended = true;
    ncclotf2_session_drop_file();
  }
  return true;
}

/* A file at the size limit raises a signal at each write, which would kill the program. */
static void flush_quietly(uint8_t *base, bool asked) {
  if (spool.ended || (!asked && spool.problem && ncclotf2_clock_monotonic() < spool.retry)) return;
  if (flush(base, asked)) return;
  spool.retry = ncclotf2_clock_monotonic() + RETRY_MS * 1000000ULL;
  uint64_t events = 0;
  if (asked || spool.failed != spool.size) events = state_failure(base); /* seldom otherwise: what is in memory may be much */
  log_failure(ncclotf2_header_at(base), asked, events);
}

void ncclotf2_spool_flush(void) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  flush_quietly(ncclotf2_session.base, true);
  struct timespec at_once = {0, 0};
  sigset_t size_limit;
  sigemptyset(&size_limit);
  sigaddset(&size_limit, SIGXFSZ);
  if (spool.problem == EFBIG) sigtimedwait(&size_limit, NULL, &at_once);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void ncclotf2_spool_round(void) {
  struct ncclotf2_header *header = ncclotf2_header_at(ncclotf2_session.base);
  const uint32_t request = __atomic_load_n(&header->request, __ATOMIC_ACQUIRE);
  const bool asked = request != __atomic_load_n(&header->answered, __ATOMIC_RELAXED);
  flush_quietly(ncclotf2_session.base, asked);
  if (asked) {
    __atomic_store_n(&header->answered, request, __ATOMIC_RELEASE);
    ncclotf2_futex_wake(&header->answered);
  }
  ncclotf2_futex_wait(&header->request, request, PERIOD_MS);
}

/* File systems of other machines and of other programs (Lustre, FUSE) may end these calls for a profiler's timer. Below
 * a directory that others may write to (/tmp, a shared scratch), a link that somebody put where our
 * directories are to be must not lead us elsewhere. The experiment directory itself may be the user's
 * own link. */
static int open_directory(int parent, const char *name, mode_t mode, int flags) {
  if (TEMP_FAILURE_RETRY(mkdirat(parent, name, mode)) != 0 && errno != EEXIST) return -1;
  return (int)TEMP_FAILURE_RETRY(openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags));
}

/* Whether others can rename and remove files in a directory; in a sticky one, as /tmp is, they cannot. */
static bool others_own(int directory) {
  struct stat info;
  if (fstat(directory, &info) != 0) return true;
  if (info.st_uid != geteuid() && info.st_uid != 0) return true;
  return (info.st_mode & (S_IWGRP | S_IWOTH)) && !(info.st_mode & S_ISVTX);
}

/* The spool file; -1 with the reason if it cannot be made. */
static int create_file(const char *folder, const char *name, const char **reason) {
  int file = -1, experiment = open_directory(AT_FDCWD, folder, 0755, 0);
  int shards = experiment < 0 ? -1 : open_directory(experiment, "shards", 0700, O_NOFOLLOW);
  int problem = errno;
  if (experiment >= 0) close(experiment); /* descriptors can be few */
  const bool foreign = shards >= 0 && others_own(shards);
  if (shards >= 0 && !foreign) {
    file = (int)TEMP_FAILURE_RETRY(openat(shards, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    problem = errno;
  }
  *reason = foreign ? "the folder belongs to another user or can be written by others"
            : problem == EMFILE ? "too many open files: raise ulimit -n"
                                : strerror(problem);
  if (shards >= 0) close(shards);
  return high(file);
}

bool ncclotf2_spool_open(char *why, size_t why_size) {
  uint8_t *base = ncclotf2_session.base;
  const struct ncclotf2_header *header = ncclotf2_header_at(base);
  char folder[PATH_MAX], host[sizeof header->hostname], name[sizeof host + 64];
  if (!ncclotf2_config_directory(ncclotf2_comm_at(base, 0)->comm_id, folder, sizeof folder)) {
    snprintf(why, why_size, "the experiment directory's name is too long");
    return false;
  }
  memcpy(host, header->hostname, sizeof host);
  ncclotf2_config_file_name(host);
  snprintf(name, sizeof name, "%s-%u-%04x.spool", host, header->pid, header->tag);
  int length = snprintf(spool.path, sizeof spool.path, "%s/shards/%s", folder, name);
  if (length < 0 || (size_t)length >= sizeof spool.path) {
    snprintf(why, why_size, "the experiment directory's name is too long");
    return false;
  }
  const char *reason;
  spool.fd = create_file(folder, name, &reason);
  struct stat info;
  if (spool.fd < 0 || fstat(spool.fd, &info) != 0) {
    snprintf(why, why_size, "%s cannot be made (%s)", spool.path, spool.fd < 0 ? reason : strerror(errno));
    return false;
  }
  spool.device = info.st_dev;
  spool.inode = info.st_ino;
  /* Room for the first header, see state_failure; what comes of it shows when that is written. */
  (void)!fallocate(spool.fd, FALLOC_FL_KEEP_SIZE, 0, sizeof(struct ncclotf2_frame) + sizeof *header);
  hold();
  /* The program may change its working directory; the file must be found again all the same. */
  char absolute[PATH_MAX];
  if (realpath(spool.path, absolute)) memcpy(spool.path, absolute, sizeof absolute);
  snprintf(ncclotf2_header_at(base)->place, sizeof header->place, "%s", spool.path);
  const size_t rings = sizeof *spool.rings * NCCLOTF2_RING_MAX, comms = sizeof *spool.comms * NCCLOTF2_COMM_MAX;
  void *tables = mmap(NULL, rings + comms, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (tables == MAP_FAILED) {
    snprintf(why, why_size, "no memory for the spool's tables (%s)", strerror(errno));
    close(spool.fd);
    spool.fd = -1;
    return false;
  }
  spool.rings = tables;
  spool.comms = (uint64_t *)(void *)((uint8_t *)tables + rings);
  return true;
}
