/* SPDX-License-Identifier: Apache-2.0
 *
 * A small job on the real NCCL library, which it opens at run time together with the CUDA runtime of the same folder:
 *
 *   job RANKS COMMUNICATORS OPERATIONS together|apart AllReduce|SendRecv
 *
 * Each rank is a process. On each of some communicators it makes a first AllReduce and waits for it, then OPERATIONS
 * further ones on the first communicator, BATCH at a time: AllReduces, or groups of a message to the next rank and one from the rank before. `apart`: the first calls are made by one rank after the other, so that each has
 * all processors to itself, as ranks have on a node with some to spare; that call alone is taken, not the wait. Rank 0 prints what that took, a line of JSON before the further operations and one
 * behind them, and waits each time for a byte on the standard input (or its end), so that somebody can look at the processes. It needs
 * no header of NCCL's: the few functions of its public interface that are called are declared here.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS_MOST = 16, COMMS_MOST = 64, COUNT = 256, FLOAT32 = 7, SUM = 0, BATCH = 50 };

struct unique_id {
  char bytes[128];
};

static int (*get_unique_id)(struct unique_id *id);
static int (*comm_init_rank)(void **comm, int nranks, struct unique_id id, int rank);
static int (*all_reduce)(const void *from, void *to, size_t count, int type, int operator, void *comm, void *stream);
static int (*send_to)(const void *from, size_t count, int type, int peer, void *comm, void *stream);
static int (*receive_from)(void *to, size_t count, int type, int peer, void *comm, void *stream);
static int (*group_start)(void);
static int (*group_end)(void);
static int (*comm_destroy)(void *comm);
static int (*set_device)(int device);
static int (*device_memory)(void **memory, size_t bytes);
static int (*stream_create)(void **stream);
static int (*stream_synchronize)(void *stream);

static struct shared {
  pthread_barrier_t barrier;
  struct unique_id ids[COMMS_MOST];
} *shared;

static _Noreturn void fail(const char *what, const char *why)
{
  fprintf(stderr, "job: %s: %s\n", what, why);
  exit(1);
}

static void ok(const char *what, int result)
{
  char text[16];
  snprintf(text, sizeof text, "error %d", result);
  if (result) fail(what, text);
}

static void *need(void *library, const char *name)
{
  void *found = library ? dlsym(library, name) : NULL;
  if (!found) fail(name, dlerror());
  return found;
}

static void open_libraries(void)
{
  void *cuda = dlopen("libcudart.so.12", RTLD_NOW | RTLD_GLOBAL);
  *(void **)&set_device = need(cuda, "cudaSetDevice");
  *(void **)&device_memory = need(cuda, "cudaMalloc");
  *(void **)&stream_create = need(cuda, "cudaStreamCreate");
  *(void **)&stream_synchronize = need(cuda, "cudaStreamSynchronize");
  void *nccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_GLOBAL);
  *(void **)&get_unique_id = need(nccl, "ncclGetUniqueId");
  *(void **)&comm_init_rank = need(nccl, "ncclCommInitRank");
  *(void **)&all_reduce = need(nccl, "ncclAllReduce");
  *(void **)&send_to = need(nccl, "ncclSend");
  *(void **)&receive_from = need(nccl, "ncclRecv");
  *(void **)&group_start = need(nccl, "ncclGroupStart");
  *(void **)&group_end = need(nccl, "ncclGroupEnd");
  *(void **)&comm_destroy = need(nccl, "ncclCommDestroy");
}

static double now(void) /* us */
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void print_list(const char *name, const double *values, int count)
{
  printf("\"%s\":[", name);
  for (int i = 0; i < count; i++) printf("%s%.2f", i ? "," : "", values[i]);
  printf("],");
}

