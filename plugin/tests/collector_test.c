/* SPDX-License-Identifier: Apache-2.0
 *
 * Starting the collector, and what becomes of everything when it refuses, dies or is missing.
 */
#include "../collector.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "host.h"
#include "test.h"

static volatile sig_atomic_t child_signals;
static void on_child(int number) {
  (void)number;
  child_signals++;
}

/* The stub's report, field by name. */
static void report_is(const char *want) {
  char path[PATH_MAX], line[512] = "";
  snprintf(path, sizeof path, "%s/stub.out", host_folder());
  FILE *file = fopen(path, "r");
  CHECK(file && fgets(line, sizeof line, file), "the stub reported nothing");
  fclose(file);
  CHECK(strncmp(line, want, strlen(want)) == 0, "the stub found %swant %s", line, want);
}

static int stub_runs(void) {
  char path[PATH_MAX], line[512];
  snprintf(path, sizeof path, "%s/stub.out", host_folder());
  FILE *file = fopen(path, "r");
  int runs = 0;
  while (file && fgets(line, sizeof line, file)) runs++;
  if (file) fclose(file);
  return runs;
}

/* All spool files of the experiment directory. */
static int spool_files(const char *directory) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/shards", directory);
  DIR *shards = opendir(path);
  int count = 0;
  for (struct dirent *entry; shards && (entry = readdir(shards));) count += strstr(entry->d_name, ".spool") != NULL;
  if (shards) closedir(shards);
  return count;
}

static const char *use_directory(void) {
  static char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/experiment", host_folder());
  setenv("NCCL_OTF2_DIR", path, 1);
  return path;
}

static void clean_start(void) {
  host_use_stub("ready", 0xf47);
  setenv("LD_PRELOAD", "", 1);
  setenv("LD_AUDIT", "", 1);
  setenv("KEPT", "yes", 1);
  struct sigaction action = {.sa_handler = on_child};
  sigaction(SIGCHLD, &action, NULL);
  signal(SIGUSR1, SIG_IGN);
  sigset_t blocked, after;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/open", host_folder());
  for (int i = 0; i < 5; i++) CHECK(open(path, O_CREAT | O_RDWR, 0600) >= 0, "%s", path); /* no close-on-exec */
  int nice_before = getpriority(PRIO_PROCESS, 0);

  host_init(1, 2, 0);
  EQUAL(host_mask, 0xf47, "mask");
  snprintf(path, sizeof path, "leader=1 fds=0 nulls=3 signals=0 nice=%d preload=unset kept=yes",
           nice_before + 5 > 19 ? 19 : nice_before + 5);
  report_is(path);
  usleep(50000);
  EQUAL(child_signals, 0, "SIGCHLD");
  CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "the host can see a child");
  CHECK(waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD, "the host can see a clone");
  sigprocmask(SIG_SETMASK, NULL, &after);
  EQUAL(sigismember(&after, SIGTERM), 1, "SIGTERM blocked");
  EQUAL(sigismember(&after, SIGINT), 0, "SIGINT blocked");
  sigaction(SIGUSR1, NULL, &action);
  CHECK(action.sa_handler == SIG_IGN, "SIGUSR1's handler was changed");
  sigaction(SIGCHLD, NULL, &action);
  CHECK(action.sa_handler == on_child, "SIGCHLD's handler was changed");
  EQUAL(getpriority(PRIO_PROCESS, 0), nice_before, "our nice");
  CHECK(ncclotf2_process_alive((pid_t)host_header()->collector_pid), "the collector is gone");
}

static void debug_keeps_stderr(void) {
  setenv("NCCL_OTF2_DEBUG", "1", 1);
  host_use_stub("ready", 0xf47);
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/stderr", host_folder());
  int saved = dup(2), file = open(path, O_CREAT | O_RDWR, 0600);
  dup2(file, 2);
  host_init(1, 2, 0);
  dup2(saved, 2);
  CHECK(strstr(host_line, "ready"), "%s", host_line);
  report_is("leader=1 fds=0 nulls=2");
}

