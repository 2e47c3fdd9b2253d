/* SPDX-License-Identifier: Apache-2.0
 *
 * The peers that a work receives from and sends to, and the step that moves one chunk of it: NCCL's primitives.
 */
#ifndef REALNCCL_PORTS_H
#define REALNCCL_PORTS_H

#include <sys/types.h>

#include "kernel.h"

enum { PEERS_MOST = 4 };

struct port {
  struct connection *connection;
  uint64_t step;
};

struct ports {
  struct kernel *kernel;
  const struct function *function;
  uint64_t operand;
  int steps_per_slice, slices_per_chunk; /* of SIMPLE */
  int receives, sends;
  struct port receive[PEERS_MOST], send[PEERS_MOST];
};

/* Negative peers are none. which: of a peer's connections. */
void ports_open(struct ports *p, struct kernel *k, const struct function *f, uint64_t operand, int steps_per_slice,
                int slices_per_chunk);
void ports_receive_from(struct ports *p, const int *peers, int count, int which);
void ports_send_to(struct ports *p, const int *peers, int count, int which);
void ports_close(struct ports *p);

enum {
  RECEIVE = 1, /* and reduce it with the source, if there is one */
  SEND = 2,
  OWN = 4,    /* the source is this rank's own contribution */
  RESULT = 8, /* what comes out is the result */
};

/* Moves one chunk. source and destination may be NULL; a count below 1 moves nothing, but takes its step. */
void move(struct ports *p, int what, const char *source, char *destination, ssize_t count);

/* The slot of a connection's SIMPLE buffer at a step. */
char *simple_slot(const struct connection *c, uint64_t step);

/* The protocols whose data carries flags: lines with a flag for their step. */
struct flagged {
  enum protocol protocol;
  size_t line, data; /* bytes of a line, and of data in it */
  size_t unit;       /* lines are written in multiples of it */
  int (*ready)(const char *line, uint64_t step);
  void (*pack)(char *line, const char *data, size_t bytes, uint64_t step);
  void (*unpack)(const char *line, char *data);
};
extern const struct flagged flagged_ll, flagged_ll128;

size_t flagged_lines(const struct flagged *g, size_t bytes);
char *flagged_slot(const struct kernel *k, const struct flagged *g, const struct connection *c, uint64_t step);
int flagged_ready(const struct flagged *g, const char *slot, size_t bytes, uint64_t step);
void flagged_unpack(const struct flagged *g, const char *slot, char *data, size_t bytes);
/* Waits for nothing: there has to be room. */
void flagged_send(const struct kernel *k, const struct flagged *g, struct connection *c, uint64_t step, const char *data,
                  size_t bytes);

#endif
