/* SPDX-License-Identifier: Apache-2.0
 *
 * Sandboxes in which system calls fail. Whichever it is, with an error of a filter or of a kernel that does not have it: the program
 * does not notice, and either everything is recorded, or what is not is said, with the reason.
 */
#include <dirent.h>
#include <glob.h>
#include <limits.h>
#include <sys/mman.h>

#include "host.h"
#include "sandbox.h"

enum { EVENTS = 1000 };

static char directory[PATH_MAX];

/* Where the records are kept: by a collector, by the spool's thread, and by a collector with memory in /dev/shm. */
enum way { COLLECTOR = 1, SPOOL = 2, SHM = 4, ALL = 7 };

static void use(enum way way) {
  snprintf(directory, sizeof directory, "%s/%d", host_folder(), (int)getpid());
  setenv("NCCL_OTF2_DIR", directory, 1);
  host_use_stub("ready", 0xf47);
  if (way == SPOOL) setenv("NCCL_OTF2_COLLECTOR", "spool", 1);
  if (way == SHM) setenv("NCCL_OTF2_RING", "shm", 1);
}

/* A life: whether everything was recorded. Half of it is not. */
static bool live(void) {
  host_mask = 0x99;
  void *context = host_init(1, 2, 0);
  unsigned recorded = 0;
  for (int i = 0; i < EVENTS; i++) {
    void *handle = host_start(context, host_descr(NCCLOTF2_COLL));
    recorded += handle != NULL;
    ncclProfiler_v6.stopEvent(handle);
  }
  ncclProfiler_v6.finalize(context);
  CHECK(recorded == 0 || recorded == EVENTS, "%u of %d events were recorded", recorded, EVENTS);
  CHECK((host_mask == 0x99) == (recorded == 0), "mask 0x%x, and %u events were recorded", (unsigned)host_mask, recorded);
  return recorded != 0;
}

/* ---- calls, and what comes of it when they fail ---- */

enum outcome {
  AS_EVER,
  NAMELESS, /* memory in /dev/shm without a name */
  IN_MEMFD, /* that, though /dev/shm was asked for */
  SPOOLED,  /* by the spool in place of the collector */
  UNWRITTEN, /* recorded, and not written: that is said */
  NOTHING   /* is recorded */
};

static const struct forbidden {
  const char *name;
  long call;
  unsigned ways; /* for which the outcome is this one; for the others it is AS_EVER, and nothing is said */
  enum outcome outcome;
  const char *said;
} table[] = {
    {"madvise", SYS_madvise, 0, AS_EVER, NULL},
    {"memfd_create", SYS_memfd_create, COLLECTOR | SPOOL, NAMELESS, "memfd_create is not allowed here ("},
    {"flock", SYS_flock, SHM, IN_MEMFD, "no memory in /dev/shm (flock: "},
    {"fallocate", SYS_fallocate, SHM, IN_MEMFD, "no memory in /dev/shm ("},
    {"statfs", SYS_statfs, SHM, IN_MEMFD, "no memory in /dev/shm (statfs: "},
    {"ftruncate", SYS_ftruncate, ALL, SPOOLED, "no memory that a collector could share (ftruncate: "},
    {"execve", SYS_execve, COLLECTOR | SHM, SPOOLED, "could not be started ("},
    {"pwritev", SYS_pwritev, SPOOL, UNWRITTEN, "events could not be written to the raw file ("},
    {"mkdirat", SYS_mkdirat, SPOOL, NOTHING, "cannot be made ("},
    {"pidfd_open", 434, 0, AS_EVER, NULL},
    {"close_range", 436, 0, AS_EVER, NULL},
    {"clone3", 435, 0, AS_EVER, NULL},
    {"setsid", SYS_setsid, 0, AS_EVER, NULL},
    {"setpriority", SYS_setpriority, 0, AS_EVER, NULL},
    {"getpriority", SYS_getpriority, 0, AS_EVER, NULL},
    {"getrandom", SYS_getrandom, 0, AS_EVER, NULL},
    {"prctl", SYS_prctl, 0, AS_EVER, NULL},
    {"uname", SYS_uname, 0, AS_EVER, NULL},
    {"prlimit64", SYS_prlimit64, 0, AS_EVER, NULL},
    {"sched_getaffinity", SYS_sched_getaffinity, 0, AS_EVER, NULL},
    {"sched_yield", SYS_sched_yield, 0, AS_EVER, NULL},
    {"kill", SYS_kill, 0, AS_EVER, NULL},
    {"wait4", SYS_wait4, 0, AS_EVER, NULL},
    {"rt_sigtimedwait", SYS_rt_sigtimedwait, 0, AS_EVER, NULL},
    {"getdents64", SYS_getdents64, 0, AS_EVER, NULL},
    {"unlinkat", SYS_unlinkat, 0, AS_EVER, NULL},
    {"clock_nanosleep", SYS_clock_nanosleep, 0, AS_EVER, NULL},
#if defined(__x86_64__)
    {"poll", SYS_poll, 0, AS_EVER, NULL},
    {"readlink", SYS_readlink, 0, AS_EVER, NULL},
    {"unlink", SYS_unlink, 0, AS_EVER, NULL},
    {"access", SYS_access, COLLECTOR | SHM, SPOOLED, "cannot be executed; raw files are written instead"},
#endif
};

