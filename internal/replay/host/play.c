/* SPDX-License-Identifier: Apache-2.0 */
#include "play.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "adapt.h"
#include "clock.h"
#include "cuda.h"
#include "kernels.h"
#include "ledger.h"
#include "loader.h"
#include "meeting.h"
#include "publish.h"
#include "tally.h"

/* One recorded thread. `made` is how many of its calls have returned: what it stored before (handles,
 * contexts, masks of its events) may be read by whoever has seen it. */
struct player {
  uint32_t index;
  pthread_t id;
  bool created;
  uint32_t *calls;  /* indices, in order */
  uint32_t *spawns; /* threads to create, in the order of the calls that they follow */
  uint32_t spawn_count, spawned;
  _Atomic uint32_t made;
  _Atomic uint32_t wanted; /* the least value of `made` that somebody waits for */
  pthread_mutex_t lock;
  pthread_cond_t moved;
  /* Exactly as large as the plugin's version has them, on the heap, so that a plugin that reads
   * members of a newer version is caught by the memory checkers. */
  const struct layout *layout; /* … that descr and args are of */
  void *descr, *args;
  struct net_socket *socket;
  struct net_ib *ib;
};

static const struct program *prog;
static struct play_options opt;
static struct player *players;
static int minor;                   /* of the NCCL release */
static void *wild;                  /* a page that must not be read */
static void **contexts;             /* [context] the plugin's */
static void **handles;              /* [event] what the event's slot holds */
static bool *given;                 /* [event] it was started, and the handle is its own */
static int *masks;                  /* [event] GroupApi, Group: the mask that travels with its operations */
static int mask;                    /* NCCL's one mask: plugins may write it at any time */
static _Atomic uint64_t left;       /* calls until die_after */
static _Atomic int64_t running;     /* calls until stop_after */
static _Atomic int64_t awaited;     /* and of those that others wait for, of the program's first stop_after ones */

int play_mask(void) { return __atomic_load_n(&mask, __ATOMIC_RELAXED); }

/* ---- threads waiting for each other --------------------------------------------------------- */

static void advance(struct player *p)
{
  uint32_t n = atomic_load_explicit(&p->made, memory_order_relaxed) + 1;
  atomic_store(&p->made, n);
  /* Either this sees what a waiter wants, or the waiter sees the new `made`. */
  if (atomic_load(&p->wanted) <= n) {
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->wanted, UINT32_MAX);
    pthread_cond_broadcast(&p->moved);
    pthread_mutex_unlock(&p->lock);
  }
}

static void wait_until(struct player *p, uint32_t made)
{
  if (atomic_load(&p->made) >= made) return;
  pthread_mutex_lock(&p->lock);
  for (;;) {
    if (atomic_load(&p->wanted) > made) atomic_store(&p->wanted, made);
    if (atomic_load(&p->made) >= made) break;
    pthread_cond_wait(&p->moved, &p->lock);
  }
  pthread_mutex_unlock(&p->lock);
}

static void wait_for_call(uint32_t n)
{
  const struct call *c = &prog->calls[n];
  wait_until(&players[c->thread], c->position + 1);
}

/* ---- NCCL's logger -------------------------------------------------------------------------- */

/* INIT, ENV and BOOTSTRAP: what NCCL shows where NCCL_DEBUG_SUBSYS is not set. */
enum { DEFAULT_SUBSYSTEMS = 0x1 | 0x80 | 0x1000 };

void play_log(int level, unsigned long flags, const char *file, int line, const char *fmt, va_list ap)
{
  if (!(flags & DEFAULT_SUBSYSTEMS)) return; /* NCCL's filter, which holds for warnings, too */
  count(level == NCCL_LOG_WARN ? &tally.warnings : &tally.infos);
  if (level != NCCL_LOG_WARN && !opt.verbose) return;
  char text[1024];
  vsnprintf(text, sizeof text, fmt, ap);
  fprintf(stderr, "NCCL %s %s:%d %s\n", level == NCCL_LOG_WARN ? "WARN" : "INFO", file ? file : "", line, text);
}

/* ---- operands ------------------------------------------------------------------------------- */

static uint64_t address(const void *p) { return (uint64_t)(uintptr_t)p; }

static uint64_t resolve(struct player *p, struct value v)
{
  switch (v.how) {
  case VALUE_BITS:
  case VALUE_INT: return v.bits;
  case VALUE_CONTEXT: return address(contexts[v.bits]);
  case VALUE_EVENT: return address(handles[v.bits]);
  case VALUE_STRING: return address(prog->strings[v.bits]);
  case VALUE_PID: return (uint64_t)getpid();
  case VALUE_PUBLISHED: return published_value((uint32_t)v.bits);
  case VALUE_AUTHOR: return (uint64_t)published_author((uint32_t)v.bits);
  case VALUE_WILD: return address(wild);
  case VALUE_SOCKET: *p->socket = prog->blobs[v.bits].socket; return address(p->socket);
  case VALUE_IB: *p->ib = prog->blobs[v.bits].ib; return address(p->ib);
  case VALUE_NULL:
  case VALUE_PROXY_OP:
  case VALUE_PROXY_DIAG:
  case VALUE_EMPTY: break;
  }
  return 0;
}

