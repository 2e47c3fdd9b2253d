/* SPDX-License-Identifier: Apache-2.0
 *
 * A job process that lives and ends in whatever way it is told:
 *
 *   host PLUGIN COUNT WAY [FURTHER]
 *
 * It opens the plugin as NCCL does (profiler API v6), makes a communicator, and calls COUNT collectives, of
 * which number i has i elements. Then it writes "ready <pid> <collector's pid>" to stdout and waits for a line on
 * stdin. What it does then is its WAY, below; FURTHER collectives are part of some.
 *
 *   LIFE_RANK, LIFE_RANKS  of the communicator (0 of 1)
 *   LIFE_MEET              folder in which the ranks wait for each other once they have joined, as NCCL makes them
 *   LIFE_HOSTNAME          is set first (in a UTS namespace of its own)
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../plugin/api_versions.h"
#include "../../plugin/shm.h"

static void *library;
static struct ncclotf2_plugin_v6 *plugin;
static void *context;
static unsigned long called; /* so far */
static const char *path;

static void fail(const char *what) {
  fprintf(stderr, "host: %s: %s\n", what, errno ? strerror(errno) : dlerror());
  exit(99);
}

static void logger(int level, unsigned long flags, const char *file, int line, const char *format, ...) {
  (void)flags, (void)file, (void)line;
  enum { WARN = 2 };
  if (level != WARN) return; /* as with NCCL_DEBUG=WARN */
  va_list args;
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
}

static int number_of(const char *name, int otherwise) {
  const char *value = getenv(name);
  return value && *value ? atoi(value) : otherwise;
}

static void open_plugin(void) {
  errno = 0;
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail("dlopen");
  plugin = dlsym(library, "ncclProfiler_v6");
  if (!plugin) fail("dlsym");
}

static void *init(uint64_t id) {
  static int mask;
  void *made = NULL;
  if (plugin->init(&made, id, &mask, NULL, 1, number_of("LIFE_RANKS", 1), number_of("LIFE_RANK", 0), logger) != 0 || !made)
    fail("init");
  return made;
}

static __thread void *other; /* the communicator that this thread calls on, instead of the first */

static void *start(struct ncclotf2_descr_v6 *d, unsigned type, void *parent) {
  d->type = 1ULL << type;
  d->parentObj = parent;
  void *handle = (void *)0x7f5aULL;
  plugin->startEvent(other ? other : context, &handle, d);
  return handle;
}

/* The collective as NCCL 2.29 tells of it. */
static void collective(void) {
  struct ncclotf2_descr_v6 d;
  const unsigned long number = __atomic_add_fetch(&called, 1, __ATOMIC_RELAXED);
  memset(&d, 0, sizeof d);
  d.groupApi.groupDepth = 1;
  void *group_api = start(&d, NCCLOTF2_GROUP_API, NULL);
  plugin->recordEventState(group_api, 23, NULL);
  memset(&d, 0, sizeof d);
  d.collApi.func = "AllReduce";
  d.collApi.datatype = "ncclFloat32";
  d.collApi.count = number;
  void *call = start(&d, NCCLOTF2_COLL_API, group_api);
  plugin->stopEvent(call);
  plugin->recordEventState(group_api, 24, NULL);
  memset(&d, 0, sizeof d);
  void *group = start(&d, NCCLOTF2_GROUP, NULL);
  memset(&d, 0, sizeof d);
  d.coll.func = "AllReduce";
  d.coll.datatype = "ncclFloat32";
  d.coll.algo = "RING";
  d.coll.proto = "LL";
  d.coll.count = number;
  d.coll.seqNumber = number - 1;
  d.coll.nChannels = 1;
  d.coll.parentGroup = group;
  void *coll = start(&d, NCCLOTF2_COLL, call);
  plugin->stopEvent(coll);
  plugin->stopEvent(group);
  plugin->stopEvent(group_api);
}

static void collectives(unsigned long count) {
  for (unsigned long i = 0; i < count; i++) collective();
}

/* From the memory that the plugin has mapped; 0 if there is none, or no collector. */
static unsigned collector_pid(void) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[512];
  unsigned pid = 0;
  while (maps && fgets(line, sizeof line, maps)) {
    unsigned long from;
    if (!strstr(line, "nccl-otf2") || !strstr(line, "rw-s") || sscanf(line, "%lx-", &from) != 1) continue;
    const struct ncclotf2_header *header = (const void *)from;
    if (header->magic == NCCLOTF2_SHM_MAGIC) pid = header->collector_pid;
  }
  if (maps) fclose(maps);
  return pid;
}

