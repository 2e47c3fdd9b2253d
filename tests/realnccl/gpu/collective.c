/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives on rings and trees. Every rank walks through the same chunks in the same order, or nothing would fit.
 */
#include <string.h>

#include "arithmetic.h"
#include "ports.h"

/* A channel's part of a collective, in elements. */
struct part {
  size_t total; /* of all channels */
  size_t begin, count, chunk;
};

static size_t grain_bytes(enum protocol p) { return p == LL ? 16 : p == LL128 ? 1920 : 512; }

static struct part part_of(const struct kernel *k, const struct function *f, const struct work_collective *w)
{
  const size_t grain = grain_bytes(f->protocol) / element_bytes(f->element);
  const int middle = w->last_channel - w->first_channel - 1;
  const size_t middles = middle > 0 ? (size_t)middle * w->middle_count : 0;
  struct part p = {.total = w->first_count + middles + w->last_count};
  if (k->number == w->first_channel) {
    p.count = w->first_count;
    p.chunk = w->first_grains * grain;
  } else if (k->number == w->last_channel) {
    p.begin = w->first_count + middles;
    p.count = w->last_count;
    p.chunk = w->last_grains * grain;
  } else {
    p.begin = w->first_count + (size_t)(k->number - w->first_channel - 1) * w->middle_count;
    p.count = w->middle_count;
    p.chunk = w->middle_grains * grain;
  }
  if (!p.chunk) p.chunk = 1;
  return p;
}

struct job {
  struct ports *ports;
  const struct kernel *kernel;
  const struct channel *channel;
  struct part part;
  size_t size, ranks; /* bytes of an element */
  const char *in;
  char *out;
  int root;
  int last; /* of its batch */
};

/* Chunks travel backwards around the ring: the first half of the way they are summed up, the second they are spread. */
static void ring_all_reduce(const struct job *j)
{
  const size_t n = j->ranks, index = (size_t)j->channel->index;
  for (size_t at = 0; at < j->part.count; at += n * j->part.chunk) {
    const size_t rest = j->part.count - at;
    const size_t chunk = rest < n * j->part.chunk ? up(parts(rest, n), 16 / j->size) : j->part.chunk;
    for (size_t i = 0; i < 2 * n - 1; i++) {
      const size_t begin = (index + 2 * n - 1 - i) % n * chunk, o = (j->part.begin + at + begin) * j->size;
      const ssize_t left = (ssize_t)rest - (ssize_t)begin, count = left < (ssize_t)chunk ? left : (ssize_t)chunk;
      const int what = (i > 0 ? RECEIVE : 0) | (i < 2 * n - 2 ? SEND : 0) | (i < n ? OWN : 0) | (i == n - 1 ? RESULT : 0);
      move(j->ports, what, i < n ? j->in + o : NULL, i < n - 1 ? NULL : j->out + o, count);
    }
  }
}

static void ring_broadcast(const struct job *j)
{
  const int first = j->channel->ranks[0] == j->root, last = j->channel->ranks[1] == j->root;
  for (size_t at = 0; at < j->part.count; at += j->part.chunk) {
    const size_t o = (j->part.begin + at) * j->size;
    const ssize_t count = (ssize_t)least(j->part.chunk, j->part.count - at);
    if (first) move(j->ports, SEND, j->in + o, j->in == j->out ? NULL : j->out + o, count);
    else move(j->ports, RECEIVE | (last ? 0 : SEND), NULL, j->out + o, count);
  }
}

static void ring_reduce(const struct job *j)
{
  const int first = j->channel->ranks[j->ranks - 1] == j->root, last = j->kernel->communicator->rank == j->root;
  for (size_t at = 0; at < j->part.count; at += j->part.chunk) {
    const size_t o = (j->part.begin + at) * j->size;
    move(j->ports, OWN | (first ? 0 : RECEIVE) | (last ? RESULT : SEND), j->in + o, last ? j->out + o : NULL,
         (ssize_t)least(j->part.chunk, j->part.count - at));
  }
}

static void ring_all_gather(const struct job *j)
{
  for (size_t at = 0; at < j->part.count; at += j->part.chunk) {
    const ssize_t count = (ssize_t)least(j->part.chunk, j->part.count - at);
    const char *own = j->in + (j->part.begin + at) * j->size;
    for (size_t i = 0; i < j->ranks; i++) {
      const size_t of = (size_t)j->channel->ranks[i ? j->ranks - i : 0];
      char *to = j->out + (of * j->part.total + j->part.begin + at) * j->size;
      if (i) move(j->ports, RECEIVE | (i < j->ranks - 1 ? SEND : 0), NULL, to, count);
      else move(j->ports, SEND, own, to == own ? NULL : to, count);
    }
  }
}

static void ring_reduce_scatter(const struct job *j)
{
  for (size_t at = 0; at < j->part.count; at += j->part.chunk) {
    const ssize_t count = (ssize_t)least(j->part.chunk, j->part.count - at);
    for (size_t i = 0; i < j->ranks; i++) {
      const size_t of = (size_t)j->channel->ranks[j->ranks - 1 - i];
      const int last = i == j->ranks - 1;
      move(j->ports, OWN | (i ? RECEIVE : 0) | (last ? RESULT : SEND),
           j->in + (of * j->part.total + j->part.begin + at) * j->size, last ? j->out + (j->part.begin + at) * j->size : NULL,
           count);
    }
  }
}