static void *resolve_pointer(struct player *p, struct value v) { return (void *)(uintptr_t)resolve(p, v); }

static void *allocate(size_t size)
{
  void *p = malloc(size);
  if (!p) {
    fprintf(stderr, "replay-host: out of memory\n");
    exit(1);
  }
  return p;
}

static void fit(struct player *p)
{
  if (p->layout == loader_plugin->layout) return;
  free(p->descr);
  free(p->args);
  p->layout = loader_plugin->layout;
  p->descr = allocate(p->layout->descr_size);
  p->args = allocate(p->layout->args_size);
}

static uint64_t type_bits(const struct call *c)
{
  if (c->type == TYPE_PROXY_DIAG) return PROXY_DIAG_BIT;
  return c->type == TYPE_OTHER ? c->fields[OTHER_type].bits : 1ull << c->type;
}

static void *fill_descr(struct player *p, const struct call *c)
{
  fit(p);
  uint64_t values[FIELD_MAX], parent = resolve(p, c->parent);
  const struct field *fields = event_info[c->type].fields;
  for (int i = 0; fields[i].name; i++) {
    values[i] = resolve(p, c->fields[i]);
    if (fields[i].kind == FIELD_HANDLE && adapt_parent_is_group(p->layout, minor, c->type)) parent = values[i];
  }
  adapt_descr(p->descr, p->layout, minor, c->type, type_bits(c), parent, c->rank, values);
  return p->descr;
}

static void *fill_args(struct player *p, const struct call *c)
{
  fit(p);
  uint64_t bits = resolve(p, c->args);
  const void *value = &bits;
  size_t size = sizeof bits;
  switch (c->args.how) {
  case VALUE_PROXY_OP: value = &prog->blobs[c->args.bits].proxy_op, size = sizeof(union args_v1); break;
  case VALUE_PROXY_DIAG: value = &prog->blobs[c->args.bits].proxy_diag, size = sizeof(union args_rccl_v6); break;
  case VALUE_INT: size = sizeof(int); break;
  case VALUE_EMPTY: size = 0; break;
  default: break;
  }
  return adapt_args(p->args, p->layout, minor, c->state, c->args.how != VALUE_NULL, value, size);
}

/* ---- the calls ------------------------------------------------------------------------------ */

static void answered(int result)
{
  if (result != NCCL_SUCCESS) count(&tally.errors);
}

static void make_init(const struct call *c)
{
  uint32_t i = (uint32_t)c->context.bits;
  const struct context *x = &prog->contexts[i];
  const struct plugin *got = loader_acquire();
  if (!got) return;
  cuda_set_device(x->device);
  void *context = NULL;
  switch (got->layout->init) {
  case INIT_V1: answered(got->table.init.v1(&context, &mask)); break;
  case INIT_V4: answered(got->table.init.v4(&context, &mask, x->name, x->comm_id, x->nnodes, x->nranks, x->rank, opt.log)); break;
  case INIT_V5: answered(got->table.init.v5(&context, x->comm_id, &mask, x->name, x->nnodes, x->nranks, x->rank, opt.log)); break;
  }
  /* Other threads and the plugin may change it meanwhile: only bits that are to go or to come. */
  int before = play_mask(), after = adapt_mask(got->layout, minor, before);
  if (before & ~after) __atomic_fetch_and(&mask, ~(before & ~after), __ATOMIC_RELAXED);
  if (after & ~before) __atomic_fetch_or(&mask, after & ~before, __ATOMIC_RELAXED);
  contexts[i] = context;
  count(&tally.inits);
}

static void make_start(struct player *p, const struct call *c)
{
  const struct event_info *info = &event_info[c->type];
  uint64_t e = c->event.bits;
  void *before = resolve_pointer(p, c->before);
  int traveling = c->root ? masks[c->root] : play_mask();
  if (c->type == TYPE_GROUP_API || c->type == TYPE_GROUP) masks[e] = traveling;
  bool wanted = loader_plugin && (!info->implied_by || (uint32_t)traveling & info->implied_by);
  if (wanted && adapt_needs_parent(minor, c->type) && !resolve(p, c->parent)) wanted = false;
  if (!wanted) {
    count(&tally.held_starts[c->type]);
    if (info->stale_slot) handles[e] = before;
    return;
  }
  if (!adapt_has_type(loader_plugin->layout, minor, c->type, type_bits(c))) {
    /* The adapter returns without writing the slot. */
    count(&tally.held_starts[c->type]);
    handles[e] = before;
    return;
  }
  void *handle = before;
  answered(loader_plugin->table.start(resolve_pointer(p, c->context), &handle, fill_descr(p, c)));
  if (handle && handle == before) count(&tally.unwritten);
  handles[e] = handle;
  given[e] = handle != NULL;
  count(handle ? &tally.started[c->type] : &tally.declined[c->type]);
}

