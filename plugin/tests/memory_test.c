/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the shared memory lies: how much of /dev/shm it takes, what is taken in its place, and no page that cannot be had is touched.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statfs.h>

#include "../chunk.h"
#include "../intern.h"
#include "../memory.h"
#include "../ring.h"
#include "host.h"
#include "sandbox.h"

enum { POPULATE_WRITE = 23 };

static void use_shm(void) {
  host_use_stub("ready", 0xf47);
  setenv("NCCL_OTF2_RING", "shm", 1);
}

static uint64_t blocks(void) {
  struct stat info;
  CHECK(fstat(ncclotf2_session.memfd, &info) == 0, "%s", strerror(errno));
  return (uint64_t)info.st_blocks * 512;
}

static uint64_t free_in_shm(void) {
  struct statfs info;
  CHECK(statfs("/dev/shm", &info) == 0, "%s", strerror(errno));
  return (uint64_t)info.f_bavail * (uint64_t)info.f_bsize;
}

static bool record(void *context) {
  void *handle = host_start(context, host_descr(NCCLOTF2_COLL));
  ncclProfiler_v6.stopEvent(handle);
  return handle != NULL;
}

/* As many processes as there are ranks on the node, all at once; how many have memory there. */
static unsigned processes(unsigned count, int nranks) {
  const uint64_t all = free_in_shm();
  int go[2], report[2], stay[2];
  CHECK(pipe(go) == 0 && pipe(report) == 0 && pipe(stay) == 0, "pipe: %s", strerror(errno));
  pid_t pids[16];
  fflush(NULL);
  for (unsigned i = 0; i < count; i++)
    if ((pids[i] = fork()) == 0) {
      char byte;
      close(go[1]), close(stay[1]);
      CHECK(read(go[0], &byte, 1) == 0, "go");
      void *context = host_init(1, nranks, (int)i);
      CHECK(record(context), "not recorded: %s", host_line);
      byte = host_header()->memory_kind == NCCLOTF2_MEMORY_SHM;
      CHECK(byte || host_logged("no memory in /dev/shm (recordings may take a quarter of"), "%s", host_line);
      CHECK(write(report[1], &byte, 1) == 1, "report");
      CHECK(read(stay[0], &byte, 1) == 0, "stay");
      ncclotf2_session_drop_file();
      _exit(0);
    }
  close(go[0]), close(go[1]), close(report[1]), close(stay[0]);
  unsigned in_shm = 0;
  char byte;
  for (unsigned i = 0; i < count; i++) {
    CHECK(read(report[0], &byte, 1) == 1, "a process has ended early");
    in_shm += byte != 0;
  }
  const uint64_t left = free_in_shm();
  close(stay[1]), close(report[0]);
  for (unsigned i = 0; i < count; i++) {
    int status = -1;
    CHECK(waitpid(pids[i], &status, 0) == pids[i] && status == 0, "a process ended with 0x%x", (unsigned)status);
  }
  for (int i = 0; i < 1000 && free_in_shm() < all; i++) usleep(10000); /* their collectors end a little later */
  CHECK(left >= all - all / 4, "%u processes have left %llu of %llu MiB in /dev/shm", count, (unsigned long long)left >> 20, (unsigned long long)all >> 20);
  return in_shm;
}

static void a_quarter(void) {
  sandbox_mounts();
  sandbox_shm(800);
  use_shm();
  EQUAL(processes(1, 1), 1, "processes in /dev/shm");
  EQUAL(processes(4, 4), 4, "processes in /dev/shm"); /* 50 MiB each */
  EQUAL(processes(12, 12), 0, "processes in /dev/shm"); /* 16 MiB are too little, and all have the same */
  EQUAL(processes(8, 1) > 0, 1, "processes in /dev/shm"); /* that know nothing of each other: who comes first */
}

/* What killed processes have left is not free, and no more. */
static void abandoned(void) {
  sandbox_mounts();
  sandbox_shm(800);
  use_shm();
  const int fd = open("/dev/shm/nccl-otf2-0-1-0001-1", O_RDWR | O_CREAT, 0600);
  CHECK(fd >= 0 && posix_fallocate(fd, 0, 190 << 20) == 0, "%s", strerror(errno));
  close(fd);
  EQUAL(processes(4, 4), 4, "processes in /dev/shm");
}

/* 64 MiB are what a container has. */
static void little_room(void) {
  sandbox_mounts();
  sandbox_shm(64);
  use_shm();
  EQUAL(processes(8, 8), 0, "processes in /dev/shm");
  host_init(1, 1, 0);
  EQUAL(host_header()->memory_kind, NCCLOTF2_MEMORY_MEMFD, "kind");
  EQUAL(host_header()->chunk_count, (256 << 20) / NCCLOTF2_CHUNK_SIZE, "chunks");
  CHECK(host_logged("--shm-size"), "%s", host_line);
}