static void wait_for_line(void) {
  printf("ready %d %u\n", (int)getpid(), collector_pid());
  fflush(stdout);
  char line[64];
  if (!fgets(line, sizeof line, stdin)) exit(98);
}

/* ---- ways ---- */

static unsigned long further;

static void way_return(void) {}
static void way_finalize(void) { plugin->finalize(context); }
static void way_finalize_and_wait(void) {
  plugin->finalize(context);
  wait_for_line();
}
static void way_exit(void) { exit(3); }
static void way_quick_exit(void) { quick_exit(4); }
static void way_exit_at_once(void) { _exit(5); }
static void way_abort(void) { abort(); }
static void way_fault(void) { raise(SIGSEGV); }
static void way_terminated(void) { raise(SIGTERM); }
static void way_killed(void) { raise(SIGKILL); }

static void *exit_in_thread(void *unused) {
  collectives(further);
  exit(6);
  return unused;
}
static void way_thread_exits(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, exit_in_thread, NULL) != 0) fail("pthread_create");
  pthread_join(thread, NULL);
}

static void *go_on(void *unused) {
  collectives(further);
  return unused; /* the last thread: the process ends with status 0 */
}
static void way_main_ends_first(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, go_on, NULL) != 0) fail("pthread_create");
  pthread_exit(NULL);
}

static void way_throw(void) {
  void (*throw_uncaught)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "throw_uncaught");
  if (!throw_uncaught) fail("throw_uncaught");
  throw_uncaught();
}

static void way_exec(void) {
  execl("/bin/true", "true", (char *)NULL);
  fail("execl");
}

static void way_lives(void) {
  for (int i = 0; i < 3; i++) {
    plugin->finalize(context);
    dlclose(library);
    open_plugin();
    context = init(0x200 + (uint64_t)i);
    collectives(further);
  }
  plugin->finalize(context);
}

static void way_go_on(void) {
  collectives(further);
  plugin->finalize(context);
}

static void *call_once(void *unused) {
  collective();
  return unused;
}

/* As many threads as there are further collectives, four at a time: each calls one, and ends. */
static void way_short_threads(void) {
  enum { TOGETHER = 4 };
  for (unsigned long i = 0; i < further; i += TOGETHER) {
    pthread_t threads[TOGETHER];
    for (int k = 0; k < TOGETHER; k++)
      if (pthread_create(&threads[k], NULL, call_once, NULL) != 0) fail("pthread_create");
    for (int k = 0; k < TOGETHER; k++) pthread_join(threads[k], NULL);
  }
  plugin->finalize(context);
}

/* A call that is no part of a group's. */
static void single_call(void) {
  struct ncclotf2_descr_v6 d;
  memset(&d, 0, sizeof d);
  d.collApi.func = "AllReduce";
  d.collApi.datatype = "ncclFloat32";
  d.collApi.count = __atomic_add_fetch(&called, 1, __ATOMIC_RELAXED);
  plugin->stopEvent(start(&d, NCCLOTF2_COLL_API, NULL));
}

static void interrupted(int unused) { (void)unused; }

static void *single_calls(void *count) {
  for (unsigned long i = 0; i < *(unsigned long *)count; i++) single_call();
  return NULL;
}

/* So many calls of four threads, in the midst of which signals come, as from a sampling profiler. */
static void way_single_calls(void) {
  enum { TOGETHER = 4, PERIOD_US = 1000 };
  const struct sigaction action = {.sa_handler = interrupted, .sa_flags = SA_RESTART};
  const struct itimerval period = {.it_interval.tv_usec = PERIOD_US, .it_value.tv_usec = PERIOD_US}, none = {0};
  if (sigaction(SIGPROF, &action, NULL) != 0 || setitimer(ITIMER_PROF, &period, NULL) != 0) fail("setitimer");
  unsigned long each = further / TOGETHER;
  pthread_t threads[TOGETHER];
  for (int k = 0; k < TOGETHER; k++)
    if (pthread_create(&threads[k], NULL, single_calls, &each) != 0) fail("pthread_create");
  for (int k = 0; k < TOGETHER; k++) pthread_join(threads[k], NULL);
  if (setitimer(ITIMER_PROF, &none, NULL) != 0) fail("setitimer");
  plugin->finalize(context);
}

