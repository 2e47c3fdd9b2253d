/* SPDX-License-Identifier: Apache-2.0
 *
 * replay-host: a process that calls a profiler plugin as NCCL called one in a recording. It finds and
 * loads the plugin as NCCL does, plays the program that package replay made of one recorded process,
 * and prints what it delivered as one JSON line. Exit status 0: played; 1: could not; 2: usage.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "adapt.h"
#include "clock.h"
#include "cuda.h"
#include "kernels.h"
#include "ledger.h"
#include "library.h"
#include "loader.h"
#include "meeting.h"
#include "play.h"
#include "program.h"
#include "publish.h"
#include "tally.h"

static const char usage_text[] =
  "usage: replay-host [options] PROGRAM\n"
  "  --clock recorded|live  recorded: calls in recorded order, the exported clock tells recorded times;\n"
  "                         live (default): threads run freely\n"
  "  --pace fast|recorded   recorded: keep the recorded distances in time (default fast)\n"
  "                         REPLAY_HOST_FASTER=N in the environment: N times as fast; REPLAY_HOST_SLOWER=N:\n"
  "                         N times as long\n"
  "  --start-at NS          with --pace recorded: CLOCK_MONOTONIC time of the recording's first call\n"
  "  --api N                look only for versions up to N of the plugin interface\n"
  "  --library self|nccl|rccl  who seems to call: this program (default), or callers/libnccl.so.2 or\n"
  "                         callers/librccl.so.1 beside it; rccl also plays RCCL's own version 6\n"
  "  --published FILE       where processes tell each other handles; FILE: shared, zero-filled\n"
  "  --together FILE        wait for the other processes that join a communicator; FILE: shared, zero-filled\n"
  "  --ledger FILE          say there which calls have returned; FILE: shared, zero-filled\n"
  "  --die after-last|N     kill the process after the last call (no finalize), or after N calls\n"
  "  --stop-at N            stop the process (SIGSTOP) after N calls; it goes on when it is told to (SIGCONT);\n"
  "                         REPLAY_HOST_STOP_AT=N in the environment does the same\n"
  "  --no-finalize          end without finalize\n"
  "  --exit exit|_exit      how the process ends (default exit)\n"
  "  --no-cuda              the CUDA driver's functions answer that there is none\n"
  "  --kernels FILE         play the kernels of FILE, too, on the library of --gpu\n"
  "  --gpu LIBRARY          stands for CUPTI (gpu.h); loaded before the plugin\n"
  "  --verbose              print the plugin's INFO lines too\n"
  "  --dump                 print what would be played\n";

static void __attribute__((noreturn)) usage(void)
{
  fputs(usage_text, stderr);
  exit(2);
}

static bool choice(const char *value, const char *off, const char *on)
{
  if (strcmp(value, on) == 0) return true;
  if (strcmp(value, off) != 0) usage();
  return false;
}

static uint64_t positive(const char *value)
{
  char *end;
  errno = 0;
  unsigned long long n = strtoull(value, &end, 10);
  if (errno || *end || n == 0 || *value == '-') usage();
  return n;
}

static void __attribute__((format(printf, 5, 6))) own_log(int level, unsigned long flags, const char *file, int line, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  play_log(level, flags, file, line, fmt, ap);
  va_end(ap);
}

/* What the command line asks for. */
struct request {
  struct play_options play;
  const char *together, *published, *ledger, *kernels, *gpu, *library;
  int api; /* 0: any */
  bool at_once, no_cuda, dump;
};

/* What the environment asks for. */
static void read_environment(struct play_options *play)
{
  const char *stop_at = getenv("REPLAY_HOST_STOP_AT"), *faster = getenv("REPLAY_HOST_FASTER"), *slower = getenv("REPLAY_HOST_SLOWER");
  if (faster && *faster) play->faster = positive(faster);
  if (slower && *slower) play->slower = positive(slower);
  if (stop_at && *stop_at) play->stop_after = positive(stop_at);
}

static void read_death(const char *value, struct play_options *play)
{
  if (strcmp(value, "after-last") == 0) {
    play->die_after = UINT64_MAX;
    play->finalize = false;
  } else {
    play->die_after = positive(value);
  }
}