/* Whether NCCL makes a stop or a state, and with which handle. */
static bool reaches(struct player *p, const struct call *c, void **handle)
{
  *handle = resolve_pointer(p, c->event);
  if (!loader_plugin) return false;
  if (*handle) return true;
  /* A recorded NULL is NCCL's own doing and is made again. */
  return c->event.how != VALUE_EVENT || event_info[prog->event_types[c->event.bits]].called_on_null;
}

static void make_stop(struct player *p, const struct call *c)
{
  void *handle;
  bool known = c->event.how == VALUE_EVENT;
  if (!reaches(p, c, &handle)) {
    if (known) count(&tally.held_stops[prog->event_types[c->event.bits]]);
    return;
  }
  if (!handle) count(&tally.null_handles);
  else if (!known) count(&tally.raw_handles);
  else if (!given[c->event.bits]) count(&tally.stale_stops);
  else count(&tally.stopped[prog->event_types[c->event.bits]]);
  answered(loader_plugin->table.stop(handle));
}

static void make_state(struct player *p, const struct call *c)
{
  void *handle;
  if (!reaches(p, c, &handle) || !adapt_has_state(loader_plugin->layout, minor, c->state)) {
    count(&tally.held_states[state_index(c->state)]);
    return;
  }
  if (!handle) count(&tally.null_handles);
  else if (c->event.how != VALUE_EVENT) count(&tally.raw_handles);
  else count(&tally.states[state_index(c->state)]);
  answered(loader_plugin->table.state(handle, c->state, fill_args(p, c)));
}

static void make_finalize(struct player *p, const struct call *c)
{
  void *context = resolve_pointer(p, c->context);
  if (!opt.finalize) {
    count(&tally.held_finalizes);
    return;
  }
  kernels_wait();
  /* NCCL passes over communicators without a context, but counts them. */
  if (loader_plugin && context) {
    answered(loader_plugin->table.finalize(context));
    count(&tally.finalizes);
  } else {
    count(&tally.held_finalizes);
  }
  if (c->context.how == VALUE_CONTEXT) loader_release();
}

static void announce(const struct call *c)
{
  if (c->publish == NOT_PUBLISHED) return;
  publish(c->publish, address(c->kind == CALL_INIT ? contexts[c->context.bits] : handles[c->event.bits]));
}

/* ---- threads -------------------------------------------------------------------------------- */

static void *run_thread(void *arg);

static void create(struct player *p)
{
  int err = pthread_create(&p->id, NULL, run_thread, p);
  if (err) {
    fprintf(stderr, "replay-host: thread %u cannot be created: %s\n", p->index, strerror(err));
    exit(1);
  }
  p->created = true;
}

static void die(void)
{
  tally_report(loader_version(), play_mask());
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

/* Other processes wait for what these bring: communicators, and handles. */
static bool is_awaited(const struct call *c) { return c->kind == CALL_INIT || c->publish != NOT_PUBLISHED; }

/* Threads run ahead of each other: so many calls may have been made while one of the first ones has not. */
static void stop_when_due(uint32_t index)
{
  static _Atomic bool stopped;
  if (!opt.stop_after) return;
  if (index < opt.stop_after && is_awaited(&prog->calls[index])) atomic_fetch_sub(&awaited, 1);
  if (atomic_fetch_sub(&running, 1) <= 1 && atomic_load(&awaited) <= 0 && !atomic_exchange(&stopped, true)) kill(getpid(), SIGSTOP);
}

static void run_player(struct player *p)
{
  pthread_setname_np(pthread_self(), prog->threads[p->index].name);
  atomic_store(&tally.tids[p->index], (int32_t)syscall(SYS_gettid));
  uint32_t n = prog->threads[p->index].calls;
  p->socket = allocate(sizeof *p->socket);
  p->ib = allocate(sizeof *p->ib);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t index = p->calls[i];
    const struct call *c = &prog->calls[index];
    if (opt.in_order && index > 0) wait_for_call(index - 1);
    if (opt.paced) clock_pace(opt.start_at, prog->base, prog->base + (c->time - prog->base) / opt.faster * opt.slower);
    for (uint32_t k = 0; k < c->after_count; k++) wait_for_call(c->after[k]);
    if (c->kind != CALL_INIT && c->context.how == VALUE_CONTEXT) meeting_wait(&prog->contexts[c->context.bits]);
    clock_enter(c->time);
    switch (c->kind) {
    case CALL_INIT:
      make_init(c);
      meeting_arrive(&prog->contexts[c->context.bits]);
      break;
    case CALL_START: make_start(p, c); break;
    case CALL_STOP: make_stop(p, c); break;
    case CALL_STATE: make_state(p, c); break;
    case CALL_FINALIZE: make_finalize(p, c); break;
    case CALL_KINDS: break;
    }
    ledger_returned(index, c->kind == CALL_START && given[c->event.bits] ? handles[c->event.bits] : NULL);
    announce(c);
    kernels_play(index, handles);
    /* Threads that begin after this call: before anybody is told that it was made, so that all of them
     * exist once all calls are made. */
    while (p->spawned < p->spawn_count && prog->threads[p->spawns[p->spawned]].spawn == (int64_t)index)
      create(&players[p->spawns[p->spawned++]]);
    bool counts = c->kind != CALL_FINALIZE || opt.finalize;
    stop_when_due(index);
    if (opt.die_after && counts && atomic_fetch_sub(&left, 1) == 1) die();
    advance(p);
  }
  free(p->descr);
  free(p->args);
  free(p->socket);
  free(p->ib);
}

