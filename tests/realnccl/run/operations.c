/* SPDX-License-Identifier: Apache-2.0
 *
 * The words that call NCCL's operations. Arguments stand in a word's own order: COUNT[:type[:reduction]], or
 * COUNT:root[:type[:reduction]], COUNT:peer[:type], COUNT:from:to, COUNT,COUNT,…[:type].
 */
#include <stdlib.h>
#include <string.h>

#include "run.h"

struct call {
  const struct word *word;
  const struct operation *o;
  int rank, ranks;
  char *in, *out;
  size_t size; /* bytes of an element */
  ncclComm_t comm;
  cudaStream_t stream;
};

static void all_reduce(const struct call *c)
{
  NCCL(ncclAllReduce(c->in, c->out, c->o->count, c->o->type, c->o->reduction, c->comm, c->stream));
}

static void all_reduce_in_place(const struct call *c)
{
  NCCL(ncclAllReduce(c->out, c->out, c->o->count, c->o->type, c->o->reduction, c->comm, c->stream));
}

static void broadcast(const struct call *c)
{
  NCCL(ncclBroadcast(c->in, c->out, c->o->count, c->o->type, c->o->root, c->comm, c->stream));
}

static void reduce(const struct call *c)
{
  NCCL(ncclReduce(c->in, c->out, c->o->count, c->o->type, c->o->reduction, c->o->root, c->comm, c->stream));
}

static void all_gather(const struct call *c)
{
  NCCL(ncclAllGather(c->in, c->out, c->o->count, c->o->type, c->comm, c->stream));
}

static void reduce_scatter(const struct call *c)
{
  NCCL(ncclReduceScatter(c->in, c->out, c->o->count, c->o->type, c->o->reduction, c->comm, c->stream));
}

static void send_one(const struct call *c) { NCCL(ncclSend(c->in, c->o->count, c->o->type, c->o->peer, c->comm, c->stream)); }
static void receive_one(const struct call *c)
{
  NCCL(ncclRecv(c->out, c->o->count, c->o->type, c->o->peer, c->comm, c->stream));
}
#if NCCL_VERSION_CODE >= 22800
static void all_to_all_call(const struct call *c)
{
  NCCL(ncclAlltoAll(c->in, c->out, c->o->count, c->o->type, c->comm, c->stream));
}

static void gather(const struct call *c)
{
  NCCL(ncclGather(c->in, c->out, c->o->count, c->o->type, c->o->root, c->comm, c->stream));
}

static void scatter(const struct call *c)
{
  NCCL(ncclScatter(c->in, c->out, c->o->count, c->o->type, c->o->root, c->comm, c->stream));
}
#endif

static void all_to_all(const struct call *c)
{
  const size_t bytes = c->o->count * c->size;
  NCCL(ncclGroupStart());
  for (int k = 0; k < c->ranks; k++) {
    NCCL(ncclSend(c->in + (size_t)k * bytes, c->o->count, c->o->type, k, c->comm, c->stream));
    NCCL(ncclRecv(c->out + (size_t)k * bytes, c->o->count, c->o->type, k, c->comm, c->stream));
  }
  NCCL(ncclGroupEnd());
}

struct uneven uneven_part(const struct word *w, int rank)
{
  struct uneven u = {0, 0};
  const char *at = w->argument[0];
  for (int i = 0; i <= rank && at; i++, at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
    u.begin += u.count;
    u.count = number_of(at);
  }
  return u;
}

/* As frameworks do it: a group of Broadcasts, each rank the root of its part. */
static void all_gather_uneven(const struct call *c)
{
  NCCL(ncclGroupStart());
  for (int k = 0; k < c->ranks; k++) {
    const struct uneven u = uneven_part(c->word, k);
    NCCL(ncclBroadcast(c->in, c->out + u.begin * c->size, u.count, c->o->type, k, c->comm, c->stream));
  }
  NCCL(ncclGroupEnd());
}

static void shift(const struct call *c)
{
  NCCL(ncclGroupStart());
  NCCL(ncclSend(c->in, c->o->count, c->o->type, (c->rank + 1) % c->ranks, c->comm, c->stream));
  NCCL(ncclRecv(c->out, c->o->count, c->o->type, c->o->peer, c->comm, c->stream));
  NCCL(ncclGroupEnd());
}