static int compare(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* What a rank's operations work on. The memory has room for what is sent and, behind it, for what is received. */
struct place {
  int rank, ranks;
  float *memory;
  void *comm, *stream;
};

static void reduce(const struct place *p)
{
  ok("ncclAllReduce", all_reduce(p->memory, p->memory, COUNT, FLOAT32, SUM, p->comm, p->stream));
}

static void exchange(const struct place *p)
{
  ok("ncclGroupStart", group_start());
  ok("ncclSend", send_to(p->memory, COUNT, FLOAT32, (p->rank + 1) % p->ranks, p->comm, p->stream));
  ok("ncclRecv", receive_from(p->memory + COUNT, COUNT, FLOAT32, (p->rank + p->ranks - 1) % p->ranks, p->comm, p->stream));
  ok("ncclGroupEnd", group_end());
}

static const struct {
  const char *name;
  void (*call)(const struct place *p);
} kinds[] = {{"AllReduce", reduce}, {"SendRecv", exchange}};

static void operations(const struct place *p, int kind, int count)
{
  double *calls = calloc((size_t)count + 1, sizeof *calls), sum = 0;
  if (!calls) fail("calls", strerror(errno));
  kinds[kind].call(p); /* the first one connects */
  ok("cudaStreamSynchronize", stream_synchronize(p->stream));
  const double begin = now();
  double before = begin;
  for (int i = 0; i < count; i++) {
    kinds[kind].call(p);
    const double after = now();
    sum += calls[i] = after - before;
    if (i % BATCH == BATCH - 1) ok("cudaStreamSynchronize", stream_synchronize(p->stream));
    before = i % BATCH == BATCH - 1 ? now() : after;
  }
  ok("cudaStreamSynchronize", stream_synchronize(p->stream));
  const double loop = now() - begin;
  qsort(calls, (size_t)count, sizeof *calls, compare);
  printf("{\"call_mean_us\":%.3f,\"call_median_us\":%.3f,\"loop_us\":%.3f}\n", sum / count, calls[count / 2], loop / count);
  free(calls);
}

static void wait_for_reader(int rank)
{
  fflush(stdout);
  if (rank == 0) (void)getchar();
  pthread_barrier_wait(&shared->barrier);
}

static int rank_main(int rank, int ranks, int comms, int count, bool one_by_one, int kind)
{
  open_libraries();
  ok("cudaSetDevice", set_device(rank));
  if (rank == 0)
    for (int i = 0; i < comms; i++) ok("ncclGetUniqueId", get_unique_id(&shared->ids[i]));
  void *memory, *stream, *comm[COMMS_MOST];
  double init[COMMS_MOST], first[COMMS_MOST];
  ok("cudaMalloc", device_memory(&memory, 2 * COUNT * sizeof(float)));
  ok("cudaStreamCreate", stream_create(&stream));
  for (int i = 0; i < comms; i++) {
    pthread_barrier_wait(&shared->barrier);
    double begin = now();
    ok("ncclCommInitRank", comm_init_rank(&comm[i], ranks, shared->ids[i], rank));
    init[i] = now() - begin;
    pthread_barrier_wait(&shared->barrier);
    for (int turn = 0; one_by_one && turn < rank; turn++) pthread_barrier_wait(&shared->barrier);
    begin = now();
    ok("ncclAllReduce", all_reduce(memory, memory, COUNT, FLOAT32, SUM, comm[i], stream));
    if (one_by_one) first[i] = now() - begin;
    for (int turn = rank; one_by_one && turn < ranks; turn++) pthread_barrier_wait(&shared->barrier);
    ok("cudaStreamSynchronize", stream_synchronize(stream));
    if (!one_by_one) first[i] = now() - begin;
  }
  pthread_barrier_wait(&shared->barrier);
  if (rank != 0 && !freopen("/dev/null", "w", stdout)) fail("/dev/null", strerror(errno));
  printf("{\"pid\":%d,", (int)getpid());
  print_list("init_us", init, comms);
  print_list("first_us", first, comms);
  printf("\"ranks\":%d}\n", ranks);
  wait_for_reader(rank);
  operations(&(struct place){rank, ranks, memory, comm[0], stream}, kind, count);
  wait_for_reader(rank);
  for (int i = 0; i < comms; i++) ok("ncclCommDestroy", comm_destroy(comm[i]));
  return 0;
}

int main(int argc, char **argv)
{
  if (argc != 6) fail("usage", "job RANKS COMMUNICATORS OPERATIONS together|apart AllReduce|SendRecv");
  const int ranks = atoi(argv[1]), comms = atoi(argv[2]), count = atoi(argv[3]);
  if (ranks < 2 || ranks > RANKS_MOST || comms < 1 || comms > COMMS_MOST || count < 1) fail("usage", "numbers out of range");
  int kind = 0;
  while (strcmp(argv[5], kinds[kind].name) != 0)
    if (++kind == sizeof kinds / sizeof *kinds) fail(argv[5], "no such call");
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) fail("mmap", strerror(errno));
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &attributes, (unsigned)ranks);
  for (int rank = 0; rank < ranks; rank++) {
    const pid_t pid = fork();
    if (pid < 0) fail("fork", strerror(errno));
    if (pid == 0) return rank_main(rank, ranks, comms, count, strcmp(argv[4], "apart") == 0, kind);
  }
  int bad = 0, status;
  while (wait(&status) > 0) bad |= status;
  return bad != 0;
}
