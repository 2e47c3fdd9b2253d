/* SPDX-License-Identifier: Apache-2.0 */
/* ncclrun: starts N processes x G ranks on fake GPUs and runs a small program
 * of collectives.  See the README for the program language. */
#include <cuda_runtime.h>
#include <nccl.h>
#include <errno.h>
#include <signal.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAXR 64
#define MAXC 16
#define CU(x) do { cudaError_t e_ = (x); if (e_) { fprintf(stderr, "cuda %d at %d\n", e_, __LINE__); exit(3); } } while (0)
#define NC(x) do { ncclResult_t e_ = (x); if (e_ != ncclSuccess && e_ != ncclInProgress) { fprintf(stderr, "[%d] nccl: %s (%s) at line %d\n", g_proc, ncclGetErrorString(e_), ncclGetLastError(NULL), __LINE__); exit(4); } } while (0)

enum mode { M_GROUP, M_THREADS, M_INITALL };
static int g_nproc = 1, g_g = 1, g_proc, g_world, g_streams = 2;
static enum mode g_mode = M_GROUP;
static const char *g_name, *g_dir = ".", *g_prog;
static int g_comms = 1, g_nonblock;
static size_t g_maxbytes = 1 << 20;

/* cross-process barrier + id exchange in one shared page */
struct shared { pthread_barrier_t bar; ncclUniqueId id[MAXC]; volatile int have[MAXC]; int bad; volatile int kill; };
static struct shared *g_sh;

struct rank {
  int local, rank, dev, ncomm, cur, stream, dead[MAXC];
  ncclComm_t comm[MAXC];
  cudaStream_t st[4];
  char *send[4], *recv[4];
  cudaGraph_t graph[4];
  cudaGraphExec_t exec[4];
  void *reg;
};
struct actor { struct rank *r[MAXR]; int n; int index; const char *p; pthread_t th; };

static size_t tsize(ncclDataType_t t) { switch (t) { case ncclInt8: case ncclUint8: return 1; case ncclFloat16: case ncclBfloat16: return 2; case ncclInt32: case ncclUint32: case ncclFloat32: return 4; default: return 8; } }
static ncclDataType_t type_of(const char *s) {
  if (!s || !*s || !strcmp(s, "f32")) return ncclFloat32;
  if (!strcmp(s, "f64")) return ncclFloat64;
  if (!strcmp(s, "f16")) return ncclFloat16;
  if (!strcmp(s, "bf16")) return ncclBfloat16;
  if (!strcmp(s, "i32")) return ncclInt32;
  if (!strcmp(s, "u8")) return ncclUint8;
  if (!strcmp(s, "i8")) return ncclInt8;
  if (!strcmp(s, "i64")) return ncclInt64;
  fprintf(stderr, "type %s?\n", s); exit(2);
}
static ncclRedOp_t op_of(const char *s) {
  if (!s || !*s || !strcmp(s, "sum")) return ncclSum;
  if (!strcmp(s, "prod")) return ncclProd;
  if (!strcmp(s, "max")) return ncclMax;
  if (!strcmp(s, "min")) return ncclMin;
  if (!strcmp(s, "avg")) return ncclAvg;
  fprintf(stderr, "op %s?\n", s); exit(2);
}

struct tok { char name[24]; size_t n; char a[3][24]; };
static size_t num(const char *s) {
  char *e;
  double v = strtod(s, &e);
  if (*e == 'k' || *e == 'K') v *= 1024; else if (*e == 'm' || *e == 'M') v *= 1 << 20;
  return (size_t)v;
}
static struct tok parse(const char *s, int n) {
  struct tok t = {0};
  char b[128];
  snprintf(b, sizeof b, "%.*s", n, s);
  int k = 0;
  for (char *q = b, *x; k < 5 && (x = strsep(&q, ":")); k++) {
    if (k == 0) snprintf(t.name, sizeof t.name, "%s", x);
    else if (k == 1) { t.n = num(x); snprintf(t.a[0], 24, "%s", x); }
    else snprintf(t.a[k - 1 > 2 ? 2 : k - 1], 24, "%s", x);
  }
  return t;
}

static float val(int rank, size_t i) { return (float)(rank + 1 + (int)(i % 5)); }

