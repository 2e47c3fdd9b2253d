/* SPDX-License-Identifier: Apache-2.0
 *
 * One process: its ranks, and the threads that drive them.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

enum { DEVICES = 8 };

int is_alive(const struct rank *r, int slot) { return r->comm[slot] && !__atomic_load_n(&r->gone[slot], __ATOMIC_ACQUIRE); }

/* Of the stand-in for the CUDA runtime. */
extern void realnccl_label(const void *communicator, const char *label);

void label(struct rank *r, int slot)
{
  char text[128];
  if (!r->comm[slot]) return;
  snprintf(text, sizeof text, "\"comm\":%d,\"commName\":\"%s\",\"worldRank\":%d,", slot,
           r->comm_name[slot] ? r->comm_name[slot] : "", r->rank);
  realnccl_label(r->comm[slot], text);
}

void bury(struct rank *r, int slot)
{
  __atomic_store_n(&r->gone[slot], 1, __ATOMIC_RELEASE);
  realnccl_label(r->comm[slot], NULL);
}

void group_begin(struct actor *a)
{
  if (a->count > 1) NCCL(ncclGroupStart());
}

void group_end(struct actor *a)
{
  if (a->count > 1) NCCL(ncclGroupEnd());
}

static void wait_until_ready(ncclComm_t comm)
{
  ncclResult_t state;
  do {
    NCCL(ncclCommGetAsyncError(comm, &state));
    if (state == ncclInProgress) sleep_ms(1);
  } while (state == ncclInProgress);
  NCCL(state);
}

void settle(struct actor *a)
{
  if (!options.non_blocking || a->depth) return;
  EACH_RANK (a, r)
    for (int slot = 0; slot < COMMS_MOST; slot++)
      if (is_alive(r, slot)) wait_until_ready(r->comm[slot]);
}

ncclConfig_t new_config(const char *name)
{
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  if (options.non_blocking) config.blocking = 0;
#if NCCL_VERSION_CODE >= 22700
  if (name) config.commName = name;
#else
#endif
  return config;
}

static void prepare(struct rank *r, int number)
{
  r->rank = number;
  r->device = number % DEVICES;
  r->capturing = -1;
  CUDA(cudaSetDevice(r->device));
  for (int i = 0; i < STREAMS; i++) CUDA(cudaStreamCreateWithFlags(&r->streams[i], cudaStreamNonBlocking));
  for (int i = 0; i < EVENTS; i++) CUDA(cudaEventCreateWithFlags(&r->event[i], cudaEventDisableTiming));
  for (int i = 0; i < SLOTS; i++) {
    CUDA(cudaMalloc((void **)&r->send[i], options.buffer_bytes));
    CUDA(cudaMalloc((void **)&r->receive[i], options.buffer_bytes));
  }
}

/* The next id of a slot and first member; its first member's actor makes it. */
static const ncclUniqueId *next_id(struct actor *a, int slot, int first)
{
  const unsigned round = ++a->rounds[slot][first];
  ncclUniqueId *id = &shared->ids[slot][first].id;
  EACH_RANK (a, r) {
    if (r->rank != first) continue;
    NCCL(ncclGetUniqueId(id));
    __atomic_store_n(&shared->ids[slot][first].round, round, __ATOMIC_RELEASE);
  }
  while (__atomic_load_n(&shared->ids[slot][first].round, __ATOMIC_ACQUIRE) < round) sleep_ms(1);
  return id;
}

void init_slot(struct actor *a, int slot, const int *members, int count, const char *name)
{
  struct actor in = {.depth = a->depth};
  int places[RANKS_MOST];
  EACH_RANK (a, r)
    for (int i = 0; i < count; i++)
      if (members[i] == r->rank) {
        places[in.count] = i;
        in.ranks[in.count++] = r;
      }
  if (!in.count) return;
  const ncclUniqueId id = *next_id(a, slot, members[0]);
  group_begin(&in);
  for (int i = 0; i < in.count; i++) {
    struct rank *r = in.ranks[i];
    char text[64];
    snprintf(text, sizeof text, slot && !*name ? "%s.%d" : "%s", *name ? name : options.name ? options.name : "", slot);
    r->comm_name[slot] = *name || options.name ? strdup(text) : NULL; /* NCCL keeps the pointer */
    r->gone[slot] = r->finalized[slot] = 0;
    if (r->communicators <= slot) r->communicators = slot + 1;
    ncclConfig_t config = new_config(r->comm_name[slot]);
    CUDA(cudaSetDevice(r->device));
    NCCL(ncclCommInitRankConfig(&r->comm[slot], count, id, places[i], &config));
  }
  group_end(&in);
  for (int i = 0; i < in.count; i++) label(in.ranks[i], slot);
  settle(&in);
}

