/* SPDX-License-Identifier: Apache-2.0
 *
 * The structures through which NCCL's host library and its kernels talk, as far as the emulator touches them; what it does not
 * read is padding. What moved between releases stands in a table (layout.c) and is reached by functions.
 */
#ifndef REALNCCL_LAYOUT_H
#define REALNCCL_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "functions.h"

enum { STEPS = 8, CHANNELS = 64, STAMPS = 64, PROTOCOLS = 3 };

struct connection {
  char *buffers[PROTOCOLS];
  void *handles[PROTOCOLS];
  uint64_t *tail, *head;
  int32_t flags, shared, step_bytes;
  void **pointer_exchange;
  uint64_t *operation_exchange;
  char *mail; /* between a kernel and a proxy thread, one for each step's slot; NULL: the peer is another kernel */
  uint64_t step, last_clean;
  char device_handle[32];
};

struct peer {
  struct connection send[2], receive[2];
};

struct tree {
  int32_t depth, up, down[3];
};

struct stamps {
  struct {
    uint64_t counter, time;
  } slot[STAMPS];
};

/* Begin, end of the opening and begin of the closing synchronisation, end; written before the counter. */
enum { PHASE_STAMPS = 4 };
struct phases {
  struct {
    uint64_t counter, time[PHASE_STAMPS];
  } slot[STAMPS];
};

struct communicator {
  int32_t rank, ranks, node, nodes;
  int32_t buffer_bytes[PROTOCOLS];
  int32_t p2p_chunk;
  int32_t flags[2];
  int32_t *dense_to_user;
  volatile uint32_t *abort_flag;
  char *channels;
  int32_t *rank_to_local;
  struct stamps *started, *completed;
  struct phases *phases; /* see phases_of */
};

/* The kernel's parameter block; its batches follow. */
struct arguments {
  struct communicator *communicator;
  uint64_t channel_mask;
  uint8_t storage; /* 0: the works lie in this block, else in the buffer */
  uint32_t work_mask;
  const char *work_buffer;
} __attribute__((aligned(16)));

struct batch {
  uint32_t next_jump : 14, next_extends : 1, type : 2, function : 15;
  uint32_t base;
  uint64_t works; /* one bit each */
} __attribute__((aligned(16)));

enum work_type { WORK_P2P, WORK_COLLECTIVE, WORK_REGISTERED, WORK_BROADCAST };

struct work_p2p {
  char *send_address, *receive_address;
  size_t send_bytes, receive_bytes;
  int32_t send_rank, receive_rank;
  uint8_t channel_count, channel_base, send_channels, receive_channels;
  uint8_t send_chunk8, receive_chunk8;
  uint8_t send_ll : 1, receive_ll : 1, registered : 4, stamped : 1;
} __attribute__((aligned(16)));

struct work_broadcast {
  int32_t depth, chunk;
  char *send, *receive;
  size_t bytes, done;
  char pad[8];
} __attribute__((aligned(16)));

_Static_assert(sizeof(struct arguments) == 32 && sizeof(struct connection) == 152 && sizeof(struct batch) == 16 &&
                 sizeof(struct work_p2p) == 48 && sizeof(struct work_broadcast) == 48 &&
                 offsetof(struct communicator, channels) == 56,
               "layout of NCCL's device side");

/* A collective's work, read out of its release's layout. */
struct work_collective {
  int first_channel, last_channel, root;
  char *send, *receive;
  size_t first_count, middle_count, last_count;
  size_t first_grains, middle_grains, last_grains;
  int operand_is_pointer;
  uint64_t operand;
};

/* A channel, read likewise. */
struct channel {
  struct peer **peers;
  int previous, next, index;
  const int32_t *ranks; /* of the ring, this rank first */
  struct tree tree;
  uint64_t *work_counter;
};

/* Chooses the layout of the library that a kernel belongs to; ends the process with a message for a release whose layout
 * is not known. */
void layout_find(const void *kernel);

/* Ends the process with a message where what a launch hands over cannot be right. */
void layout_check(const struct arguments *arguments);

/* What a connection's mail says of a step: where its data is from the buffer's start, -1: in the step's own slot; and the place
 * of the number of bytes that are in it. */
int64_t mail_offset(const struct connection *c, uint64_t step);
int64_t *mail_size(const struct connection *c, uint64_t step);

size_t work_bytes(enum work_type type);
struct work_collective work_collective(const char *work);
int work_is_stamped(enum work_type type, const char *works, int index);
/* A channel's ring of phases; NULL before 2.31. */
struct phases *phases_of(const struct communicator *communicator, int channel);
struct channel channel(const struct communicator *communicator, int number);

#endif
