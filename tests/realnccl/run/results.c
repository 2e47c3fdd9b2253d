/* SPDX-License-Identifier: Apache-2.0
 *
 * What ranks send, and what has to come out: small numbers, so that sums are exact in every type.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

static const struct {
  const char *name;
  ncclDataType_t type;
  size_t bytes;
} types[] = {
  {"f32", ncclFloat32, 4},       {"i8", ncclInt8, 1},           {"u8", ncclUint8, 1},   {"i32", ncclInt32, 4},
  {"u32", ncclUint32, 4},        {"i64", ncclInt64, 8},         {"u64", ncclUint64, 8}, {"f16", ncclFloat16, 2},
  {"f64", ncclFloat64, 8},       {"bf16", ncclBfloat16, 2},
#if NCCL_VERSION_CODE >= 22400
  {"f8e4m3", ncclFloat8e4m3, 1}, {"f8e5m2", ncclFloat8e5m2, 1},
#endif
};
enum { TYPES = sizeof types / sizeof *types };

ncclDataType_t type_of(const char *name)
{
  if (!*name) return ncclFloat32;
  for (size_t i = 0; i < TYPES; i++)
    if (strcmp(name, types[i].name) == 0) return types[i].type;
  give_up(BAD_USAGE, "no type %s", name);
}

size_t type_bytes(ncclDataType_t type)
{
  for (size_t i = 0; i < TYPES; i++)
    if (types[i].type == type) return types[i].bytes;
  return 0;
}

ncclRedOp_t operation_of(const char *name)
{
  static const char *const names[] = {"sum", "prod", "max", "min", "avg"};
  if (!*name) return ncclSum;
  for (int i = 0; i < 5; i++)
    if (strcmp(name, names[i]) == 0) return (ncclRedOp_t)i;
  give_up(BAD_USAGE, "no reduction %s", name);
}

static double of_bits(uint32_t bits)
{
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static double element(ncclDataType_t type, const void *p, size_t i)
{
  switch ((int)type) {
  case ncclInt8: return ((const int8_t *)p)[i];
  case ncclInt32: return ((const int32_t *)p)[i];
  case ncclUint32: return ((const uint32_t *)p)[i];
  case ncclInt64: return (double)((const int64_t *)p)[i];
  case ncclUint64: return (double)((const uint64_t *)p)[i];
  case ncclFloat16: return (double)((const _Float16 *)p)[i];
  case ncclFloat32: return ((const float *)p)[i];
  case ncclFloat64: return ((const double *)p)[i];
  case ncclBfloat16: return of_bits((uint32_t)((const uint16_t *)p)[i] << 16);
  default: return ((const uint8_t *)p)[i];
  }
}

static void set_element(ncclDataType_t type, void *p, size_t i, double x)
{
  const float f = (float)x;
  uint32_t bits;
  switch ((int)type) {
  case ncclInt32:
  case ncclUint32: ((uint32_t *)p)[i] = (uint32_t)(int64_t)x; break;
  case ncclInt64:
  case ncclUint64: ((uint64_t *)p)[i] = (uint64_t)(int64_t)x; break;
  case ncclFloat16: ((_Float16 *)p)[i] = (_Float16)x; break;
  case ncclFloat32: ((float *)p)[i] = f; break;
  case ncclFloat64: ((double *)p)[i] = x; break;
  case ncclBfloat16:
    memcpy(&bits, &f, sizeof bits);
    ((uint16_t *)p)[i] = (uint16_t)(bits >> 16);
    break;
  default: ((uint8_t *)p)[i] = (uint8_t)(int64_t)x; break;
  }
}

static int has_fraction(ncclDataType_t type)
{
  return type == ncclFloat16 || type == ncclFloat32 || type == ncclFloat64 || type == ncclBfloat16;
}

static double sent(ncclRedOp_t reduction, int rank, size_t i)
{
  return reduction == ncclProd ? 1 + (double)(((size_t)rank + i) % 2) : rank + 1 + (double)(i % 5);
}

static double reduced(const struct operation *o, int ranks, size_t i)
{
  double x = sent(o->reduction, 0, i);
  for (int k = 1; k < ranks; k++) {
    const double y = sent(o->reduction, k, i);
    x = o->reduction == ncclProd ? x * y : o->reduction == ncclMax ? fmax(x, y) : o->reduction == ncclMin ? fmin(x, y) : x + y;
  }
  if (o->reduction == ncclAvg) x = has_fraction(o->type) ? x / ranks : floor(x / ranks);
  return x;
}

/* What comes out where: element i of the receive buffer. */
enum pattern {
  OWN_REDUCTION,
  PART_OF_REDUCTION,
  ROOTS_REDUCTION,
  ROOTS,
  GATHERED,
  ALL_TO_ALL,
  GATHERED_AT_ROOT,
  SCATTERED,
  PEERS,
  RECEIVERS,
  GATHERED_UNEVEN
};
static const struct {
  const char *name;
  enum pattern pattern;
  int inputs, outputs; /* 1: count elements; 0: count for each rank */
} patterns[] = {
  {"ar", OWN_REDUCTION, 1, 1},
  {"ari", OWN_REDUCTION, 1, 1},
  {"rs", PART_OF_REDUCTION, 0, 1},
  {"rd", ROOTS_REDUCTION, 1, 1},
  {"bc", ROOTS, 1, 1},
  {"ag", GATHERED, 1, 0},
  {"a2a", ALL_TO_ALL, 0, 0},
  {"alltoall", ALL_TO_ALL, 0, 0},
  {"gather", GATHERED_AT_ROOT, 1, 0},
  {"scatter", SCATTERED, 0, 1},
  {"sr", PEERS, 1, 1},
  {"recv", PEERS, 1, 1},
  {"pair", RECEIVERS, 1, 1},
  {"agv", GATHERED_UNEVEN, 1, 1},
};

