/* SPDX-License-Identifier: Apache-2.0
 *
 * Point to point: all sends and receives of a batch go on together, each as far as it can. Of a kernel's threads each has a
 * part of its own; thread 0 is in that of the first work: its send, if it has one.
 */
#include <string.h>

#include "ports.h"

struct transfer {
  int send, ll;
  char *address;
  size_t bytes, done, chunk;
  struct connection *connection;
  uint64_t step;
  int over;
};

/* Chunk sizes come in 8 bits: 5 of exponent, 3 of mantissa. */
static size_t chunk_bytes(uint8_t x)
{
  const uint32_t exponent = x >> 3, mantissa = (x & 7u) | (exponent ? 8 : 0);
  return (size_t)mantissa << (exponent ? exponent - 1 : 0);
}

static int may_go_on(const struct kernel *k, const struct transfer *t, size_t n)
{
  const struct connection *c = t->connection;
  if (t->send) return READ(c->head) + STEPS >= t->step + 1;
  if (t->ll) return flagged_ready(&flagged_ll, flagged_slot(k, &flagged_ll, c, t->step), n, t->step);
  return READ(c->tail) >= t->step + 1;
}

static void send_chunk(const struct kernel *k, struct transfer *t, size_t n)
{
  struct connection *c = t->connection;
  if (t->ll) {
    flagged_send(k, &flagged_ll, c, t->step++, t->address + t->done, n);
    return;
  }
  if (c->mail) __atomic_store_n(mail_size(c, t->step), (int64_t)n, __ATOMIC_RELAXED);
  memcpy(simple_slot(c, t->step), t->address + t->done, n);
  t->step++;
  WRITE(c->tail, t->step);
}

static void receive_chunk(const struct kernel *k, struct transfer *t, size_t n)
{
  struct connection *c = t->connection;
  if (t->ll) flagged_unpack(&flagged_ll, flagged_slot(k, &flagged_ll, c, t->step), t->address + t->done, n);
  else memcpy(t->address + t->done, simple_slot(c, t->step), n);
  t->step++;
  if (c->head) WRITE(c->head, t->step);
}

static int go_on(const struct kernel *k, struct transfer *t)
{
  const size_t n = least(t->chunk, t->bytes - t->done);
  if (!may_go_on(k, t, n)) return 0;
  (t->send ? send_chunk : receive_chunk)(k, t, n);
  t->done += n;
  if (t->done < t->bytes) return 1;
  t->over = 1;
  t->connection->step = t->step;
  return 1;
}

/* The part of a message that is channel number part's of so many; parts are whole pages. */
static void bounds(size_t bytes, int channels, int part, size_t *begin, size_t *count)
{
  const size_t each = channels ? up(parts(bytes, (size_t)channels), 4096) : 0;
  *begin = least((size_t)part * each, bytes);
  *count = least((size_t)(part + 1) * each, bytes) - *begin;
}

static struct transfer transfer_of(const struct kernel *k, const struct work_p2p *w, int send, int part)
{
  struct transfer t = {
    .send = send, .ll = send ? w->send_ll : w->receive_ll, .chunk = chunk_bytes(send ? w->send_chunk8 : w->receive_chunk8)};
  size_t begin;
  bounds(send ? w->send_bytes : w->receive_bytes, send ? w->send_channels : w->receive_channels, part, &begin, &t.bytes);
  t.address = (send ? w->send_address : w->receive_address) + begin;
  t.connection = connection(&k->channel, send ? w->send_rank : w->receive_rank, send,
                            send ? w->send_connection : w->receive_connection);
  t.step = t.connection->step;
  if (!send && !t.ll) WRITE(t.connection->head, t.step);
  return t;
}

static int transfers_of(struct kernel *k, struct transfer *t)
{
  int count = 0;
  for (int i = 0; i < k->works; i++) {
    const struct work_p2p work = work_p2p(k->storage + (size_t)i * work_bytes(WORK_P2P)), *w = &work;
    const int part = p2p_part(k->communicator, w, k->number);
    if (w->send_rank == k->communicator->rank) { /* to itself: no connection */
      size_t from, to, count_from, count_to;
      bounds(w->send_bytes, w->send_channels, part, &from, &count_from);
      bounds(w->receive_bytes, w->receive_channels, part, &to, &count_to);
      if (part < w->send_channels) memmove(w->receive_address + to, w->send_address + from, count_from);
      if (i == 0) stamp_part(k);
      k->parts++;
      continue;
    }
    if (part < w->send_channels) t[count++] = transfer_of(k, w, 1, part);
    if (part < w->receive_channels) t[count++] = transfer_of(k, w, 0, part);
  }
  k->parts += count;
  return count;
}

void run_p2p(struct kernel *k)
{
  struct transfer t[64];
  const int count = transfers_of(k, t);
  unsigned spins = 0;
  for (int left = count; left && !k->aborted;) {
    int moved = 0;
    left = 0;
    for (int i = 0; i < count; i++) {
      if (t[i].over) continue;
      moved |= go_on(k, &t[i]);
      left += !t[i].over;
      if (i == 0 && t[i].over) stamp_part(k); /* the first work's, or that is done already */
    }
    if (moved) spins = 0;
    else if (left) kernel_relax(k, &spins);
  }
}