static int verify(struct rank *r, struct tok *t, int slot) {
  int N, me, bad = 0;
  NC(ncclCommCount(r->comm[r->cur], &N));
  NC(ncclCommUserRank(r->comm[r->cur], &me));
  float *o = (float *)r->recv[slot];
  size_t n = t->n;
  int rooted = !strcmp(t->name, "bc") || !strcmp(t->name, "rd");
  if (type_of(t->a[rooted ? 2 : 1]) != ncclFloat32) return 0; /* only single precision is checked */
  for (size_t i = 0; i < n && bad < 3; i++) {
    float want = 0, got = o[i];
    if (!strcmp(t->name, "ar")) { for (int k = 0; k < N; k++) want += val(k, i); }
    else if (!strcmp(t->name, "rs")) { for (int k = 0; k < N; k++) want += val(k, (size_t)me * n + i); }
    else if (!strcmp(t->name, "rd")) { if (me != atoi(t->a[1])) return 0; for (int k = 0; k < N; k++) want += val(k, i); }
    else if (!strcmp(t->name, "bc")) want = val(atoi(t->a[1]), i);
    else if (!strcmp(t->name, "ag")) { size_t j = (size_t)((i * 7) % N) * n + i; got = o[j]; want = val((int)((i * 7) % N), i); }
    else if (!strcmp(t->name, "a2a")) { int k = (int)((i * 3) % N); got = o[(size_t)k * n + i]; want = val(k, (size_t)me * n + i); }
    else if (!strcmp(t->name, "sr")) want = val((me + N - 1) % N, i);
    else return 0;
    if (got != want) { fprintf(stderr, "rank %d %s:%zu [%zu] got %g want %g\n", me, t->name, n, i, got, want); bad++; }
  }
  return bad;
}
static void fill(struct rank *r, int slot) {
  int me;
  NC(ncclCommUserRank(r->comm[r->cur], &me));
  float *p = (float *)r->send[slot];
  for (size_t i = 0; i < g_maxbytes / 4; i++) p[i] = val(me, i);
  memset(r->recv[slot], 0xff, g_maxbytes);
}

/* what the application asked for, on the recorder's clock */
static void log_issue(struct rank *r, struct tok *t, int N, int me, uint64_t t0) {
  static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
  static FILE *f;
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
  pthread_mutex_lock(&mu);
  if (!f) { char p[512]; snprintf(p, sizeof p, "%s/issue.%d.jsonl", g_dir, (int)getpid()); f = fopen(p, "a"); if (f) setvbuf(f, NULL, _IOLBF, 0); }
  if (f) fprintf(f, "{\"t0\":%llu,\"t1\":%llu,\"worldRank\":%d,\"comm\":%d,\"commRank\":%d,\"nranks\":%d,\"stream\":%d,\"op\":\"%s\",\"count\":%zu,\"a\":[\"%s\",\"%s\"]}\n",
                 (unsigned long long)t0, ts.tv_sec * 1000000000ull + ts.tv_nsec, r->rank, r->cur, me, N, r->stream, t->name, t->n, t->a[1], t->a[2]);
  pthread_mutex_unlock(&mu);
}

