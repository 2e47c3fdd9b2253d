/* SPDX-License-Identifier: Apache-2.0
 *
 * A profiler plugin of all versions that writes down every call as one JSON line, to see what the host delivers.
 *
 *   RECORDER_DIR         folder of the output, p<RANK>.jsonl; appended to when the library is loaded again
 *   RECORDER_MASK        activation mask, default 65535
 *   RECORDER_DECLINE     bits of the types whose events get the handle NULL
 *   RECORDER_UNWRITTEN   bits of the types whose *eHandle is left as it is (a fault that hosts must show)
 *   RECORDER_SWITCH      N:MASK, the activation mask becomes MASK within the N-th GroupApi start
 *   RECORDER_RCCL        1: version 6 is RCCL's own
 *
 * Built with RECORDER_ONLY=N it exports version N and no other.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../plugin/shm.h"
#include "../../internal/replay/host/layouts.h"

#define EXPORTED __attribute__((visibility("default")))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *out;
static uint64_t numbers; /* handles and contexts count together, from 1 */
static uint64_t group_apis;
static int *mask_word;

static uint64_t setting(const char *name, uint64_t otherwise)
{
  const char *v = getenv(name);
  return v && *v ? strtoull(v, NULL, 0) : otherwise;
}

/* Called with the lock held. */
static void begin(const char *what)
{
  if (!out) {
    const char *dir = getenv("RECORDER_DIR"), *rank = getenv("RANK");
    char path[512];
    snprintf(path, sizeof path, "%s/p%s.jsonl", dir ? dir : ".", rank ? rank : "0");
    out = fopen(path, "a");
    if (!out) {
      perror(path);
      abort();
    }
  }
  char name[32] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  fprintf(out, "{\"f\":\"%s\",\"tid\":%d,\"thread\":\"%s\"", what, (int)gettid(), name);
  const struct ncclotf2_host_clock *clock = dlsym(RTLD_DEFAULT, "ncclotf2_host_clock");
  if (clock) fprintf(out, ",\"t\":%" PRIu64, clock->now());
}

static void end(void)
{
  fputs("}\n", out);
  fflush(out);
}

static void pointer(const char *name, const void *p)
{
  if (p) fprintf(out, ",\"%s\":\"0x%" PRIxPTR "\"", name, (uintptr_t)p);
  else fprintf(out, ",\"%s\":null", name);
}

static void string(const char *name, const char *s)
{
  fprintf(out, ",\"%s\":", name);
  if (!s) {
    fputs("null", out);
    return;
  }
  fputc('"', out);
  for (; *s; s++) {
    if (*s == '"' || *s == '\\') fprintf(out, "\\%c", *s);
    else if ((unsigned char)*s < 0x20) fprintf(out, "\\u%04x", (unsigned char)*s);
    else fputc(*s, out);
  }
  fputc('"', out);
}

static void device(void)
{
  int (*get)(int *) = (int (*)(int *))dlsym(RTLD_DEFAULT, "cuCtxGetDevice");
  int (*uuid)(void *, int) = (int (*)(void *, int))dlsym(RTLD_DEFAULT, "cuDeviceGetUuid_v2");
  int (*pci)(char *, int, int) = (int (*)(char *, int, int))dlsym(RTLD_DEFAULT, "cuDeviceGetPCIBusId");
  int ordinal = -1, result = get ? get(&ordinal) : -1;
  fprintf(out, ",\"cuda\":%d,\"device\":%d", result, ordinal);
  if (result != 0) return;
  unsigned char bytes[16] = { 0 };
  char id[32] = "";
  if (uuid && uuid(bytes, ordinal) == 0) {
    fputs(",\"uuid\":\"", out);
    for (int i = 0; i < 16; i++) fprintf(out, "%02x", bytes[i]);
    fputc('"', out);
  }
  if (pci && pci(id, sizeof id, ordinal) == 0) string("pci", id);
}

/* Which image the logger is in, and which version that tells. */
static void caller(void *log)
{
  Dl_info info;
  if (!dladdr(log, &info)) return;
  string("library", info.dli_fname);
  void *image = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  int (*get)(int *) = image ? (int (*)(int *))dlsym(image, "ncclGetVersion") : NULL;
  int version = 0;
  if (get && get(&version) == 0) fprintf(out, ",\"version\":%d", version);
  if (image) dlclose(image);
}

static void end_init(const char *name, uint64_t comm_id, int before, int wanted, int nnodes, int nranks, int rank)
{
  fprintf(out, ",\"commId\":\"0x%" PRIx64 "\"", comm_id);
  string("commName", name);
  fprintf(out, ",\"nNodes\":%d,\"nranks\":%d,\"rank\":%d,\"maskBefore\":%d,\"mask\":%d", nnodes, nranks, rank, before, wanted);
  device();
  end();
}

