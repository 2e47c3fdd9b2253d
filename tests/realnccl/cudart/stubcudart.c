/* SPDX-License-Identifier: Apache-2.0 */
/* Stand-in for the CUDA runtime (and, through cudaGetDriverEntryPoint, for the
 * handful of driver calls NCCL uses).  "Device" memory is host memory backed
 * by memfds, streams are in-order worker threads, kernels go to emu.c.
 * Environment:
 *   REALNCCL_NDEV  number of fake GPUs (default 8)
 *   REALNCCL_CC    compute capability, two digits (default 80)             */
#include "../cuda/cuda_runtime.h"
#define CUDARTAPI
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "../gpu/emu.h"
#include "../gpu/functions.h"
#include "registration.h"
typedef struct CUedge cudaGraphEdgeData;
#define CUDA_SUCCESS 0
#define CUDA_ERROR_INVALID_VALUE 1
#define CUDA_ERROR_NOT_FOUND 500
#define CUDA_ERROR_NOT_SUPPORTED 801

#define VERSION CUDART_VERSION
static int env_int(const char *n, int d) { const char *s = getenv(n); return s && *s ? atoi(s) : d; }
static int ndev(void) { static int n; if (!n) n = env_int("REALNCCL_NDEV", 8); return n; }
static int cc(void) { static int n; if (!n) n = env_int("REALNCCL_CC", 80); return n; }
static __thread int t_dev;
static __thread cudaError_t t_err;
static cudaError_t R(cudaError_t e) { if (e != cudaSuccess && e != cudaErrorNotReady) t_err = e; return e; }

/* ---- memory ----------------------------------------------------------- */
struct mem { char *p; size_t size; int dev, fd, kind; /* 0 device 1 host */ struct mem *next; };
static struct mem *g_mem;
static pthread_mutex_t g_memlock = PTHREAD_MUTEX_INITIALIZER;
static size_t up(size_t n) { return (n + 4095) & ~(size_t)4095; }

static void *mem_new(size_t n, int kind, int dev) {
  size_t sz = up(n ? n : 1);
  int fd = memfd_create(kind ? "realnccl-host" : "realnccl-dev", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, sz)) { if (fd >= 0) close(fd); return NULL; }
  char *p = mmap(NULL, sz, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (p == MAP_FAILED) { close(fd); return NULL; }
  struct mem *m = calloc(1, sizeof *m);
  *m = (struct mem){p, sz, dev, fd, kind, NULL};
  pthread_mutex_lock(&g_memlock);
  m->next = g_mem; g_mem = m;
  pthread_mutex_unlock(&g_memlock);
  return p;
}
static int mem_find(const void *q, struct mem *out) {
  int hit = 0;
  pthread_mutex_lock(&g_memlock);
  for (struct mem *m = g_mem; m; m = m->next)
    if ((const char *)q >= m->p && (const char *)q < m->p + m->size) { *out = *m; hit = 1; break; }
  pthread_mutex_unlock(&g_memlock);
  return hit;
}
static int mem_del(void *q) {
  struct mem *f = NULL;
  pthread_mutex_lock(&g_memlock);
  for (struct mem **pm = &g_mem; *pm; pm = &(*pm)->next)
    if ((*pm)->p == q) { f = *pm; *pm = f->next; break; }
  pthread_mutex_unlock(&g_memlock);
  if (!f) return 0;
  munmap(f->p, f->size);
  if (f->fd >= 0) close(f->fd);
  free(f);
  return 1;
}

/* ---- streams ---------------------------------------------------------- */
struct ticket { atomic_int refs; int done; struct timespec when; };
enum { OP_KERNEL, OP_HOST, OP_COPY, OP_SET, OP_MARK, OP_WAIT, OP_FREE, OP_EVREC, OP_EVWAIT };
struct work {
  int op;
  struct work *next;
  struct ticket *tk, *tk2;
  void *a, *b;
  size_t n;
  int v;
  unsigned grid;
  cudaHostFn_t fn;
};
struct CUstream_st {
  int dev, have_thread, closing;
  struct CUgraph_st *cap;
  unsigned long long id;
  pthread_t th;
  pthread_mutex_t mu;
  pthread_cond_t cv;
  struct work *head, **tail;
};
struct CUevent_st { struct ticket *tk; struct CUgraph_st *cap; };
/* A graph is the list of captured operations in the order they were issued,
 * which is one valid order of the real graph; a launch replays it on one
 * stream.  The executable graph is the same object with one more reference. */
struct uobj { void *p; cudaHostFn_t fn; struct uobj *next; };
struct CUgraph_st { unsigned long long id; int active, refs; struct work *head, **tail; struct uobj *objs; };
static pthread_mutex_t g_capmu = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t g_tkmu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t g_tkcv = PTHREAD_COND_INITIALIZER;
static atomic_ullong g_stream_id = 1;