/* issue one operation for one rank */
static int issue(struct rank *r, struct tok *t, int slot) {
  ncclComm_t c = r->comm[r->cur];
  cudaStream_t s = r->st[r->stream];
  if (!c || r->dead[r->cur]) return 1;
  int N, me;
  NC(ncclCommCount(c, &N));
  NC(ncclCommUserRank(c, &me));
  char *in = r->send[slot], *out = r->recv[slot];
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
  CU(cudaSetDevice(r->dev));
  if (!strcmp(t->name, "ar")) { ncclDataType_t d = type_of(t->a[1]); NC(ncclAllReduce(in, out, t->n, d, op_of(t->a[2]), c, s)); }
  else if (!strcmp(t->name, "ari")) { ncclDataType_t d = type_of(t->a[1]); NC(ncclAllReduce(out, out, t->n, d, op_of(t->a[2]), c, s)); }
  else if (!strcmp(t->name, "bc")) NC(ncclBroadcast(in, out, t->n, type_of(t->a[2]), atoi(t->a[1]) % N, c, s));
  else if (!strcmp(t->name, "rd")) NC(ncclReduce(in, out, t->n, type_of(t->a[2]), ncclSum, atoi(t->a[1]) % N, c, s));
  else if (!strcmp(t->name, "ag")) NC(ncclAllGather(in, out, t->n, type_of(t->a[1]), c, s));
  else if (!strcmp(t->name, "rs")) NC(ncclReduceScatter(in, out, t->n, type_of(t->a[1]), op_of(t->a[2]), c, s));
#if NCCL_VERSION_CODE >= 22800
  else if (!strcmp(t->name, "alltoall")) NC(ncclAlltoAll(in, out, t->n, type_of(t->a[1]), c, s));
  else if (!strcmp(t->name, "gather")) NC(ncclGather(in, out, t->n, type_of(t->a[2]), atoi(t->a[1]) % N, c, s));
  else if (!strcmp(t->name, "scatter")) NC(ncclScatter(in, out, t->n, type_of(t->a[2]), atoi(t->a[1]) % N, c, s));
#endif
  else if (!strcmp(t->name, "a2a")) {
    ncclDataType_t d = type_of(t->a[1]);
    NC(ncclGroupStart());
    for (int k = 0; k < N; k++) {
      NC(ncclSend(in + k * t->n * tsize(d), t->n, d, k, c, s));
      NC(ncclRecv(out + k * t->n * tsize(d), t->n, d, k, c, s));
    }
    NC(ncclGroupEnd());
  } else if (!strcmp(t->name, "sr")) {
    ncclDataType_t d = type_of(t->a[1]);
    NC(ncclGroupStart());
    NC(ncclSend(in, t->n, d, (me + 1) % N, c, s));
    NC(ncclRecv(out, t->n, d, (me + N - 1) % N, c, s));
    NC(ncclGroupEnd());
  } else if (!strcmp(t->name, "pair")) { /* pair:COUNT:FROM:TO, ungrouped */
    int from = atoi(t->a[1]) % N, to = atoi(t->a[2]) % N;
    if (me != from && me != to) return 1;
    if (me == from) NC(ncclSend(in, t->n, ncclFloat32, to, c, s));
    if (me == to) NC(ncclRecv(out, t->n, ncclFloat32, from, c, s));
  } else return 0;
  log_issue(r, t, N, me, ts.tv_sec * 1000000000ull + ts.tv_nsec);
  return 1;
}
/* what was injected or built, on the recorder's clock */
static uint64_t raw_ns(void) { struct timespec ts; clock_gettime(CLOCK_MONOTONIC_RAW, &ts); return ts.tv_sec * 1000000000ull + ts.tv_nsec; }
static void log_line(const char *file, const char *fmt, ...) {
  static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
  char p[512];
  va_list a;
  snprintf(p, sizeof p, "%s/%s.%d.jsonl", g_dir, file, (int)getpid());
  pthread_mutex_lock(&mu);
  FILE *f = fopen(p, "a");
  va_start(a, fmt);
  if (f) { vfprintf(f, fmt, a); fclose(f); }
  va_end(a);
  pthread_mutex_unlock(&mu);
}
static void msleep(long ms) { struct timespec t = {ms / 1000, ms % 1000 * 1000000}; nanosleep(&t, NULL); }
static void wait_comm(ncclComm_t c) { /* for non-blocking communicators */
  ncclResult_t st;
  do { NC(ncclCommGetAsyncError(c, &st)); if (st == ncclInProgress) msleep(1); } while (st == ncclInProgress);
}

static void settle(struct actor *a) {
  if (!g_nonblock) return;
  for (int i = 0; i < a->n; i++) for (int k = 0; k < MAXC; k++) if (a->r[i]->comm[k] && !a->r[i]->dead[k]) wait_comm(a->r[i]->comm[k]);
}

static const char *skip_block(const char *p) { int d = 1; while (*p && d) { if (*p == '[') d++; if (*p == ']') d--; p++; } return p; }

static void get_id(int k);
static void init_one(struct rank *r, int k);

