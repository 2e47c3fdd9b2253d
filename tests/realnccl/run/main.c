/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts the processes of a job, waits for them, and says how it ended. Each process is this program once more, so that it
 * begins as any program does; what they share lies in a memfd.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"

enum { GRACE_SECONDS = 5 }; /* for the others, after one has failed */

struct options options = {
  .processes = 1, .ranks_each = 1, .communicators = 1, .folder = ".", .buffer_bytes = 1 << 20, .seconds = 120};
int process_number;
struct shared *shared;

/* What a job without a GPU needs; what the caller has set already stays. Of the algorithms and protocols others are not
 * emulated. */
static const char *const settings[][2] = {
  {"NCCL_CUMEM_ENABLE", "0"},   {"NCCL_CUMEM_HOST_ENABLE", "0"}, {"NCCL_NVLS_ENABLE", "0"},
  {"NCCL_SOCKET_IFNAME", "lo"}, {"NCCL_NET", "Socket"},          {"NCCL_IB_DISABLE", "1"},
  {"NCCL_GRAPH_REGISTER", "0"}, {"NCCL_LOCAL_REGISTER", "0"},    {"NCCL_RAS_ENABLE", "0"},
  {"NCCL_ALGO", "Ring,Tree"},   {"NCCL_PROTO", "LL,Simple"},     {"RCCL_USE_ROCM_SMI_LIB", "1"}, /* and not what sysfs says */
  {"RCCL_MSCCL_ENABLE", "0"},   {"RCCL_MSCCLPP_ENABLE", "0"},    {"HSA_NO_SCRATCH_RECLAIM", "1"},
};

static void own_path(char *path, size_t size)
{
  const ssize_t n = readlink("/proc/self/exe", path, size - 1);
  path[n > 0 ? n : 0] = 0;
}

static void prepend(const char *variable, const char *value, char separator)
{
  const char *had = getenv(variable);
  char text[4096];
  snprintf(text, sizeof text, "%s%c%s", value, separator, had ? had : "");
  if (!had || !*had) text[strlen(value)] = 0;
  setenv(variable, text, 1);
}

static void set_environment(void)
{
  char folder[512], preload[600];
  own_path(folder, sizeof folder);
  if (strrchr(folder, '/')) *strrchr(folder, '/') = 0;
  prepend("LD_LIBRARY_PATH", folder, ':');
  snprintf(preload, sizeof preload, "%s/libyield.so", folder);
  if (!options.spin) prepend("LD_PRELOAD", preload, ' ');
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) setenv(settings[i][0], settings[i][1], 0);
  setenv("REALNCCL_TRUTH", options.folder, 1);
}

static int usage(void)
{
  fputs("usage: ncclrun [-n processes] [-g ranks of each] [-m group|threads|initall] [-o folder] [-N name] [-c communicators]\n"
        "               [-b buffer bytes] [-t seconds] [-H] [-B] [-S] 'program'|@FILE\n"
        "-H every process is a host of its own; -B non-blocking communicators; -S waiting threads spin\n",
        stderr);
  return BAD_USAGE;
}

/* An argument @FILE stands for the file's text. */
static const char *program_text(const char *argument)
{
  char *text = NULL;
  size_t size = 0;
  if (*argument != '@') return argument;
  FILE *file = fopen(argument + 1, "r");
  if (!file || getdelim(&text, &size, 0, file) < 0) give_up(BAD_USAGE, "%s cannot be read", argument + 1);
  fclose(file);
  return text;
}

static int read_options(int argc, char **argv)
{
  for (int o; (o = getopt(argc, argv, "n:g:m:o:N:c:b:t:HBS")) != -1;) switch (o) {
    case 'n': options.processes = atoi(optarg); break;
    case 'g': options.ranks_each = atoi(optarg); break;
    case 'm':
      options.driving = strcmp(optarg, "threads") == 0 ? BY_THREADS : strcmp(optarg, "initall") == 0 ? BY_INIT_ALL : BY_GROUPS;
      break;
    case 'o': options.folder = optarg; break;
    case 'N': options.name = optarg; break;
    case 'c': options.communicators = atoi(optarg); break;
    case 'b': options.buffer_bytes = number_of(optarg); break;
    case 't': options.seconds = atol(optarg); break;
    case 'B': options.non_blocking = 1; break;
    case 'H': options.hosts = 1; break;
    case 'S': options.spin = 1; break;
    default: return 0;
    }
  options.program = optind < argc ? program_text(argv[optind]) : NULL;
  const int ranks = options.processes * options.ranks_each;
  return optind == argc - 1 && options.processes > 0 && ranks > 0 && ranks <= RANKS_MOST && options.communicators >= 0 &&
         options.communicators <= COMMS_MOST;
}

