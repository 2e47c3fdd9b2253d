/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Offsets in bytes. A channel is {peers, ring, tree, chain, direct, nvls, done, work counter}, and the ring's parts before the
 * index differ; a collective's work is {flags, root, receive, send, four addresses, counts, grains, operand}. */
static const struct layout {
  int first, last; /* minor numbers of the releases 2.x that have it */
  size_t channel, ring_index, tree, work_counter;
  size_t collective, receive, counts;
  size_t mail, mail_size; /* {mode, offset, size, address}; the offset was widened */
  int has_phases;
} layouts[] = {
  {28, 28, 368, 24, 32, 352, 96, 8, 56, 24, 8, 0},
  {29, 29, 368, 32, 40, 360, 96, 8, 56, 24, 8, 0},
  {30, 30, 368, 32, 40, 360, 128, 24, 80, 24, 8, 0}, /* a collective's parts are padded to 16 bytes each */
  {31, 31, 368, 32, 40, 360, 128, 24, 80, 32, 16, 1},
};
static const struct layout *layout;
static int version; /* 22907 */

static void __attribute__((noreturn)) unknown(const char *library, int first, int last)
{
  fprintf(
    stderr,
    "realnccl: %s is NCCL %d.%d.%d; the layouts of its device side are known from 2.%d to 2.%d: compare ncclDevChannel, "
    "ncclKernelComm, ncclConnInfo, ncclDevWorkColl, ncclDevWorkP2p, ncclDevWorkBcast, ncclDevWorkBatch "
    "(src/include/device.h) and ncclConnFifo (collectives.h) "
    "with gpu/layout.h and add a row to gpu/layout.c\n",
    library, version / 10000, version / 100 % 100, version % 100, first, last);
  abort();
}

void layout_find(const void *kernel)
{
  Dl_info info = {0};
  void *library = dladdr(kernel, &info) ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  int (*get)(int *) = library ? (int (*)(int *))dlsym(library, "ncclGetVersion") : NULL;
  if (!get || get(&version) != 0) {
    fprintf(stderr, "realnccl: %s does not tell its version (ncclGetVersion)\n",
            info.dli_fname ? info.dli_fname : "the library of a kernel");
    abort();
  }
  const size_t count = sizeof layouts / sizeof *layouts;
  for (size_t i = 0; i < count; i++)
    if (version / 100 % 100 >= layouts[i].first && version / 100 % 100 <= layouts[i].last) layout = &layouts[i];
  if (!layout || version / 10000 != 2) unknown(info.dli_fname, layouts[0].first, layouts[count - 1].last);
}

static void __attribute__((noreturn)) implausible(const char *what, long long value)
{
  fprintf(stderr,
          "realnccl: a launch of NCCL %d.%d.%d has %s %lld: its device side is laid out otherwise than gpu/layout.h says\n",
          version / 10000, version / 100 % 100, version % 100, what, value);
  abort();
}

void layout_check(const struct arguments *a)
{
  const struct communicator *c = a->communicator;
  if (!a->channel_mask) implausible("a channel mask of", 0);
  if (c->ranks < 1 || c->ranks > 1 << 20) implausible("a number of ranks of", c->ranks);
  if (c->rank < 0 || c->rank >= c->ranks) implausible("a rank of", c->rank);
  if (c->nodes < 1 || c->nodes > c->ranks || c->node < 0 || c->node >= c->nodes) implausible("a node of", c->node);
  for (int p = 0; p < PROTOCOLS; p++)
    if (c->buffer_bytes[p] < 0 || c->buffer_bytes[p] > 1 << 30) implausible("a buffer size of", c->buffer_bytes[p]);
  for (int i = 0; i < CHANNELS; i++) {
    if (!(a->channel_mask >> i & 1)) continue;
    struct channel h = channel(c, i);
    if (!h.peers || h.index < 0 || h.index >= c->ranks) implausible("a ring's index of", h.index);
    if (c->ranks > 1 && (h.previous < 0 || h.previous >= c->ranks || h.next < 0 || h.next >= c->ranks))
      implausible("a ring's next rank of", h.next);
    if (*h.work_counter > 1ull << 48) implausible("a work counter of", (long long)*h.work_counter);
  }
}

int64_t *mail_size(const struct connection *c, uint64_t step)
{
  return (int64_t *)(c->mail + step % STEPS * layout->mail + layout->mail_size);
}

int64_t mail_offset(const struct connection *c, uint64_t step)
{
  const volatile char *mail = c->mail + step % STEPS * layout->mail;
  if (*(const volatile int32_t *)mail != 1) return -1; /* mode */
  return layout->mail_size == 8 ? *(const volatile int32_t *)(mail + 4) : *(const volatile int64_t *)(mail + 8);
}

size_t work_bytes(enum work_type type)
{
  switch (type) {
  case WORK_P2P: return sizeof(struct work_p2p);
  case WORK_COLLECTIVE: return layout->collective;
  case WORK_REGISTERED: return layout->collective + 3 * 8 * sizeof(void *);
  case WORK_BROADCAST: return sizeof(struct work_broadcast);
  }
  return 0;
}

struct phases *phases_of(const struct communicator *c, int number) { return layout->has_phases ? &c->phases[number] : NULL; }

enum { OPERAND_IS_POINTER = 24, STAMPED = 31 }; /* bits of a collective's first word, after its first and last channel */

static uint32_t first_word(const char *work)
{
  uint32_t word;
  memcpy(&word, work, sizeof word);
  return word;
}

struct work_collective work_collective(const char *work)
{
  uint32_t word = first_word(work), root;
  char *address[2];
  uint64_t counts[5]; /* first, middle, last; grains, 21 bits each; operand */
  memcpy(&root, work + 4, sizeof root);
  memcpy(address, work + layout->receive, sizeof address);
  memcpy(counts, work + layout->counts, sizeof counts);
  return (struct work_collective){.first_channel = word & 0xff,
                                  .last_channel = word >> 8 & 0xff,
                                  .root = (int)root,
                                  .receive = address[0],
                                  .send = address[1],
                                  .first_count = counts[0],
                                  .middle_count = counts[1],
                                  .last_count = counts[2],
                                  .first_grains = counts[3] & 0x1fffff,
                                  .middle_grains = counts[3] >> 21 & 0x1fffff,
                                  .last_grains = counts[3] >> 42 & 0x1fffff,
                                  .operand_is_pointer = word >> OPERAND_IS_POINTER & 1,
                                  .operand = counts[4]};
}

/* As the kernels do it: whatever is not point to point is looked at as if it were a collective's, Broadcasts too. */
int work_is_stamped(enum work_type type, const char *works, int index)
{
  if (type == WORK_P2P) return ((const struct work_p2p *)works)[index].stamped;
  return first_word(works + (size_t)index * layout->collective) >> STAMPED & 1;
}

struct channel channel(const struct communicator *c, int number)
{
  char *at = c->channels + (size_t)number * layout->channel;
  struct channel h = {.work_counter = (uint64_t *)(at + layout->work_counter)};
  memcpy(&h.peers, at, sizeof h.peers);
  memcpy(&h.previous, at + 8, sizeof h.previous);
  memcpy(&h.next, at + 12, sizeof h.next);
  memcpy(&h.ranks, at + 16, sizeof h.ranks);
  memcpy(&h.index, at + layout->ring_index, sizeof h.index);
  memcpy(&h.tree, at + layout->tree, sizeof h.tree);
  return h;
}