static void init_world(struct actor *a)
{
  int everybody[RANKS_MOST];
  for (int i = 0; i < options.processes * options.ranks_each; i++) everybody[i] = i;
  if (options.driving != BY_INIT_ALL) {
    for (int slot = 0; slot < options.communicators; slot++)
      init_slot(a, slot, everybody, options.processes * options.ranks_each, "");
    return;
  }
  ncclComm_t comms[RANKS_MOST];
  int devices[RANKS_MOST];
  for (int i = 0; i < a->count; i++) devices[i] = a->ranks[i]->device;
  NCCL(ncclCommInitAll(comms, a->count, devices));
  for (int i = 0; i < a->count; i++) {
    a->ranks[i]->comm[0] = comms[i];
    a->ranks[i]->communicators = 1;
    label(a->ranks[i], 0);
  }
}

static void end_one(struct rank *r, int slot, int finalizes)
{
  if (!is_alive(r, slot)) return;
  CUDA(cudaSetDevice(r->device));
  if (!finalizes) NCCL(ncclCommDestroy(r->comm[slot]));
  else if (!r->finalized[slot]) NCCL(ncclCommFinalize(r->comm[slot]));
}

/* Communicators are ended from the newest to the oldest. A non-blocking one has to be finalized first. */
static void end_all(struct actor *a)
{
  EACH_RANK (a, r)
    for (int i = 0; i < STREAMS; i++) CUDA(cudaStreamSynchronize(r->streams[i]));
  for (int finalizes = options.non_blocking; finalizes >= 0; finalizes--) {
    for (int slot = COMMS_MOST - 1; slot >= 0; slot--) {
      int any = 0;
      EACH_RANK (a, r) any |= is_alive(r, slot);
      if (!any) continue;
      group_begin(a);
      EACH_RANK (a, r) end_one(r, slot, finalizes);
      group_end(a);
    }
    if (finalizes) settle(a);
  }
}

static void *drive(void *argument)
{
  struct actor *a = argument;
  char name[32];
  if (options.driving == BY_THREADS) {
    snprintf(name, sizeof name, "rank%d", a->ranks[0]->rank);
    pthread_setname_np(pthread_self(), name);
  }
  EACH_RANK (a, r) snprintf(shared->ranks[r->rank].word, sizeof shared->ranks[0].word, "init");
  init_world(a);
  run_program(a, options.program, options.program + strlen(options.program));
  EACH_RANK (a, r)
    snprintf(shared->ranks[r->rank].word, sizeof shared->ranks[0].word,
             "the end: waiting for streams, destroying communicators");
  if (!a->keep) end_all(a);
  EACH_RANK (a, r) shared->ranks[r->rank].word[0] = 0;
  return NULL;
}

/* NCCLRUN_START_DELAY=MS,MS,…: of each process */
static void start_late(void)
{
  const char *text = getenv("NCCLRUN_START_DELAY");
  char *end;
  for (int i = 0; text && *text; i++) {
    const long ms = strtol(text, &end, 10);
    if (i == process_number && ms > 0) {
      const uint64_t begin = now_ns();
      sleep_ms(ms);
      log_line("inject", "{\"t\":%llu,\"t1\":%llu,\"worldRank\":%d,\"kind\":\"before init\",\"us\":%ld}\n",
               (unsigned long long)begin, (unsigned long long)now_ns(), process_number * options.ranks_each, ms * 1000);
    }
    if (*end != ',') break;
    text = end + 1;
  }
}

int run_process(void)
{
  static struct rank ranks[RANKS_MOST];
  static struct actor actors[RANKS_MOST];
  const int count = options.driving == BY_THREADS ? options.ranks_each : 1;
  start_late();
  for (int i = 0; i < options.ranks_each; i++) {
    struct actor *a = &actors[options.driving == BY_THREADS ? i : 0];
    prepare(&ranks[i], process_number * options.ranks_each + i);
    a->index = (int)(a - actors);
    a->ranks[a->count++] = &ranks[i];
  }
  if (count == 1) drive(&actors[0]);
  else {
    for (int i = 0; i < count; i++) pthread_create(&actors[i].thread, NULL, drive, &actors[i]);
    for (int i = 0; i < count; i++) pthread_join(actors[i].thread, NULL);
  }
  return DONE;
}