static struct ticket *tk_new(int refs) { struct ticket *t = calloc(1, sizeof *t); atomic_init(&t->refs, refs); return t; }
static void tk_put(struct ticket *t) { if (t && atomic_fetch_sub(&t->refs, 1) == 1) free(t); }
static void tk_done(struct ticket *t) {
  pthread_mutex_lock(&g_tkmu);
  t->done = 1;
  clock_gettime(CLOCK_MONOTONIC, &t->when);
  pthread_cond_broadcast(&g_tkcv);
  pthread_mutex_unlock(&g_tkmu);
}
static int tk_poll(struct ticket *t) { pthread_mutex_lock(&g_tkmu); int d = t->done; pthread_mutex_unlock(&g_tkmu); return d; }
static void tk_wait(struct ticket *t) {
  pthread_mutex_lock(&g_tkmu);
  while (!t->done) pthread_cond_wait(&g_tkcv, &g_tkmu);
  pthread_mutex_unlock(&g_tkmu);
}

static struct ticket *event_arm(cudaEvent_t e) {
  struct ticket *t = tk_new(2);
  pthread_mutex_lock(&g_tkmu);
  struct ticket *old = e->tk;
  e->tk = t;
  e->cap = NULL;
  pthread_mutex_unlock(&g_tkmu);
  tk_put(old);
  return t;
}
static struct ticket *event_take(cudaEvent_t e) {
  pthread_mutex_lock(&g_tkmu);
  struct ticket *t = e->tk;
  if (t) atomic_fetch_add(&t->refs, 1);
  pthread_mutex_unlock(&g_tkmu);
  return t;
}

static void *stream_main(void *v) {
  struct CUstream_st *s = v;
  char nm[16];
  snprintf(nm, sizeof nm, "gpu%d-str%llu", s->dev, s->id);
  pthread_setname_np(pthread_self(), nm);
  t_dev = s->dev;
  for (;;) {
    pthread_mutex_lock(&s->mu);
    while (!s->head && !s->closing) pthread_cond_wait(&s->cv, &s->mu);
    struct work *w = s->head;
    if (!w) { pthread_mutex_unlock(&s->mu); break; }
    s->head = w->next;
    if (!s->head) s->tail = &s->head;
    pthread_mutex_unlock(&s->mu);
    switch (w->op) {
    case OP_KERNEL:
      if (w->tk2) { tk_done(w->tk2); tk_put(w->tk2); }
      emu_run_kernel(s->dev, w->a, w->n, w->grid);
      free(w->b);
      break;
    case OP_HOST: w->fn(w->a); break;
    case OP_COPY: memmove(w->a, w->b, w->n); break;
    case OP_SET: memset(w->a, w->v, w->n); break;
    case OP_MARK: tk_done(w->tk); tk_put(w->tk); break;
    case OP_WAIT: tk_wait(w->tk); tk_put(w->tk); break;
    case OP_FREE: mem_del(w->a); break;
    }
    free(w);
  }
  pthread_mutex_destroy(&s->mu);
  pthread_cond_destroy(&s->cv);
  free(s);
  return NULL;
}
static struct CUstream_st *stream_new(void) {
  struct CUstream_st *s = calloc(1, sizeof *s);
  s->dev = t_dev;
  s->id = atomic_fetch_add(&g_stream_id, 1);
  s->tail = &s->head;
  pthread_mutex_init(&s->mu, NULL);
  pthread_cond_init(&s->cv, NULL);
  return s;
}
static struct CUstream_st *stream_get(cudaStream_t h) {
  static struct CUstream_st *def[64];
  static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
  if ((uintptr_t)h > 2) return h;
  pthread_mutex_lock(&mu);
  if (!def[t_dev]) def[t_dev] = stream_new();
  pthread_mutex_unlock(&mu);
  return def[t_dev];
}
static struct CUgraph_st *capturing(cudaStream_t h) {
  struct CUstream_st *s = stream_get(h);
  pthread_mutex_lock(&g_capmu);
  struct CUgraph_st *g = s->cap && s->cap->active ? s->cap : NULL;
  pthread_mutex_unlock(&g_capmu);
  return g;
}
static void push(cudaStream_t h, struct work w0) {
  struct CUstream_st *s = stream_get(h);
  struct work *w = malloc(sizeof *w);
  *w = w0;
  w->next = NULL;
  pthread_mutex_lock(&g_capmu);
  if (s->cap && s->cap->active) {
    *s->cap->tail = w;
    s->cap->tail = &w->next;
    pthread_mutex_unlock(&g_capmu);
    return;
  }
  s->cap = NULL;
  pthread_mutex_unlock(&g_capmu);
  pthread_mutex_lock(&s->mu);
  *s->tail = w;
  s->tail = &w->next;
  if (!s->have_thread) {
    s->have_thread = 1;
    pthread_create(&s->th, NULL, stream_main, s);
    pthread_detach(s->th);
  }
  pthread_cond_signal(&s->cv);
  pthread_mutex_unlock(&s->mu);
}