static void refused(void) {
  const char *directory = use_directory();
  host_use_stub("refuse", 0xf47);
  host_mask = 0x33;
  void *context = host_init(1, 2, 0);
  CHECK(host_logged("refused because it was told to"), "%s", host_line);
  EQUAL(host_mask, 0x33, "mask");
  host_init(2, 2, 0);
  EQUAL(host_mask, 0x33, "mask");
  EQUAL(stub_runs(), 1, "starts");
  EQUAL(host_lines, 1, "lines");
  EQUAL(spool_files(directory), 0, "spool files");
  CHECK(!host_start(context, host_descr(NCCLOTF2_COLL)), "recorded");
  ncclProfiler_v6.finalize(context);
}

static void ends_at_once(void) {
  const char *directory = use_directory();
  setenv("NCCL_OTF2_EVENTS", "light", 1);
  host_use_stub("exit", 0);
  void *context = host_init(1, 2, 0);
  CHECK(host_logged("ended before it was ready; raw files"), "%s", host_line);
  EQUAL(host_mask, 0xf07, "mask");
  EQUAL(host_header()->collector_state, NCCLOTF2_COLLECTOR_SPOOL, "state");
  CHECK(host_start(context, host_descr(NCCLOTF2_COLL)), "refused");
  ncclProfiler_v6.finalize(context);
  EQUAL(spool_files(directory), 1, "spool files");
}

static void missing(void) {
  const char *directory = use_directory();
  setenv("NCCL_OTF2_COLLECTOR", "/nonexistent/nccl-otf2", 1);
  host_init(1, 2, 0);
  CHECK(host_logged("/nonexistent/nccl-otf2 cannot be executed; raw files"), "%s", host_line);
  EQUAL(host_mask, 0xf47, "mask");
  EQUAL(spool_files(directory), 1, "spool files");
  EQUAL(host_lines, 1, "lines");
}

static void not_a_program(void) {
  const char *directory = use_directory();
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/nccl-otf2", host_folder());
  FILE *file = fopen(path, "w");
  fputs("\177ELF nonsense", file);
  fclose(file);
  chmod(path, 0755);
  setenv("NCCL_OTF2_COLLECTOR", path, 1);
  host_init(1, 2, 0);
  CHECK(host_logged("could not be started"), "%s", host_line);
  EQUAL(spool_files(directory), 1, "spool files");
  CHECK(waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD, "the host can see a child");
}

static void nothing_beside_the_library(void) {
  const char *directory = use_directory();
  unsetenv("NCCL_OTF2_COLLECTOR");
  host_init(1, 2, 0);
  CHECK(host_logged("no program nccl-otf2 beside the library"), "%s", host_line);
  EQUAL(spool_files(directory), 1, "spool files");
}

static void late(void) {
  const char *directory = use_directory();
  host_use_stub("late", 0xf47);
  setenv("NCCL_OTF2_START_LIMIT", "1", 1);
  const char *gate = host_gate();
  host_mask = 0x44;
  host_init(1, 2, 0);
  CHECK(host_logged("not ready after 1 s"), "%s", host_line);
  EQUAL(host_mask, 0x44, "mask");
  EQUAL(spool_files(directory), 0, "spool files");
  CHECK(unlink(gate) == 0, "%s: %s", gate, strerror(errno));
  EVENTUALLY(__atomic_load_n(&host_header()->collector_state, __ATOMIC_ACQUIRE) != NCCLOTF2_COLLECTOR_NONE);
  host_init(2, 2, 0);
  EQUAL(host_mask, 0xf07, "mask once it is ready: what is under way was enqueued without stamps");
  CHECK(host_logged("no GPU times are recorded: the collector was ready late"), "%s", host_line);
  EQUAL(host_header()->withheld & 1u << NCCLOTF2_KERNEL_CH, 1u << NCCLOTF2_KERNEL_CH, "withheld");
  EQUAL(stub_runs(), 1, "starts");
}

static void dies(void) {
  const char *directory = use_directory();
  setenv("NCCL_OTF2_EVENTS", "gpu", 1);
  host_use_stub("die", 0xf47);
  void *context = host_init(1, 2, 0);
  void *handle = host_start(context, host_descr(NCCLOTF2_COLL));
  ncclProfiler_v6.stopEvent(handle);
  /* The request kills it, and the one after it; then the spool has all that was recorded. */
  ncclProfiler_v6.finalize(context);
  EQUAL(stub_runs(), 2, "starts");
  CHECK(host_logged("a new one is started"), "%s", host_line);
  CHECK(host_logged("ended again; raw files"), "%s", host_line);
  EQUAL(host_header()->answered, host_header()->request, "answers");
  EQUAL(host_header()->collector_state, NCCLOTF2_COLLECTOR_SPOOL, "state");
  EQUAL(spool_files(directory), 1, "spool files");
}