static void run(struct actor *a, const char *p, const char *end) {
  int depth = 0, slot = 0;
  while (p < end && *p) {
    if (*p == ' ' || *p == ';' || *p == '\n') { p++; continue; }
    if (*p == '(') { NC(ncclGroupStart()); depth++; p++; continue; }
    if (*p == ')') { NC(ncclGroupEnd()); depth--; p++; if (!depth) { settle(a); slot = 0; } continue; }
    /* N*[ ... ] and RANKS?[ ... ] */
    const char *q = p;
    while (q < end && *q && !strchr(" ;()[]\n", *q)) q++;
    int n = (int)(q - p);
    if (*q == '[') {
      const char *e = skip_block(q + 1);
      if (p[n - 1] == '*') { for (long k = 0, m = atol(p); k < m; k++) run(a, q + 1, e - 1); }
      else { /* @R1,R2?[..] only these world ranks; !R?[..] all but */
        int neg = *p == '!', keep = 0, had = a->n;
        struct rank *old[MAXR];
        memcpy(old, a->r, sizeof old);
        for (int i = 0; i < had; i++) {
          int hit = 0;
          for (const char *s = p + neg; s < q; s++) { if (atoi(s) == old[i]->rank) hit = 1; while (s < q && *s != ',') s++; }
          if (hit != neg) a->r[keep++] = old[i];
        }
        a->n = keep;
        if (keep) run(a, q + 1, e - 1);
        memcpy(a->r, old, sizeof old);
        a->n = had;
      }
      p = e;
      continue;
    }
    int chk = *p == '!', only = *p == '='; /* '=': verify what an earlier replay produced */
    struct tok t = parse(p + (chk | only), n - (chk | only));
    p = q;
    if (only) { for (int i = 0; i < a->n; i++) if (verify(a->r[i], &t, slot)) __atomic_fetch_add(&g_sh->bad, 1, __ATOMIC_RELAXED); }
    else if (!strcmp(t.name, "sync")) { for (int i = 0; i < a->n; i++) for (int s = 0; s < g_streams; s++) CU(cudaStreamSynchronize(a->r[i]->st[s])); }
    else if (!strcmp(t.name, "sleep") || !strcmp(t.name, "work")) { /* work:MS the same, but not an injected delay */
      uint64_t t0 = raw_ns();
      msleep((long)t.n);
      if (*t.name == 's' ) for (int i = 0; i < a->n; i++) log_line("inject", "{\"t\":%llu,\"t1\":%llu,\"worldRank\":%d,\"kind\":\"host sleep\",\"us\":%ld}\n", (unsigned long long)t0, (unsigned long long)raw_ns(), a->r[i]->rank, (long)t.n * 1000);
    }
    else if (!strcmp(t.name, "killall")) { /* killall:MS  after that time the whole job is killed */
      msleep((long)t.n);
      log_line("inject", "{\"t\":%llu,\"worldRank\":%d,\"kind\":\"job killed\"}\n", (unsigned long long)raw_ns(), a->r[0]->rank);
      g_sh->kill = 1;
      msleep(60000);
    }
    else if (!strcmp(t.name, "csplit") || !strcmp(t.name, "cshrink")) {
      /* csplit:PARENT:FN[r]:NAME  colour of parent rank i: mK = i % K, dK = i / K, xR = all but R (R: no colour), r: keys reversed.
       * cshrink:PARENT:R[:NAME] */
      int K = (int)t.n;
      char fn = t.a[1][0];
      int v = atoi(t.a[1] + (*t.a[1] >= 'a')), rev = strchr(t.a[1] + 1, 'r') != NULL;
      for (int i = 0; i < a->n; i++) {
        struct rank *r = a->r[i];
        int slot = r->ncomm++, me, N, col = 0, key = 0;
        if (!r->comm[K] || r->dead[K]) continue;
        ncclConfig_t cf = NCCL_CONFIG_INITIALIZER;
        if (t.a[2][0]) cf.commName = strdup(t.a[2]);
        NC(ncclCommUserRank(r->comm[K], &me));
        NC(ncclCommCount(r->comm[K], &N));
        CU(cudaSetDevice(r->dev));
        uint64_t t0 = raw_ns();
        if (t.name[1] == 's' && t.name[2] == 'h') {
          col = me == v ? -1 : 0; key = me;
          if (me != v) NC(ncclCommShrink(r->comm[K], &v, 1, &r->comm[slot], &cf, NCCL_SHRINK_DEFAULT));
        } else {
          col = fn == 'm' ? me % v : fn == 'd' ? me / v : me == v ? -1 : 0;
          key = rev ? N - me : me;
          NC(ncclCommSplit(r->comm[K], col, key, &r->comm[slot], &cf));
        }
        int cr = -1, cn = 0;
        if (r->comm[slot]) { NC(ncclCommUserRank(r->comm[slot], &cr)); NC(ncclCommCount(r->comm[slot], &cn)); }
        log_line("lineage", "{\"t0\":%llu,\"t1\":%llu,\"worldRank\":%d,\"how\":\"%s\",\"slot\":%d,\"parentSlot\":%d,\"parentRank\":%d,\"parentRanks\":%d,\"colour\":%d,\"key\":%d,\"rank\":%d,\"nranks\":%d,\"name\":\"%s\"}\n",
                 (unsigned long long)t0, (unsigned long long)raw_ns(), r->rank, t.name[1] == 's' && t.name[2] == 'h' ? "shrink" : "split", slot, K, me, N, col, key, cr, cn, t.a[2]);
      }
    }
    else if (!strcmp(t.name, "barrier")) pthread_barrier_wait(&g_sh->bar);
    else if (!strcmp(t.name, "fill")) { for (int i = 0; i < a->n; i++) for (int k = 0; k < 4; k++) fill(a->r[i], k); }
    else if (!strcmp(t.name, "begincap")) { for (int i = 0; i < a->n; i++) { CU(cudaSetDevice(a->r[i]->dev)); CU(cudaStreamBeginCapture(a->r[i]->st[a->r[i]->stream], cudaStreamCaptureModeThreadLocal)); } }
    else if (!strcmp(t.name, "endcap")) {
      for (int i = 0; i < a->n; i++) {
        struct rank *r = a->r[i];
        CU(cudaStreamEndCapture(r->st[r->stream], &r->graph[t.n & 3]));
        CU(cudaGraphInstantiate(&r->exec[t.n & 3], r->graph[t.n & 3], 0));
      }
    } else if (!strcmp(t.name, "replay")) { for (int i = 0; i < a->n; i++) { CU(cudaSetDevice(a->r[i]->dev)); CU(cudaGraphLaunch(a->r[i]->exec[t.n & 3], a->r[i]->st[a->r[i]->stream])); } }
    else if (!strcmp(t.name, "freegraph")) { for (int i = 0; i < a->n; i++) { CU(cudaGraphExecDestroy(a->r[i]->exec[t.n & 3])); CU(cudaGraphDestroy(a->r[i]->graph[t.n & 3])); } }
    else if (!strcmp(t.name, "stream")) { for (int i = 0; i < a->n; i++) a->r[i]->stream = (int)t.n % g_streams; }
    else if (!strcmp(t.name, "slot")) slot = (int)t.n & 3;
    else if (!strcmp(t.name, "comm")) { for (int i = 0; i < a->n; i++) a->r[i]->cur = (int)t.n; }
    else if (!strcmp(t.name, "split")) { /* split:K[:share][:name] colour = rank % K, becomes the next comm index */
      NC(ncclGroupStart());
      for (int i = 0; i < a->n; i++) {
        struct rank *r = a->r[i];
        ncclConfig_t cf = NCCL_CONFIG_INITIALIZER;
        int me;
        NC(ncclCommUserRank(r->comm[0], &me));
        cf.splitShare = !strcmp(t.a[1], "share");
        if (t.a[2][0]) cf.commName = strdup(t.a[2]);
        CU(cudaSetDevice(r->dev));
        NC(ncclCommSplit(r->comm[0], me % (int)t.n, me, &r->comm[r->ncomm], &cf));
        r->ncomm++;
      }
      NC(ncclGroupEnd());
      settle(a);
    } else if (!strcmp(t.name, "init")) { /* init:K  a fresh world communicator in slot K */
      int k = (int)t.n;
      if (a->index == 0) get_id(k);
      while (!__atomic_load_n(&g_sh->have[k], __ATOMIC_ACQUIRE)) msleep(1);
      if (a->n > 1) NC(ncclGroupStart());
      for (int i = 0; i < a->n; i++) { init_one(a->r[i], k); a->r[i]->dead[k] = 0; if (a->r[i]->ncomm <= k) a->r[i]->ncomm = k + 1; }
      if (a->n > 1) NC(ncclGroupEnd());
      settle(a);
    } else if (!strcmp(t.name, "shrink")) { /* shrink:R  all but rank R build the next communicator */
      for (int i = 0; i < a->n; i++) {
        struct rank *r = a->r[i];
        int me, ex = (int)t.n;
        NC(ncclCommUserRank(r->comm[0], &me));
        ncclConfig_t cf = NCCL_CONFIG_INITIALIZER;
        CU(cudaSetDevice(r->dev));
        if (me != ex) NC(ncclCommShrink(r->comm[0], &ex, 1, &r->comm[r->ncomm], &cf, NCCL_SHRINK_DEFAULT));
        r->ncomm++;
      }
      settle(a);
    } else if (!strcmp(t.name, "abort") || !strcmp(t.name, "destroy") || !strcmp(t.name, "finalize")) {
      if (*t.name == 'a' && a->n > 1) { fprintf(stderr, "abort needs one rank per thread\n"); exit(2); }
      if (*t.name != 'a') NC(ncclGroupStart());
      for (int i = 0; i < a->n; i++) {
        struct rank *r = a->r[i];
        int k = (int)t.n;
        if (!r->comm[k] || r->dead[k]) continue;
        CU(cudaSetDevice(r->dev));
        if (*t.name == 'a') NC(ncclCommAbort(r->comm[k]));
        else if (*t.name == 'd') NC(ncclCommDestroy(r->comm[k]));
        else NC(ncclCommFinalize(r->comm[k]));
        if (*t.name != 'f') { r->dead[k] = 1; r->comm[k] = NULL; }
      }
      if (*t.name != 'a') { NC(ncclGroupEnd()); if (*t.name == 'f') settle(a); }
    } else {
      if (chk) { for (int i = 0; i < a->n; i++) { CU(cudaStreamSynchronize(a->r[i]->st[a->r[i]->stream])); fill(a->r[i], slot); }
        /* all peers must be past their fill only of their own buffers: nothing shared */ }
      int grp = a->n > 1;
      if (grp) NC(ncclGroupStart());
      for (int i = 0; i < a->n; i++) if (!issue(a->r[i], &t, slot)) { fprintf(stderr, "unknown word '%s'\n", t.name); exit(2); }
      if (grp) NC(ncclGroupEnd());
      if (!depth) settle(a);
      if (chk) for (int i = 0; i < a->n; i++) {
        CU(cudaStreamSynchronize(a->r[i]->st[a->r[i]->stream]));
        if (verify(a->r[i], &t, slot)) __atomic_fetch_add(&g_sh->bad, 1, __ATOMIC_RELAXED);
      }
      if (depth) slot = (slot + 1) & 3;
    }
  }
}