#define API cudaError_t CUDARTAPI __attribute__((visibility("default")))

API cudaStreamCreate(cudaStream_t *s) { *s = stream_new(); return R(0); }
API cudaStreamCreateWithFlags(cudaStream_t *s, unsigned f) { (void)f; *s = stream_new(); return R(0); }
API cudaStreamCreateWithPriority(cudaStream_t *s, unsigned f, int p) { (void)f; (void)p; *s = stream_new(); return R(0); }
API cudaStreamDestroy(cudaStream_t s) {
  if ((uintptr_t)s <= 2) return R(cudaErrorInvalidResourceHandle);
  pthread_mutex_lock(&s->mu);
  s->closing = 1;
  int t = s->have_thread;
  pthread_cond_signal(&s->cv);
  pthread_mutex_unlock(&s->mu);
  if (!t) free(s);
  return R(0);
}
API cudaStreamSynchronize(cudaStream_t s) {
  struct ticket *t = tk_new(2);
  push(s, (struct work){.op = OP_MARK, .tk = t});
  tk_wait(t);
  tk_put(t);
  return R(0);
}
API cudaStreamQuery(cudaStream_t h) {
  struct ticket *t = tk_new(2);
  push(h, (struct work){.op = OP_MARK, .tk = t});
  struct timespec ts = {0, 200000};
  nanosleep(&ts, NULL);
  int d = tk_poll(t);
  tk_put(t);
  return R(d ? cudaSuccess : cudaErrorNotReady);
}
API cudaStreamGetId(cudaStream_t s, unsigned long long *id) { *id = stream_get(s)->id; return R(0); }
API cudaStreamWaitEvent(cudaStream_t h, cudaEvent_t e, unsigned f) {
  pthread_mutex_lock(&g_tkmu);
  struct CUgraph_st *g = e->cap && e->cap->active ? e->cap : NULL;
  pthread_mutex_unlock(&g_tkmu);
  if (g) { /* fork: this stream joins the capture */
    struct CUstream_st *s = stream_get(h);
    pthread_mutex_lock(&g_capmu);
    s->cap = g;
    pthread_mutex_unlock(&g_capmu);
    return R(0);
  }
  if (capturing(h)) {
    if (f & cudaEventWaitExternal) push(h, (struct work){.op = OP_EVWAIT, .a = e});
    return R(0);
  }
  struct ticket *t = event_take(e);
  if (t) push(h, (struct work){.op = OP_WAIT, .tk = t});
  return R(0);
}
static atomic_ullong g_graph_id = 1;
API cudaStreamBeginCapture(cudaStream_t h, enum cudaStreamCaptureMode m) {
  (void)m;
  struct CUgraph_st *g = calloc(1, sizeof *g);
  g->id = atomic_fetch_add(&g_graph_id, 1);
  g->active = g->refs = 1;
  g->tail = &g->head;
  pthread_mutex_lock(&g_capmu);
  stream_get(h)->cap = g;
  pthread_mutex_unlock(&g_capmu);
  return R(0);
}
API cudaStreamEndCapture(cudaStream_t h, cudaGraph_t *g) {
  struct CUstream_st *s = stream_get(h);
  pthread_mutex_lock(&g_capmu);
  *g = s->cap;
  if (s->cap) s->cap->active = 0;
  s->cap = NULL;
  pthread_mutex_unlock(&g_capmu);
  return R(*g ? cudaSuccess : cudaErrorIllegalState);
}
API cudaGraphInstantiate(cudaGraphExec_t *x, cudaGraph_t g, unsigned long long f) {
  (void)f;
  pthread_mutex_lock(&g_capmu);
  g->refs++;
  pthread_mutex_unlock(&g_capmu);
  *x = (cudaGraphExec_t)g;
  return R(0);
}
static void *graph_dtor(void *v) {
  struct CUgraph_st *g = v;
  pthread_setname_np(pthread_self(), "gpu-graphdtor");
  for (struct uobj *o = g->objs, *n; o; o = n) { n = o->next; o->fn(o->p); free(o); }
  g->objs = NULL; /* the list of work stays: streams may still point here */
  return NULL;
}
static cudaError_t graph_put(struct CUgraph_st *g) {
  pthread_mutex_lock(&g_capmu);
  int r = --g->refs;
  pthread_mutex_unlock(&g_capmu);
  if (!r) { pthread_t t; pthread_create(&t, NULL, graph_dtor, g); pthread_join(t, NULL); }
  return R(0);
}
API cudaGraphDestroy(cudaGraph_t g) { return graph_put(g); }
API cudaGraphExecDestroy(cudaGraphExec_t x) { return graph_put((struct CUgraph_st *)x); }
API cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s) {
  for (struct work *w = ((struct CUgraph_st *)x)->head; w; w = w->next) {
    struct work c = *w;
    if (c.op == OP_KERNEL) {
      char *raw = malloc(c.n + 64), *al = (char *)(((uintptr_t)raw + 15) & ~(uintptr_t)15);
      memcpy(al, c.a, c.n);
      c.a = al; c.b = raw;
    } else if (c.op == OP_EVREC) { /* the event turns "not ready" at launch, not when the node runs */
      c.tk = event_arm(c.a);
      c.op = OP_MARK;
    } else if (c.op == OP_EVWAIT) { /* waits for the latest record before this launch */
      if (!(c.tk = event_take(c.a))) continue;
      c.op = OP_WAIT;
    }
    push(s, c);
  }
  return R(0);
}
API cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *st) {
  *st = capturing(s) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return R(0);
}
API cudaStreamGetCaptureInfo_v2(cudaStream_t s, enum cudaStreamCaptureStatus *st, unsigned long long *id, cudaGraph_t *g,
                                const cudaGraphNode_t **d, size_t *n) {
  struct CUgraph_st *c = capturing(s);
  *st = c ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  if (id) *id = c ? c->id : 0;
  if (g) *g = c;
  if (d) *d = NULL;
  if (n) *n = 0;
  return R(0);
}
API cudaStreamGetCaptureInfo_v3(cudaStream_t s, enum cudaStreamCaptureStatus *st, unsigned long long *id, cudaGraph_t *g,
                                const cudaGraphNode_t **d, const cudaGraphEdgeData **e, size_t *n) {
  if (e) *e = NULL;
  return cudaStreamGetCaptureInfo_v2(s, st, id, g, d, n);
}
API cudaStreamUpdateCaptureDependencies(cudaStream_t s, cudaGraphNode_t *d, size_t n, unsigned f) { (void)s; (void)d; (void)n; (void)f; return R(0); }
API cudaStreamUpdateCaptureDependencies_v2(cudaStream_t s, cudaGraphNode_t *d, const cudaGraphEdgeData *e, size_t n, unsigned f) { (void)s; (void)d; (void)e; (void)n; (void)f; return R(0); }
API cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *m) {
  static __thread enum cudaStreamCaptureMode mine = cudaStreamCaptureModeGlobal;
  enum cudaStreamCaptureMode t = mine;
  mine = *m;
  *m = t;
  return R(0);
}
API cudaGraphAddEventRecordNode(cudaGraphNode_t *n, cudaGraph_t g, const cudaGraphNode_t *d, size_t k, cudaEvent_t e) {
  (void)d; (void)k;
  struct work *w = calloc(1, sizeof *w);
  w->op = OP_EVREC;
  w->a = e;
  pthread_mutex_lock(&g_capmu);
  *g->tail = w;
  g->tail = &w->next;
  pthread_mutex_unlock(&g_capmu);
  *n = (cudaGraphNode_t)w;
  return R(0);
}
API cudaGraphAddDependencies(cudaGraph_t g, const cudaGraphNode_t *a, const cudaGraphNode_t *b, size_t n) { (void)g; (void)a; (void)b; (void)n; return R(0); }
API cudaGraphAddDependencies_v2(cudaGraph_t g, const cudaGraphNode_t *a, const cudaGraphNode_t *b, const cudaGraphEdgeData *e, size_t n) { (void)g; (void)a; (void)b; (void)e; (void)n; return R(0); }
API cudaGraphRetainUserObject(cudaGraph_t g, cudaUserObject_t o, unsigned c, unsigned f) {
  (void)c; (void)f;
  struct uobj *u = (struct uobj *)o;
  pthread_mutex_lock(&g_capmu);
  u->next = g->objs;
  g->objs = u;
  pthread_mutex_unlock(&g_capmu);
  return R(0);
}
API cudaUserObjectCreate(cudaUserObject_t *o, void *p, cudaHostFn_t d, unsigned r, unsigned f) {
  (void)r; (void)f;
  struct uobj *u = calloc(1, sizeof *u);
  u->p = p; u->fn = d;
  *o = (cudaUserObject_t)u;
  return R(0);
}
API cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t fn, void *a) { push(s, (struct work){.op = OP_HOST, .fn = fn, .a = a}); return R(0); }

