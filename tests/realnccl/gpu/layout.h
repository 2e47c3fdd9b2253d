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

enum { STEPS = 8, CHANNELS = 128, STAMPS = 64, PROTOCOLS = 3 };

/* Up to here all releases have it alike; what follows is theirs. */
struct connection {
  char *buffers[PROTOCOLS];
  void *handles[PROTOCOLS];
  uint64_t *tail, *head;
  int32_t flags, shared, step_bytes;
  void **pointer_exchange;
  uint64_t *operation_exchange;
  char *mail; /* between a kernel and a proxy thread, one for each step's slot; NULL: the peer is another kernel */
  uint64_t step, last_clean;
};

struct tree {
  int32_t depth, up, down[3];
};

struct stamps {
  struct {
    uint64_t counter, time;
  } slot[STAMPS];
};

/* Begin, end of the opening and begin of the closing synchronization, end; written before the counter. */
enum { PHASE_STAMPS = 4 };
struct phases {
  struct {
    uint64_t counter, time[PHASE_STAMPS];
  } slot[STAMPS];
};

struct communicator {
  int32_t rank, ranks, node, nodes;
  int32_t buffer_bytes[PROTOCOLS];
  int32_t p2p_chunk, flag;
  int32_t p2p_per_peer; /* of RCCL: channels */
  int32_t *dense_to_user;
  volatile uint32_t *abort_flag;
  char *channels;
  int32_t *rank_to_local;
  struct stamps *started, *completed;
  struct phases *phases; /* see phases_of */
};

struct batch {
  uint32_t next_jump : 14, next_extends : 1, type : 2, function : 15;
  uint32_t base;
  uint64_t works; /* one bit each */
} __attribute__((aligned(16)));

enum work_type { WORK_P2P, WORK_COLLECTIVE, WORK_REGISTERED, WORK_BROADCAST };

struct work_broadcast {
  int32_t depth, chunk;
  char *send, *receive;
  size_t bytes, done;
  char pad[8];
} __attribute__((aligned(16)));

_Static_assert(sizeof(struct batch) == 16 && sizeof(struct work_broadcast) == 48 && offsetof(struct connection, step) == 104 &&
                 offsetof(struct communicator, channels) == 56,
               "layout of NCCL's device side");

/* A launch's parameter block, read out of its release's layout; so are the works below. */
struct arguments {
  struct communicator *communicator;
  uint64_t channel_mask[CHANNELS / 64];
  const char *block;
  const struct batch *batches;
  int in_block; /* the works lie in the block, else in the buffer, which is a ring */
  uint32_t buffer_mask;
  const char *buffer;
};
struct arguments arguments_of(const void *block);
int has_channel(const struct arguments *a, int channel);

struct work_p2p {
  char *send_address, *receive_address;
  size_t send_bytes, receive_bytes;
  int send_rank, receive_rank;
  int channel_count, channel_base, send_channels, receive_channels;
  uint8_t send_chunk8, receive_chunk8;
  int send_ll, receive_ll, send_connection, receive_connection;
};

struct work_collective {
  int first_channel, last_channel, root, connection;
  int one_slice; /* of RCCL: SIMPLE moves a chunk in one */
  char *send, *receive;
  size_t first_count, middle_count, last_count;
  size_t first_grains, middle_grains, last_grains;
  int operand_is_pointer;
  uint64_t operand;
};

struct channel {
  void **peers;
  int previous, next, index;
  const int32_t *ranks; /* of the ring, this rank first */
  struct tree tree;
  uint64_t *work_counter;
};

/* Chooses the layout of the library that a kernel belongs to; ends the process with a message for a release whose layout
 * is not known. */
void layout_find(const void *kernel);

/* Whether a library's file is RCCL's. */
int is_rccl(const char *library);

/* Ends the process with a message where what a launch hands over cannot be right. */
void layout_check(const struct arguments *arguments);

/* What a connection's mail says of a step: where its data is from the buffer's start, -1: in the step's own slot; and the place
 * of the number of bytes that are in it. */
int64_t mail_offset(const struct connection *c, uint64_t step);
int64_t *mail_size(const struct connection *c, uint64_t step);

/* The connection to a rank, or from it. which: of those that there are. */
struct connection *connection(const struct channel *channel, int rank, int sends, int which);

/* The part of a message that a channel moves. */
int p2p_part(const struct communicator *c, const struct work_p2p *w, int channel);

size_t work_bytes(enum work_type type);
struct work_p2p work_p2p(const char *work);
struct work_collective work_collective(const char *work);
int work_is_stamped(enum work_type type, const char *works, int index);
/* Whether of a kernel on a tree some threads go up and others down, but at its root: RCCL's go up together and then down where
 * it has SIMPLE. */
int tree_is_split(enum protocol protocol);
/* Nanoseconds of a stamp's unit: NCCL's kernels read a clock in ns, RCCL's one of 100 MHz. */
uint64_t stamp_unit_ns(void);

/* A channel's ring of phases; NULL before 2.31. */
struct phases *phases_of(const struct communicator *communicator, int channel);
struct channel channel(const struct communicator *communicator, int number);

#endif