/* nranks 0, comm_id 0 and no logger: the version does not tell them. */
static int init(int version, void **context, int *mask, uint64_t comm_id, const char *comm_name, int nnodes, int nranks, int rank, nccl_logger log)
{
  pthread_mutex_lock(&lock);
  begin("init");
  mask_word = mask;
  int before = __atomic_load_n(mask, __ATOMIC_RELAXED);
  int wanted = (int)setting("RECORDER_MASK", 65535);
  __atomic_store_n(mask, wanted, __ATOMIC_RELAXED);
  *context = (void *)(uintptr_t)(0xc0de000000000000u | ++numbers);
  pointer("ctx", *context);
  fprintf(out, ",\"api\":%d", version);
  if (log) caller((void *)(uintptr_t)log);
  end_init(comm_name, comm_id, before, wanted, nnodes, nranks, rank);
  pthread_mutex_unlock(&lock);
  if (log) log(NCCL_LOG_INFO, 1 /* INIT, which is shown by default */, __FILE__, __LINE__, "recorder: rank %d of %d", rank, nranks);
  return NCCL_SUCCESS;
}

static void net_data(int64_t id, const void *data)
{
  pointer("data", data);
  if (id == NET_PLUGIN_SOCKET && data) {
    const struct net_socket *s = data;
    fprintf(out, ",\"sock\":{\"type\":%u,\"fd\":%d,\"op\":%d,\"length\":%zu}", s->type, s->fd, s->op, s->length);
  }
  if (id == NET_PLUGIN_IB && data) {
    const struct net_ib *b = data;
    fprintf(out, ",\"ib\":{\"type\":%u,\"device\":%d,\"wrId\":%" PRIu64 ",\"opcode\":%d,\"qpNum\":%d,\"length\":%zu}", b->type, b->device,
            b->wr_id, b->opcode, b->qp, b->length);
  }
}

static void text_field(const char *name, const char *s)
{
  string(name, s);
  /* NCCL's strings are literals: the same content has the same address. */
  char at[48];
  snprintf(at, sizeof at, "%s@", name);
  pointer(at, s);
}

static void descr_field(const struct layout *l, const char *descr, int type, int index)
{
  const struct field *f = &event_info[type].fields[index];
  const char *at = descr + l->at[type][index];
  uint64_t u = 0;
  int32_t i;
  if (!l->at[type][index]) return;
  if (l->codes && f->kind >= FIELD_FUNC && f->kind <= FIELD_PROTO) {
    fprintf(out, ",\"%s\":%u", f->name, *(const uint8_t *)at);
    return;
  }
  switch (f->kind) {
  case FIELD_NONE: break;
  case FIELD_U8:
  case FIELD_BOOL: fprintf(out, ",\"%s\":%u", f->name, *(const uint8_t *)at); break;
  case FIELD_I32: memcpy(&i, at, 4); fprintf(out, ",\"%s\":%d", f->name, i); break;
  case FIELD_U32: memcpy(&u, at, 4); fprintf(out, ",\"%s\":%" PRIu64, f->name, u); break;
  case FIELD_I64: memcpy(&u, at, 8); fprintf(out, ",\"%s\":%" PRId64, f->name, (int64_t)u); break;
  case FIELD_U64: memcpy(&u, at, 8); fprintf(out, ",\"%s\":%" PRIu64, f->name, u); break;
  case FIELD_STRING:
  case FIELD_FUNC:
  case FIELD_DATATYPE:
  case FIELD_ALGO:
  case FIELD_PROTO: memcpy(&u, at, 8); text_field(f->name, (const char *)(uintptr_t)u); break;
  case FIELD_POINTER:
  case FIELD_HANDLE: memcpy(&u, at, 8); pointer(f->name, (void *)(uintptr_t)u); break;
  case FIELD_NET_DATA: {
    int64_t id;
    memcpy(&id, descr + l->at[type][NET_PLUGIN_id], 8);
    memcpy(&u, at, 8);
    net_data(id, (const void *)(uintptr_t)u);
    break;
  }
  }
}

static int type_of(const struct layout *l, uint64_t bits)
{
  for (int t = 0; t < TYPE_PROXY_DIAG; t++)
    if (bits == 1ull << t && l->types >> t & 1) return t;
  return bits == PROXY_DIAG_BIT && l->types & TYPE_BIT(PROXY_DIAG) ? TYPE_PROXY_DIAG : TYPE_OTHER;
}