API cudaEventCreateWithFlags(cudaEvent_t *e, unsigned f) { (void)f; *e = calloc(1, sizeof **e); return R(0); }
API cudaEventCreate(cudaEvent_t *e) { return cudaEventCreateWithFlags(e, 0); }
API cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  struct CUgraph_st *g = capturing(s);
  if (g) { pthread_mutex_lock(&g_tkmu); e->cap = g; pthread_mutex_unlock(&g_tkmu); return R(0); }
  push(s, (struct work){.op = OP_MARK, .tk = event_arm(e)});
  return R(0);
}
API cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned f) {
  if (capturing(s) && (f & cudaEventRecordExternal)) { push(s, (struct work){.op = OP_EVREC, .a = e}); return R(0); }
  return cudaEventRecord(e, s);
}
API cudaEventDestroy(cudaEvent_t e) { if (e) { tk_put(e->tk); free(e); } return R(0); }
API cudaEventQuery(cudaEvent_t e) { return R(!e->tk || tk_poll(e->tk) ? cudaSuccess : cudaErrorNotReady); }
API cudaEventSynchronize(cudaEvent_t e) { if (e->tk) tk_wait(e->tk); return R(0); }
API cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b) {
  if (!a->tk || !b->tk || !tk_poll(a->tk) || !tk_poll(b->tk)) return R(cudaErrorNotReady);
  *ms = (b->tk->when.tv_sec - a->tk->when.tv_sec) * 1e3f + (b->tk->when.tv_nsec - a->tk->when.tv_nsec) * 1e-6f;
  return R(0);
}