static void setup(struct rank *r) {
  CU(cudaSetDevice(r->dev));
  for (int i = 0; i < g_streams; i++) CU(cudaStreamCreateWithFlags(&r->st[i], cudaStreamNonBlocking));
  for (int i = 0; i < 4; i++) { CU(cudaMalloc((void **)&r->send[i], g_maxbytes)); CU(cudaMalloc((void **)&r->recv[i], g_maxbytes)); memset(r->send[i], 0, g_maxbytes); }
  r->ncomm = 1;
}
static void get_id(int k) {
  if (g_proc == 0) {
    NC(ncclGetUniqueId(&g_sh->id[k]));
    __atomic_store_n(&g_sh->have[k], 1, __ATOMIC_RELEASE);
  } else while (!__atomic_load_n(&g_sh->have[k], __ATOMIC_ACQUIRE)) msleep(1);
}
static void init_one(struct rank *r, int k) {
  ncclConfig_t cf = NCCL_CONFIG_INITIALIZER;
  if (g_nonblock) cf.blocking = 0;
  if (g_name) { /* NCCL keeps the pointer, so the string must outlive the call */
    char *nm = malloc(64);
    snprintf(nm, 64, k ? "%s.%d" : "%s", g_name, k);
    cf.commName = nm;
  }
  CU(cudaSetDevice(r->dev));
  NC(ncclCommInitRankConfig(&r->comm[k], g_world, g_sh->id[k], r->rank, &cf));
  if (g_nonblock && g_mode == M_THREADS) wait_comm(r->comm[k]);
}
static void finish(struct actor *a) {
  for (int i = 0; i < a->n; i++) for (int s = 0; s < g_streams; s++) CU(cudaStreamSynchronize(a->r[i]->st[s]));
  if (g_nonblock) { /* non-blocking destroy wants an explicit finalize first */
    for (int k = MAXC - 1; k >= 0; k--) for (int i = 0; i < a->n; i++) if (a->r[i]->comm[k] && !a->r[i]->dead[k]) NC(ncclCommFinalize(a->r[i]->comm[k]));
    settle(a);
  }
  for (int k = MAXC - 1; k >= 0; k--) {
    int any = 0;
    for (int i = 0; i < a->n; i++) any |= a->r[i]->comm[k] && !a->r[i]->dead[k];
    if (!any) continue;
    if (a->n > 1) NC(ncclGroupStart());
    for (int i = 0; i < a->n; i++) if (a->r[i]->comm[k] && !a->r[i]->dead[k]) { CU(cudaSetDevice(a->r[i]->dev)); NC(ncclCommDestroy(a->r[i]->comm[k])); }
    if (a->n > 1) NC(ncclGroupEnd());
  }
}
static void *thread_main(void *v) {
  struct actor *a = v;
  char nm[16];
  snprintf(nm, sizeof nm, "rank%d", a->r[0]->rank);
  pthread_setname_np(pthread_self(), nm);
  for (int k = 0; k < g_comms; k++) init_one(a->r[0], k);
  a->r[0]->ncomm = g_comms;
  run(a, g_prog, g_prog + strlen(g_prog));
  finish(a);
  return NULL;
}