/* As many communicators, one after another beside the first: each has one collective. */
static void way_communicators(void) {
  for (unsigned long i = 0; i < further; i++) {
    other = init(0x10000 + i);
    collective();
    plugin->finalize(other);
  }
  other = NULL;
  plugin->finalize(context);
}

/* As many communicators, none beside another: the end of each is the last one for now. */
static void way_communicators_alone(void) {
  plugin->finalize(context);
  for (unsigned long i = 0; i < further; i++) {
    context = init(0x10000 + i);
    collective();
    plugin->finalize(context);
  }
}

/* As many communicators at one time, with two collectives each. */
static void way_communicators_together(void) {
  void **all = calloc(further, sizeof *all);
  if (!all) fail("calloc");
  for (unsigned long i = 0; i < further; i++) {
    other = all[i] = init(0x10000 + i);
    collective();
  }
  for (unsigned long i = 0; i < further; i++) {
    other = all[i];
    collective();
  }
  for (unsigned long i = 0; i < further; i++) plugin->finalize(all[i]);
  other = NULL;
  plugin->finalize(context);
  free(all);
}

/* A shared proxy tells of itself after its owner's end. */
static void way_after_finalize(void) {
  plugin->finalize(context);
  struct ncclotf2_descr_v6 d;
  memset(&d, 0, sizeof d);
  void *control = start(&d, NCCLOTF2_PROXY_CTRL, NULL);
  plugin->recordEventState(control, 13, NULL);
  plugin->stopEvent(control);
}

static void in_child(void) {
  void *mine = context;
  collectives(10);
  plugin->finalize(mine);
  context = init(0x300);
  collectives(10);
  plugin->finalize(context);
}

/* Children without exec do what they like, also those made past the C library; what they do is not in the archive, and the parent's is. */
static void way_children(void) {
  static void (*const ends[])(void) = {way_exit, way_exit_at_once, way_abort, way_killed, way_return};
  const unsigned long before = called;
  for (unsigned i = 0; i < sizeof ends / sizeof *ends; i++) {
    fflush(NULL);
    pid_t pid = i % 2 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
      in_child();
      ends[i]();
      exit(0);
    }
    if (waitpid(pid, NULL, 0) != pid) fail("waitpid");
    called = before + i * further;
    collectives(further);
  }
  plugin->finalize(context);
}

static const struct {
  const char *name;
  void (*run)(void);
} ways[] = {
    {"return", way_return},          {"finalize", way_finalize},
    {"finalize-and-wait", way_finalize_and_wait},
    {"exit", way_exit},              {"quick_exit", way_quick_exit},
    {"_exit", way_exit_at_once},     {"abort", way_abort},
    {"fault", way_fault},            {"terminated", way_terminated},
    {"killed", way_killed},          {"thread-exits", way_thread_exits},
    {"main-first", way_main_ends_first}, {"throw", way_throw},
    {"exec", way_exec},              {"lives", way_lives},
    {"go-on", way_go_on},            {"after-finalize", way_after_finalize},
    {"children", way_children},      {"short-threads", way_short_threads},
    {"communicators", way_communicators}, {"communicators-together", way_communicators_together},
    {"communicators-alone", way_communicators_alone}, {"single-calls", way_single_calls},
};

/* Making a communicator is collective: nobody uses it before all have joined. */
static void meet(void) {
  const char *folder = getenv("LIFE_MEET");
  char name[4096];
  if (!folder) return;
  for (int rank = number_of("LIFE_RANK", 0), others = -1; others < number_of("LIFE_RANKS", 1); others++) {
    snprintf(name, sizeof name, "%s/%d", folder, others < 0 ? rank : others);
    if (others < 0 && close(open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) != 0) fail(name);
    while (access(name, F_OK) != 0) usleep(1000);
  }
}

int main(int argc, char **argv) {
  if (argc < 4) return 97;
  const char *hostname = getenv("LIFE_HOSTNAME");
  if (hostname && sethostname(hostname, strlen(hostname)) != 0) fail("sethostname");
  path = argv[1];
  further = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
  open_plugin();
  context = init(0x1001);
  meet();
  collectives(strtoul(argv[2], NULL, 10));
  for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
    if (strcmp(ways[i].name, argv[3]) != 0) continue;
    wait_for_line();
    ways[i].run();
    return 0;
  }
  fprintf(stderr, "host: no way is called %s\n", argv[3]);
  return 96;
}