/* ---- memory API ------------------------------------------------------- */
API cudaMalloc(void **p, size_t n) { *p = mem_new(n, 0, t_dev); return R(*p ? 0 : cudaErrorMemoryAllocation); }
API cudaFree(void *p) { if (!p) return R(0); return R(mem_del(p) ? 0 : cudaErrorInvalidValue); }
API cudaMallocAsync(void **p, size_t n, cudaStream_t s) { (void)s; return cudaMalloc(p, n); }
API cudaMallocFromPoolAsync(void **p, size_t n, cudaMemPool_t m, cudaStream_t s) { (void)m; (void)s; return cudaMalloc(p, n); }
API cudaFreeAsync(void *p, cudaStream_t s) { push(s, (struct work){.op = OP_FREE, .a = p}); return R(0); }
API cudaHostAlloc(void **p, size_t n, unsigned f) { (void)f; *p = mem_new(n, 1, t_dev); return R(*p ? 0 : cudaErrorMemoryAllocation); }
API cudaMallocHost(void **p, size_t n) { return cudaHostAlloc(p, n, 0); }
API cudaFreeHost(void *p) { if (!p) return R(0); return R(mem_del(p) ? 0 : cudaErrorInvalidValue); }
API cudaHostRegister(void *p, size_t n, unsigned f) { (void)p; (void)n; (void)f; return R(0); }
API cudaHostUnregister(void *p) { (void)p; return R(0); }
API cudaHostGetDevicePointer(void **d, void *h, unsigned f) { (void)f; *d = h; return R(0); }
API cudaMemcpy(void *d, const void *s, size_t n, int k) { (void)k; memmove(d, s, n); return R(0); }
API cudaMemset(void *d, int v, size_t n) { memset(d, v, n); return R(0); }
API cudaMemcpyAsync(void *d, const void *s, size_t n, int k, cudaStream_t st) {
  (void)k;
  struct mem m;
  if (!capturing(st) && !mem_find(s, &m)) {
    /* pageable source: CUDA stages it before returning */
    cudaStreamSynchronize(st);
    memmove(d, s, n);
    return R(0);
  }
  push(st, (struct work){.op = OP_COPY, .a = d, .b = (void *)s, .n = n});
  return R(0);
}
API cudaMemsetAsync(void *d, int v, size_t n, cudaStream_t st) { push(st, (struct work){.op = OP_SET, .a = d, .v = v, .n = n}); return R(0); }
API cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *p) {
  struct mem m;
  memset(a, 0, sizeof *a);
  if (!mem_find(p, &m)) { a->type = cudaMemoryTypeUnregistered; a->hostPointer = (void *)p; return R(0); }
  a->type = m.kind ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
  a->device = m.dev;
  a->devicePointer = (void *)p;
  a->hostPointer = m.kind ? (void *)p : NULL;
  return R(0);
}
API cudaMemPoolCreate(cudaMemPool_t *p, const void *q) { (void)q; *p = calloc(1, 16); return R(0); }
API cudaMemPoolDestroy(cudaMemPool_t p) { free(p); return R(0); }
API cudaMemPoolSetAttribute(cudaMemPool_t p, int a, void *v) { (void)p; (void)a; (void)v; return R(0); }