static int pattern_of(const char *name)
{
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
    if (strcmp(name, patterns[i].name) == 0) return (int)i;
  return -1;
}

/* The elements that a rank puts in and gets, which for an uneven gather is not the same number everywhere. */
static void sizes(const struct word *w, const struct operation *o, int p, int rank, int ranks, size_t *inputs, size_t *outputs)
{
  *inputs = o->count * (p >= 0 && !patterns[p].inputs ? (size_t)ranks : 1);
  *outputs = o->count * (p >= 0 && !patterns[p].outputs ? (size_t)ranks : 1);
  if (p < 0 || patterns[p].pattern != GATHERED_UNEVEN) return;
  const struct uneven last = uneven_part(w, ranks - 1);
  *inputs = uneven_part(w, rank).count;
  *outputs = last.begin + last.count;
}

static double expected_uneven(const struct word *w, size_t i)
{
  int root = 0;
  struct uneven u = uneven_part(w, 0);
  while (i >= u.begin + u.count) u = uneven_part(w, ++root);
  return sent(ncclSum, root, i - u.begin);
}

static double expected(enum pattern p, const struct operation *o, int rank, int ranks, size_t i)
{
  switch (p) {
  case OWN_REDUCTION:
  case ROOTS_REDUCTION: return reduced(o, ranks, i);
  case PART_OF_REDUCTION: return reduced(o, ranks, (size_t)rank * o->count + i);
  case GATHERED:
  case GATHERED_AT_ROOT: return sent(ncclSum, (int)(i / o->count), i % o->count);
  case ALL_TO_ALL: return sent(ncclSum, (int)(i / o->count), (size_t)rank * o->count + i % o->count);
  case SCATTERED: return sent(ncclSum, o->root, (size_t)rank * o->count + i);
  case ROOTS:
  case RECEIVERS: return sent(ncclSum, o->root, i);
  case PEERS: return sent(ncclSum, o->peer, i);
  case GATHERED_UNEVEN: break; /* expected_uneven */
  }
  return 0;
}

static void identity(const struct rank *r, int *rank, int *ranks)
{
  NCCL(ncclCommUserRank(r->comm[r->current], rank));
  NCCL(ncclCommCount(r->comm[r->current], ranks));
}

