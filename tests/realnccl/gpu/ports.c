/* SPDX-License-Identifier: Apache-2.0 */
#include "ports.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arithmetic.h"

void ports_open(struct ports *p, struct kernel *k, const struct function *f, uint64_t operand, int steps_per_slice,
                int slices_per_chunk)
{
  memset(p, 0, sizeof *p);
  p->kernel = k;
  p->function = f;
  p->operand = operand;
  p->steps_per_slice = steps_per_slice;
  p->slices_per_chunk = slices_per_chunk;
}

/* Works of the SIMPLE protocol begin at a multiple of their chunk's steps. */
static uint64_t first_step(const struct ports *p, const struct connection *c)
{
  return p->function->protocol == SIMPLE ? up(c->step, (size_t)(p->steps_per_slice * p->slices_per_chunk)) : c->step;
}

void ports_receive_from(struct ports *p, const int *peers, int count, int which)
{
  for (int i = 0; i < count; i++) {
    if (peers[i] < 0) continue;
    struct port *r = &p->receive[p->receives++];
    r->connection = connection(&p->kernel->channel, peers[i], 0, which);
    r->step = first_step(p, r->connection);
    if (p->function->protocol == SIMPLE) WRITE(r->connection->head, r->step); /* gives back what was skipped */
  }
}

void ports_send_to(struct ports *p, const int *peers, int count, int which)
{
  for (int i = 0; i < count; i++) {
    if (peers[i] < 0) continue;
    struct port *s = &p->send[p->sends++];
    s->connection = connection(&p->kernel->channel, peers[i], 1, which);
    s->step = first_step(p, s->connection);
  }
}

void ports_close(struct ports *p)
{
  for (int i = 0; i < p->receives; i++) p->receive[i].connection->step = p->receive[i].step;
  for (int i = 0; i < p->sends; i++) p->send[i].connection->step = p->send[i].step;
}

char *simple_slot(const struct connection *c, uint64_t step)
{
  const int64_t offset = c->mail ? mail_offset(c, step) : -1;
  return c->buffers[SIMPLE] + (offset >= 0 ? (size_t)offset : step % STEPS * (size_t)c->step_bytes);
}

/* What the source and everything received come to: into the destination and all that is sent. */
static void spread(const struct ports *p, int what, const char *source, char *destination, char *const *received,
                   char *const *sent, int sends, size_t count)
{
  const struct function *f = p->function;
  const size_t bytes = count * element_bytes(f->element);
  const int receives = what & RECEIVE ? p->receives : 0;
  const char *out;
  if (!count) return;
  const int changes = (source && what & OWN && f->operation == PRE_MUL_SUM) || (what & RESULT && f->operation == SUM_POST_DIV);
  if (receives + (source != NULL) == 1 && !changes) {
    out = source ? source : received[0];
  } else {
    int i = 0;
    char *sum = kernel_scratch(p->kernel, bytes);
    memcpy(sum, source ? source : received[i++], bytes);
    if (source && what & OWN) before_all(f->element, f->operation, p->operand, sum, count);
    for (; i < receives; i++) combine(f->element, f->operation, p->operand, sum, received[i], count);
    if (what & RESULT) after_all(f->element, f->operation, p->operand, sum, count);
    out = sum;
  }
  if (destination && destination != out) memmove(destination, out, bytes);
  for (int i = 0; i < sends; i++)
    if (sent[i] != out) memcpy(sent[i], out, bytes);
}

static void wait_for_room(struct ports *p, const struct port *s, int steps)
{
  WAIT_WHILE(p->kernel, READ(s->connection->head) + STEPS < s->step + (uint64_t)steps);
}

static void move_simple(struct ports *p, int what, const char *source, char *destination, size_t count)
{
  struct kernel *k = p->kernel;
  const size_t size = element_bytes(p->function->element);
  const int receives = what & RECEIVE ? p->receives : 0, sends = what & SEND ? p->sends : 0;
  const size_t step = (size_t)k->communicator->buffer_bytes[SIMPLE] / STEPS / size;
  const size_t even = up(parts(count, (size_t)p->slices_per_chunk), 16), smallest = step * (size_t)p->steps_per_slice / 32;
  const size_t slice = even > smallest ? even : smallest;
  for (size_t n, i = 0, at = 0; i < (size_t)p->slices_per_chunk; i++, at += n) {
    char *received[PEERS_MOST], *sent[PEERS_MOST];
    n = least(slice, count - at);
    for (int s = 0; s < sends; s++) {
      struct port *to = &p->send[s];
      wait_for_room(p, to, p->steps_per_slice);
      if (to->connection->mail) __atomic_store_n(mail_size(to->connection, to->step), (int64_t)(n * size), __ATOMIC_RELAXED);
      sent[s] = simple_slot(to->connection, to->step);
    }
    for (int r = 0; r < receives; r++) {
      WAIT_WHILE(k, READ(p->receive[r].connection->tail) < p->receive[r].step + (uint64_t)p->steps_per_slice);
      received[r] = simple_slot(p->receive[r].connection, p->receive[r].step);
    }
    if (k->slice_delay_us && n) usleep((useconds_t)k->slice_delay_us);
    if (!k->aborted)
      spread(p, what, source ? source + at * size : NULL, destination ? destination + at * size : NULL, received, sent, sends,
             n);
    for (int r = 0; r < receives; r++) {
      p->receive[r].step += (uint64_t)p->steps_per_slice;
      WRITE(p->receive[r].connection->head, p->receive[r].step);
    }
    for (int s = 0; s < sends; s++) {
      p->send[s].step += (uint64_t)p->steps_per_slice;
      WRITE(p->send[s].connection->tail, p->send[s].step);
    }
  }
}

/* Data is unpacked from all that is received and packed again for all that is sent. */
static void move_flagged(struct ports *p, const struct flagged *g, int what, const char *source, char *destination,
                         size_t count)
{
  struct kernel *k = p->kernel;
  const size_t bytes = count * element_bytes(p->function->element), room = up(bytes, 128);
  const int receives = what & RECEIVE ? p->receives : 0, sends = what & SEND ? p->sends : 0;
  char *memory = malloc((PEERS_MOST + 1) * room + 1), *received[PEERS_MOST], *const out = memory + PEERS_MOST * room;
  for (int s = 0; s < sends; s++) wait_for_room(p, &p->send[s], 1);
  for (int r = 0; r < receives; r++) {
    struct port *from = &p->receive[r];
    const char *slot = flagged_slot(k, g, from->connection, from->step);
    WAIT_WHILE(k, !flagged_ready(g, slot, bytes, from->step));
    received[r] = memory + (size_t)r * room;
    flagged_unpack(g, slot, received[r], bytes);
  }
  if (!k->aborted) spread(p, what, source, destination, received, &out, sends > 0, count);
  for (int r = 0; r < receives; r++) {
    p->receive[r].step++;
    if (p->receive[r].connection->head) WRITE(p->receive[r].connection->head, p->receive[r].step);
  }
  for (int s = 0; s < sends; s++) flagged_send(k, g, p->send[s].connection, p->send[s].step++, out, bytes);
  free(memory);
}

void move(struct ports *p, int what, const char *source, char *destination, ssize_t count)
{
  const size_t n = count > 0 ? (size_t)count : 0;
  switch (p->function->protocol) {
  case LL: move_flagged(p, &flagged_ll, what, source, destination, n); break;
  case LL128: move_flagged(p, &flagged_ll128, what, source, destination, n); break;
  default: move_simple(p, what, source, destination, n); break;
  }
}