static int share(void)
{
  pthread_barrierattr_t attributes;
  int file = memfd_create("ncclrun", 0);
  if (file < 0 || ftruncate(file, sizeof *shared)) return -1;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (shared == MAP_FAILED) return -1;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &attributes,
                       (unsigned)(options.driving == BY_THREADS ? options.processes * options.ranks_each : options.processes));
  return file;
}

static pid_t start(int number, int file, char **argv)
{
  char text[32], self[512];
  const pid_t parent = getpid(), child = fork();
  if (child) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing stays behind */
  if (getppid() != parent) _exit(127);
  snprintf(text, sizeof text, "%d", file);
  setenv("NCCLRUN_SHARED", text, 1);
  snprintf(text, sizeof text, "%d", number);
  setenv("NCCLRUN_CHILD", text, 1);
  if (options.hosts) {
    snprintf(text, sizeof text, "fakehost%d", number);
    setenv("NCCL_HOSTID", text, 1);
  }
  own_path(self, sizeof self);
  execv(self, argv);
  _exit(127);
}

static void say_where(const pid_t *processes)
{
  for (int i = 0; i < options.processes * options.ranks_each; i++) {
    const pid_t pid = processes[i / options.ranks_each];
    if (pid)
      fprintf(stderr, "ncclrun: process %d (pid %d), rank %d is at: %s\n", i / options.ranks_each, (int)pid, i,
              shared->ranks[i].word);
  }
}

/* The exit code of a process that ended, and a line about one that failed. */
static int code_of(int number, pid_t pid, int status)
{
  if (WIFSIGNALED(status)) {
    fprintf(stderr, "ncclrun: process %d (pid %d) was killed by signal %d (%s)\n", number, (int)pid, WTERMSIG(status),
            strsignal(WTERMSIG(status)));
    return PROCESS_KILLED;
  }
  if (WEXITSTATUS(status))
    fprintf(stderr, "ncclrun: process %d (pid %d) ended with exit code %d\n", number, (int)pid, WEXITSTATUS(status));
  return WEXITSTATUS(status);
}

static void kill_rest(const pid_t *processes)
{
  for (int i = 0; i < options.processes; i++)
    if (processes[i]) kill(processes[i], SIGKILL);
}

/* The first failure says how the job ended; the others get some time to end too. */
static int wait_for_all(pid_t *processes)
{
  uint64_t limit = now_ns() + (uint64_t)options.seconds * 1000000000u;
  int code = DONE, over = 0;
  for (int left = options.processes; left;) {
    int status, number = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    while (pid > 0 && number < options.processes && processes[number] != pid) number++;
    if (pid > 0 && number < options.processes) {
      left--;
      processes[number] = 0;
      const int ended = over ? 0 : code_of(number, pid, status);
      if (!ended || code) continue;
      code = ended;
      if (limit > now_ns() + GRACE_SECONDS * 1000000000ull) limit = now_ns() + GRACE_SECONDS * 1000000000ull;
      continue;
    }
    const int asked = __atomic_load_n(&shared->kill_all, __ATOMIC_ACQUIRE);
    if (!over && (asked || now_ns() > limit)) {
      over = 1;
      if (asked) fprintf(stderr, "ncclrun: the job is killed, as its program says\n");
      else if (code) fprintf(stderr, "ncclrun: the rest is killed %d s after the first failure\n", GRACE_SECONDS);
      else fprintf(stderr, "ncclrun: time limit of %ld s\n", options.seconds);
      if (!asked) say_where(processes);
      if (!code) code = asked ? PROCESS_KILLED : TIME_LIMIT;
      kill_rest(processes);
    }
    sleep_ms(5);
  }
  return code;
}

static int say_results(int code)
{
  unsigned wrong = 0;
  for (int i = 0; i < options.processes * options.ranks_each; i++) {
    wrong += shared->ranks[i].wrong;
    if (shared->ranks[i].checks)
      printf("rank %d: %u results, %016llx\n", i, shared->ranks[i].checks, (unsigned long long)shared->ranks[i].hash);
  }
  if (wrong) fprintf(stderr, "ncclrun: %u wrong results\n", wrong);
  return wrong && code == DONE ? WRONG_RESULTS : code;
}

int main(int argc, char **argv)
{
  if (!read_options(argc, argv)) return usage();
  const char *number = getenv("NCCLRUN_CHILD"), *file_number = getenv("NCCLRUN_SHARED");
  if (number && file_number) {
    process_number = atoi(number);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(file_number), 0);
    return shared == MAP_FAILED ? BAD_USAGE : run_process();
  }
  pid_t processes[RANKS_MOST];
  if (mkdir(options.folder, 0777) && errno != EEXIST) return perror(options.folder), BAD_USAGE;
  set_environment();
  const int file = share();
  if (file < 0) return perror("ncclrun"), BAD_USAGE;
  for (int i = 0; i < options.processes; i++) processes[i] = start(i, file, argv);
  return say_results(wait_for_all(processes));
}
