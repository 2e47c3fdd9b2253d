/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "cudart.h"

struct ticket {
  atomic_int references;
  int done;
  struct timespec when;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some_are_done = PTHREAD_COND_INITIALIZER;

struct ticket *ticket_new(int references)
{
  struct ticket *t = calloc(1, sizeof *t);
  atomic_init(&t->references, references);
  return t;
}

void ticket_put(struct ticket *t)
{
  if (t && atomic_fetch_sub(&t->references, 1) == 1) free(t);
}

void ticket_done(struct ticket *t)
{
  pthread_mutex_lock(&lock);
  t->done = 1;
  clock_gettime(CLOCK_MONOTONIC, &t->when);
  pthread_cond_broadcast(&some_are_done);
  pthread_mutex_unlock(&lock);
}

int ticket_is_done(struct ticket *t)
{
  pthread_mutex_lock(&lock);
  const int done = t->done;
  pthread_mutex_unlock(&lock);
  return done;
}

void ticket_wait(struct ticket *t)
{
  pthread_mutex_lock(&lock);
  while (!t->done) pthread_cond_wait(&some_are_done, &lock);
  pthread_mutex_unlock(&lock);
}

double ticket_ms(const struct ticket *from, const struct ticket *to)
{
  return (double)(to->when.tv_sec - from->when.tv_sec) * 1e3 + (double)(to->when.tv_nsec - from->when.tv_nsec) * 1e-6;
}

/* Events: each record gives the event a new ticket. */
struct CUevent_st {
  struct ticket *latest;
  struct graph *captured; /* recorded in a stream that is captured into this */
};

static void event_take(cudaEvent_t event, struct ticket *ticket, struct graph *captured)
{
  pthread_mutex_lock(&lock);
  struct ticket *old = event->latest;
  if (ticket) event->latest = ticket;
  event->captured = captured;
  pthread_mutex_unlock(&lock);
  if (ticket) ticket_put(old);
}

struct ticket *event_arm(cudaEvent_t event)
{
  struct ticket *t = ticket_new(2); /* the event's and the stream's */
  event_take(event, t, NULL);
  return t;
}

struct ticket *event_latest(cudaEvent_t event)
{
  pthread_mutex_lock(&lock);
  struct ticket *t = event->latest;
  if (t) atomic_fetch_add(&t->references, 1);
  pthread_mutex_unlock(&lock);
  return t;
}

API cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
  *event = calloc(1, sizeof **event);
  return answer(cudaSuccess);
}

API cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, 0); }

API cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
  struct graph *graph = stream_captured_into(stream);
  if (!graph) stream_push(stream, (struct task){.kind = MARK, .ticket = event_arm(event)});
  else if (flags & cudaEventRecordExternal) stream_push(stream, (struct task){.kind = RECORD_EVENT, .to = event});
  else event_take(event, NULL, graph);
  return answer(cudaSuccess);
}

API cudaEventRecord(cudaEvent_t event, cudaStream_t stream) { return cudaEventRecordWithFlags(event, stream, 0); }

API cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
  pthread_mutex_lock(&lock);
  struct graph *from = event->captured;
  pthread_mutex_unlock(&lock);
  if (from && graph_is_open(from)) {
    stream_join(stream, from);
  } else if (stream_captured_into(stream)) {
    if (flags & cudaEventWaitExternal) stream_push(stream, (struct task){.kind = WAIT_EVENT, .to = event});
  } else {
    struct ticket *t = event_latest(event);
    if (t) stream_push(stream, (struct task){.kind = WAIT, .ticket = t});
  }
  return answer(cudaSuccess);
}

API cudaEventDestroy(cudaEvent_t event)
{
  if (event) ticket_put(event->latest);
  free(event);
  return answer(cudaSuccess);
}

API cudaEventQuery(cudaEvent_t event)
{
  return answer(!event->latest || ticket_is_done(event->latest) ? cudaSuccess : cudaErrorNotReady);
}

API cudaEventSynchronize(cudaEvent_t event)
{
  struct ticket *t = event_latest(event);
  if (t) ticket_wait(t);
  ticket_put(t);
  return answer(cudaSuccess);
}

API cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
  if (!from->latest || !to->latest || !ticket_is_done(from->latest) || !ticket_is_done(to->latest))
    return answer(cudaErrorNotReady);
  *ms = (float)ticket_ms(from->latest, to->latest);
  return answer(cudaSuccess);
}
