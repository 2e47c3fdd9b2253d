/* SPDX-License-Identifier: Apache-2.0
 *
 * A profiler plugin that writes down every call as one JSON line, to see what the host delivers.
 *
 *   RECORDER_DIR         folder of the output, p<RANK>.jsonl; appended to when the library is loaded again
 *   RECORDER_MASK        activation mask, default 65535
 *   RECORDER_DECLINE     bits of the types whose events get the handle NULL
 *   RECORDER_UNWRITTEN   bits of the types whose *eHandle is left as it is (a fault that hosts must show)
 *   RECORDER_SWITCH      N:MASK, the activation mask becomes MASK within the N-th GroupApi start
 *
 * Built with RECORDER_V5_ONLY or RECORDER_V4_ONLY it exports that version and no other.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../plugin/shm.h"
#include "events.h"

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
  if (s) fprintf(out, ",\"%s\":\"%s\"", name, s);
  else fprintf(out, ",\"%s\":null", name);
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

static int init(void **context, uint64_t comm_id, int *mask, const char *comm_name, int nnodes, int nranks, int rank, nccl_logger log)
{
  pthread_mutex_lock(&lock);
  begin("init");
  mask_word = mask;
  int before = __atomic_load_n(mask, __ATOMIC_RELAXED);
  int wanted = (int)setting("RECORDER_MASK", 65535);
  __atomic_store_n(mask, wanted, __ATOMIC_RELAXED);
  *context = (void *)(uintptr_t)(0xc0de000000000000u | ++numbers);
  pointer("ctx", *context);
  fprintf(out, ",\"commId\":\"0x%" PRIx64 "\"", comm_id);
  string("commName", comm_name);
  fprintf(out, ",\"nNodes\":%d,\"nranks\":%d,\"rank\":%d,\"maskBefore\":%d,\"mask\":%d", nnodes, nranks, rank, before, wanted);
  device();
  end();
  pthread_mutex_unlock(&lock);
  log(NCCL_LOG_INFO, 0x4000, __FILE__, __LINE__, "recorder: rank %d of %d", rank, nranks);
  return NCCL_SUCCESS;
}

static void net_data(const struct profiler_descr *d)
{
  pointer("data", d->net_plugin.data);
  if (d->net_plugin.id == NET_PLUGIN_SOCKET && d->net_plugin.data) {
    const struct net_socket *s = d->net_plugin.data;
    fprintf(out, ",\"sock\":{\"type\":%u,\"fd\":%d,\"op\":%d,\"length\":%zu}", s->type, s->fd, s->op, s->length);
  }
}

static void descr_field(const struct profiler_descr *d, const struct field *f)
{
  const char *at = (const char *)d + f->offset;
  uint64_t u = 0;
  int32_t i;
  switch (f->kind) {
  case FIELD_U8:
  case FIELD_BOOL: fprintf(out, ",\"%s\":%u", f->name, *(const uint8_t *)at); break;
  case FIELD_I32: memcpy(&i, at, 4); fprintf(out, ",\"%s\":%d", f->name, i); break;
  case FIELD_U32: memcpy(&u, at, 4); fprintf(out, ",\"%s\":%" PRIu64, f->name, u); break;
  case FIELD_I64: memcpy(&u, at, 8); fprintf(out, ",\"%s\":%" PRId64, f->name, (int64_t)u); break;
  case FIELD_U64: memcpy(&u, at, 8); fprintf(out, ",\"%s\":%" PRIu64, f->name, u); break;
  case FIELD_STRING: {
    const char *s;
    memcpy(&s, at, 8);
    string(f->name, s);
    /* NCCL's strings are literals: the same content has the same address. */
    char name[48];
    snprintf(name, sizeof name, "%s@", f->name);
    pointer(name, s);
    break;
  }
  case FIELD_POINTER:
  case FIELD_HANDLE: memcpy(&u, at, 8); pointer(f->name, (void *)(uintptr_t)u); break;
  case FIELD_NET_DATA: net_data(d); break;
  }
}

static int start(void *context, void **handle, struct profiler_descr *d)
{
  void *before = *handle;
  pthread_mutex_lock(&lock);
  begin("start");
  pointer("ctx", context);
  pointer("handleBefore", before);
  int type = 0;
  while (type < TYPE_COUNT && d->type != 1ull << type) type++;
  if (type < TYPE_COUNT) {
    fprintf(out, ",\"typeName\":\"%s\"", event_info[type].name);
    pointer("parentObj", d->parent);
    fprintf(out, ",\"rank\":%d,\"d\":{\"_\":0", d->rank);
    for (const struct field *f = event_info[type].fields; f->name; f++) descr_field(d, f);
    fputc('}', out);
  } else {
    fprintf(out, ",\"unknownType\":%" PRIu64, d->type);
  }
  if (type == TYPE_GROUP_API) {
    const char *change = getenv("RECORDER_SWITCH");
    char *colon;
    if (change && strtoull(change, &colon, 0) == ++group_apis && *colon == ':')
      __atomic_store_n(mask_word, (int)strtol(colon + 1, NULL, 0), __ATOMIC_RELAXED);
  }
  if (!(setting("RECORDER_UNWRITTEN", 0) & d->type)) {
    *handle = setting("RECORDER_DECLINE", 0) & d->type ? NULL : (void *)(uintptr_t)(0x4a4d000000000000u | ++numbers);
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

static int state(void *handle, int value, union profiler_args *args)
{
  pthread_mutex_lock(&lock);
  begin("state");
  pointer("h", handle);
  fprintf(out, ",\"state\":%d,\"stateName\":\"%s\"", value, value >= 0 && value < STATE_COUNT ? state_names[value] : "?");
  /* Which member counts is the reader's to know: the bytes as a number, and its lower half. */
  if (args) fprintf(out, ",\"args\":{\"u64\":%" PRIu64 ",\"i32\":%d}", args->kernel_ch.ptimer, args->proxy_ctrl.appended);
  else fputs(",\"args\":null", out);
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

#ifndef RECORDER_V4_ONLY
EXPORTED struct profiler_vtable ncclProfiler_v5 = { "recorder", init, start, stop, state, finalize };
#ifndef RECORDER_V5_ONLY
EXPORTED struct profiler_vtable ncclProfiler_v6 = { "recorder", init, start, stop, state, finalize };
#endif
#else
/* Never called: the host must notice that it has no version in common with the plugin. */
EXPORTED struct profiler_vtable ncclProfiler_v4 = { "recorder", init, start, stop, state, finalize };
#endif