void fill(struct rank *r, const struct word *w, int slot)
{
  int rank, ranks;
  if (!is_alive(r, r->current)) return;
  identity(r, &rank, &ranks);
  const struct operation o = operation(w, rank, ranks);
  const int p = pattern_of(w->name);
  const size_t size = type_bytes(o.type);
  size_t inputs, outputs;
  sizes(w, &o, p, rank, ranks, &inputs, &outputs);
  if (inputs * size > options.buffer_bytes || outputs * size > options.buffer_bytes)
    give_up(BAD_USAGE, "%s:%s does not fit into buffers of %zu bytes (-b)", w->name, w->argument[0], options.buffer_bytes);
  memset(r->receive[slot], 0xff, outputs * size);
  char *in = strcmp(w->name, "ari") == 0 ? r->receive[slot] : r->send[slot];
  for (size_t i = 0; i < inputs; i++) set_element(o.type, in, i, sent(o.reduction, rank, i));
}

void fill_all(struct rank *r)
{
  for (int slot = 0; slot < SLOTS; slot++) {
    int rank, ranks;
    if (!is_alive(r, r->current)) return;
    identity(r, &rank, &ranks);
    memset(r->receive[slot], 0xff, options.buffer_bytes);
    for (size_t i = 0; i < options.buffer_bytes / sizeof(float); i++)
      set_element(ncclFloat32, r->send[slot], i, sent(ncclSum, rank, i));
  }
}

/* Averages are rounded on their way. */
static int is_right(const struct operation *o, double got, double want)
{
  const double slack = o->type == ncclBfloat16 ? 0.04 : o->type == ncclFloat16 ? 0.005 : 1e-5;
  if (o->reduction != ncclAvg || !has_fraction(o->type)) return got == want;
  return fabs(got - want) <= slack * fabs(want);
}

static void add_to_hash(struct rank *r, const char *data, size_t bytes)
{
  uint64_t h = shared->ranks[r->rank].hash;
  for (size_t i = 0; i < bytes; i++) h = (h ^ (unsigned char)data[i]) * 0x100000001b3u;
  shared->ranks[r->rank].hash = h;
  shared->ranks[r->rank].checks++;
}

void verify(struct rank *r, const struct word *w, int slot)
{
  int rank, ranks, wrong = 0;
  const int p = pattern_of(w->name);
  if (p < 0) give_up(BAD_USAGE, "%s cannot be checked", w->name);
  if (!is_alive(r, r->current)) return;
  identity(r, &rank, &ranks);
  const struct operation o = operation(w, rank, ranks);
  const int fraction8 = type_bytes(o.type) == 1 && o.type != ncclInt8 && o.type != ncclUint8,
            reduces = patterns[p].pattern <= ROOTS_REDUCTION;
  const int at_root = patterns[p].pattern == ROOTS_REDUCTION || patterns[p].pattern == GATHERED_AT_ROOT;
  if ((at_root && rank != o.root) || (patterns[p].pattern == RECEIVERS && rank != o.to) || (reduces && fraction8)) return;
  size_t inputs, outputs;
  sizes(w, &o, p, rank, ranks, &inputs, &outputs);
  for (size_t i = 0; i < outputs && wrong < 3; i++) {
    uint64_t in_type[1];
    set_element(o.type, in_type, 0,
                patterns[p].pattern == GATHERED_UNEVEN ? expected_uneven(w, i)
                                                       : expected(patterns[p].pattern, &o, rank, ranks, i));
    const double got = element(o.type, r->receive[slot], i), want = element(o.type, in_type, 0);
    if (is_right(&o, got, want)) continue;
    fprintf(stderr, "ncclrun: rank %d, %s:%s: element %zu is %g, not %g\n", r->rank, w->name, w->argument[0], i, got, want);
    wrong++;
  }
  shared->ranks[r->rank].wrong += wrong > 0;
  add_to_hash(r, r->receive[slot], outputs * type_bytes(o.type));
}
