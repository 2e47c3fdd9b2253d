/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph is what was captured, in the order in which it was called: one valid order of the real graph. A launch puts it all
 * into one stream. The executable graph is the graph with one more reference.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "cudart.h"

struct user_object {
  void *object;
  cudaHostFn_t destroy;
  struct user_object *next;
};

struct graph {
  unsigned long long id;
  int open, references;
  struct task *first, **last;
  struct user_object *objects;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void graph_add(struct graph *g, struct task task)
{
  struct task *t = malloc(sizeof *t);
  *t = task;
  t->next = NULL;
  pthread_mutex_lock(&lock);
  *g->last = t;
  g->last = &t->next;
  pthread_mutex_unlock(&lock);
}

int graph_is_open(struct graph *g) { return __atomic_load_n(&g->open, __ATOMIC_ACQUIRE); }

/* As the CUDA runtime does: destructors of user objects run on a thread of its own. */
static void *destroy_objects(void *argument)
{
  struct graph *g = argument;
  pthread_setname_np(pthread_self(), "gpu-graphdtor");
  for (struct user_object *o = g->objects, *next; o; o = next) {
    next = o->next;
    o->destroy(o->object);
    free(o);
  }
  g->objects = NULL; /* the graph itself stays: events and streams may point to it */
  return NULL;
}

static cudaError_t graph_put(struct graph *g)
{
  pthread_t thread;
  pthread_mutex_lock(&lock);
  const int left = --g->references;
  pthread_mutex_unlock(&lock);
  if (!left && pthread_create(&thread, NULL, destroy_objects, g) == 0) pthread_join(thread, NULL);
  return answer(cudaSuccess);
}

API cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
  static atomic_ullong ids = 1;
  struct graph *g = calloc(1, sizeof *g);
  g->id = atomic_fetch_add(&ids, 1);
  g->open = g->references = 1;
  g->last = &g->first;
  stream_join(stream, g);
  return answer(cudaSuccess);
}

API cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
  struct graph *g = stream_captured_into(stream);
  *graph = (cudaGraph_t)g;
  if (!g) return answer(cudaErrorIllegalState);
  stream_join(stream, NULL);
  __atomic_store_n(&g->open, 0, __ATOMIC_RELEASE);
  return answer(cudaSuccess);
}

API cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
  struct graph *g = (struct graph *)graph;
  pthread_mutex_lock(&lock);
  g->references++;
  pthread_mutex_unlock(&lock);
  *exec = (cudaGraphExec_t)g;
  return answer(cudaSuccess);
}

API cudaGraphDestroy(cudaGraph_t graph) { return graph_put((struct graph *)graph); }
API cudaGraphExecDestroy(cudaGraphExec_t exec) { return graph_put((struct graph *)exec); }

API cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
  for (const struct task *t = ((struct graph *)exec)->first; t; t = t->next) {
    struct task copy = *t;
    if (t->kind == KERNEL) {
      arguments_copy(&copy, t->to);
    } else if (t->kind == RECORD_EVENT) { /* the event is unfinished from the launch on, not from when the node runs */
      copy = (struct task){.kind = MARK, .ticket = event_arm(t->to)};
    } else if (t->kind == WAIT_EVENT) { /* for its latest record before this launch */
      copy = (struct task){.kind = WAIT, .ticket = event_latest(t->to)};
      if (!copy.ticket) continue;
    }
    stream_push(stream, copy);
  }
  return answer(cudaSuccess);
}

API cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
  *status = stream_captured_into(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return answer(cudaSuccess);
}

API cudaStreamGetCaptureInfo_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                                cudaGraph_t *graph, const cudaGraphNode_t **dependencies, size_t *count)
{
  struct graph *g = stream_captured_into(stream);
  *status = g ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  if (id) *id = g ? g->id : 0;
  if (graph) *graph = (cudaGraph_t)g;
  if (dependencies) *dependencies = NULL;
  if (count) *count = 0;
  return answer(cudaSuccess);
}

API cudaStreamGetCaptureInfo_v3(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                                cudaGraph_t *graph, const cudaGraphNode_t **dependencies, const void **edges, size_t *count)
{
  if (edges) *edges = NULL;
  return cudaStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count);
}

/* Order comes from the order of the calls: what the real graph depends on is not kept. */
API cudaStreamUpdateCaptureDependencies(cudaStream_t s, void *d, size_t n, unsigned f) { return answer(cudaSuccess); }
API cudaStreamUpdateCaptureDependencies_v2(cudaStream_t s, void *d, const void *e, size_t n, unsigned f)
{
  return answer(cudaSuccess);
}

API cudaGraphAddDependencies(cudaGraph_t g, const void *from, const void *to, size_t n) { return answer(cudaSuccess); }
API cudaGraphAddDependencies_v2(cudaGraph_t g, const void *from, const void *to, const void *e, size_t n)
{
  return answer(cudaSuccess);
}

API cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *d, size_t n, cudaEvent_t event)
{
  static int some;
  graph_add((struct graph *)graph, (struct task){.kind = RECORD_EVENT, .to = event});
  *node = (cudaGraphNode_t)&some; /* only named as a dependency */
  return answer(cudaSuccess);
}

API cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
  static __thread enum cudaStreamCaptureMode mine = cudaStreamCaptureModeGlobal;
  const enum cudaStreamCaptureMode was = mine;
  mine = *mode;
  *mode = was;
  return answer(cudaSuccess);
}

API cudaUserObjectCreate(cudaUserObject_t *object, void *data, cudaHostFn_t destroy, unsigned references, unsigned flags)
{
  struct user_object *o = calloc(1, sizeof *o);
  o->object = data;
  o->destroy = destroy;
  *object = (cudaUserObject_t)o;
  return answer(cudaSuccess);
}

API cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags)
{
  struct graph *g = (struct graph *)graph;
  struct user_object *o = (struct user_object *)object;
  pthread_mutex_lock(&lock);
  o->next = g->objects;
  g->objects = o;
  pthread_mutex_unlock(&lock);
  return answer(cudaSuccess);
}
