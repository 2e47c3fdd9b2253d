/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the library have between them.
 */
#ifndef FAKECUPTI_INTERNAL_H
#define FAKECUPTI_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "fakecupti.h"

enum { CODE_OK = 0, CODE_PARAMETER = 1, CODE_OPERATION = 7, CODE_LIMIT = 12, CODE_COMPATIBLE = 14, CODE_INITIALIZED = 15,
       CODE_EMPTY = 18, CODE_KIND = 21, CODE_SUPPORTED = 27, CODE_PRIVILEGES = 35, CODE_SUBSCRIBERS = 39, CODE_UNKNOWN = 999 };

enum { KIND_MEMCPY = 1, KIND_MEMSET = 2, KIND_KERNEL = 3, KIND_DRIVER = 4, KIND_RUNTIME = 5, KIND_CONCURRENT_KERNEL = 10,
       KIND_SYNCHRONIZATION = 38, KIND_EXTERNAL = 39, KIND_MEMORY2 = 49, KIND_COUNT = 60 };

enum { EXTERNAL_KINDS = 6, STACK_MOST = 64 };

struct settings {
  uint32_t version;
  bool no_driver, busy, worker, shuffle, swift;
  uint32_t first;
  const char *truth;
  uint32_t zero, reversed, early, drop, unknown, truncated, clock, slow, slower, late, enable, subscribe, callbacks;
  bool foreign, flush;
};
extern struct settings settings;

/* The size of the records of a kind in the version that is played; 0: it is unknown. */
size_t record_size(uint32_t kind);

enum fate { FATE_PENDING, FATE_DELIVERED, FATE_ZEROED, FATE_DROPPED, FATE_HIDDEN, FATE_OFF };

/* What is known of a kernel, for the truth file. */
struct truth {
  uint32_t correlation, stream, device, thread;
  uint64_t event, handle, external, start, end;
  uint32_t graph;         /* executable graph, 0: launched directly */
  uint64_t node, source;  /* of the executable graph; of the graph it was made of */
  uint64_t captured;      /* external id when the node was captured */
  const char *name;
  enum fate fate;
};

/* A record that is to be written. */
struct item {
  uint32_t kind;
  struct truth *truth; /* of kernels */
  uint64_t complete;   /* when it is, on CUPTI's clock */
  uint8_t bytes[256];
};

void make_kernel(struct item *item, struct truth *truth);
void make_api(struct item *item, int domain, uint32_t cbid, uint32_t correlation, uint64_t start, uint64_t end);
void make_external(struct item *item, int kind, uint64_t id, uint32_t correlation);
void make_memory(struct item *item, const struct gpu_memory *memory, uint32_t correlation);
void make_activity(struct item *item, int kind, uint32_t stream, uint32_t correlation, uint64_t bytes, uint64_t start, uint64_t end);

/* The buffers. Called with the library's lock held. */
void buffers_put(const struct item *item);
void buffers_drop(const struct item *item); /* counted */
void buffers_deliver(bool full_only, bool forced, bool keep_one);
void buffers_late(void);
void buffers_foreign(void);
uint64_t buffers_dropped(bool reset);
uint64_t buffers_delivered(int kind);
uint64_t buffers_unreadable(void);
uint64_t buffers_outstanding(void);
void buffers_report(FILE *to);

/* The client's callbacks, and where this thread is in them. */
typedef void (*request_callback)(uint8_t **, size_t *, size_t *);
typedef void (*complete_callback)(void *, uint32_t, uint8_t *, size_t, size_t);
extern request_callback on_request;
extern complete_callback on_complete;
extern _Thread_local bool in_request, in_complete;

void __attribute__((noreturn, format(printf, 1, 2))) fault(const char *format, ...);
uint64_t clock_now(void);

struct truth *truth_add(void);
const char *truth_name(const char *text);
void truth_memory(const struct gpu_memory *memory);
void truth_write(void);

#endif
