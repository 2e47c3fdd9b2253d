/* SPDX-License-Identifier: Apache-2.0
 *
 * What really happened. One JSON line per kernel, in order of launch:
 *
 *   correlation  id of the call that launched it; kernels of one graph launch share it
 *   external     id on top of this thread's CUSTOM2 stack at the launch, 0: none. Of a graph's kernels: at the graph launch
 *   captured     of a graph's kernel: id when its node was captured
 *   event        number of what launched it in the program, 0: nothing of interest; of a graph's kernel: at its capture
 *   handle       what the profiler called that event
 *   thread, device, stream, name, start, end (ns, as it truly ran), graph, node, source (node that `node` was made from)
 *   fate         "delivered"; "zeroed": delivered without times, because it was unfinished at a forced flush or by a fault;
 *                "dropped"; "hidden": behind what cannot be read; "off": kernels were not recorded; "pending": in a buffer
 *                that never came back
 *
 * one per allocation and release that was told, {"memory":operation,"kind":…,"address":…,"bytes":…,"time":…},
 * and last one of counts: {"delivered":{kind:records, …},"dropped":n,"unreadable":n,"buffers":n,"outstanding":n}.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

struct block {
  struct truth rows[256];
  struct block *next;
};
static struct block *first, *last;
static uint32_t used;

static char *names[512];

const char *truth_name(const char *text)
{
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (names[i] && strcmp(names[i], text) == 0) return names[i];
    if (!names[i]) return names[i] = strdup(text);
  }
  fault("too many kernel names");
}

struct truth *truth_add(void)
{
  if (!last || used == 256) {
    struct block *fresh = calloc(1, sizeof *fresh);
    if (!fresh) fault("out of memory");
    if (last) last->next = fresh;
    else first = fresh;
    last = fresh;
    used = 0;
  }
  return &last->rows[used++];
}

static struct gpu_memory memory[4096];
static uint32_t memory_count;

void truth_memory(const struct gpu_memory *m)
{
  if (memory_count == sizeof memory / sizeof *memory) fault("too much is allocated");
  memory[memory_count++] = *m;
}

static FILE *open_file(void)
{
  char path[4096];
  const char *mark = strstr(settings.truth, "%p");
  if (mark)
    snprintf(path, sizeof path, "%.*s%d%s", (int)(mark - settings.truth), settings.truth, (int)getpid(), mark + 2);
  else
    snprintf(path, sizeof path, "%s", settings.truth);
  return fopen(path, "w");
}

void truth_write(void)
{
  static const char *const fates[] = { "pending", "delivered", "zeroed", "dropped", "hidden", "off" };
  FILE *to = settings.truth ? open_file() : NULL;
  if (!to) return;
  for (const struct block *b = first; b; b = b->next)
    for (uint32_t i = 0; i < (b == last ? used : 256); i++) {
      const struct truth *t = &b->rows[i];
      fprintf(to, "{\"correlation\":%u,\"external\":\"0x%" PRIx64 "\",\"captured\":\"0x%" PRIx64 "\",\"event\":%" PRIu64
              ",\"handle\":\"0x%" PRIx64 "\",\"thread\":%u,\"device\":%u,\"stream\":%u,\"name\":\"%s\",\"start\":%" PRIu64
              ",\"end\":%" PRIu64 ",\"graph\":%u,\"node\":%" PRIu64 ",\"source\":%" PRIu64 ",\"fate\":\"%s\"}\n",
              t->correlation, t->external, t->captured, t->event, t->handle, t->thread, t->device, t->stream, t->name, t->start, t->end, t->graph,
              t->node, t->source, fates[t->fate]);
    }
  for (uint32_t i = 0; i < memory_count; i++)
    fprintf(to, "{\"memory\":%u,\"kind\":%u,\"address\":\"0x%" PRIx64 "\",\"bytes\":%" PRIu64 ",\"time\":%" PRIu64 "}\n", memory[i].operation,
            memory[i].kind, memory[i].address, memory[i].bytes, memory[i].time);
  buffers_report(to);
  fclose(to);
}