static void check(const struct forbidden *f, enum way way, int error) {
  use(way);
  sandbox_forbid(f->call, error, SANDBOX_ANY, 0);
  const enum outcome outcome = f->ways & way ? f->outcome : AS_EVER;
  const bool recorded = live(), own = way != SPOOL && outcome != SPOOLED; /* the stub has one line */
  CHECK(recorded == (outcome != NOTHING), "something was recorded: %d", recorded);
  if (outcome == AS_EVER)
    EQUAL(host_lines, own ? 1 : 0, "warnings");
  else
    CHECK(host_logged(f->said), "%s", host_line);
  if (!recorded) return;
  const struct ncclotf2_header *header = host_header();
  EQUAL(header->memory_kind, (way == SHM && outcome != IN_MEMFD && f->call != SYS_ftruncate) || outcome == NAMELESS ? NCCLOTF2_MEMORY_SHM : NCCLOTF2_MEMORY_MEMFD, "kind");
  EQUAL(header->memory_path[0] != '\0', header->memory_kind == NCCLOTF2_MEMORY_SHM && outcome != NAMELESS, "path");
  EQUAL(header->collector_state, own ? NCCLOTF2_COLLECTOR_READY : NCCLOTF2_COLLECTOR_SPOOL, "collector");
  if (outcome == UNWRITTEN) return;
  EQUAL(header->answered, header->request, "answers");
  if (!own) CHECK(host_spooled() > EVENTS * (128 + 32), "the spool file has %llu bytes", (unsigned long long)host_spooled());
}

/* It may not have been allowed to do it itself. */
static void remove_memory(pid_t pid) {
  char pattern[64];
  snprintf(pattern, sizeof pattern, "/dev/shm/nccl-otf2-%d-%d-*", (int)geteuid(), (int)pid);
  glob_t found;
  if (glob(pattern, 0, NULL, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; i++) unlink(found.gl_pathv[i]);
    globfree(&found);
  }
}

static void every_call(enum way way) {
  static const int errors[] = {EPERM, ENOSYS, EACCES};
  unsigned failed = 0;
  host_folder(); /* the children's, too */
  for (unsigned i = 0; i < sizeof table / sizeof *table; i++)
    for (unsigned k = 0; k < sizeof errors / sizeof *errors; k++) {
      fflush(NULL);
      const pid_t pid = fork();
      if (pid == 0) {
        alarm(TEST_SECONDS);
        check(&table[i], way, errors[k]);
        exit(0);
      }
      int status = -1;
      CHECK(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
      remove_memory(pid);
      if (status != 0) fprintf(stderr, "without %s (%s) it ended with 0x%x\n", table[i].name, strerror(errors[k]), (unsigned)status);
      failed += status != 0;
    }
  EQUAL(failed, 0, "sandboxes in which it went wrong");
}

static void with_collector(void) { every_call(COLLECTOR); }
static void with_spool(void) { every_call(SPOOL); }
static void in_shm(void) { every_call(SHM); }

/* Neither a memfd nor /dev/shm: the spool's thread needs neither. */
static void nothing_to_share(void) {
  use(COLLECTOR);
  sandbox_forbid(SYS_memfd_create, ENOSYS, SANDBOX_ANY, 0);
  sandbox_forbid(SYS_fallocate, EPERM, SANDBOX_ANY, 0);
  CHECK(live(), "not recorded: %s", host_line);
  CHECK(host_logged("no memory that a collector could share (memfd_create: Function not implemented; /dev/shm: Operation not permitted)"), "%s", host_line);
  CHECK(host_logged("the collector cannot share the memory; raw files are written instead"), "%s", host_line);
  EQUAL(host_lines, 2, "warnings");
  CHECK(host_spooled() > EVENTS * (128 + 32), "the spool file has %llu bytes", (unsigned long long)host_spooled());
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* whose own calls would fail as well */
int main(void) {
  (void)with_collector, (void)with_spool, (void)in_shm, (void)nothing_to_share;
  printf("ok   sandbox_test: (the sanitizers make calls that are forbidden here; the build without them runs it)\n");
  return 0;
}
#else
TEST_MAIN({"each system call forbidden, with a collector", with_collector}, {"each system call forbidden, with the spool", with_spool},
          {"each system call forbidden, with memory in /dev/shm", in_shm}, {"no memory can be shared", nothing_to_share})
#endif