static void not_in_memory(void) {
  sandbox_mounts();
  CHECK(mount(host_folder(), "/dev/shm", NULL, MS_BIND, NULL) == 0, "%s", strerror(errno));
  struct statfs info;
  CHECK(statfs("/dev/shm", &info) == 0, "%s", strerror(errno));
  use_shm();
  host_init(1, 1, 0);
  const bool in_memory = info.f_type == 0x01021994;
  EQUAL(host_header()->memory_kind, in_memory ? NCCLOTF2_MEMORY_SHM : NCCLOTF2_MEMORY_MEMFD, "kind");
  EQUAL(host_logged("no memory in /dev/shm (it is not in memory)"), !in_memory, "said");
  ncclotf2_session_drop_file();
}

/* ---- chunks at hand ---- */

static unsigned at_hand(void) {
  unsigned chunks = 0;
  for (unsigned i = 0; i < NCCLOTF2_SPARE_MAX; i++) chunks += __atomic_load_n(&host_header()->spare[i], __ATOMIC_RELAXED) != 0;
  return chunks;
}

/* In the place of the thread that prepares them, and of its clock. There is no other here: nothing can be recorded to a disk. */
static enum ncclotf2_use look_after(uint64_t *now, unsigned ms) {
  *now += ms * 1000000ull;
  return ncclotf2_chunks_prepare(*now);
}

/* A process that begins, or takes chunks, is ready for a burst; an idle one holds little, and what was used is still there for the next. */
static void ready_while_in_use(void) {
  enum { IDLE = 32, CHUNKS = 4096, IDLE_MS = 1000, SETTLED_MS = 5000 };
  setenv("NCCL_OTF2_COLLECTOR", "spool", 1);
  setenv("NCCL_OTF2_DIR", "/dev/null/nothing", 1);
  void *context = host_init(1, 2, 0);
  host_header()->record_mask = 0xffff;
  EQUAL(host_header()->chunk_count, CHUNKS, "chunks");
  const uint64_t others = blocks() - at_hand() * NCCLOTF2_CHUNK_SIZE;
  uint64_t now = 1000000000;
  EQUAL(look_after(&now, 0), NCCLOTF2_USE_LATELY, "use in the beginning");
  EQUAL(at_hand(), NCCLOTF2_SPARE_MAX, "chunks at hand in the beginning");
  EQUAL(blocks() - others, NCCLOTF2_SPARE_MAX * NCCLOTF2_CHUNK_SIZE, "bytes of chunks at hand");
  EQUAL(look_after(&now, IDLE_MS - 1), NCCLOTF2_USE_LATELY, "use within a second");
  EQUAL(look_after(&now, SETTLED_MS - IDLE_MS), NCCLOTF2_USE_IDLE, "use after a second");
  EQUAL(at_hand(), NCCLOTF2_SPARE_MAX, "chunks at hand until it has settled");
  look_after(&now, 1);
  EQUAL(at_hand(), IDLE, "chunks at hand of an idle process");
  CHECK(blocks() < 4u << 20, "%llu bytes are in use", (unsigned long long)blocks());

  while (at_hand() == IDLE) CHECK(record(context), "not recorded");
  EQUAL(look_after(&now, 64), NCCLOTF2_USE_NOW, "use where a chunk was taken");
  EQUAL(at_hand(), NCCLOTF2_SPARE_MAX, "chunks at hand where one was taken");
  struct rusage faults, after;
  getrusage(RUSAGE_THREAD, &faults);
  while (at_hand() > 1) CHECK(record(context), "not recorded");
  getrusage(RUSAGE_THREAD, &after);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* which have memory of their own behind each page */
  EQUAL(after.ru_minflt - faults.ru_minflt, 0, "page faults of a burst");
#endif
  EQUAL(host_header()->faulted_chunks, 0, "chunks that nobody had prepared");

  /* All that were used are given back, and most of them are at hand again. */
  struct reader *reader = calloc(1, sizeof *reader);
  while (reader_drain(reader, NULL, NULL)) {
  }
  free(reader);
  const uint64_t used = blocks();
  look_after(&now, 8);
  EQUAL(look_after(&now, SETTLED_MS), NCCLOTF2_USE_IDLE, "use some seconds after a burst");
  EQUAL(at_hand(), IDLE, "chunks at hand after a burst");
  CHECK(used - blocks() <= 2 * NCCLOTF2_CHUNK_SIZE, "%llu bytes that were used are gone", (unsigned long long)(used - blocks()));
}

/* ---- pages that cannot be had ---- */

