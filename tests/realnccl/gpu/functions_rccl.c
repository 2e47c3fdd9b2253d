/* SPDX-License-Identifier: Apache-2.0
 *
 * RCCL's library has no symbols, and its kernels no names that tell functions. But it has a table of its own from what a
 * function is to its number: pairs {key, number} in read-only data, numbers from 0 on in
 * steps of one. A key has a nibble each for
 * collective, algorithm, protocol, operation, element, accumulator and pipelining.
 */
#include "functions_rccl.h"

#include <stdint.h>

struct pair {
  uint64_t key;
  int64_t number;
};

enum { PAIRS_LEAST = 256, KEY_BITS = 28 };

static int may_follow(const struct pair *before, const struct pair *p)
{
  return p->key >> KEY_BITS == 0 && p->key != before->key && p->number >= 0 && p->number >= before->number - 1 &&
         p->number <= before->number + 1;
}

static int may_begin(const struct pair *p) { return p->key >> KEY_BITS == 0 && p->number == 0; }

/* The longest run of pairs in an area. */
static size_t longest_run(const struct pair *area, size_t count, const struct pair **run)
{
  size_t best = 0, length = 0;
  for (size_t i = 0; i < count; i++) {
    length = length && may_follow(&area[i - 1], &area[i]) ? length + 1 : (size_t)may_begin(&area[i]);
    if (length <= best) continue;
    best = length;
    *run = &area[i + 1 - length];
  }
  return best;
}

static struct function function_of(uint64_t key)
{
  static const enum collective collectives[] = {BROADCAST, REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE, SEND_RECV};
  const unsigned collective = key & 15, algorithm = key >> 4 & 15, accumulator = key >> 20 & 15;
  const size_t known = sizeof collectives / sizeof *collectives;
  struct function f = {SEND_RECV, NO_OPERATION, NO_ELEMENT, NVLS, NO_PROTOCOL, ""}; /* one that is not emulated */
  if (collective >= known || accumulator) return f;
  f.collective = collectives[collective];
  f.algorithm = f.collective == SEND_RECV                     ? NO_ALGORITHM
                : algorithm == 0 && f.collective != BROADCAST ? TREE
                : algorithm <= 1                              ? RING
                                                              : PAT;
  if (f.collective != SEND_RECV) f.protocol = (enum protocol)(key >> 8 & 15);
  if (f.collective == SEND_RECV || f.collective == BROADCAST || f.collective == ALL_GATHER) return f;
  f.operation = (enum operation)(key >> 12 & 15);
  f.element = (enum element)(key >> 16 & 15);
  return f;
}

size_t functions_of_rccl(const struct symbols *library, void (*each)(int number, struct function f))
{
  size_t bytes, count = 0;
  const char *data = symbols_section(library, ".rodata", &bytes);
  const struct pair *run = NULL;
  for (size_t shift = 0; data && shift < sizeof *run; shift += sizeof(uint64_t)) {
    const struct pair *found = NULL;
    const size_t length = longest_run((const void *)(data + shift), (bytes - shift) / sizeof *found, &found);
    if (length <= count) continue;
    count = length;
    run = found;
  }
  if (count < PAIRS_LEAST) return 0;
  int64_t highest = 0;
  for (size_t i = 0; i < count; i++) {
    if (each) each((int)run[i].number, function_of(run[i].key));
    if (run[i].number > highest) highest = run[i].number;
  }
  return (size_t)highest + 1;
}
