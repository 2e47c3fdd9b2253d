/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

enum { LAUNCH_NS = 20000, NODES_MOST = 64, GRAPHS_MOST = 64 };

struct action {
  uint32_t call;
  enum { LAUNCH, BEGIN, END, GRAPH, MEMORY } what;
  int domain;
  uint32_t cbid, graph, count;
  struct gpu_kernel *kernels;
  struct gpu_memory memory;
};

static const struct program *prog;
static const struct gpu_hooks *gpu;
static bool use_recorded, use_paced;
static struct action *actions;
static uint32_t action_count, *first; /* [call] of its actions; [call_count]: their number */
static uint32_t graphs[GRAPHS_MOST], graph_count;

static void __attribute__((noreturn)) give_up(const char *path, const char *why)
{
  fprintf(stderr, "replay-host: %s: %s\n", path, why);
  exit(1);
}

static void *table(const char *path, size_t count, size_t size)
{
  void *t = calloc(count ? count : 1, size);
  if (!t) give_up(path, "out of memory");
  return t;
}

static void read_action(const char *path, char *line)
{
  struct action *a = &actions[action_count];
  char what[16], name[256];
  int at = 0;
  if (sscanf(line, "%" SCNu32 " %15s%n", &a->call, what, &at) != 2 || a->call >= prog->call_count) give_up(path, line);
  const char *rest = line + at;
  if (strcmp(what, "begin") == 0) {
    a->what = BEGIN;
  } else if (strcmp(what, "end") == 0) {
    a->what = END;
  } else if (strcmp(what, "launch") == 0) {
    a->what = LAUNCH;
    a->count = 1;
    a->kernels = table(path, 1, sizeof *a->kernels);
    struct gpu_kernel *k = a->kernels;
    if (sscanf(rest, "%d %" SCNu32 " %" SCNu64 " %" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu64 " %255s", &a->domain, &a->cbid, &k->event,
               &k->device, &k->stream, &k->start, &k->end, name) != 8 || k->event > prog->event_count)
      give_up(path, line);
    k->name = strdup(name);
  } else if (strcmp(what, "graph") == 0) {
    a->what = GRAPH;
    if (sscanf(rest, "%d %" SCNu32 " %" SCNu32 " %" SCNu32 "%n", &a->domain, &a->cbid, &a->graph, &a->count, &at) != 4 ||
        a->count > NODES_MOST || a->graph >= GRAPHS_MOST)
      give_up(path, line);
    a->kernels = table(path, a->count, sizeof *a->kernels);
    for (uint32_t i = 0; i < a->count; i++) {
      rest += at;
      if (sscanf(rest, "%" SCNu64 " %" SCNu64 "%n", &a->kernels[i].start, &a->kernels[i].end, &at) != 2) give_up(path, line);
    }
  } else if (strcmp(what, "memory") == 0) {
    a->what = MEMORY;
    struct gpu_memory *m = &a->memory;
    if (sscanf(rest, "%" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64, &m->operation, &m->kind, &m->address, &m->bytes,
               &m->time) != 5)
      give_up(path, line);
  } else {
    give_up(path, line);
  }
  action_count++;
}

static void read_file(const char *path)
{
  FILE *file = fopen(path, "r");
  if (!file) give_up(path, strerror(errno));
  char *line = NULL;
  size_t room = 0, lines = 0;
  while (getline(&line, &room, file) > 0) lines++;
  actions = table(path, lines, sizeof *actions);
  rewind(file);
  while (getline(&line, &room, file) > 0) read_action(path, line);
  free(line);
  fclose(file);
  first = table(path, prog->call_count + 1, sizeof *first);
  uint32_t n = 0;
  for (uint32_t call = 0; call <= prog->call_count; call++) {
    while (n < action_count && actions[n].call < call) n++;
    first[call] = n;
  }
}

void kernels_begin(const struct program *program, const char *path, const char *library, bool recorded, bool paced)
{
  prog = program;
  use_recorded = recorded;
  use_paced = paced;
  read_file(path);
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  gpu = handle ? dlsym(handle, "replay_gpu") : NULL;
  if (!gpu) give_up(library, dlerror());
}

/* When a kernel runs, on CUPTI's clock. */
static void set_times(struct gpu_kernel *k, uint64_t start, uint64_t end, uint64_t called)
{
  const uint64_t took = end - start;
  if (use_recorded) {
    k->start = prog->anchor_real + (start - prog->anchor_raw);
    k->end = k->start + took;
  } else if (use_paced) {
    k->start = gpu->now() + (start > called ? start - called : 0);
    k->end = k->start + took;
  } else {
    k->start = 0;
    k->end = took < LAUNCH_NS ? took : LAUNCH_NS;
  }
}

void kernels_play(uint32_t call, void *const *handles)
{
  if (!gpu) return;
  for (uint32_t i = first[call]; i < first[call + 1]; i++) {
    const struct action *a = &actions[i];
    struct gpu_kernel kernels[NODES_MOST];
    for (uint32_t n = 0; n < a->count; n++) {
      kernels[n] = a->kernels[n];
      set_times(&kernels[n], a->kernels[n].start, a->kernels[n].end, prog->calls[call].time);
      if (kernels[n].event) kernels[n].handle = (uint64_t)(uintptr_t)handles[kernels[n].event];
    }
    switch (a->what) {
    case LAUNCH: gpu->launch(a->domain, a->cbid, kernels); break;
    case BEGIN: gpu->capture_begin(); break;
    case END:
      if (graph_count == GRAPHS_MOST) give_up("graphs", "too many");
      graphs[graph_count] = gpu->instantiate(gpu->capture_end());
      graph_count++;
      break;
    case MEMORY: {
      struct gpu_memory memory = a->memory;
      memory.time = use_recorded ? prog->anchor_real + (memory.time - prog->anchor_raw) : gpu->now();
      gpu->memory(&memory);
      break;
    }
    case GRAPH: gpu->graph_launch(a->domain, a->cbid, graphs[a->graph], kernels, a->count); break;
    }
  }
}

void kernels_wait(void)
{
  if (gpu) gpu->synchronize();
}
