/* SPDX-License-Identifier: Apache-2.0
 *
 * Under whatever limits the host runs: it never comes to harm, and what cannot be had is said in a line.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "host.h"
#include "test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static char directory[PATH_MAX];

static void use(const char *behavior) {
  snprintf(directory, sizeof directory, "%s/experiment", host_folder());
  setenv("NCCL_OTF2_DIR", directory, 1);
  if (behavior)
    host_use_stub(behavior, 0xf47);
  else
    setenv("NCCL_OTF2_COLLECTOR", "spool", 1);
}

static int spool_files(void) {
  char path[PATH_MAX + 8];
  snprintf(path, sizeof path, "%s/shards", directory);
  DIR *shards = opendir(path);
  int count = 0;
  for (struct dirent *entry; shards && (entry = readdir(shards));) count += entry->d_name[0] != '.';
  if (shards) closedir(shards);
  return count;
}

/* A life in which nothing may go wrong but recording; returns whether something was recorded. */
static bool live(void) {
  host_mask = 0x99;
  void *context = host_init(1, 2, 0);
  unsigned recorded = 0;
  for (int i = 0; i < 1000; i++) {
    void *handle = host_start(context, host_descr(NCCLOTF2_COLL));
    recorded += handle != NULL;
    ncclProfiler_v6.stopEvent(handle);
  }
  /* Either nothing is asked for and nothing recorded, and that is said; or both. */
  CHECK((host_mask == 0x99) == (recorded == 0), "mask 0x%x, and %u events were recorded: %s", (unsigned)host_mask, recorded, host_line);
  CHECK(recorded == 0 || recorded == 1000 || host_header()->lost[NCCLOTF2_LOSS_MEMORY][NCCLOTF2_COLL] == 1000 - recorded,
        "%u events were recorded, and the others not counted", recorded);
  CHECK(recorded || host_lines, "nothing was recorded, and nothing said");
  ncclProfiler_v6.finalize(context);
  return recorded != 0;
}

/* Runs the life in a child, so that each has a session of its own; its exit handlers run, too. */
static int in_child(void (*restrict_host)(rlim_t), rlim_t value, const char *what) {
  fflush(NULL);
  pid_t pid = fork();
  CHECK(pid >= 0, "fork: %s", strerror(errno));
  if (pid == 0) {
    alarm(TEST_SECONDS);
    restrict_host(value);
    exit(live() ? 0 : 77);
  }
  int status = -1;
  CHECK(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
  CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77), "with %s %llu the host ended with 0x%x (%s)", what,
        (unsigned long long)value, (unsigned)status, WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "by itself");
  return WEXITSTATUS(status);
}

static void set_limit(__rlimit_resource_t resource, rlim_t value) {
  struct rlimit limit = {value, value};
  CHECK(setrlimit(resource, &limit) == 0, "setrlimit: %s", strerror(errno));
}

/* ---- address space ---- */