static void pair(const struct call *c)
{
  if (c->rank == c->o->root) NCCL(ncclSend(c->in, c->o->count, c->o->type, c->o->to, c->comm, c->stream));
  if (c->rank == c->o->to) NCCL(ncclRecv(c->out, c->o->count, c->o->type, c->o->root, c->comm, c->stream));
}

/* Which argument is what; 0: it is not there. */
static const struct verb {
  const char *name;
  int type, reduction, root, peer, to;
  void (*call)(const struct call *);
} verbs[] = {
  {"ar", 1, 2, 0, 0, 0, all_reduce},
  {"ari", 1, 2, 0, 0, 0, all_reduce_in_place},
  {"ag", 1, 0, 0, 0, 0, all_gather},
  {"rs", 1, 2, 0, 0, 0, reduce_scatter},
  {"bc", 2, 0, 1, 0, 0, broadcast},
  {"rd", 2, 3, 1, 0, 0, reduce},
  {"agv", 1, 0, 0, 0, 0, all_gather_uneven},
  {"a2a", 1, 0, 0, 0, 0, all_to_all},
  {"sr", 1, 0, 0, 0, 0, shift},
  {"pair", 3, 0, 1, 0, 2, pair},
  {"send", 2, 0, 0, 1, 0, send_one},
  {"recv", 2, 0, 0, 1, 0, receive_one},
#if NCCL_VERSION_CODE >= 22800
  {"alltoall", 1, 0, 0, 0, 0, all_to_all_call},
  {"gather", 2, 0, 1, 0, 0, gather},
  {"scatter", 2, 0, 1, 0, 0, scatter},
#endif
};

static const struct verb *verb(const char *name)
{
  for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
    if (strcmp(name, verbs[i].name) == 0) return &verbs[i];
  return NULL;
}

int is_operation(const char *name) { return verb(name) != NULL; }

/* +1 and -1 are counted from the own rank. */
static int rank_argument(const struct word *w, int which, int rank, int ranks)
{
  const char *text = which ? w->argument[which] : "";
  const int n = atoi(text) + (*text == '+' || *text == '-' ? rank : 0);
  return (n % ranks + ranks) % ranks;
}

struct operation operation(const struct word *w, int rank, int ranks)
{
  const struct verb *v = verb(w->name);
  struct operation o = {.count = w->number, .type = ncclFloat32, .reduction = ncclSum};
  if (!v) return o;
  o.type = type_of(v->type ? w->argument[v->type] : "");
  o.reduction = operation_of(v->reduction ? w->argument[v->reduction] : "");
  o.root = rank_argument(w, v->root, rank, ranks);
  o.to = rank_argument(w, v->to, rank, ranks);
  o.peer = v->peer ? rank_argument(w, v->peer, rank, ranks) : (rank + ranks - 1) % ranks; /* of a ring's shift */
  return o;
}

void issue(struct rank *r, const struct word *w, int slot)
{
  const struct verb *v = verb(w->name);
  struct call c = {
    .word = w, .in = r->send[slot], .out = r->receive[slot], .comm = r->comm[r->current], .stream = r->streams[r->stream]};
  if (!is_alive(r, r->current)) return;
  NCCL(ncclCommUserRank(c.comm, &c.rank));
  NCCL(ncclCommCount(c.comm, &c.ranks));
  const struct operation o = operation(w, c.rank, c.ranks);
  if (v->call == pair && c.rank != o.root && c.rank != o.to) return;
  c.o = &o;
  c.size = type_bytes(o.type);
  CUDA(cudaSetDevice(r->device));
  const uint64_t begin = now_ns();
  v->call(&c);
  char graph[32] = "";
  if (r->capturing >= 0) snprintf(graph, sizeof graph, ",\"graph\":%d", r->capturing);
  log_line(
    "issue",
    "{\"t0\":%llu,\"t1\":%llu,\"worldRank\":%d,\"comm\":%d,\"commName\":\"%s\",\"commRank\":%d,\"nranks\":%d,\"stream\":%d,\"op\":\"%s\","
    "\"count\":%zu,\"a\":[\"%s\",\"%s\"],\"type\":%d,\"root\":%d%s}\n",
    (unsigned long long)begin, (unsigned long long)now_ns(), r->rank, r->current,
    r->comm_name[r->current] ? r->comm_name[r->current] : "", c.rank, c.ranks, r->stream, w->name, o.count,
    v->call == all_gather_uneven ? w->argument[0] : w->argument[1], w->argument[2], (int)o.type, o.root, graph);
}