static int child(void) {
  const char *sd = getenv("NCCLRUN_START_DELAY"); /* ms of each process, comma separated */
  for (int i = 0; sd && *sd; i++) {
    long ms = strtol(sd, (char **)&sd, 10);
    if (i == g_proc && ms) { uint64_t t0 = raw_ns(); msleep(ms); log_line("inject", "{\"t\":%llu,\"t1\":%llu,\"worldRank\":%d,\"kind\":\"before init\",\"us\":%ld}\n", (unsigned long long)t0, (unsigned long long)raw_ns(), g_proc, ms * 1000); }
    if (*sd == ',') sd++; else break;
  }
  static struct rank ranks[MAXR];
  static struct actor act[MAXR];
  for (int i = 0; i < g_g; i++) { ranks[i].local = i; ranks[i].rank = g_proc * g_g + i; ranks[i].dev = ranks[i].rank % 8; setup(&ranks[i]); }
  if (g_mode != M_INITALL) for (int k = 0; k < g_comms; k++) get_id(k);
  if (g_mode == M_THREADS) {
    for (int i = 0; i < g_g; i++) { act[i].r[0] = &ranks[i]; act[i].n = 1; act[i].index = i; pthread_create(&act[i].th, NULL, thread_main, &act[i]); }
    for (int i = 0; i < g_g; i++) pthread_join(act[i].th, NULL);
  } else {
    struct actor *a = &act[0];
    for (int i = 0; i < g_g; i++) a->r[a->n++] = &ranks[i];
    if (g_mode == M_INITALL) {
      ncclComm_t cs[MAXR]; int dv[MAXR];
      for (int i = 0; i < g_g; i++) dv[i] = ranks[i].dev;
      NC(ncclCommInitAll(cs, g_g, dv));
      for (int i = 0; i < g_g; i++) ranks[i].comm[0] = cs[i];
    } else for (int k = 0; k < g_comms; k++) {
      NC(ncclGroupStart());
      for (int i = 0; i < g_g; i++) { init_one(&ranks[i], k); ranks[i].ncomm = g_comms; }
      NC(ncclGroupEnd());
      settle(a);
    }
    run(a, g_prog, g_prog + strlen(g_prog));
    finish(a);
  }
  return 0;
}

