/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams, events and graphs.
 */
#include <stdlib.h>
#include <string.h>

#include "run.h"

static cudaStream_t current(const struct rank *r) { return r->streams[r->stream]; }

static void sync_all(struct actor *a, const struct word *w)
{
  EACH_RANK (a, r)
    for (int s = 0; s < STREAMS; s++) CUDA(cudaStreamSynchronize(r->streams[s]));
}

static void choose_stream(struct actor *a, const struct word *w)
{
  EACH_RANK (a, r) r->stream = (int)(w->number % STREAMS);
}

static void record(struct actor *a, const struct word *w)
{
  EACH_RANK (a, r) CUDA(cudaEventRecord(r->event[w->number % EVENTS], current(r)));
}

static void wait_for(struct actor *a, const struct word *w)
{
  EACH_RANK (a, r) CUDA(cudaStreamWaitEvent(current(r), r->event[w->number % EVENTS], 0));
}

/* The graph that the next endcap makes: calls are logged under its number. */
static void begin_capture(struct actor *a, const struct word *w)
{
  const char *end = strstr(w->after, "endcap:");
  EACH_RANK (a, r) {
    r->capturing = end ? atoi(end + strlen("endcap:")) % GRAPHS : 0;
    CUDA(cudaSetDevice(r->device));
    CUDA(cudaStreamBeginCapture(current(r), cudaStreamCaptureModeThreadLocal));
  }
}

static void end_capture(struct actor *a, const struct word *w)
{
  const size_t k = w->number % GRAPHS;
  EACH_RANK (a, r) {
    CUDA(cudaStreamEndCapture(current(r), &r->graph[k]));
    CUDA(cudaGraphInstantiate(&r->exec[k], r->graph[k], 0));
    r->capturing = -1;
  }
}

static void replay(struct actor *a, const struct word *w)
{
  EACH_RANK (a, r) {
    const uint64_t begin = now_ns();
    CUDA(cudaSetDevice(r->device));
    CUDA(cudaGraphLaunch(r->exec[w->number % GRAPHS], current(r)));
    log_line("issue", "{\"t0\":%llu,\"t1\":%llu,\"worldRank\":%d,\"stream\":%d,\"op\":\"replay\",\"graph\":%zu}\n",
             (unsigned long long)begin, (unsigned long long)now_ns(), r->rank, r->stream, w->number % GRAPHS);
  }
}

/* Has to come before the communicator's end, which waits for it. */
static void free_graph(struct actor *a, const struct word *w)
{
  EACH_RANK (a, r) {
    CUDA(cudaGraphExecDestroy(r->exec[w->number % GRAPHS]));
    CUDA(cudaGraphDestroy(r->graph[w->number % GRAPHS]));
  }
}

const struct word_action graph_words[] = {{"sync", sync_all}, {"stream", choose_stream},   {"event", record},
                                          {"wait", wait_for}, {"begincap", begin_capture}, {"endcap", end_capture},
                                          {"replay", replay}, {"freegraph", free_graph},   {NULL, NULL}};
