/* SPDX-License-Identifier: Apache-2.0 */
#include "functions.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cudart/registration.h"
#include "functions_rccl.h"
#include "layout.h"
#include "symbols.h"

static const char *const collective_names[] = {"SendRecv",  "AllGather", "Broadcast",    "AllGatherV",
                                               "AllReduce", "Reduce",    "ReduceScatter"};
static const char *const operation_names[] = {"Sum", "Prod", "MinMax", "PreMulSum", "SumPostDiv"};
static const char *const element_names[] = {"i8",  "u8",  "i32", "u32",  "i64",    "u64",
                                            "f16", "f32", "f64", "bf16", "f8e4m3", "f8e5m2"};
static const char *const algorithm_names[] = {"RING", "TREE", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
static const char *const protocol_names[] = {"LL", "LL128", "SIMPLE"};

/* The blocks of rows, in the table's order, and the algorithms in a block's order. Operations are outermost in a block, then
 * elements, algorithms, protocols. Releases before 2.29 have no AllGatherV. */
static const struct block {
  enum collective collective;
  int reduces;
  unsigned algorithm_count;
  enum algorithm algorithms[6];
} blocks[] = {
  {SEND_RECV, 0, 0, {NO_ALGORITHM}},
  {ALL_GATHER, 0, 4, {RING, COLLNET_DIRECT, NVLS, PAT}},
  {BROADCAST, 0, 1, {RING}},
  {ALL_GATHER_V, 0, 1, {RING}},
  {ALL_REDUCE, 1, 6, {TREE, RING, COLLNET_DIRECT, COLLNET_CHAIN, NVLS, NVLS_TREE}},
  {REDUCE, 1, 1, {RING}},
  {REDUCE_SCATTER, 1, 4, {RING, COLLNET_DIRECT, NVLS, PAT}},
};

static struct function *functions;
static unsigned function_count;

static void __attribute__((noreturn, format(printf, 2, 3))) give_up(const char *library, const char *format, ...)
{
  va_list list;
  fprintf(stderr, "realnccl: %s: ", library);
  va_start(list, format);
  vfprintf(stderr, format, list);
  va_end(list);
  fputc('\n', stderr);
  abort();
}

static void name(struct function *f)
{
  const char *part[] = {collective_names[f->collective], f->operation == NO_OPERATION ? NULL : operation_names[f->operation],
                        f->element == NO_ELEMENT ? NULL : element_names[f->element],
                        f->algorithm == NO_ALGORITHM ? NULL : algorithm_names[f->algorithm],
                        f->protocol == NO_PROTOCOL ? NULL : protocol_names[f->protocol]};
  size_t at = 0;
  for (size_t i = 0; i < sizeof part / sizeof *part; i++)
    if (part[i]) at += (size_t)snprintf(f->name + at, sizeof f->name - at, "%s%s", at ? "_" : "", part[i]);
}

/* Calls back for every row of a release, in order; returns their number. */
static size_t rows(int with_all_gather_v, void (*each)(size_t row, struct function f, const int *ids), const int *ids)
{
  size_t row = 0;
  for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
    const struct block *k = &blocks[b];
    if (k->collective == ALL_GATHER_V && !with_all_gather_v) continue;
    unsigned operations = k->reduces ? NO_OPERATION : 1, elements = k->reduces ? NO_ELEMENT : 1;
    unsigned protocols = k->algorithm_count ? NO_PROTOCOL : 1, algorithms = k->algorithm_count ? k->algorithm_count : 1;
    for (unsigned i = 0; i < operations * elements * algorithms * protocols; i++, row++) {
      unsigned protocol = i % protocols, algorithm = i / protocols % algorithms;
      unsigned element = i / protocols / algorithms % elements, operation = i / protocols / algorithms / elements;
      struct function f = {k->collective,
                           k->reduces ? operation : NO_OPERATION,
                           k->reduces ? element : NO_ELEMENT,
                           k->algorithm_count ? k->algorithms[algorithm] : NO_ALGORITHM,
                           k->algorithm_count ? protocol : NO_PROTOCOL,
                           ""};
      if (each) each(row, f, ids);
    }
  }
  return row;
}

