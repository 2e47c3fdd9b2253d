/* SPDX-License-Identifier: Apache-2.0
 *
 * Words that make and end communicators. A new one takes the rank's next number, or the one that is named.
 */
#include <stdlib.h>
#include <string.h>

#include "run.h"

static void take_name(struct rank *r, int slot, const char *name)
{
  r->comm_name[slot] = *name ? strdup(name) : NULL; /* NCCL keeps the pointer */
}

static int next_slot(struct rank *r)
{
  if (r->communicators >= COMMS_MOST) give_up(BAD_USAGE, "more than %d communicators", COMMS_MOST);
  r->gone[r->communicators] = r->finalized[r->communicators] = 0;
  return r->communicators++;
}

/* Where a communicator came from. */
struct descent {
  struct rank *rank;
  const char *how;
  uint64_t begin;
  int slot, parent, parent_rank, parent_ranks, color, key;
};

static void log_descent(const struct descent *d)
{
  int rank = -1, ranks = 0;
  const struct rank *r = d->rank;
  if (r->comm[d->slot]) {
    NCCL(ncclCommUserRank(r->comm[d->slot], &rank));
    NCCL(ncclCommCount(r->comm[d->slot], &ranks));
  }
  log_line(
    "lineage",
    "{\"t0\":%llu,\"t1\":%llu,\"worldRank\":%d,\"how\":\"%s\",\"slot\":%d,\"parentSlot\":%d,\"parentRank\":%d,\"parentRanks\":%d,"
    "\"color\":%d,\"key\":%d,\"rank\":%d,\"nranks\":%d,\"name\":\"%s\"}\n",
    (unsigned long long)d->begin, (unsigned long long)now_ns(), r->rank, d->how, d->slot, d->parent, d->parent_rank,
    d->parent_ranks, d->color, d->key, rank, ranks, r->comm_name[d->slot] ? r->comm_name[d->slot] : "");
}

static struct descent descend(struct rank *r, const char *how, int parent, const char *name)
{
  struct descent d = {.rank = r, .how = how, .parent = parent, .slot = next_slot(r), .begin = now_ns()};
  take_name(r, d.slot, name);
  if (!is_alive(r, parent)) return d;
  NCCL(ncclCommUserRank(r->comm[parent], &d.parent_rank));
  NCCL(ncclCommCount(r->comm[parent], &d.parent_ranks));
  CUDA(cudaSetDevice(r->device));
  return d;
}

static void finish_descents(struct actor *a, struct descent *all, int count)
{
  group_end(a);
  for (int i = 0; i < count; i++) label(all[i].rank, all[i].slot);
  settle(a);
  for (int i = 0; i < count; i++)
    if (is_alive(all[i].rank, all[i].parent)) log_descent(&all[i]);
}

static int has(const struct word *w, int from, const char *option)
{
  for (int i = from; i < ARGUMENTS_MOST; i++)
    if (strcmp(w->argument[i], option) == 0) return 1;
  return 0;
}

/* color: mK rank % K, dK rank / K, xR all but R; an r behind it: keys in reverse. */
static void split_by(struct actor *a, int parent, const char *color, const char *name, int share)
{
  struct descent all[RANKS_MOST];
  int count = 0;
  const int n = atoi(color + 1), reverse = strchr(color + 1, 'r') != NULL;
  if (!strchr("mdx", *color) || (n == 0 && *color != 'x')) give_up(BAD_USAGE, "no colors %s", color);
  group_begin(a);
  EACH_RANK (a, r) {
    struct descent *d = &all[count++];
    *d = descend(r, "split", parent, name);
    if (!is_alive(r, parent)) continue;
    ncclConfig_t config = new_config(r->comm_name[d->slot]);
    config.splitShare = share;
    d->color = *color == 'm' ? d->parent_rank % n : *color == 'd' ? d->parent_rank / n : d->parent_rank == n ? -1 : 0;
    d->key = reverse ? d->parent_ranks - d->parent_rank : d->parent_rank;
    NCCL(ncclCommSplit(r->comm[parent], d->color, d->key, &r->comm[d->slot], &config));
  }
  finish_descents(a, all, count);
}

/* split:K[:share][:name]  the world by rank % K */
static void split(struct actor *a, const struct word *w)
{
  char color[sizeof w->argument[0] + 1];
  snprintf(color, sizeof color, "m%s", w->argument[0]);
  split_by(a, 0, color, w->argument[2], has(w, 1, "share"));
}

/* csplit:PARENT:COLOR[:name][:share] */
static void split_parent(struct actor *a, const struct word *w)
{
  split_by(a, (int)w->number, w->argument[1], w->argument[2], has(w, 3, "share"));
}

static void shrink_by(struct actor *a, int parent, int without, const char *name, int flags, int share)
{
  struct descent all[RANKS_MOST];
  int count = 0;
  group_begin(a);
  EACH_RANK (a, r) {
    struct descent *d = &all[count++];
    *d = descend(r, "shrink", parent, name);
    d->key = d->parent_rank;
    d->color = d->parent_rank == without ? -1 : 0;
    if (!is_alive(r, parent) || d->parent_rank == without) continue;
#if NCCL_VERSION_CODE >= 22700
    ncclConfig_t config = new_config(r->comm_name[d->slot]);
    config.shrinkShare = share;
    NCCL(ncclCommShrink(r->comm[parent], &without, 1, &r->comm[d->slot], &config, flags));
#else
    give_up(BAD_USAGE, "this release cannot shrink");
#endif
  }
  finish_descents(a, all, count);
}

