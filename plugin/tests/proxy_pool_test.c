/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL up to 2.30 is asked for stamps of kernels only where it can make what it needs for them in /dev/shm.
 */
#include <fcntl.h>
#include <sys/resource.h>

#include "host.h"
#include "sandbox.h"

enum { REST = 0xf07, CHANNELS = 1 << NCCLOTF2_KERNEL_CH, ALL = REST | CHANNELS };

/* NCCL's own default, with which communicators do not make their pools when they are made. */
static void use(void) {
  host_use_stub("ready", ALL);
  unsetenv("NCCL_RUNTIME_CONNECT");
}

static int asked_of_v6(uint64_t id, int nodes, int ranks, void **context) {
  int mask = 0;
  ncclProfiler_v6.init(context, id, &mask, NULL, nodes, ranks, 0, host_logger);
  return mask;
}

/* What NCCL is asked for with so much room; said is said if it is less than all. */
static void first(unsigned mebibytes, int nodes, int ranks, int want) {
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    sandbox_mounts();
    sandbox_shm(mebibytes);
    void *context = NULL;
    EQUAL(asked_of_v6(1, nodes, ranks, &context), want, "mask");
    EQUAL(host_header()->withheld & CHANNELS, want == ALL ? 0 : CHANNELS, "withheld");
    EQUAL(host_header()->withheld_why, want == ALL ? NCCLOTF2_WITHHELD_NOTHING : NCCLOTF2_WITHHELD_ROOM, "reason");
    EQUAL(host_lines, 1 + (want != ALL), "lines, one of them the stub's");
    EQUAL(host_logged("MiB free and should have"), want != ALL, "said");
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0, "%d ranks on %d nodes, %u MiB", ranks, nodes, mebibytes);
}

static void by_room(void) {
  use();
  first(32, 1, 2, REST);
  first(143, 1, 2, REST);
  first(145, 1, 2, ALL);
  first(64, 1, 8, REST);
  first(570, 1, 8, REST);
  first(580, 1, 8, ALL);
  first(145, 4, 8, ALL);
  first(145, 4, 9, REST); /* three on one of them */
  first(1, 1, 1, ALL);    /* nothing is enqueued */
}

/* Of v3, nobody knows how many ranks there are. Others do not use a proxy for stamps. */
static void by_version(void) {
  use();
  sandbox_mounts();
  sandbox_shm(570);
  int mask = 0;
  void *context = NULL;
  fflush(NULL);
  if (fork() == 0) {
    EQUAL(ncclProfiler_v7.init(&context, 1, &mask, NULL, 1, 64, 0, host_logger), 0, "init");
    EQUAL(mask & CHANNELS, CHANNELS, "of v7");
    _exit(0);
  }
  int status;
  CHECK(wait(&status) > 0 && status == 0, "v7");
  EQUAL(ncclProfiler_v3.init(&context, &mask), 0, "init");
  EQUAL(mask & CHANNELS, 0, "of v3");
}

/* Asked to, communicators make their pools when they are made, or fail then. */
static void made_at_init(void) {
  use();
  setenv("NCCL_RUNTIME_CONNECT", "0", 1);
  first(4, 1, 64, ALL);
}

/* Each communicator needs as much again; ranks of one communicator in one process are counted once. */
static void later_communicators(void) {
  use();
  sandbox_mounts();
  sandbox_shm(300);
  void *contexts[4] = {NULL};
  host_mask = 0;
  for (int rank = 0; rank < 2; rank++) {
    ncclProfiler_v6.init(&contexts[rank], 1, &host_mask, NULL, 1, 2, rank, host_logger);
    EQUAL(host_mask, ALL, "mask");
  }
  ncclProfiler_v6.init(&contexts[2], 2, &host_mask, NULL, 1, 2, 0, host_logger);
  EQUAL(host_mask, ALL, "mask");
  ncclProfiler_v6.finalize(contexts[2]); /* its pools are free again */
  ncclProfiler_v6.init(&contexts[2], 3, &host_mask, NULL, 1, 2, 0, host_logger);
  EQUAL(host_mask, ALL, "mask");
  EQUAL(host_lines, 1, "lines");
  ncclProfiler_v6.init(&contexts[3], 4, &host_mask, NULL, 1, 2, 0, host_logger);
  EQUAL(host_mask, REST, "mask");
  EQUAL(host_lines, 2, "lines");
  EQUAL(host_header()->withheld_why, NCCLOTF2_WITHHELD_ROOM, "reason");
  ncclProfiler_v6.init(&contexts[3], 5, &host_mask, NULL, 1, 2, 0, host_logger);
  EQUAL(host_mask, REST, "mask");
  EQUAL(host_lines, 2, "lines");
}

/* What else keeps NCCL from making a pool. */
static void read_only(void) {
  sandbox_mounts();
  sandbox_shm(1000);
  CHECK(mount(NULL, "/dev/shm", NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0, "%s", strerror(errno));
}
static void no_folder(void) {
  sandbox_mounts();
  CHECK(mount("tmpfs", "/dev", "tmpfs", 0, "size=1m") == 0, "%s", strerror(errno));
}
static void few_inodes(void) {
  sandbox_mounts();
  CHECK(mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=1000m,nr_inodes=3") == 0, "%s", strerror(errno));
}
static void no_fallocate(void) { sandbox_forbid(SYS_fallocate, EOPNOTSUPP, SANDBOX_ANY, 0); }
static void no_inode(void) {
  sandbox_mounts();
  CHECK(mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=1000m,nr_inodes=1") == 0, "%s", strerror(errno));
}
static void set_limit(__rlimit_resource_t resource, rlim_t value) {
  CHECK(setrlimit(resource, &(struct rlimit){value, value}) == 0, "setrlimit: %s", strerror(errno));
}
static void few_descriptors(void) { set_limit(RLIMIT_NOFILE, 100); }
static void small_files(void) {
  setenv("NCCL_OTF2_MEMORY", "4M", 1);
  set_limit(RLIMIT_FSIZE, 33 << 20);
}

static void by_obstacle(void) {
  static const struct {
    void (*make)(void);
    const char *said;
  } obstacles[] = {
      {read_only, "no file can be made in /dev/shm (Read-only file system)"},
      {no_folder, "no file can be made in /dev/shm (No such file or directory)"},
      {few_inodes, "files in /dev/shm (nr_inodes)"},
      {no_inode, "files in /dev/shm (nr_inodes)"},
      {no_fallocate, "no file can be made in /dev/shm (Operation not supported)"},
      {few_descriptors, "open files (ulimit -n)"},
      {small_files, "the size of files (ulimit -f)"},
  };
  use();
  for (unsigned i = 0; i < sizeof obstacles / sizeof *obstacles; i++) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
      obstacles[i].make();
      void *context = NULL;
      EQUAL(asked_of_v6(1, 1, 2, &context), REST, "mask");
      CHECK(host_logged(obstacles[i].said), "%s", host_line);
      _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "%s", obstacles[i].said);
  }
}

TEST_MAIN({"stamps are asked for where all ranks' pools have room, and as much again", by_room},
          {"how many ranks there are is not always known; from 2.31 on there are no pools", by_version},
          {"pools that are made with the communicator crash nothing later", made_at_init},
          {"communicators that come later need room, too", later_communicators},
          {"whatever else keeps NCCL from making a pool", by_obstacle})