/* No page of the memory is there that was not put in place: the tables' first, the head's, and the first chunks'. */
static void no_more_pages(void) {
  ncclotf2_chunks_by_hand = true; /* other threads may still have pages */
  sandbox_mounts();
  sandbox_file("/proc/sys/vm/overcommit_memory", host_folder(), "2\n");
  host_use_stub("ready", 0xf47);
  void *context = host_init(1, 2, 0);
  CHECK(record(context), "not recorded");
  sandbox_forbid(SYS_madvise, EFAULT, 2, POPULATE_WRITE);
  const struct ncclotf2_header *header = host_header();
  uint64_t recorded = 0, refused = 0;
  for (int i = 0; i < 100000; i++) *(record(context) ? &recorded : &refused) += 1;
  CHECK(recorded && refused, "%llu recorded, %llu refused", (unsigned long long)recorded, (unsigned long long)refused);
  EQUAL(header->lost[NCCLOTF2_LOSS_MEMORY][NCCLOTF2_COLL], refused, "lost for want of memory");
  const uint64_t had = blocks();

  char name[32];
  uint32_t id = 1;
  for (int i = 0; i < 20000 && id; i++) {
    snprintf(name, sizeof name, "name %d", i);
    id = ncclotf2_string_id(name);
  }
  EQUAL(id, 0, "id of a name for which there is no memory");
  CHECK(header->string_used < 100 << 10, "%llu bytes of names", (unsigned long long)header->string_used);
  int comms = 1;
  while (comms < 2000 && !host_logged("no memory for a communicator")) {
    int mask = 0;
    void *more = NULL;
    ncclProfiler_v6.init(&more, 2, &mask, NULL, 1, 2, 0, host_logger);
    comms++;
  }
  CHECK(host_logged("no memory for a communicator"), "%d communicators", comms);
  EQUAL(blocks(), had, "bytes of pages");
}

/* Not even the first: then there is nothing to record into, and nothing is touched. */
static void no_pages_at_all(void) {
  host_use_stub("ready", 0xf47);
  sandbox_forbid(SYS_madvise, EFAULT, 2, POPULATE_WRITE);
  host_mask = 0x55;
  void *context = host_init(1, 2, 0);
  EQUAL(host_mask, 0x55, "mask");
  CHECK(!record(context), "recorded");
  CHECK(host_logged("no shared memory, not even") && host_logged("Cannot allocate memory") && host_logged("nothing is recorded"), "%s", host_line);
}

/* Strict accounting and a kernel that does not know how to put pages in place: all are reserved at the beginning, */
static void strict(void) {
  sandbox_mounts();
  sandbox_file("/proc/sys/vm/overcommit_memory", host_folder(), "2\n");
  sandbox_forbid(SYS_madvise, EINVAL, 2, POPULATE_WRITE);
  host_use_stub("ready", 0xf47);
  setenv("NCCL_OTF2_MEMORY", "32M", 1);
  CHECK(record(host_init(1, 2, 0)), "not recorded: %s", host_line);
  CHECK(blocks() >= host_header()->total_size, "%llu bytes of %llu are reserved", (unsigned long long)blocks(), (unsigned long long)host_header()->total_size);
  EQUAL(host_header()->chunk_count, (32 << 20) / NCCLOTF2_CHUNK_SIZE, "chunks");
}

/* … or there is none. */
static void strict_without_memory(void) {
  sandbox_mounts();
  sandbox_file("/proc/sys/vm/overcommit_memory", host_folder(), "2\n");
  sandbox_forbid(SYS_madvise, EINVAL, 2, POPULATE_WRITE);
  sandbox_forbid(SYS_fallocate, ENOSPC, SANDBOX_ANY, 0);
  host_use_stub("ready", 0xf47);
  host_mask = 0x55;
  CHECK(!record(host_init(1, 2, 0)), "recorded");
  EQUAL(host_mask, 0x55, "mask");
  CHECK(host_logged("No space left") && host_logged("nothing is recorded"), "%s", host_line);
}

/* Without strict accounting pages are there when they are touched: little is used. */
static void an_older_kernel(void) {
  sandbox_forbid(SYS_madvise, EINVAL, 2, POPULATE_WRITE);
  host_use_stub("ready", 0xf47);
  CHECK(record(host_init(1, 2, 0)), "not recorded: %s", host_line);
  CHECK(blocks() < 10 << 20, "%llu bytes are in use", (unsigned long long)blocks());
}

TEST_MAIN({"all together take a quarter of /dev/shm", a_quarter}, {"what was abandoned in /dev/shm is no recording's", abandoned},
          {"a container's /dev/shm is left alone", little_room},
          {"a /dev/shm on a disk is left alone", not_in_memory},
          {"chunks are at hand for a burst while the process is in use, few when it idles", ready_while_in_use},
          {"pages that cannot be had are not touched", no_more_pages},
          {"without pages nothing is recorded", no_pages_at_all}, {"strict accounting without a call for pages: all are reserved", strict},
          {"strict accounting without memory: nothing is recorded", strict_without_memory},
          {"without a call for pages little is used", an_older_kernel})