/* shrink:R  the world without R */
static void shrink(struct actor *a, const struct word *w) { shrink_by(a, 0, (int)w->number, "", 0, 0); }

/* cshrink:PARENT:R[:name][:abort][:share] */
static void shrink_parent(struct actor *a, const struct word *w)
{
  shrink_by(a, (int)w->number, atoi(w->argument[1]), w->argument[2], has(w, 3, "abort"), has(w, 3, "share"));
}

/* init:K[:name]  the world anew */
static void init(struct actor *a, const struct word *w)
{
  int everybody[RANKS_MOST];
  const int count = options.processes * options.ranks_each;
  for (int i = 0; i < count; i++) everybody[i] = i;
  init_slot(a, (int)(w->number % COMMS_MOST), everybody, count, w->argument[1]);
}

/* initof:K:R,R,…[:name]  a communicator of these world ranks, in this order */
static void init_of(struct actor *a, const struct word *w)
{
  int members[RANKS_MOST], count = 0;
  char text[sizeof w->argument[1]], *rest = text, *one;
  snprintf(text, sizeof text, "%s", w->argument[1]);
  while ((one = strsep(&rest, ",")) && count < RANKS_MOST) members[count++] = atoi(one);
  init_slot(a, (int)(w->number % COMMS_MOST), members, count, w->argument[2]);
}

struct ending {
  struct rank *rank;
  int slot;
  long after_ms;
};

static void *abort_one(void *argument)
{
  struct ending *e = argument;
  if (e->after_ms) sleep_ms(e->after_ms);
  if (is_alive(e->rank, e->slot)) {
    ncclComm_t comm = e->rank->comm[e->slot];
    bury(e->rank, e->slot);
    CUDA(cudaSetDevice(e->rank->device));
    const uint64_t begin = now_ns();
    NCCL(ncclCommAbort(comm));
    log_line("inject", "{\"t\":%llu,\"t1\":%llu,\"worldRank\":%d,\"kind\":\"abort\",\"comm\":%d}\n", (unsigned long long)begin,
             (unsigned long long)now_ns(), e->rank->rank, e->slot);
  }
  free(e);
  return NULL;
}

static struct ending *ending(struct rank *r, int slot, long after_ms)
{
  struct ending *e = malloc(sizeof *e);
  *e = (struct ending){r, slot, after_ms};
  return e;
}

/* abort:K  every rank from a thread of its own, as each abort waits for its peers */
static void abort_communicator(struct actor *a, const struct word *w)
{
  pthread_t threads[RANKS_MOST];
  int count = 0;
  EACH_RANK (a, r) pthread_create(&threads[count++], NULL, abort_one, ending(r, (int)w->number, 0));
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

/* watchdog:MS:K  aborts communicator K after that time, while the program goes on */
static void watchdog(struct actor *a, const struct word *w)
{
  EACH_RANK (a, r) {
    pthread_t thread;
    pthread_create(&thread, NULL, abort_one, ending(r, atoi(w->argument[1]), (long)w->number));
    pthread_detach(thread);
  }
}

static void revoke(struct actor *a, const struct word *w)
{
#ifdef NCCL_REVOKE_DEFAULT
  EACH_RANK (a, r)
    if (is_alive(r, (int)w->number)) NCCL(ncclCommRevoke(r->comm[w->number], NCCL_REVOKE_DEFAULT));
  int waits = options.non_blocking; /* the communicator is busy until it is quiet */
  options.non_blocking = 1;
  settle(a);
  options.non_blocking = waits;
#else
  give_up(BAD_USAGE, "this release cannot revoke");
#endif
}

/* destroy:K, finalize:K */
static void destroy(struct actor *a, const struct word *w)
{
  const int slot = (int)w->number;
  group_begin(a);
  EACH_RANK (a, r) {
    if (!is_alive(r, slot)) continue;
    CUDA(cudaSetDevice(r->device));
    bury(r, slot);
    NCCL(ncclCommDestroy(r->comm[slot]));
  }
  group_end(a);
}

static void finalize(struct actor *a, const struct word *w)
{
  group_begin(a);
  EACH_RANK (a, r) {
    if (!is_alive(r, (int)w->number)) continue;
    CUDA(cudaSetDevice(r->device));
    NCCL(ncclCommFinalize(r->comm[w->number]));
    r->finalized[w->number] = 1;
  }
  group_end(a);
  settle(a);
}

static void choose(struct actor *a, const struct word *w)
{
  EACH_RANK (a, r) r->current = (int)(w->number % COMMS_MOST);
}

/* register:K, deregister:K  the first send buffer */
static void register_buffer(struct actor *a, const struct word *w)
{
  EACH_RANK (a, r) NCCL(ncclCommRegister(r->comm[w->number], r->send[0], options.buffer_bytes, &r->registered[w->number]));
}

static void deregister_buffer(struct actor *a, const struct word *w)
{
  EACH_RANK (a, r) NCCL(ncclCommDeregister(r->comm[w->number], r->registered[w->number]));
}

const struct word_action communicator_words[] = {{"comm", choose},
                                                 {"split", split},
                                                 {"csplit", split_parent},
                                                 {"shrink", shrink},
                                                 {"cshrink", shrink_parent},
                                                 {"init", init},
                                                 {"initof", init_of},
                                                 {"abort", abort_communicator},
                                                 {"watchdog", watchdog},
                                                 {"revoke", revoke},
                                                 {"destroy", destroy},
                                                 {"finalize", finalize},
                                                 {"register", register_buffer},
                                                 {"deregister", deregister_buffer},
                                                 {NULL, NULL}};