static void restrict_space(rlim_t more) {
  FILE *file = fopen("/proc/self/statm", "r");
  unsigned long pages = 0;
  CHECK(file && fscanf(file, "%lu", &pages) == 1, "statm");
  fclose(file);
  set_limit(RLIMIT_AS, (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + more);
}

static void address_space(const char *behavior) {
  use(behavior);
  static const rlim_t megabytes[] = {1, 4, 16, 24, 28, 32, 40, 64, 100, 200, 300, 1000};
  int last = 77;
  for (unsigned i = 0; i < sizeof megabytes / sizeof *megabytes; i++) {
    const int end = in_child(restrict_space, megabytes[i] << 20, "an address space of");
    CHECK(end <= last, "%llu MiB more are not enough, and less was", (unsigned long long)megabytes[i]);
    last = end;
  }
  EQUAL(last, 0, "with a GiB nothing is recorded");
}
static void address_space_collector(void) { address_space("ready"); }
static void address_space_spool(void) { address_space(NULL); }

/* ---- descriptors ---- */

static void restrict_descriptors(rlim_t most) {
  for (int fd = 3; fd < 256; fd++) close(fd);
  set_limit(RLIMIT_NOFILE, most);
}

static void few_descriptors(const char *behavior) {
  use(behavior);
  int last = 77;
  for (rlim_t most = 3; most <= 16; most++) last = in_child(restrict_descriptors, most, "descriptors up to");
  EQUAL(last, 0, "with 16 descriptors nothing is recorded");
}
static void few_descriptors_collector(void) { few_descriptors("ready"); }
static void few_descriptors_spool(void) { few_descriptors(NULL); }

/* ---- sizes of files ---- */

static volatile sig_atomic_t size_signals;
static void on_size(int number) {
  (void)number;
  size_signals++;
}

static void report_signals(void) {
  if (size_signals) {
    fprintf(stderr, "SIGXFSZ arrived %d times\n", (int)size_signals);
    _exit(1);
  }
}

static void restrict_sizes(rlim_t most) {
  struct sigaction action = {.sa_handler = on_size};
  sigaction(SIGXFSZ, &action, NULL);
  atexit(report_signals);
  set_limit(RLIMIT_FSIZE, most);
}

static void file_sizes(const char *behavior) {
  use(behavior);
  static const rlim_t bytes[] = {0, 1, 4096, 1 << 20, 20 << 20, 27 << 20, 40 << 20, 400 << 20};
  int last = 77;
  for (unsigned i = 0; i < sizeof bytes / sizeof *bytes; i++) last = in_child(restrict_sizes, bytes[i], "files of at most");
  EQUAL(last, 0, "with 400 MiB nothing is recorded");
}
static void file_sizes_collector(void) { file_sizes("ready"); }
static void file_sizes_spool(void) { file_sizes(NULL); }

/* ---- processes and threads; root is exempt from the limit, so a filter refuses ---- */

enum refusal { ALL, PROCESSES };
static void refuse_clone(enum refusal what) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      /* Its flags lie where a filter cannot look; libc then takes the older call. */
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 6, 0),
#if defined(__x86_64__)
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fork, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_vfork, 3, 0),
#else
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#endif
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, what == PROCESSES ? CLONE_THREAD : 0, 2, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs: %s", strerror(errno));
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "seccomp: %s", strerror(errno));
  CHECK(fork() < 0 && errno == EAGAIN, "a process was made all the same: %s", strerror(errno));
}

static void *nothing(void *unused) { return unused; }

static bool threads_can_be_had(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, nothing, NULL) != 0) return false;
  pthread_join(thread, NULL);
  return true;
}

static void no_process(void) {
  use("ready");
  refuse_clone(PROCESSES);
  CHECK(threads_can_be_had(), "the filter refuses threads, too");
  CHECK(live(), "nothing was recorded");
  CHECK(host_logged("could not be started (Resource temporarily unavailable); raw files are written instead"), "%s", host_line);
  EQUAL(spool_files(), 1, "spool files");
  EQUAL(host_header()->answered, host_header()->request, "answers");
}

static void no_thread(void) {
  use("ready");
  refuse_clone(ALL);
  CHECK(!threads_can_be_had(), "the filter does not refuse threads");
  CHECK(live(), "nothing was recorded");
  CHECK(host_logged("could not be started"), "%s", host_line);
  EQUAL(spool_files(), 1, "spool files");
  EQUAL(host_header()->answered, host_header()->request, "answers");
  char path[PATH_MAX + 512];
  snprintf(path, sizeof path, "%s/shards/%s-%d-%04x.spool", directory, host_header()->hostname, (int)getpid(), host_header()->tag);
  struct stat info;
  CHECK(stat(path, &info) == 0 && info.st_size > 1000 * (128 + 32), "%s holds too little", path);
}

/* ---- folders ---- */

static void cannot_be_written(void) {
  use(NULL);
  CHECK(mkdir(directory, 0700) == 0, "%s: %s", directory, strerror(errno));
  if (getuid() == 0) { /* root writes everywhere, but for what is no folder */
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/shards", directory);
    close(open(path, O_CREAT | O_WRONLY, 0600));
  } else {
    chmod(directory, 0500);
  }
  CHECK(!live(), "recorded into nothing");
  CHECK(host_logged("nothing is recorded"), "%s", host_line);
}

#if SANITIZED /* they reserve terabytes, and want descriptors, files and threads of their own */
int main(void) {
  (void)address_space_collector, (void)address_space_spool, (void)few_descriptors_collector, (void)few_descriptors_spool;
  (void)file_sizes_collector, (void)file_sizes_spool, (void)no_process, (void)no_thread, (void)cannot_be_written;
  printf("ok   limits_test: (the sanitizers need what is limited here; the build without them runs it)\n");
  return 0;
}
#else
TEST_MAIN({"little address space, with a collector", address_space_collector},
          {"little address space, with the spool", address_space_spool},
          {"few descriptors, with a collector", few_descriptors_collector},
          {"few descriptors, with the spool", few_descriptors_spool},
          {"small files, with a collector", file_sizes_collector}, {"small files, with the spool", file_sizes_spool},
          {"no further process", no_process}, {"no further process, and no thread", no_thread},
          {"a folder that cannot be written", cannot_be_written})
#endif