/* IPC: a handle names the memfd of the exporting process */
struct ipc { char magic[8]; int pid, fd; size_t size, off; };
_Static_assert(sizeof(struct ipc) <= sizeof(cudaIpcMemHandle_t), "ipc handle");
API cudaIpcGetMemHandle(cudaIpcMemHandle_t *h, void *p) {
  struct mem m;
  if (!mem_find(p, &m)) return R(cudaErrorInvalidValue);
  memset(h, 0, sizeof *h);
  struct ipc i = {"rnccl", getpid(), m.fd, m.size, 0};
  memcpy(h, &i, sizeof i);
  return R(0);
}
API cudaIpcOpenMemHandle(void **p, cudaIpcMemHandle_t h, unsigned f) {
  (void)f;
  struct ipc i;
  memcpy(&i, &h, sizeof i);
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", i.pid, i.fd);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return R(cudaErrorMapBufferObjectFailed);
  char *q = mmap(NULL, i.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (q == MAP_FAILED) { close(fd); return R(cudaErrorMapBufferObjectFailed); }
  struct mem *m = calloc(1, sizeof *m);
  *m = (struct mem){q, i.size, t_dev, fd, 0, NULL};
  pthread_mutex_lock(&g_memlock);
  m->next = g_mem; g_mem = m;
  pthread_mutex_unlock(&g_memlock);
  *p = q;
  return R(0);
}
API cudaIpcCloseMemHandle(void *p) { return cudaFree(p); }

/* ---- devices ---------------------------------------------------------- */
API cudaGetDeviceCount(int *n) { *n = ndev(); return R(0); }
API cudaGetDevice(int *d) { *d = t_dev; return R(0); }
API cudaSetDevice(int d) { if (d < 0 || d >= ndev()) return R(cudaErrorInvalidDevice); t_dev = d; return R(0); }
API cudaDeviceSynchronize(void) { return R(0); }
API cudaDeviceSetLimit(int l, size_t v) { (void)l; (void)v; return R(0); }
API cudaDeviceCanAccessPeer(int *a, int x, int y) { *a = x != y; return R(0); }
API cudaDeviceEnablePeerAccess(int d, unsigned f) { (void)d; (void)f; return R(0); }
API cudaDeviceDisablePeerAccess(int d) { (void)d; return R(0); }
API cudaDriverGetVersion(int *v) { *v = VERSION; return R(0); }
API cudaRuntimeGetVersion(int *v) { *v = VERSION; return R(0); }
API cudaDeviceGetPCIBusId(char *s, int n, int d) { snprintf(s, n, "0000:%02X:00.0", 0x10 + d * 0x10); return R(0); }
API cudaDeviceGetByPCIBusId(int *d, const char *s) {
  unsigned dom, bus;
  if (sscanf(s, "%x:%x:", &dom, &bus) != 2 || bus % 16 || bus < 0x10 || (int)(bus / 16) > ndev()) return R(cudaErrorInvalidDevice);
  *d = bus / 16 - 1;
  return R(0);
}
static int attr_value(int a, int d) {
  switch (a) {
  case cudaDevAttrComputeCapabilityMajor: return cc() / 10;
  case cudaDevAttrComputeCapabilityMinor: return cc() % 10;
  case cudaDevAttrMaxSharedMemoryPerBlockOptin: return cc() >= 90 ? 232448 : cc() >= 80 ? 166912 : 98304;
  case cudaDevAttrMultiProcessorCount: return 108;
  case cudaDevAttrWarpSize: return 32;
  case cudaDevAttrMaxThreadsPerBlock: return 1024;
  case cudaDevAttrPciBusId: return 0x10 + d * 0x10;
  case cudaDevAttrUnifiedAddressing: return 1;
  default: return 0; /* RDMA, VMM, multicast, ...: absent */
  }
}
API cudaDeviceGetAttribute(int *v, int a, int d) { *v = attr_value(a, d); return R(0); }
API cudaGetDeviceProperties_v2(struct cudaDeviceProp *p, int d) {
  memset(p, 0, sizeof *p);
  snprintf(p->name, sizeof p->name, "Imaginary GPU %d", cc());
  memcpy(p->uuid.bytes, "fakegpu-uuid-00", 15);
  p->uuid.bytes[15] = (char)('0' + d);
  p->major = cc() / 10; p->minor = cc() % 10;
  p->totalGlobalMem = 16ull << 30;
  p->pciBusID = 0x10 + d * 0x10;
  p->multiProcessorCount = 108;
  p->warpSize = 32;
  p->maxThreadsPerBlock = 1024;
  p->sharedMemPerBlock = 49152;
  p->sharedMemPerBlockOptin = attr_value(cudaDevAttrMaxSharedMemoryPerBlockOptin, d);
  p->unifiedAddressing = 1;
  return R(0);
}
API cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *f) { (void)f; memset(a, 0, sizeof *a); a->sharedSizeBytes = 30000; a->maxThreadsPerBlock = 640; return R(0); }
API cudaFuncSetAttribute(const void *f, int a, int v) { (void)f; (void)a; (void)v; return R(0); }
API cudaGetFuncBySymbol(cudaFunction_t *fn, const void *sym) { *fn = (cudaFunction_t)sym; return R(0); }
API cudaGetLastError(void) { cudaError_t e = t_err; t_err = cudaSuccess; return e; }
API cudaPeekAtLastError(void) { return t_err; }
__attribute__((visibility("default"))) const char *CUDARTAPI cudaGetErrorString(cudaError_t e) { return e == cudaSuccess ? "no error" : e == cudaErrorNotReady ? "not ready" : "imaginary error"; }
__attribute__((visibility("default"))) const char *CUDARTAPI cudaGetErrorName(cudaError_t e) { return e == cudaSuccess ? "cudaSuccess" : "cudaErrorImaginary"; }