/* Nobody initializes or finalizes anything, and still it is noticed: by the threads that record. */
static void dies_in_the_middle(void) {
  const char *directory = use_directory();
  setenv("NCCL_OTF2_MEMORY", "8M", 1);
  host_use_stub("leave", 0xf47);
  void *context = host_init(1, 2, 0);
  uint64_t recorded = 0;
  while (spool_files(directory) == 0) {
    for (int k = 0; k < 1000; k++) recorded += host_start(context, host_descr(NCCLOTF2_GROUP)) != NULL;
    usleep(5000);
  }
  EQUAL(stub_runs(), 2, "starts");
  EQUAL(spool_files(directory), 1, "spool files");
  CHECK(host_logged("ended again; raw files"), "%s", host_line);
  /* The spool makes room again. */
  void *handle = NULL;
  EVENTUALLY((handle = host_start(context, host_descr(NCCLOTF2_GROUP))));
}

static void lost_descriptor(void) {
  const char *directory = use_directory();
  host_use_stub("die", 0xf47);
  void *context = host_init(1, 2, 0);
  dup2(0, ncclotf2_session.memfd); /* the program closes everything, and the number is taken anew */
  ncclProfiler_v6.finalize(context);
  EQUAL(stub_runs(), 1, "starts");
  CHECK(host_logged("closed the shared memory's descriptor"), "%s", host_line);
  EQUAL(spool_files(directory), 1, "spool files");
}

static void no_more_processes(void) {
  /* Root is exempt from the limit. */
  if (getuid() == 0) CHECK(setgid(65534) == 0 && setuid(65534) == 0, "cannot become nobody: %s", strerror(errno));
  prctl(PR_SET_DUMPABLE, 1);
  const char *directory = use_directory();
  setenv("NCCL_OTF2_COLLECTOR", "/bin/true", 1); /* never started; and nobody may not see our build folder */
  struct rlimit limit, before;
  getrlimit(RLIMIT_NPROC, &before);
  limit = before;
  limit.rlim_cur = 0;
  setrlimit(RLIMIT_NPROC, &limit);
  void *context = host_init(1, 2, 0);
  CHECK(host_logged("could not be started"), "%s", host_line);
  EQUAL(host_mask, 0xf47, "mask");
  /* Not even a thread: the file is written when somebody asks. */
  CHECK(host_start(context, host_descr(NCCLOTF2_COLL)), "refused");
  ncclProfiler_v6.finalize(context);
  EQUAL(host_header()->answered, host_header()->request, "answers");
  EQUAL(spool_files(directory), 1, "spool files");
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/shards/%s-%d-%04x.spool", directory, host_header()->hostname, (int)getpid(), host_header()->tag);
  struct stat info;
  CHECK(stat(path, &info) == 0 && info.st_size > 4096, "%s holds nothing", path);
  setrlimit(RLIMIT_NPROC, &before); /* the leak sanitizer needs a process at the end */
}

static void process_states(void) {
  CHECK(ncclotf2_process_alive(getpid()), "we are dead");
  CHECK(!ncclotf2_process_alive(0) && !ncclotf2_process_alive(-1), "no pid is alive");
  pid_t pid = fork();
  if (pid == 0) _exit(0);
  siginfo_t info;
  waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
  CHECK(!ncclotf2_process_alive(pid), "a zombie is alive");
  waitpid(pid, NULL, 0);
  CHECK(!ncclotf2_process_alive(pid), "what was reaped is alive");
}

TEST_MAIN({"the collector starts in a clean state, and the host notices nothing", clean_start},
          {"for debugging the collector keeps stderr", debug_keeps_stderr},
          {"a collector that refuses is believed", refused},
          {"a collector that ends at once is replaced by the spool", ends_at_once},
          {"a missing collector is replaced by the spool", missing},
          {"a collector that is no program is replaced by the spool", not_a_program},
          {"without a collector beside the library the spool is used", nothing_beside_the_library},
          {"a late collector is used by later communicators", late},
          {"a collector that dies is started once more, then the spool takes over", dies},
          {"a collector that dies while events come is replaced", dies_in_the_middle},
          {"a lost descriptor is noticed", lost_descriptor},
          {"process limits leave a file written at the end", no_more_processes},
          {"processes are alive until they have ended", process_states})
