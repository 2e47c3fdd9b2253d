/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Offsets and sizes in bytes. A channel is {peers, ring, tree, chain, direct, nvls, done, work counter}, and the ring's parts
 * before the index differ; a collective's work is {flags, root, receive, send, four addresses, counts, grains, operand}; the
 * mail is {mode, offset, size, address}. */
static const struct layout {
  int rccl, first, last; /* minor numbers of the releases 2.x that have it */
  size_t channel, ring_index, tree, work_counter;
  size_t collective, receive, counts;
  size_t p2p, p2p_channels; /* work, and where its numbers of channels begin */
  size_t connection, connections; /* size, number in each direction */
  size_t mask; /* of channels */
  size_t mail, mail_size;
  int has_phases;
} layouts[] = {
  {.rccl = 1,
   .first = 27,
   .last = 27,
   .channel = 384,
   .ring_index = 24,
   .tree = 32,
   .work_counter = 368,
   .collective = 128,
   .receive = 16,
   .counts = 72,
   .p2p = 64,
   .p2p_channels = 56,
   .connection = 168,
   .connections = 3,
   .mask = 16,
   .mail = 24,
   .mail_size = 8},
  {.first = 28,
   .last = 28,
   .channel = 368,
   .ring_index = 24,
   .tree = 32,
   .work_counter = 352,
   .collective = 96,
   .receive = 8,
   .counts = 56,
   .p2p = 48,
   .p2p_channels = 40,
   .connection = 152,
   .connections = 2,
   .mask = 8,
   .mail = 24,
   .mail_size = 8},
  {.first = 29,
   .last = 29,
   .channel = 368,
   .ring_index = 32,
   .tree = 40,
   .work_counter = 360,
   .collective = 96,
   .receive = 8,
   .counts = 56,
   .p2p = 48,
   .p2p_channels = 40,
   .connection = 152,
   .connections = 2,
   .mask = 8,
   .mail = 24,
   .mail_size = 8},
  /* A collective's parts are padded to 16 bytes each. */
  {.first = 30,
   .last = 30,
   .channel = 368,
   .ring_index = 32,
   .tree = 40,
   .work_counter = 360,
   .collective = 128,
   .receive = 24,
   .counts = 80,
   .p2p = 48,
   .p2p_channels = 40,
   .connection = 152,
   .connections = 2,
   .mask = 8,
   .mail = 24,
   .mail_size = 8},
  /* Offsets in mails have 64 bits; phases. */
  {.first = 31,
   .last = 31,
   .channel = 368,
   .ring_index = 32,
   .tree = 40,
   .work_counter = 360,
   .collective = 128,
   .receive = 24,
   .counts = 80,
   .p2p = 48,
   .p2p_channels = 40,
   .connection = 152,
   .connections = 2,
   .mask = 8,
   .mail = 32,
   .mail_size = 16,
   .has_phases = 1},
};
static const struct layout *layout;
static int version; /* 22907 */

static void __attribute__((noreturn)) unknown(const char *library, int rccl)
{
  fprintf(
    stderr,
    "realnccl: %s is %s %d.%d.%d; the layouts of its device side are known of NCCL 2.28 to 2.31 and RCCL 2.27: compare ncclDevChannel, "
    "ncclKernelComm, ncclConnInfo, ncclDevWorkColl, ncclDevWorkP2p, ncclDevWorkBcast, ncclDevWorkBatch "
    "(src/include/device.h) and ncclConnFifo (collectives.h) "
    "with gpu/layout.h and add a row to gpu/layout.c\n",
    library, rccl ? "RCCL" : "NCCL", version / 10000, version / 100 % 100, version % 100);
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
  const int rccl = is_rccl(info.dli_fname), minor = version / 100 % 100;
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
    if (rccl == layouts[i].rccl && minor >= layouts[i].first && minor <= layouts[i].last) layout = &layouts[i];
  if (!layout || version / 10000 != 2) unknown(info.dli_fname, rccl);
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
  if (!a->channel_mask[0] && !a->channel_mask[1]) implausible("a channel mask of", 0);
  if (c->ranks < 1 || c->ranks > 1 << 20) implausible("a number of ranks of", c->ranks);
  if (c->rank < 0 || c->rank >= c->ranks) implausible("a rank of", c->rank);
  if (c->nodes < 1 || c->nodes > c->ranks || c->node < 0 || c->node >= c->nodes) implausible("a node of", c->node);
  for (int p = 0; p < PROTOCOLS; p++)
    if (c->buffer_bytes[p] < 0 || c->buffer_bytes[p] > 1 << 30) implausible("a buffer size of", c->buffer_bytes[p]);
  for (int i = 0; i < CHANNELS; i++) {
    if (!has_channel(a, i)) continue;
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
  case WORK_P2P: return layout->p2p;
  case WORK_COLLECTIVE: return layout->collective;
  case WORK_REGISTERED: return layout->collective + 3 * 8 * sizeof(void *);
  case WORK_BROADCAST: return sizeof(struct work_broadcast);
  }
  return 0;
}

struct phases *phases_of(const struct communicator *c, int number) { return layout->has_phases ? &c->phases[number] : NULL; }

int tree_is_split(enum protocol protocol) { return !layout->rccl || protocol != SIMPLE; }

uint64_t stamp_unit_ns(void) { return layout->rccl ? 10 : 1; }