static void *run_thread(void *arg)
{
  run_player(arg);
  return NULL;
}

static void *table_of(size_t count, size_t size)
{
  void *t = calloc(count ? count : 1, size);
  if (!t) {
    fprintf(stderr, "replay-host: out of memory\n");
    exit(1);
  }
  return t;
}

static void prepare(void)
{
  contexts = table_of(prog->context_count + 1, sizeof *contexts);
  handles = table_of(prog->event_count + 1, sizeof *handles);
  given = table_of(prog->event_count + 1, sizeof *given);
  masks = table_of(prog->event_count + 1, sizeof *masks);
  players = table_of(prog->thread_count, sizeof *players);
  tally.tids = table_of(prog->thread_count, sizeof *tally.tids);
  tally.thread_count = prog->thread_count;
  minor = program_minor(prog);
  wild = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (wild == MAP_FAILED) {
    perror("replay-host: mmap");
    exit(1);
  }
  uint64_t total = prog->call_count;
  for (uint32_t i = 0; i < prog->thread_count; i++) {
    struct player *p = &players[i];
    p->index = i;
    p->calls = table_of(prog->threads[i].calls, sizeof *p->calls);
    atomic_store(&p->wanted, UINT32_MAX);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->moved, NULL);
  }
  for (uint32_t n = 0; n < prog->call_count; n++) {
    const struct call *c = &prog->calls[n];
    players[c->thread].calls[c->position] = n;
    if (c->kind == CALL_FINALIZE && !opt.finalize) total--;
    if (n < opt.stop_after && is_awaited(c)) atomic_fetch_add(&awaited, 1);
  }
  /* Spawns of one thread in the order of their calls. */
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t i = 0; i < prog->thread_count; i++) {
      if (prog->threads[i].spawn < 0) continue;
      struct player *by = &players[prog->calls[prog->threads[i].spawn].thread];
      if (pass == 0) {
        by->spawn_count++;
        continue;
      }
      if (!by->spawns) by->spawns = table_of(by->spawn_count, sizeof *by->spawns);
      uint32_t k = by->spawned++;
      for (; k > 0 && prog->threads[by->spawns[k - 1]].spawn > prog->threads[i].spawn; k--) by->spawns[k] = by->spawns[k - 1];
      by->spawns[k] = i;
    }
  }
  for (uint32_t i = 0; i < prog->thread_count; i++) players[i].spawned = 0;
  atomic_store(&left, opt.die_after < total ? opt.die_after : total);
  atomic_store(&running, (int64_t)(opt.stop_after < total ? opt.stop_after : total));
}

static void clean_up(void)
{
  for (uint32_t i = 0; i < prog->thread_count; i++) {
    free(players[i].calls);
    free(players[i].spawns);
    pthread_mutex_destroy(&players[i].lock);
    pthread_cond_destroy(&players[i].moved);
  }
  free(players);
  free(contexts);
  free(handles);
  free(given);
  free(masks);
}

void play(const struct program *program, const struct play_options *options)
{
  prog = program;
  opt = *options;
  prepare();
  for (uint32_t i = 0; i < prog->thread_count; i++)
    if (!prog->threads[i].main && prog->threads[i].spawn < 0) create(&players[i]);
  for (uint32_t i = 0; i < prog->thread_count; i++)
    if (prog->threads[i].main) run_player(&players[i]);
  for (uint32_t i = 0; i < prog->thread_count; i++) wait_until(&players[i], prog->threads[i].calls);
  for (uint32_t i = 0; i < prog->thread_count; i++)
    if (players[i].created) pthread_join(players[i].id, NULL);
  clean_up();
}
