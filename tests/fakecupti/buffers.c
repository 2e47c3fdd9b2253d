/* SPDX-License-Identifier: Apache-2.0
 *
 * The client's buffers: asked for when the first record needs one, filled, and given back.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"

request_callback on_request;
complete_callback on_complete;
_Thread_local bool in_request, in_complete;

struct place {
  uint32_t offset, kind;
  struct truth *truth;
  uint64_t complete;
};

struct buffer {
  struct buffer *next;
  uint8_t *memory;
  size_t size, used, most;
  uint32_t thread; /* of per-thread buffers, else 0 */
  bool kernels;    /* for kernels alone */
  bool full;
  struct place *places;
  size_t count, room;
};

static struct buffer *buffers; /* outstanding, oldest first */
static struct buffer *kept;    /* comes back late */
static uint64_t dropped, dropped_ever, delivered[KIND_COUNT], unreadable, handed_out;

uint64_t buffers_dropped(bool reset)
{
  uint64_t n = dropped;
  if (reset) dropped = 0;
  return n;
}

void buffers_drop(const struct item *item)
{
  dropped++;
  dropped_ever++;
  if (item->truth) item->truth->fate = FATE_DROPPED;
}

static struct buffer *ask(uint32_t thread, bool kernels)
{
  struct buffer *b = calloc(1, sizeof *b);
  if (!b) fault("out of memory");
  in_request = true;
  on_request(&b->memory, &b->size, &b->most);
  in_request = false;
  if (!b->memory) {
    if (settings.version < 27) fault("the request for a buffer was declined, which this version does not survive");
    free(b);
    return NULL;
  }
  if ((uintptr_t)b->memory % 8) fault("the buffer %p is not aligned", (void *)b->memory);
  if (b->size < 1024) fault("the buffer has %zu bytes", b->size);
  for (const struct buffer *o = buffers; o; o = o->next)
    if (b->memory < o->memory + o->size && o->memory < b->memory + b->size && !getenv("FAKECUPTI_SHARED"))
      fault("the buffer %p was handed out and has not come back", (void *)b->memory);
  b->thread = thread;
  b->kernels = kernels;
  struct buffer **end = &buffers;
  while (*end) end = &(*end)->next;
  *end = b;
  handed_out++;
  return b;
}

static struct buffer *find(uint32_t thread, bool kernels)
{
  for (struct buffer *b = buffers; b; b = b->next)
    if (!b->full && b->thread == thread && b->kernels == kernels) return b;
  return NULL;
}

void buffers_put(const struct item *item)
{
  const size_t size = item->kind < KIND_COUNT && record_size(item->kind) ? record_size(item->kind) : 32;
  const uint32_t thread = settings.version >= 130000 ? (uint32_t)syscall(SYS_gettid) : 0;
  const bool kernels = settings.shuffle && item->kind == KIND_CONCURRENT_KERNEL;
  if (!on_request) {
    buffers_drop(item);
    return;
  }
  struct buffer *b = find(thread, kernels);
  if (b && (b->used + size > b->size || (b->most && b->count == b->most))) {
    b->full = true;
    if (!settings.worker) buffers_deliver(true, false, false);
    b = NULL;
  }
  if (!b) b = ask(thread, kernels);
  if (!b) {
    buffers_drop(item);
    return;
  }
  if (b->count == b->room) {
    b->room = b->room ? 2 * b->room : 64;
    b->places = realloc(b->places, b->room * sizeof *b->places);
    if (!b->places) fault("out of memory");
  }
  b->places[b->count++] = (struct place){ (uint32_t)b->used, item->kind, item->truth, item->complete };
  memcpy(b->memory + b->used, item->bytes, size);
  b->used += size;
}

static bool is_complete(const struct buffer *b, uint64_t now)
{
  for (size_t i = 0; i < b->count; i++)
    if (b->places[i].complete > now) return false;
  return true;
}

/* Gives one back, which is in no list any more. */
static void give(struct buffer *b, uint64_t now)
{
  static uint32_t serial;
  serial++;
  size_t readable = b->count, valid = b->used;
  if (settings.unknown && serial % settings.unknown == 0 && b->count > 1) {
    readable = b->count / 2;
    static const uint32_t nobody = 4711;
    memcpy(b->memory + b->places[readable].offset, &nobody, sizeof nobody);
    unreadable++;
  } else if (settings.truncated && serial % settings.truncated == 0 && b->count > 0) {
    readable = b->count - 1;
    valid -= 8;
  }
  for (size_t i = 0; i < b->count; i++) {
    const struct place *p = &b->places[i];
    const bool unfinished = p->complete > now;
    if (unfinished) memset(b->memory + p->offset + 16, 0, p->truth ? 24 : 16);
    if (p->truth)
      p->truth->fate = i >= readable ? FATE_HIDDEN : unfinished || p->truth->fate == FATE_ZEROED ? FATE_ZEROED : FATE_DELIVERED;
    if (i < readable && p->kind < KIND_COUNT) delivered[p->kind]++;
  }
  in_complete = true;
  on_complete(NULL, 0, b->memory, b->size, valid);
  in_complete = false;
  free(b->places);
  free(b);
}

void buffers_deliver(bool full_only, bool forced, bool keep_one)
{
  const uint64_t now = clock_now();
  struct buffer *ready = NULL, **ready_end = &ready;
  for (struct buffer **at = &buffers; *at;) {
    struct buffer *b = *at;
    if ((full_only && !b->full) || !(forced || is_complete(b, now))) {
      at = &b->next;
      continue;
    }
    *at = b->next;
    b->next = NULL;
    if (keep_one && !kept) {
      kept = b;
    } else if (settings.shuffle) {
      b->next = ready;
      ready = b;
    } else {
      *ready_end = b;
      ready_end = &b->next;
    }
  }
  for (struct buffer *next; ready; ready = next) {
    next = ready->next;
    give(ready, now);
  }
}

void buffers_late(void)
{
  if (!kept) return;
  struct buffer *b = kept;
  kept = NULL;
  give(b, clock_now());
}

void buffers_foreign(void)
{
  static uint8_t *mine;
  if (!mine) mine = aligned_alloc(8, 4096);
  memset(mine, 0x55, 4096);
  in_complete = true;
  on_complete(NULL, 0, mine, 4096, 4096);
  in_complete = false;
}

uint64_t buffers_delivered(int kind) { return delivered[kind]; }

uint64_t buffers_unreadable(void) { return unreadable; }

uint64_t buffers_outstanding(void)
{
  uint64_t n = kept != NULL;
  for (const struct buffer *b = buffers; b; b = b->next) n++;
  return n;
}

void buffers_report(FILE *to)
{
  fputs("{\"delivered\":{", to);
  const char *comma = "";
  for (int i = 0; i < KIND_COUNT; i++)
    if (delivered[i]) fprintf(to, "%s\"%d\":%" PRIu64, comma, i, delivered[i]), comma = ",";
  fprintf(to, "},\"dropped\":%" PRIu64 ",\"unreadable\":%" PRIu64 ",\"buffers\":%" PRIu64 ",\"outstanding\":%" PRIu64 "}\n", dropped_ever,
          unreadable, handed_out, buffers_outstanding());
}