static int start(const struct layout *l, void *context, void **handle, const struct descr_head *d)
{
  void *before = *handle;
  uint64_t bits = 0;
  memcpy(&bits, d, l->type_size);
  int type = type_of(l, bits);
  pthread_mutex_lock(&lock);
  begin("start");
  pointer("ctx", context);
  pointer("handleBefore", before);
  pointer("parentObj", d->parent);
  fprintf(out, ",\"rank\":%d", d->rank);
  if (type != TYPE_OTHER) {
    fprintf(out, ",\"typeName\":\"%s\",\"d\":{\"_\":0", event_info[type].name);
    for (int i = 0; event_info[type].fields[i].name; i++) descr_field(l, (const char *)d, type, i);
    fputc('}', out);
  } else {
    fprintf(out, ",\"unknownType\":%" PRIu64, bits);
  }
  if (type == TYPE_GROUP_API) {
    const char *change = getenv("RECORDER_SWITCH");
    char *colon;
    if (change && strtoull(change, &colon, 0) == ++group_apis && *colon == ':')
      __atomic_store_n(mask_word, (int)strtol(colon + 1, NULL, 0), __ATOMIC_RELAXED);
  }
  if (!(setting("RECORDER_UNWRITTEN", 0) & bits)) {
    *handle = setting("RECORDER_DECLINE", 0) & bits ? NULL : (void *)(uintptr_t)(0x4a4d000000000000u | ++numbers);
  }
  pointer("h", *handle);
  end();
  pthread_mutex_unlock(&lock);
  return NCCL_SUCCESS;
}

static int stop(void *handle)
{
  pthread_mutex_lock(&lock);
  begin("stop");
  pointer("h", handle);
  end();
  pthread_mutex_unlock(&lock);
  return NCCL_SUCCESS;
}

static int state(const struct layout *l, void *handle, int value, const void *args)
{
  uint64_t words[3] = { 0 };
  if (args) memcpy(words, args, l->args_size);
  pthread_mutex_lock(&lock);
  begin("state");
  pointer("h", handle);
  fprintf(out, ",\"state\":%d,\"stateName\":\"%s\"", value, state_names[value >= 0 && value < STATE_COUNT ? value : STATE_COUNT]);
  /* Which member counts is the reader's to know: the bytes as numbers. */
  if (args) {
    fprintf(out, ",\"args\":{\"u64\":%" PRIu64 ",\"i32\":%d", words[0], (int32_t)words[0]);
    if (l->args_size >= 16) fprintf(out, ",\"i32at8\":%d,\"u64at8\":%" PRIu64, (int32_t)words[1], words[1]);
    if (l->args_size >= 24) fprintf(out, ",\"u64at16\":%" PRIu64, words[2]);
    fputc('}', out);
  } else {
    fputs(",\"args\":null", out);
  }
  end();
  pthread_mutex_unlock(&lock);
  return NCCL_SUCCESS;
}

static int finalize(void *context)
{
  pthread_mutex_lock(&lock);
  begin("finalize");
  pointer("ctx", context);
  end();
  pthread_mutex_unlock(&lock);
  return NCCL_SUCCESS;
}

static void __attribute__((destructor)) unload(void)
{
  if (!out) return;
  fputs("{\"f\":\"unload\"}\n", out);
  fclose(out);
}

static const struct layout *layout(int version)
{
  return version == 6 && setting("RECORDER_RCCL", 0) ? &layout_rccl_v6 : &layouts[VERSION_COUNT - version];
}

#define INIT_V1_OF(v) \
  static int init_##v(void **context, int *mask) { return init(v, context, mask, 0, NULL, 0, 0, 0, NULL); }
#define INIT_V4_OF(v) \
  static int init_##v(void **context, int *mask, const char *name, uint64_t hash, int nnodes, int nranks, int rank, nccl_logger log) \
  { return init(v, context, mask, hash, name, nnodes, nranks, rank, log); }
#define INIT_V5_OF(v) \
  static int init_##v(void **context, uint64_t id, int *mask, const char *name, int nnodes, int nranks, int rank, nccl_logger log) \
  { return init(v, context, mask, id, name, nnodes, nranks, rank, log); }

#define VERSION(v, kind, member) \
  INIT_##kind##_OF(v) \
  static int start_##v(void *context, void **handle, void *descr) { return start(layout(v), context, handle, descr); } \
  static int state_##v(void *handle, int value, void *args) { return state(layout(v), handle, value, args); } \
  EXPORTED struct profiler_vtable ncclProfiler_v##v = { "recorder", { .member = init_##v }, start_##v, stop, state_##v, finalize };

#ifndef RECORDER_ONLY
#define RECORDER_ONLY 0
#endif
#define WITH(v) (RECORDER_ONLY == 0 || RECORDER_ONLY == v)
#if WITH(1)
VERSION(1, V1, v1)
#endif
#if WITH(2)
VERSION(2, V1, v1)
#endif
#if WITH(3)
VERSION(3, V1, v1)
#endif
#if WITH(4)
VERSION(4, V4, v4)
#endif
#if WITH(5)
VERSION(5, V5, v5)
#endif
#if WITH(6)
VERSION(6, V5, v5)
#endif
#if WITH(7)
VERSION(7, V5, v5)
#endif