/* ---- launches --------------------------------------------------------- */
/* registered under another name than NCCL's collective kernels: say so, run nothing */
static int foreign(const void *f) {
  const char *n = registered_name(f);
  if (!n || strstr(n, "ncclDevKernel_")) return 0;
  fprintf(stderr, "realnccl: kernel %s is not emulated: skipped\n", n);
  return 1;
}
static void launch(cudaStream_t s, const void *args, size_t n, unsigned grid, cudaEvent_t started) {
  char *raw = malloc(n + 64);
  char *al = (char *)(((uintptr_t)raw + 15) & ~(uintptr_t)15);
  memcpy(al, args, n);
  push(s, (struct work){.op = OP_KERNEL, .a = al, .b = raw, .n = n, .grid = grid, .tk2 = started ? event_arm(started) : NULL});
}
API cudaLaunchKernel(const void *f, dim3 g, dim3 b, void **args, size_t sh, cudaStream_t s) {
  (void)b; (void)sh;
  if (foreign(f)) return R(0);
  functions_find(f);
  launch(s, args[0], 4096, g.x, NULL); /* every kernel we know takes one 4 KiB block by value */
  return R(0);
}
static CUresult buffer_args(void **extra, void **p, size_t *n) {
  *p = NULL; *n = 0;
  for (int i = 0; extra && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) *p = extra[i + 1];
    else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) *n = *(size_t *)extra[i + 1];
  }
  return *p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
static CUresult drv_LaunchKernelEx(const CUlaunchConfig *c, const void *f, void **params, void **extra) {
  void *p; size_t n;
  if (foreign(f)) return CUDA_SUCCESS;
  functions_find(f);
  if (params || buffer_args(extra, &p, &n)) return CUDA_ERROR_INVALID_VALUE;
  cudaEvent_t ev = NULL;
  for (unsigned i = 0; i < c->numAttrs; i++)
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) ev = (cudaEvent_t)c->attrs[i].value.launchCompletionEvent.event;
  launch((cudaStream_t)c->hStream, p, n, c->gridDimX, ev);
  return CUDA_SUCCESS;
}
static CUresult drv_LaunchKernel(const void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                 unsigned sh, cudaStream_t s, void **params, void **extra) {
  functions_find(f); (void)gy; (void)gz; (void)bx; (void)by; (void)bz; (void)sh;
  void *p; size_t n;
  if (params || buffer_args(extra, &p, &n)) return CUDA_ERROR_INVALID_VALUE;
  launch((cudaStream_t)s, p, n, gx, NULL);
  return CUDA_SUCCESS;
}
static CUresult drv_GetErrorString(CUresult e, const char **s) { *s = e ? "imaginary driver error" : "no error"; return 0; }
static CUresult drv_GetErrorName(CUresult e, const char **s) { *s = e ? "CUDA_ERROR_IMAGINARY" : "CUDA_SUCCESS"; return 0; }
static CUresult drv_DeviceGet(CUdevice *d, int o) { *d = o; return 0; }
static CUresult drv_DeviceGetAttribute(int *v, int a, CUdevice d) { *v = attr_value((int)a, d); return 0; }
static CUresult drv_MemGetAddressRange(CUdeviceptr *b, size_t *n, CUdeviceptr p) {
  struct mem m;
  if (!mem_find((void *)p, &m)) return CUDA_ERROR_NOT_FOUND;
  if (b) *b = (CUdeviceptr)m.p;
  if (n) *n = m.size;
  return 0;
}
static CUresult drv_DeviceGetUuid(cudaUUID_t *u, CUdevice d) {
  memcpy(u->bytes, "fakegpu-uuid-00", 15);
  u->bytes[15] = (char)('0' + d);
  return 0;
}
static __thread CUcontext t_ctx;
static CUresult drv_CtxCreate(CUcontext *c, unsigned f, CUdevice d) { (void)f; *c = (CUcontext)(uintptr_t)(0x1000 + d); t_ctx = *c; return 0; }
static CUresult drv_CtxDestroy(CUcontext c) { (void)c; return 0; }
static CUresult drv_CtxGetCurrent(CUcontext *c) { *c = t_ctx ? t_ctx : (CUcontext)(uintptr_t)(0x1000 + t_dev); return 0; }
static CUresult drv_CtxSetCurrent(CUcontext c) { t_ctx = c; if (c) t_dev = (int)((uintptr_t)c - 0x1000); return 0; }
static CUresult drv_CtxGetDevice(CUdevice *d) { *d = t_dev; return 0; }
static CUresult drv_PointerGetAttribute(void *out, int a, CUdeviceptr p) { (void)out; (void)a; (void)p; return CUDA_ERROR_NOT_SUPPORTED; }