/* What a job without a GPU needs; what the caller has set already stays. */
static const char *const settings[][2] = {
  {"NCCL_CUMEM_ENABLE", "0"}, {"NCCL_CUMEM_HOST_ENABLE", "0"}, {"NCCL_NVLS_ENABLE", "0"}, {"NCCL_SOCKET_IFNAME", "lo"},
  {"NCCL_NET", "Socket"}, {"NCCL_IB_DISABLE", "1"}, {"NCCL_GRAPH_REGISTER", "0"}, {"NCCL_LOCAL_REGISTER", "0"},
  {"NCCL_RAS_ENABLE", "0"}, {"NCCL_ALGO", "Ring,Tree"}, {"NCCL_PROTO", "LL,Simple"},
};
static void environment(int spin) {
  char self[512] = "", path[2048];
  const char *had = getenv("LD_LIBRARY_PATH"), *pre = getenv("LD_PRELOAD");
  ssize_t k = readlink("/proc/self/exe", self, sizeof self - 1);
  self[k > 0 ? k : 0] = 0;
  if (strrchr(self, '/')) *strrchr(self, '/') = 0;
  snprintf(path, sizeof path, "%s%s%s", self, had ? ":" : "", had ? had : "");
  setenv("LD_LIBRARY_PATH", path, 1);
  if (!spin) { snprintf(path, sizeof path, "%s/libyield.so%s%s", self, pre ? ":" : "", pre ? pre : ""); setenv("LD_PRELOAD", path, 1); }
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) setenv(settings[i][0], settings[i][1], 0);
}