/* Sums and products of signed numbers are those of unsigned ones: such rows share a number, and the second gives the name. */
static int unsigned_of(struct function f, struct function signed_one)
{
  return f.element % 2 == 1 && f.element <= U64 && signed_one.element == f.element - 1;
}

static void enter(int number, struct function f)
{
  if (number < 0 || (unsigned)number >= function_count) return;
  if (functions[number].name[0] && !unsigned_of(f, functions[number])) return;
  name(&f);
  functions[number] = f;
}

static void enter_row(size_t row, struct function f, const int *ids) { enter(ids[row], f); }

/* A name as it is, or mangled: _Z<length>name… */
static int is_called(const char *registered, const char *want)
{
  char *at;
  if (strncmp(registered, "_Z", 2) != 0) return strcmp(registered, want) == 0;
  return strtol(registered + 2, &at, 10) == (long)strlen(want) && strncmp(at, want, strlen(want)) == 0;
}

/* Kernels made for one function alone are registered under its name: ncclDevKernel_<name>, without operation and
 * protocol from 2.31 on. */
static int is_named(const char *registered, struct function f)
{
  char want[96];
  snprintf(want, sizeof want, "ncclDevKernel_%s", f.name);
  if (is_called(registered, want)) return 1;
  f.operation = NO_OPERATION;
  f.protocol = NO_PROTOCOL;
  name(&f);
  snprintf(want, sizeof want, "ncclDevKernel_%s", f.name);
  return is_called(registered, want);
}

static void hold_against_names(const char *library, const void *const *kernels, const unsigned char *special)
{
  unsigned named = 0;
  for (unsigned i = 0; i < function_count; i++) {
    const char *registered = special[i] ? registered_name(kernels[i]) : NULL;
    if (!registered) continue;
    if (!is_named(registered, functions[i]))
      give_up(library,
              "device function %u is %s by the table of rows, and its kernel is %s: the rows of this release have another "
              "order than gpu/functions.c knows",
              i, functions[i].name, registered);
    named++;
  }
  if (!named) give_up(library, "no kernel was registered under a name: the order of the rows cannot be checked");
}

static const void *need(const struct symbols *l, const char *symbol, size_t *size)
{
  const void *at = symbols_find(l, symbol, size);
  if (!at)
    give_up(l->path, "no symbol %s in its symbol table (a stripped library, or a release that names its functions otherwise)",
            symbol);
  return at;
}

static void make_room(const struct symbols *l, size_t count)
{
  function_count = (unsigned)count;
  functions = calloc(count, sizeof *functions);
  if (!functions) give_up(l->path, "out of memory");
}

static void find_in_nccl(const struct symbols *l)
{
  size_t row_bytes, size;
  const int *ids = need(l, "ncclDevFuncRowToId", &row_bytes);
  const int *count = need(l, "ncclDevFuncIdCount", &size);
  const void *const *kernels = need(l, "ncclDevKernelForFunc", &size);
  const unsigned char *special = need(l, "ncclDevKernelForFuncIsSpecialized", &size);
  const size_t have = row_bytes / sizeof *ids - 1, old = rows(0, NULL, NULL),
               new = rows(1, NULL, NULL); /* the last one ends the table */
  if (have != old && have != new)
    give_up(
      l->path,
      "its table of device functions has %zu rows; known are %zu (since 2.29) and %zu: add the new rows to gpu/functions.c",
      have, new, old);
  make_room(l, (size_t)*count);
  rows(have == new, enter_row, ids);
  hold_against_names(l->path, kernels, special);
}

static void find_in_rccl(const struct symbols *l)
{
  const size_t count = functions_of_rccl(l, NULL);
  if (!count) give_up(l->path, "no table of device functions in its read-only data: see gpu/functions_rccl.c");
  make_room(l, count);
  functions_of_rccl(l, enter);
}

void functions_find(const void *kernel)
{
  struct symbols l;
  if (!symbols_open(&l, kernel)) give_up(l.path ? l.path : "the library of a kernel", "%s", strerror(errno));
  (is_rccl(l.path) ? find_in_rccl : find_in_nccl)(&l);
  symbols_close(&l);
}

const struct function *function(unsigned number)
{
  return number < function_count && functions[number].name[0] ? &functions[number] : NULL;
}