/* Reads the options, and leaves the program's name at optind. */
static void read_options(int argc, char **argv, struct request *r)
{
  enum { CLOCK = 256, PACE, START_AT, TOGETHER, DIE, STOP_AT, NO_FINALIZE, EXIT, NO_CUDA, VERBOSE, DUMP, API, LIBRARY, PUBLISHED, KERNELS, GPU, LEDGER };
  static const struct option names[] = {
    { "clock", required_argument, NULL, CLOCK }, { "pace", required_argument, NULL, PACE },
    { "start-at", required_argument, NULL, START_AT },
    { "together", required_argument, NULL, TOGETHER }, { "die", required_argument, NULL, DIE }, { "stop-at", required_argument, NULL, STOP_AT },
    { "no-finalize", no_argument, NULL, NO_FINALIZE }, { "exit", required_argument, NULL, EXIT },
    { "no-cuda", no_argument, NULL, NO_CUDA }, { "verbose", no_argument, NULL, VERBOSE },
    { "dump", no_argument, NULL, DUMP }, { "api", required_argument, NULL, API },
    { "library", required_argument, NULL, LIBRARY }, { "published", required_argument, NULL, PUBLISHED },
    { "kernels", required_argument, NULL, KERNELS }, { "gpu", required_argument, NULL, GPU }, { "ledger", required_argument, NULL, LEDGER }, { NULL, 0, NULL, 0 },
  };
  struct play_options *play = &r->play;
  for (int o; (o = getopt_long(argc, argv, "", names, NULL)) != -1;) {
    switch (o) {
    case CLOCK: play->in_order = choice(optarg, "live", "recorded"); break;
    case PACE: play->paced = choice(optarg, "fast", "recorded"); break;
    case START_AT: play->start_at = positive(optarg); break;
    case TOGETHER: r->together = optarg; break;
    case DIE: read_death(optarg, play); break;
    case STOP_AT: play->stop_after = positive(optarg); break;
    case NO_FINALIZE: play->finalize = false; break;
    case EXIT: r->at_once = choice(optarg, "exit", "_exit"); break;
    case NO_CUDA: r->no_cuda = true; break;
    case VERBOSE: play->verbose = true; break;
    case DUMP: r->dump = true; break;
    case API:
      r->api = (int)positive(optarg);
      if (r->api > VERSION_COUNT) usage();
      break;
    case LIBRARY:
      r->library = optarg;
      if (strcmp(r->library, "self") != 0) choice(r->library, "nccl", "rccl");
      break;
    case PUBLISHED: r->published = optarg; break;
    case KERNELS: r->kernels = optarg; break;
    case GPU: r->gpu = optarg; break;
    case LEDGER: r->ledger = optarg; break;
    default: usage();
    }
  }
  if (optind + 1 != argc || !r->kernels != !r->gpu) usage();
}

int main(int argc, char **argv)
{
  struct request r = { .play = { .finalize = true, .faster = 1, .slower = 1 }, .library = "self" };
  read_environment(&r.play);
  read_options(argc, argv, &r);

  /* Kept to the end: NCCL's strings stay where they are, and exit handlers may still look at them. */
  static struct program program;
  program_read(&program, argv[optind]);
  if (r.dump) {
    program_dump(&program, stdout);
    return fflush(stdout) == 0 ? 0 : 1;
  }
  if (r.play.paced && r.play.start_at == 0) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    r.play.start_at = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
  }
  clock_begin(&program, r.play.in_order);
  cuda_begin(r.no_cuda);
  int native = adapt_native(program_minor(&program)), newest = r.api ? r.api : program.api;
  loader_begin(newest < native ? newest : native, strcmp(r.library, "rccl") == 0);
  r.play.log = strcmp(r.library, "self") == 0 ? own_log : library_open(r.library, program.release, play_log);
  meeting_begin(&program, r.together);
  publish_begin(&program, r.published);
  ledger_begin(&program, r.ledger);
  if (r.kernels) kernels_begin(&program, r.kernels, r.gpu, r.play.in_order, r.play.paced);
  play(&program, &r.play);
  tally_report(loader_version(), play_mask());
  if (r.at_once) _exit(0);
  return 0;
}