int main(int argc, char **argv) {
  int o, spin = 0;
  long limit = 120;
  int hosts = 0;
  while ((o = getopt(argc, argv, "n:g:m:o:N:c:b:t:HBS")) != -1) switch (o) {
    case 'n': g_nproc = atoi(optarg); break;
    case 'g': g_g = atoi(optarg); break;
    case 'm': g_mode = !strcmp(optarg, "threads") ? M_THREADS : !strcmp(optarg, "initall") ? M_INITALL : M_GROUP; break;
    case 'o': g_dir = optarg; break;
    case 'N': g_name = optarg; break;
    case 'c': g_comms = atoi(optarg); break;
    case 'b': g_maxbytes = num(optarg); break;
    case 't': limit = atol(optarg); break;
    case 'S': spin = 1; break; /* waiting threads spin, as NCCL has them */
    case 'B': g_nonblock = 1; break; /* communicators with blocking=0 */
    case 'H': hosts = 1; break; /* every process pretends to be a host of its own */
    default: fprintf(stderr, "usage: ncclrun [-n procs] [-g ranks/proc] [-m group|threads|initall] [-o dir] [-N name] [-c comms] [-b bufbytes] [-t seconds] [-H] [-B] 'program'\n"); return 2;
  }
  if (optind >= argc) { fprintf(stderr, "no program\n"); return 2; }
  g_prog = argv[optind];
  g_world = g_nproc * g_g;
  
  /* re-exec'd child? */
  const char *e = getenv("NCCLRUN_CHILD");
  if (e) {
    int fd = atoi(getenv("NCCLRUN_SHM"));
    g_proc = atoi(e);
    g_sh = mmap(NULL, sizeof *g_sh, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return child();
  }
  environment(spin);
  mkdir(g_dir, 0777);
  setenv("REC_DIR", g_dir, 1);
  setenv("REALNCCL_TRUTH", g_dir, 1);
  int fd = memfd_create("ncclrun", 0);
  if (fd < 0 || ftruncate(fd, sizeof *g_sh)) return 2;
  g_sh = mmap(NULL, sizeof *g_sh, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  pthread_barrierattr_t ba;
  pthread_barrierattr_init(&ba);
  pthread_barrierattr_setpshared(&ba, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&g_sh->bar, &ba, g_mode == M_THREADS ? g_world : g_nproc);
  char b[32];
  snprintf(b, sizeof b, "%d", fd);
  setenv("NCCLRUN_SHM", b, 1);
  pid_t pid[MAXR];
  for (int i = 0; i < g_nproc; i++) {
    if ((pid[i] = fork()) == 0) {
      snprintf(b, sizeof b, "%d", i);
      setenv("NCCLRUN_CHILD", b, 1);
      if (hosts) { snprintf(b, sizeof b, "fakehost%d", i); setenv("NCCL_HOSTID", b, 1); }
      char self[512];
      ssize_t k = readlink("/proc/self/exe", self, sizeof self - 1);
      self[k > 0 ? k : 0] = 0;
      execv(self, argv);
      _exit(127);
    }
  }
  int left = g_nproc, rc = 0;
  struct timespec t0, t1;
  clock_gettime(CLOCK_MONOTONIC, &t0);
  while (left) {
    int st;
    pid_t w = waitpid(-1, &st, WNOHANG);
    if (w > 0) {
      left--;
      for (int i = 0; i < g_nproc; i++) if (pid[i] == w) pid[i] = 0;
      if (!WIFEXITED(st) || WEXITSTATUS(st)) { fprintf(stderr, "ncclrun: a process ended with status %x\n", st); rc = 1; limit = limit < 5 ? limit : 5; clock_gettime(CLOCK_MONOTONIC, &t0); }
      continue;
    }
    clock_gettime(CLOCK_MONOTONIC, &t1);
    if (t1.tv_sec - t0.tv_sec > limit || (g_sh->kill && limit < 1000)) {
      fprintf(stderr, "ncclrun: time limit\n");
      for (int i = 0; i < g_nproc; i++) if (pid[i]) kill(pid[i], 9);
      rc = 1; limit = 1000;
    }
    msleep(5);
  }
  if (g_sh->bad) { fprintf(stderr, "ncclrun: %d wrong results\n", g_sh->bad); rc = 1; }
  return rc;
}
