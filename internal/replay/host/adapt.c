/* SPDX-License-Identifier: Apache-2.0
 *
 * Source: NCCL's src/misc/profiler.cc (to 2.25) and src/plugin/profiler/profiler_v*.cc.
 */
#include "adapt.h"

#include <string.h>

#define CE_BITS (TYPE_BIT(CE_COLL) | TYPE_BIT(CE_SYNC) | TYPE_BIT(CE_BATCH))

int adapt_native(int minor)
{
  for (size_t i = 0; i < VERSION_COUNT; i++)
    if (minor >= layouts[i].minor) return layouts[i].version;
  return 1;
}

static bool adapted(const struct layout *l, int minor) { return l->version < adapt_native(minor); }

int adapt_mask(const struct layout *l, int minor, int mask)
{
  uint32_t bits = (uint32_t)mask;
  if (adapted(l, minor) && l->version == 5) bits &= ~CE_BITS;
  if (adapted(l, minor) && l->version >= 5 && minor >= 31) bits &= ~TYPE_BIT(KERNEL_PHASE);
  if (l->version >= 7 && bits & TYPE_BIT(KERNEL_PHASE)) bits |= TYPE_BIT(KERNEL_CH);
  return (int)bits;
}

bool adapt_has_type(const struct layout *l, int minor, enum event_type type, uint64_t bits)
{
  if (type == TYPE_OTHER) return !adapted(l, minor) && (l->type_size == 8 || bits < 256);
  return l->types >> type & 1;
}

bool adapt_has_state(const struct layout *l, int minor, int state)
{
  if (!adapted(l, minor)) return true;
  if (state < 0 || state > l->last_state) return false;
  return l->version > 3 || minor <= 26 || state > STATE_PROXY_OP_LAST;
}

bool adapt_needs_parent(int minor, enum event_type type)
{
  return event_info[type].needs_parent || (minor <= 27 && event_info[type].needed_parent);
}

bool adapt_parent_is_group(const struct layout *l, int minor, enum event_type type)
{
  return l->version <= 4 && minor >= 28 && (type == TYPE_COLL || type == TYPE_P2P);
}

/* ---- descriptors ---------------------------------------------------------------------------- */

static uint64_t code(const char *const *names, size_t count, const char *name, size_t otherwise)
{
  for (size_t i = 0; name && i < count; i++)
    if (names[i] && strcmp(names[i], name) == 0) return i;
  return otherwise;
}
#define CODE(names, name, otherwise) code(names, sizeof names / sizeof *names, name, otherwise)

/* The numbers of ncclFunc_t and so on, as NCCL turns names back into them for version 1: what it does
 * not know becomes Send, PAT, SIMPLE, Float64. */
static uint64_t code_of(enum field_kind kind, const char *name)
{
  static const char *const funcs[] = { "Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce", "SendRecv", "Send", "Recv" };
  static const char *const algos[] = { "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT" };
  static const char *const protos[] = { "LL", "LL128", "SIMPLE" };
  static const char *const datatypes[] = { "ncclInt8", "ncclUint8", "ncclInt32", "ncclUint32", "ncclInt64", "ncclUint64", "ncclFloat16",
                                           "ncclFloat32", "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2" };
  switch (kind) {
  case FIELD_FUNC: return CODE(funcs, name, 6);
  case FIELD_ALGO: return CODE(algos, name, 6);
  case FIELD_PROTO: return CODE(protos, name, 2);
  default: return CODE(datatypes, name, 8);
  }
}

static bool coded(const struct layout *l, enum field_kind kind) { return l->codes && kind >= FIELD_FUNC && kind <= FIELD_PROTO; }

static const size_t field_sizes[] = {
  [FIELD_U8] = 1, [FIELD_BOOL] = 1, [FIELD_I32] = 4, [FIELD_U32] = 4, [FIELD_I64] = 8, [FIELD_U64] = 8, [FIELD_STRING] = 8,
  [FIELD_FUNC] = 8, [FIELD_DATATYPE] = 8, [FIELD_ALGO] = 8, [FIELD_PROTO] = 8, [FIELD_POINTER] = 8, [FIELD_HANDLE] = 8,
  [FIELD_NET_DATA] = 8,
};

/* Fields that are not what NCCL was called with. */
static bool lost(const struct layout *l, int minor, enum event_type type, int field)
{
  if (l->version <= 3 && minor >= 27)
    return (type == TYPE_COLL && (field == COLL_name || field == COLL_commHash || field == COLL_trafficBytes)) ||
           (type == TYPE_P2P && (field == P2P_name || field == P2P_commHash));
  return l->version == 1 && minor >= 24 && type == TYPE_COLL && (field == COLL_op || field == COLL_isCollnet || field == COLL_isNvls);
}

/* Version 4's P2p keeps what was there: NCCL 2.28 and later do not copy the number of channels. */
static bool skipped(const struct layout *l, int minor, enum event_type type, int field)
{
  return l->version == 4 && minor >= 28 && type == TYPE_P2P && field == P2P_nChannels;
}

void adapt_descr(void *descr, const struct layout *l, int minor, enum event_type type, uint64_t bits, uint64_t parent, int rank,
                 const uint64_t *values)
{
  char *at = descr;
  memset(at, adapted(l, minor) ? FILLER : 0, l->descr_size);
  memset(at, FILLER, offsetof(struct descr_head, parent)); /* padding, where the type is one byte */
  memcpy(at, &bits, l->type_size);                         /* little-endian */
  memcpy(at + offsetof(struct descr_head, parent), &parent, sizeof parent);
  memcpy(at + offsetof(struct descr_head, rank), &rank, sizeof rank);
  const struct field *fields = event_info[type].fields;
  for (int i = 0; fields[i].name; i++) {
    if (!l->at[type][i] || skipped(l, minor, type, i)) continue;
    uint64_t v = lost(l, minor, type, i) ? 0 : values[i];
    size_t size = field_sizes[fields[i].kind];
    if (coded(l, fields[i].kind)) v = code_of(fields[i].kind, (const char *)(uintptr_t)v), size = 1;
    memcpy(at + l->at[type][i], &v, size);
  }
}

void *adapt_args(void *args, const struct layout *l, int minor, int state, bool given, const void *value, size_t size)
{
  /* NCCL passes none to GroupApi, but from 2.27 on its adapters always have something to pass. */
  bool dummy = adapted(l, minor) && minor >= 27, zero = l->version <= 3;
  if (!given && !dummy) return NULL;
  memset(args, dummy && !zero ? FILLER : 0, l->args_size);
  bool wiped = dummy && zero && state >= STATE_PROXY_STEP_FIRST && state <= STATE_PROXY_STEP_LAST;
  if (given && size && !wiped) memcpy(args, value, size < l->args_size ? size : l->args_size);
  return args;
}
