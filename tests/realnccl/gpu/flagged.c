/* SPDX-License-Identifier: Apache-2.0
 *
 * LL: lines of 16 bytes, 4 of data and 4 of flag, twice. LL128: lines of 128 bytes, 120 of data and 8 of flag, always 16 lines
 * at a time (what a warp writes). The flag is the step plus one.
 */
#include <string.h>

#include "ports.h"

static int ll_ready(const char *line, uint64_t step)
{
  const uint32_t *words = (const uint32_t *)line, flag = (uint32_t)(step + 1);
  return READ(&words[1]) == flag && READ(&words[3]) == flag;
}

static void ll_pack(char *line, const char *data, size_t bytes, uint64_t step)
{
  uint32_t *words = (uint32_t *)line, half[2] = {0, 0};
  memcpy(half, data, bytes);
  words[0] = half[0];
  words[2] = half[1];
  WRITE(&words[1], (uint32_t)(step + 1));
  WRITE(&words[3], (uint32_t)(step + 1));
}

static void ll_unpack(const char *line, char *data)
{
  memcpy(data, line, 4);
  memcpy(data + 4, line + 8, 4);
}

static int ll128_ready(const char *line, uint64_t step) { return READ(&((const uint64_t *)line)[15]) == step + 1; }

static void ll128_pack(char *line, const char *data, size_t bytes, uint64_t step)
{
  memcpy(line, data, bytes);
  WRITE(&((uint64_t *)line)[15], step + 1);
}

static void ll128_unpack(const char *line, char *data) { memcpy(data, line, 120); }

const struct flagged flagged_ll = {LL, 16, 8, 1, ll_ready, ll_pack, ll_unpack};
const struct flagged flagged_ll128 = {LL128, 128, 120, 16, ll128_ready, ll128_pack, ll128_unpack};

size_t flagged_lines(const struct flagged *g, size_t bytes) { return up(parts(bytes, g->data), g->unit); }

static size_t slot_bytes(const struct kernel *k, const struct flagged *g)
{
  return (size_t)k->communicator->buffer_bytes[g->protocol] / STEPS;
}

char *flagged_slot(const struct kernel *k, const struct flagged *g, const struct connection *c, uint64_t step)
{
  return c->buffers[g->protocol] + step % STEPS * slot_bytes(k, g);
}

int flagged_ready(const struct flagged *g, const char *slot, size_t bytes, uint64_t step)
{
  for (size_t i = 0; i < flagged_lines(g, bytes); i++)
    if (!g->ready(slot + i * g->line, step)) return 0;
  return 1;
}

void flagged_unpack(const struct flagged *g, const char *slot, char *data, size_t bytes)
{
  char last[120];
  for (; bytes >= g->data; bytes -= g->data, slot += g->line, data += g->data) g->unpack(slot, data);
  if (!bytes) return;
  g->unpack(slot, last);
  memcpy(data, last, bytes);
}

/* LL has flags of 32 bits: before they wrap, every line of all slots is written once, so that no old flag looks new. */
static int is_cleaning(const struct flagged *g, uint64_t step)
{
  const uint32_t all = 0x7ffffff8;
  return g->protocol == LL && (step & all) == all;
}

void flagged_send(const struct kernel *k, const struct flagged *g, struct connection *c, uint64_t step, const char *data,
                  size_t bytes)
{
  char *slot = flagged_slot(k, g, c, step);
  const size_t lines = is_cleaning(g, step) ? slot_bytes(k, g) / g->line : flagged_lines(g, bytes);
  if (c->mail) WRITE(mail_size(c, step), (int64_t)(lines * g->line));
  for (size_t i = 0; i < lines; i++) {
    const size_t at = least(i * g->data, bytes);
    g->pack(slot + i * g->line, data + at, least(g->data, bytes - at), step);
  }
  if (g->protocol == LL128 && c->mail) WRITE(c->tail, step + 1);
}