int is_rccl(const char *library)
{
  const char *name = strrchr(library, '/');
  return strncmp(name ? name + 1 : library, "librccl", strlen("librccl")) == 0;
}

struct arguments arguments_of(const void *block)
{
  const char *at = block;
  struct arguments a = {.block = at, .in_block = at[8 + layout->mask] == 0};
  memcpy(&a.communicator, at, sizeof a.communicator);
  memcpy(a.channel_mask, at + 8, layout->mask);
  memcpy(&a.buffer_mask, at + layout->mask + 12, sizeof a.buffer_mask);
  memcpy(&a.buffer, at + layout->mask + 16, sizeof a.buffer);
  a.batches = (const struct batch *)(at + (layout->mask + 24 + 15) / 16 * 16);
  return a;
}

int has_channel(const struct arguments *a, int number) { return a->channel_mask[number / 64] >> number % 64 & 1; }

struct connection *connection(const struct channel *h, int rank, int sends, int which)
{
  const size_t index = (sends ? 0 : layout->connections) + (size_t)which;
  return (struct connection *)((char *)h->peers[rank] + index * layout->connection);
}

/* After the numbers of channels: two sizes of chunks, and bits. */
enum { SEND_LL, RECEIVE_LL, P2P_STAMPED = 6, SEND_CONNECTION, RECEIVE_CONNECTION = 9 };

static unsigned p2p_bits(const char *work)
{
  uint16_t bits;
  memcpy(&bits, work + layout->p2p_channels + 6, sizeof bits);
  return bits;
}

struct work_p2p work_p2p(const char *work)
{
  const uint8_t *numbers = (const uint8_t *)work + layout->p2p_channels;
  const unsigned bits = p2p_bits(work);
  char *address[2];
  size_t bytes[2];
  int32_t rank[2];
  memcpy(address, work, sizeof address);
  memcpy(bytes, work + 16, sizeof bytes);
  memcpy(rank, work + 32, sizeof rank);
  return (struct work_p2p){.send_address = address[0],
                           .receive_address = address[1],
                           .send_bytes = bytes[0],
                           .receive_bytes = bytes[1],
                           .send_rank = rank[0],
                           .receive_rank = rank[1],
                           .channel_count = numbers[0],
                           .channel_base = numbers[1],
                           .send_channels = numbers[2],
                           .receive_channels = numbers[3],
                           .send_chunk8 = numbers[4],
                           .receive_chunk8 = numbers[5],
                           .send_ll = bits >> SEND_LL & 1,
                           .receive_ll = bits >> RECEIVE_LL & 1,
                           .send_connection = layout->rccl ? bits >> SEND_CONNECTION & 3 : 1,
                           .receive_connection = layout->rccl ? bits >> RECEIVE_CONNECTION & 3 : 1};
}

/* NCCL counts channels from the base; RCCL does so in units, and from three nodes on with the bits of the distance reversed. */
int p2p_part(const struct communicator *c, const struct work_p2p *w, int number)
{
  int distance = (number - w->channel_base) & (w->channel_count - 1), part = 0;
  if (!layout->rccl) return distance;
  if (c->nodes <= 2) return (number - w->channel_base * c->p2p_per_peer) & (w->channel_count - 1);
  for (int bit = 1; bit < w->channel_count; bit <<= 1, distance >>= 1) part = part << 1 | (distance & 1);
  return part;
}

enum { OPERAND_IS_POINTER = 24, LAST_BIT = 31 }; /* of a collective's first word, after its first and last channel */

static uint32_t word_of(const char *work, int index)
{
  uint32_t word;
  memcpy(&word, work + 4 * index, sizeof word);
  return word;
}

struct work_collective work_collective(const char *work)
{
  const uint32_t first = word_of(work, 0), second = word_of(work, 1), third = word_of(work, 2);
  char *address[2];
  uint64_t counts[5]; /* first, middle, last; grains, 21 bits each; operand */
  memcpy(address, work + layout->receive, sizeof address);
  memcpy(counts, work + layout->counts, sizeof counts);
  return (struct work_collective){.first_channel = first & 0xff,
                                  .last_channel = first >> 8 & 0xff,
                                  .root = (int)(layout->rccl ? second >> 1 & 0x3fffffff : second),
                                  .connection = layout->rccl ? (int)(second >> LAST_BIT | (third & 1) << 1) : 0,
                                  .one_slice = layout->rccl && first >> LAST_BIT,
                                  .receive = address[0],
                                  .send = address[1],
                                  .first_count = counts[0],
                                  .middle_count = counts[1],
                                  .last_count = counts[2],
                                  .first_grains = counts[3] & 0x1fffff,
                                  .middle_grains = counts[3] >> 21 & 0x1fffff,
                                  .last_grains = counts[3] >> 42 & 0x1fffff,
                                  .operand_is_pointer = first >> OPERAND_IS_POINTER & 1,
                                  .operand = counts[4]};
}

/* As the kernels do it: whatever is not point to point is looked at as if it were a collective's, Broadcasts too. */
int work_is_stamped(enum work_type type, const char *works, int index)
{
  if (type == WORK_P2P) return p2p_bits(works + (size_t)index * layout->p2p) >> P2P_STAMPED & 1;
  const char *work = works + (size_t)index * layout->collective;
  return layout->rccl ? word_of(work, 2) >> 16 & 1 : word_of(work, 0) >> LAST_BIT;
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
