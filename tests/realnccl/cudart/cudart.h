/* SPDX-License-Identifier: Apache-2.0
 *
 * The stand-in for the CUDA runtime, between its own files. "Device" memory is memory of the host, a stream is a thread that
 * works off a queue, an event is a ticket that the queue stamps, a graph is the list of what was captured.
 */
#ifndef REALNCCL_CUDART_H
#define REALNCCL_CUDART_H

#include <pthread.h>

#include "../cuda/cuda_runtime.h"

#define API __attribute__((visibility("default"))) cudaError_t

/* The calling thread's device, and its last error: what every function answers with goes through answer. */
extern __thread int current_device;
cudaError_t answer(cudaError_t error);
int device_count(void);
int device_attribute(int attribute, int device);
cudaUUID_t device_uuid(int device);

struct allocation {
  char *at;
  size_t bytes;
  int device, file, on_host;
};
/* The allocation that holds an address. */
int memory_find(const void *address, struct allocation *found);
int memory_free(void *at);

/* A place in a stream that somebody waits for; counted references. */
struct ticket;
struct ticket *ticket_new(int references);
void ticket_put(struct ticket *t);
int ticket_is_done(struct ticket *t);
void ticket_done(struct ticket *t);
void ticket_wait(struct ticket *t);
double ticket_ms(const struct ticket *from, const struct ticket *to);

/* What stands in streams and graphs. */
enum task_kind { KERNEL, HOST_FUNCTION, COPY, SET, MARK, WAIT, FREE, RECORD_EVENT, WAIT_EVENT };
struct task {
  enum task_kind kind;
  struct task *next;
  struct ticket *ticket; /* MARK, WAIT; KERNEL: done when it begins */
  void *to, *from;       /* KERNEL: to is its argument block, from the memory that it lies in */
  size_t bytes;
  int value;
  unsigned grid;
  const void *function;
  const char *label; /* of a kernel's communicator */
  cudaHostFn_t call;
};

struct graph;
/* Puts a task into a stream, or into the graph that the stream is captured into. */
void stream_push(cudaStream_t stream, struct task task);
struct graph *stream_captured_into(cudaStream_t stream);
void stream_join(cudaStream_t stream, struct graph *graph);

void graph_add(struct graph *graph, struct task task);
int graph_is_open(struct graph *graph);

/* The ticket of an event's next or latest record, with a reference of the caller's. */
struct ticket *event_arm(cudaEvent_t event);
struct ticket *event_latest(cudaEvent_t event);

/* A copy of a kernel's arguments, aligned as they have to be. */
void arguments_copy(struct task *kernel, const void *arguments);

#endif