static const struct { const char *n; void *f; } g_drv[] = {
  {"cuGetErrorString", drv_GetErrorString}, {"cuGetErrorName", drv_GetErrorName}, {"cuDeviceGet", drv_DeviceGet},
  {"cuDeviceGetAttribute", drv_DeviceGetAttribute}, {"cuDeviceGetUuid", drv_DeviceGetUuid}, {"cuMemGetAddressRange", drv_MemGetAddressRange},
  {"cuCtxCreate", drv_CtxCreate}, {"cuCtxDestroy", drv_CtxDestroy}, {"cuCtxGetCurrent", drv_CtxGetCurrent},
  {"cuCtxSetCurrent", drv_CtxSetCurrent}, {"cuCtxGetDevice", drv_CtxGetDevice}, {"cuLaunchKernel", drv_LaunchKernel},
  {"cuLaunchKernelEx", drv_LaunchKernelEx}, {"cuPointerGetAttribute", drv_PointerGetAttribute},
};
API cudaGetDriverEntryPoint(const char *n, void **f, unsigned long long fl, enum cudaDriverEntryPointQueryResult *st) {
  (void)fl;
  *f = NULL;
  for (unsigned i = 0; i < sizeof g_drv / sizeof *g_drv; i++) if (!strcmp(n, g_drv[i].n)) *f = g_drv[i].f;
  if (st) *st = *f ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return R(0);
}
API cudaGetDriverEntryPointByVersion(const char *n, void **f, unsigned v, unsigned long long fl, enum cudaDriverEntryPointQueryResult *st) {
  (void)v;
  return cudaGetDriverEntryPoint(n, f, fl, st);
}
API cudaProfilerStart(void) { return R(0); }
API cudaProfilerStop(void) { return R(0); }

/* ---- registration: lets whole, unmodified NCCL object files (with their
 * device images) be linked against this stand-in; gives kernels their names -- */
struct reg { const void *host; const char *name; struct reg *next; };
static struct reg *g_reg[1024];
static unsigned g_nreg, g_nvar, g_nfat; /* counted for debuggers */
static unsigned rh(const void *p) { return (unsigned)(((uintptr_t)p >> 4) % 1024); }
static const char *reg_name(const void *host) {
  for (struct reg *r = g_reg[rh(host)]; r; r = r->next) if (r->host == host) return r->name;
  return NULL;
}
#define EXP __attribute__((visibility("default")))
EXP void **__cudaRegisterFatBinary(void *f) { g_nfat++; void **h = calloc(1, sizeof *h); *h = f; return h; }
EXP void __cudaRegisterFatBinaryEnd(void **h) { (void)h; }
EXP void __cudaUnregisterFatBinary(void **h) { free(h); }
EXP void __cudaRegisterFunction(void **h, const char *host, char *dev, const char *name, int lim, void *a, void *b, void *c, void *d, int *e) {
  (void)h; (void)dev; (void)lim; (void)a; (void)b; (void)c; (void)d; (void)e;
  struct reg *r = calloc(1, sizeof *r);
  r->host = host; r->name = name; r->next = g_reg[rh(host)];
  g_reg[rh(host)] = r;
  g_nreg++;
}
EXP void __cudaRegisterVar(void **h, char *v, char *d, const char *n, int e, size_t s, int c, int g) { (void)h; (void)v; (void)d; (void)n; (void)e; (void)s; (void)c; (void)g; g_nvar++; }
EXP char __cudaInitModule(void **h) { (void)h; return 0; }
static __thread struct { dim3 g, b; size_t sh; void *s; } t_cfg;
EXP unsigned __cudaPushCallConfiguration(dim3 g, dim3 b, size_t sh, void *s) { t_cfg.g = g; t_cfg.b = b; t_cfg.sh = sh; t_cfg.s = s; return 0; }
EXP cudaError_t __cudaPopCallConfiguration(dim3 *g, dim3 *b, size_t *sh, void *s) { *g = t_cfg.g; *b = t_cfg.b; *sh = t_cfg.sh; *(void **)s = t_cfg.s; return 0; }
const char *registered_name(const void *host) { return reg_name(host); }

/* NCCL before 2.23 adds nodes to captured graphs by hand: not done here */
API cudaGraphAddKernelNode(cudaGraphNode_t *n, cudaGraph_t g, const cudaGraphNode_t *d, size_t k, const void *p) { (void)n; (void)g; (void)d; (void)k; (void)p; return R(cudaErrorNotSupported); }
API cudaGraphAddHostNode(cudaGraphNode_t *n, cudaGraph_t g, const cudaGraphNode_t *d, size_t k, const void *p) { (void)n; (void)g; (void)d; (void)k; (void)p; return R(cudaErrorNotSupported); }
API cudaGraphAddEventWaitNode(cudaGraphNode_t *n, cudaGraph_t g, const cudaGraphNode_t *d, size_t k, cudaEvent_t e) { (void)n; (void)g; (void)d; (void)k; (void)e; return R(cudaErrorNotSupported); }
