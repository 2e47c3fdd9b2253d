/* SPDX-License-Identifier: Apache-2.0
 *
 * Records as the releases write them. Offsets and sizes: CUPTI's headers of CUDA 11.8 and 12.4, and its published
 * bindings for the other releases.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"

static const struct {
  uint8_t kind;
  struct {
    uint32_t since;
    uint16_t size;
  } sizes[6];
} table[] = {
  { KIND_KERNEL, { { 0, 200 }, { 19, 208 }, { 130000, 216 }, { 130100, 224 }, { 130300, 232 }, { 130400, 248 } } },
  { KIND_CONCURRENT_KERNEL, { { 0, 200 }, { 19, 208 }, { 130000, 216 }, { 130100, 224 }, { 130300, 232 }, { 130400, 248 } } },
  { KIND_MEMCPY, { { 0, 88 }, { 26, 96 }, { 130400, 112 } } },
  { KIND_MEMSET, { { 0, 88 }, { 130400, 104 } } },
  { KIND_DRIVER, { { 0, 40 } } },
  { KIND_RUNTIME, { { 0, 40 } } },
  { KIND_EXTERNAL, { { 0, 24 } } },
  { KIND_SYNCHRONIZATION, { { 0, 40 }, { 26, 56 } } },
  { KIND_MEMORY2, { { 0, 120 }, { 24, 128 } } },
};

size_t record_size(uint32_t kind)
{
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (table[i].kind != kind) continue;
    size_t size = table[i].sizes[0].size;
    for (size_t k = 1; k < 6 && table[i].sizes[k].since && table[i].sizes[k].since <= settings.version; k++) size = table[i].sizes[k].size;
    return size;
  }
  return 0;
}

static size_t prefix_size(uint32_t kind)
{
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (table[i].kind == kind) return table[i].sizes[0].size;
  return 0;
}

/* Zero as far as all releases have it, and behind that what a reader must not rely on. */
static void begin(struct item *item, uint32_t kind)
{
  memset(item, 0, sizeof *item);
  memset(item->bytes, 0xEE, sizeof item->bytes);
  memset(item->bytes, 0, prefix_size(kind));
  memcpy(item->bytes, &kind, sizeof kind);
  item->kind = kind;
}

static void put4(struct item *item, size_t at, uint32_t value) { memcpy(item->bytes + at, &value, sizeof value); }
static void put8(struct item *item, size_t at, uint64_t value) { memcpy(item->bytes + at, &value, sizeof value); }

void make_kernel(struct item *item, struct truth *t)
{
  begin(item, KIND_CONCURRENT_KERNEL);
  item->truth = t;
  item->complete = t->end;
  put8(item, 16, t->start);
  put8(item, 24, t->end);
  put8(item, 32, t->end);
  put4(item, 40, t->device);
  put4(item, 44, t->device + 1); /* context */
  put4(item, 48, t->stream);
  static const uint32_t grid[] = { 2, 1, 1, 640, 1, 1 };
  for (size_t i = 0; i < 6; i++) put4(item, 52 + 4 * i, grid[i]);
  put4(item, 92, t->correlation);
  put8(item, 96, t->correlation); /* grid id */
  put8(item, 104, (uint64_t)(uintptr_t)t->name);
  if (t->graph) {
    put8(item, 144, t->node);
    put4(item, 156, t->graph);
  }
  if (settings.version >= 130400) {
    put4(item, 232, t->graph ? t->graph - 1 : 0);
    put8(item, 240, t->source);
  }
}

void make_api(struct item *item, int domain, uint32_t cbid, uint32_t correlation, uint64_t start, uint64_t end)
{
  begin(item, domain == 1 ? KIND_DRIVER : KIND_RUNTIME);
  item->complete = 0;
  put4(item, 4, cbid);
  put8(item, 8, start);
  put8(item, 16, end);
  put4(item, 24, (uint32_t)getpid());
  put4(item, 28, (uint32_t)syscall(SYS_gettid));
  put4(item, 32, correlation);
}

void make_external(struct item *item, int kind, uint64_t id, uint32_t correlation)
{
  begin(item, KIND_EXTERNAL);
  put4(item, 4, (uint32_t)kind);
  put8(item, 8, id);
  put4(item, 16, correlation);
}

void make_memory(struct item *item, const struct gpu_memory *memory, uint32_t correlation)
{
  begin(item, KIND_MEMORY2);
  put4(item, 4, memory->operation);
  put4(item, 8, memory->kind);
  put4(item, 12, correlation);
  put8(item, 16, memory->address);
  put8(item, 24, memory->bytes);
  put8(item, 32, memory->time);
  put4(item, 48, (uint32_t)getpid());
  put4(item, 56, 1); /* context */
  put4(item, 60, 0xFFFFFFFF);
}

void make_activity(struct item *item, int kind, uint32_t stream, uint32_t correlation, uint64_t bytes, uint64_t start, uint64_t end)
{
  begin(item, (uint32_t)kind);
  item->complete = kind == KIND_MEMCPY || kind == KIND_MEMSET ? end : 0;
  switch (kind) {
  case KIND_MEMCPY:
  case KIND_MEMSET:
    if (kind == KIND_MEMCPY) item->bytes[4] = 1;
    put8(item, 8, bytes);
    put8(item, 16, start);
    put8(item, 24, end);
    put4(item, 40, stream);
    put4(item, 44, correlation);
    break;
  case KIND_SYNCHRONIZATION:
    put4(item, 4, 3);
    put8(item, 8, start);
    put8(item, 16, end);
    put4(item, 24, correlation);
    put4(item, 32, stream);
    break;
  case KIND_MEMORY2:
    put4(item, 4, 1);
    put4(item, 12, correlation);
    put8(item, 24, bytes);
    put8(item, 32, start);
    put4(item, 60, stream);
    put8(item, 64, (uint64_t)(uintptr_t)truth_name("a_device_variable"));
    break;
  }
}