/* Up the tree chunks are summed, down it the sum is spread. Kernels do both ways at once with half of their threads each, thread 0
 * being one of those that go up; one thread has to keep a few chunks on their way, or neighbors would wait for each other. */
static void tree_all_reduce(const struct job *j, struct ports *up_ports, struct ports *down_ports)
{
  const struct tree *t = &j->channel->tree;
  struct kernel *k = up_ports->kernel;
  const int root = t->up < 0, leaf = up_ports->receives == 0;
  size_t summed = 0, spread = 0;
  while ((summed < j->part.count || spread < j->part.count) && !j->kernel->aborted) {
    const int sum = summed < j->part.count && (root || summed < spread + 2 * j->part.chunk);
    size_t *at = sum ? &summed : &spread;
    const size_t o = (j->part.begin + *at) * j->size;
    const ssize_t count = (ssize_t)least(j->part.chunk, j->part.count - *at);
    *at += j->part.chunk;
    if (root) {
      move(up_ports, RECEIVE | OWN | RESULT, j->in + o, j->out + o, count);
      move(down_ports, SEND, j->out + o, NULL, count);
      spread = summed;
    } else if (sum) {
      move(up_ports, OWN | SEND | (leaf ? 0 : RECEIVE), j->in + o, NULL, count);
      if (j->last && summed >= j->part.count && k->parts > 1) stamp_part(k);
    } else {
      move(down_ports, RECEIVE | (leaf ? 0 : SEND), NULL, j->out + o, count);
    }
  }
}

static void on_tree(struct job *j, const struct function *f, const struct work_collective *w, uint64_t operand)
{
  const int which = w->connection;
  struct kernel *k = j->ports->kernel;
  const struct tree *t = &j->channel->tree;
  struct ports upward, downward;
  ports_open(&upward, k, f, operand, 1, 1);
  ports_receive_from(&upward, t->down, 3, which);
  ports_send_to(&upward, &t->up, 1, which);
  ports_open(&downward, k, f, operand, 1, 1);
  ports_receive_from(&downward, &t->up, 1, which);
  ports_send_to(&downward, t->down, 3, which);
  if (t->up >= 0 && tree_is_split(f->protocol)) k->parts = 2;
  tree_all_reduce(j, &upward, &downward);
  ports_close(&upward);
  ports_close(&downward);
}

static void on_ring(struct job *j, const struct function *f, const struct work_collective *w, uint64_t operand)
{
  static void (*const run[])(const struct job *) = {[ALL_REDUCE] = ring_all_reduce,
                                                    [BROADCAST] = ring_broadcast,
                                                    [REDUCE] = ring_reduce,
                                                    [ALL_GATHER] = ring_all_gather,
                                                    [REDUCE_SCATTER] = ring_reduce_scatter};
  const int rooted = f->collective == BROADCAST || f->collective == REDUCE, slices = rooted || w->one_slice ? 1 : 2;
  ports_open(j->ports, j->ports->kernel, f, operand, rooted ? 1 : STEPS / 2 / slices, slices);
  ports_receive_from(j->ports, &j->channel->previous, 1, w->connection);
  ports_send_to(j->ports, &j->channel->next, 1, w->connection);
  run[f->collective](j);
  ports_close(j->ports);
}

void run_collective(struct kernel *k, const struct function *f, const struct work_collective *w, int last)
{
  struct ports ports = {.kernel = k};
  struct job j = {.ports = &ports,
                  .kernel = k,
                  .channel = &k->channel,
                  .part = part_of(k, f, w),
                  .size = element_bytes(f->element),
                  .ranks = (size_t)k->communicator->ranks,
                  .in = w->send,
                  .out = w->receive,
                  .root = w->root,
                  .last = last};
  uint64_t operand = w->operand;
  if (w->operand_is_pointer) memcpy(&operand, (const void *)w->operand, f->operation == SUM_POST_DIV ? sizeof operand : j.size);
  (f->algorithm == TREE ? on_tree : on_ring)(&j, f, w, operand);
}

/* Broadcasts of several roots, one chunk of each in turn. */
void run_broadcasts(struct kernel *k, const struct function *f)
{
  struct work_broadcast *w = (struct work_broadcast *)k->storage;
  struct ports p;
  size_t left = 0;
  for (int i = 0; i < k->works; i++) left += w[i].bytes;
  ports_open(&p, k, f, 0, 1, 1);
  ports_receive_from(&p, &k->channel.previous, 1, 0);
  ports_send_to(&p, &k->channel.next, 1, 0);
  for (int i = 0; left && !k->aborted; i = (i + 1) % k->works) {
    const size_t n = least(w[i].bytes, (size_t)w[i].chunk), at = w[i].done;
    if (!n) continue;
    if (w[i].depth == 0) move(&p, SEND, w[i].send + at, w[i].send == w[i].receive ? NULL : w[i].receive + at, (ssize_t)n);
    else move(&p, RECEIVE | (w[i].depth == k->communicator->ranks - 1 ? 0 : SEND), NULL, w[i].receive + at, (ssize_t)n);
    w[i].bytes -= n;
    w[i].done += n;
    left -= n;
  }
  ports_close(&p);
}
