/* SPDX-License-Identifier: Apache-2.0
 *
 * A stream is a queue and a thread that works it off, started with the first task.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../gpu/gpu.h"
#include "cudart.h"

enum { DEVICES_MOST = 64 };

struct CUstream_st {
  int device, has_thread, closing;
  struct graph *captured;
  unsigned long long id;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct task *first, **last;
};

static void run_task(struct CUstream_st *s, struct task *t)
{
  switch (t->kind) {
  case KERNEL:
    if (t->ticket) ticket_done(t->ticket);
    gpu_run(s->device, t->function, t->to, t->grid, t->label);
    free(t->from);
    break;
  case HOST_FUNCTION: t->call(t->to); break;
  case COPY: memmove(t->to, t->from, t->bytes); break;
  case SET: memset(t->to, t->value, t->bytes); break;
  case MARK: ticket_done(t->ticket); break;
  case WAIT: ticket_wait(t->ticket); break;
  case FREE: memory_free(t->to); break;
  case RECORD_EVENT:
  case WAIT_EVENT: break; /* only in graphs */
  }
  ticket_put(t->ticket);
  free(t);
}

static struct task *next_task(struct CUstream_st *s)
{
  pthread_mutex_lock(&s->lock);
  while (!s->first && !s->closing) pthread_cond_wait(&s->changed, &s->lock);
  struct task *t = s->first;
  if (t) s->first = t->next;
  if (!s->first) s->last = &s->first;
  pthread_mutex_unlock(&s->lock);
  return t;
}

static void stream_free(struct CUstream_st *s)
{
  pthread_mutex_destroy(&s->lock);
  pthread_cond_destroy(&s->changed);
  free(s);
}

static void *stream_main(void *argument)
{
  struct CUstream_st *s = argument;
  char name[32];
  snprintf(name, sizeof name, "gpu%d-str%llu", s->device % DEVICES_MOST, s->id % 100000);
  name[15] = 0;
  pthread_setname_np(pthread_self(), name);
  current_device = s->device;
  for (struct task *t; (t = next_task(s));) run_task(s, t);
  stream_free(s);
  return NULL;
}

static struct CUstream_st *stream_new(void)
{
  static atomic_ullong ids = 1;
  struct CUstream_st *s = calloc(1, sizeof *s);
  s->device = current_device;
  s->id = atomic_fetch_add(&ids, 1);
  s->last = &s->first;
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->changed, NULL);
  return s;
}

/* 0, 1 and 2 are names of a device's default stream. */
static struct CUstream_st *stream_of(cudaStream_t handle)
{
  static struct CUstream_st *defaults[DEVICES_MOST];
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  if ((uintptr_t)handle > 2) return handle;
  pthread_mutex_lock(&lock);
  if (!defaults[current_device]) defaults[current_device] = stream_new();
  pthread_mutex_unlock(&lock);
  return defaults[current_device];
}

struct graph *stream_captured_into(cudaStream_t handle)
{
  struct CUstream_st *s = stream_of(handle);
  struct graph *g = __atomic_load_n(&s->captured, __ATOMIC_ACQUIRE);
  return g && graph_is_open(g) ? g : NULL;
}

void stream_join(cudaStream_t handle, struct graph *graph)
{
  __atomic_store_n(&stream_of(handle)->captured, graph, __ATOMIC_RELEASE);
}

void stream_push(cudaStream_t handle, struct task task)
{
  struct CUstream_st *s = stream_of(handle);
  struct graph *graph = stream_captured_into(handle);
  if (graph) {
    graph_add(graph, task);
    return;
  }
  struct task *t = malloc(sizeof *t);
  *t = task;
  t->next = NULL;
  pthread_mutex_lock(&s->lock);
  *s->last = t;
  s->last = &t->next;
  if (!s->has_thread) {
    pthread_t thread;
    s->has_thread = 1;
    pthread_create(&thread, NULL, stream_main, s);
    pthread_detach(thread);
  }
  pthread_cond_signal(&s->changed);
  pthread_mutex_unlock(&s->lock);
}

API cudaStreamCreate(cudaStream_t *stream)
{
  *stream = stream_new();
  return answer(cudaSuccess);
}

API cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) { return cudaStreamCreate(stream); }
API cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) { return cudaStreamCreate(stream); }
API cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
  *id = stream_of(stream)->id;
  return answer(cudaSuccess);
}

API cudaStreamDestroy(cudaStream_t s)
{
  if ((uintptr_t)s <= 2) return answer(cudaErrorInvalidResourceHandle);
  pthread_mutex_lock(&s->lock);
  const int has_thread = s->has_thread; /* which frees it, after what is still queued */
  s->closing = 1;
  pthread_cond_signal(&s->changed);
  pthread_mutex_unlock(&s->lock);
  if (!has_thread) stream_free(s);
  return answer(cudaSuccess);
}

/* NULL: not allowed while the stream is captured. */
static struct ticket *mark(cudaStream_t stream)
{
  if (stream_captured_into(stream)) return NULL;
  struct ticket *t = ticket_new(2);
  stream_push(stream, (struct task){.kind = MARK, .ticket = t});
  return t;
}

API cudaStreamSynchronize(cudaStream_t stream)
{
  struct ticket *t = mark(stream);
  if (!t) return answer(cudaErrorStreamCaptureUnsupported);
  ticket_wait(t);
  ticket_put(t);
  return answer(cudaSuccess);
}

API cudaStreamQuery(cudaStream_t stream)
{
  struct ticket *t = mark(stream);
  if (!t) return answer(cudaErrorStreamCaptureUnsupported);
  nanosleep(&(struct timespec){0, 200000}, NULL); /* time for an empty stream to get there */
  const int done = ticket_is_done(t);
  ticket_put(t);
  return answer(done ? cudaSuccess : cudaErrorNotReady);
}

API cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t call, void *argument)
{
  stream_push(stream, (struct task){.kind = HOST_FUNCTION, .call = call, .to = argument});
  return answer(cudaSuccess);
}
