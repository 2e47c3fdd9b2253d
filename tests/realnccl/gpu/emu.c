/* SPDX-License-Identifier: Apache-2.0 */
/* GPU-side emulator: plays the flow control of NCCL's collective kernels on
 * CPU threads, one thread per channel ("block").  Moves real data, so results
 * can be checked.  Protocols: Simple and LL.  Algorithms: ring (all five
 * collectives and batched broadcast), tree (all-reduce), point-to-point. */
#include "emu.h"
#include "functions.h"
#include "layout.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DIVUP(a, b) (((a) + (b) - 1) / (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define LD(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define ST(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

/* ---- device function table ------------------------------------------- */
static int64_t g_timer_off;
static long g_timer_gran = 32;
static double g_drift_ppm;
static long g_start_delay_us, g_skew_us;
/* disturbances of one device (labelled recordings): REALNCCL_SLOW="DEV:KIND:US:EVERY[:PHASE],..."
 * KIND start: every EVERY-th kernel launch of that device begins US late (the stream was busy);
 * KIND slice: in every EVERY-th launch each slice the kernel moves takes US longer. */
static struct slow { int dev, slice; long us, every, phase; } g_slow[16];
static int g_nslow;
static unsigned g_launch[64];
static void log_slow(int dev, const char *kind, long us, unsigned launch);
static pthread_once_t g_once = PTHREAD_ONCE_INIT;

static void load_table(void) {
  const char *e;
  if ((e = getenv("REALNCCL_PTIMER_OFFSET_NS"))) g_timer_off = atoll(e);
  else g_timer_off = -73500000000123ll; /* fake GPU clock: about 20 hours behind */
  if ((e = getenv("REALNCCL_PTIMER_GRANULARITY_NS"))) g_timer_gran = MAX(1, atol(e));
  if ((e = getenv("REALNCCL_PTIMER_DRIFT_PPM"))) g_drift_ppm = atof(e);
  if ((e = getenv("REALNCCL_KERNEL_DELAY_US"))) g_start_delay_us = atol(e);
  if ((e = getenv("REALNCCL_DEVICE_SKEW_US"))) g_skew_us = atol(e);
  if ((e = getenv("REALNCCL_SLOW"))) {
    char b[512], *q = b, *x;
    snprintf(b, sizeof b, "%s", e);
    while ((x = strsep(&q, ",")) && g_nslow < 16) {
      char kind[16] = "";
      struct slow *w = &g_slow[g_nslow];
      w->every = 1; w->phase = 0;
      if (sscanf(x, "%d:%15[^:]:%ld:%ld:%ld", &w->dev, kind, &w->us, &w->every, &w->phase) >= 3) { w->slice = !strcmp(kind, "slice"); g_nslow++; }
    }
  }
  if (sizeof(struct rn_coll) != (RN_LAYOUT >= 30 ? 128 : 96) || sizeof(struct rn_p2p) != 48 || sizeof(struct rn_bcast) != 48 ||
      sizeof(struct rn_batch) != 16) {
    fprintf(stderr, "realnccl: layout mismatch coll=%zu p2p=%zu bcast=%zu\n", sizeof(struct rn_coll),
            sizeof(struct rn_p2p), sizeof(struct rn_bcast));
    abort();
  }
}

uint64_t emu_globaltimer(int device) {
  struct timespec ts;
  clock_gettime(CLOCK_REALTIME, &ts);
  int64_t t = ts.tv_sec * 1000000000ll + ts.tv_nsec + g_timer_off + (int64_t)device * g_skew_us * 1000;
  /* drift accumulates from the start of the UTC day */
  if (g_drift_ppm != 0) t += (int64_t)((ts.tv_sec % 86400 * 1e9 + ts.tv_nsec) * g_drift_ppm * 1e-6);
  return (uint64_t)(t - t % g_timer_gran);
}

/* ---- element arithmetic ---------------------------------------------- */
static int elt_size(enum element t) {
  switch (t) {
  case I32: case U32: case F32: return 4;
  case I64: case U64: case F64: return 8;
  case F16: case BF16: return 2;
  default: return 1;
  }
}
static float h2f(uint16_t h) { _Float16 x; memcpy(&x, &h, 2); return (float)x; }
static uint16_t f2h(float f) { _Float16 x = (_Float16)f; uint16_t h; memcpy(&h, &x, 2); return h; }
static float b2f(uint16_t b) { uint32_t u = (uint32_t)b << 16; float f; memcpy(&f, &u, 4); return f; }
static uint16_t f2b(float f) { uint32_t u; memcpy(&u, &f, 4); u += 0x7fff + ((u >> 16) & 1); return (uint16_t)(u >> 16); }

#define LOOP_NUM(T)                                                             \
  { T *a = acc; const T *b = src;                                               \
    if (op == PROD) for (size_t i = 0; i < n; i++) a[i] = (T)(a[i] * b[i]);   \
    else if (op == MIN_MAX) { int mn = (arg & 1) == 0;                         \
      for (size_t i = 0; i < n; i++) a[i] = mn ? MIN(a[i], b[i]) : MAX(a[i], b[i]); } \
    else for (size_t i = 0; i < n; i++) a[i] = (T)(a[i] + b[i]); } break
#define LOOP_INT(T)                                                             \
  { T *a = acc; const T *b = src;                                               \
    if (op == PROD) for (size_t i = 0; i < n; i++) a[i] = (T)(a[i] * b[i]);   \
    else if (op == MIN_MAX) { T x = (T)arg;                                    \
      for (size_t i = 0; i < n; i++) { T p = a[i] ^ x, q = b[i] ^ x; a[i] = (p < q ? p : q) ^ x; } } \
    else for (size_t i = 0; i < n; i++) a[i] = (T)(a[i] + b[i]); } break
#define LOOP_CVT(LOADF, STOREF)                                                 \
  { uint16_t *a = acc; const uint16_t *b = src; int mn = (arg & 1) == 0;        \
    for (size_t i = 0; i < n; i++) { float x = LOADF(a[i]), y = LOADF(b[i]);    \
      a[i] = STOREF(op == PROD ? x * y : op == MIN_MAX ? (mn ? MIN(x, y) : MAX(x, y)) : x + y); } } break

static void reduce_into(enum element t, enum operation op, uint64_t arg, void *acc, const void *src, size_t n) {
  switch (t) {
  case NO_ELEMENT: case I8: case U8: LOOP_INT(uint8_t);
  case I32: case U32: LOOP_INT(uint32_t);
  case I64: case U64: LOOP_INT(uint64_t);
  case F32: LOOP_NUM(float);
  case F64: LOOP_NUM(double);
  case F16: LOOP_CVT(h2f, f2h);
  case BF16: LOOP_CVT(b2f, f2b);
  case F8E4M3: case F8E5M2: break; /* not emulated: keep acc */
  }
}
static void pre_op(enum element t, enum operation op, uint64_t arg, void *acc, size_t n) {
  if (op != PRE_MUL_SUM) return;
  switch (t) {
  case F32: { float s, *a = acc; memcpy(&s, &arg, 4); for (size_t i = 0; i < n; i++) a[i] *= s; } break;
  case F64: { double s, *a = acc; memcpy(&s, &arg, 8); for (size_t i = 0; i < n; i++) a[i] *= s; } break;
  case F16: { uint16_t *a = acc; float s = h2f((uint16_t)arg); for (size_t i = 0; i < n; i++) a[i] = f2h(h2f(a[i]) * s); } break;
  case BF16: { uint16_t *a = acc; float s = b2f((uint16_t)arg); for (size_t i = 0; i < n; i++) a[i] = f2b(b2f(a[i]) * s); } break;
  case I32: case U32: { uint32_t *a = acc; for (size_t i = 0; i < n; i++) a[i] *= (uint32_t)arg; } break;
  case I64: case U64: { uint64_t *a = acc; for (size_t i = 0; i < n; i++) a[i] *= arg; } break;
  default: break;
  }
}
static void post_op(enum element t, enum operation op, uint64_t arg, void *acc, size_t n) {
  if (op != SUM_POST_DIV) return;
  uint32_t d = (uint32_t)(arg >> 1);
  if (!d) return;
  switch (t) {
  case I32: { int32_t *a = acc; for (size_t i = 0; i < n; i++) a[i] /= (int32_t)d; } break;
  case U32: { uint32_t *a = acc; for (size_t i = 0; i < n; i++) a[i] /= d; } break;
  case I64: { int64_t *a = acc; for (size_t i = 0; i < n; i++) a[i] /= (int64_t)d; } break;
  case U64: { uint64_t *a = acc; for (size_t i = 0; i < n; i++) a[i] /= d; } break;
  default: break;
  }
}

/* ---- one block -------------------------------------------------------- */
struct block {
  int device, channel;
  const char *args;
  size_t args_bytes;
  unsigned block_idx;
  struct rn_comm *comm;
  struct rn_channel *ch;
  int aborted;
  uint64_t counter;
  char *scratch;
  size_t scratch_cap;
  int nworks, work_size, type, func, next_batch;
  long slice_us;
  char storage[16384] __attribute__((aligned(16)));
};

static void relax(struct block *b, unsigned *spins) {
  unsigned s = ++*spins;
  if ((s & 63) == 0 && b->comm->abort_flag && *b->comm->abort_flag) { b->aborted = 1; return; }
  if (s < 200) sched_yield();
  else { struct timespec t = {0, s < 2000 ? 20000 : 100000}; nanosleep(&t, NULL); }
}
static void *scratch(struct block *b, size_t n) {
  if (n > b->scratch_cap) { free(b->scratch); b->scratch = malloc(b->scratch_cap = n + 4096); }
  return b->scratch;
}

struct end { struct rn_conn *c; uint64_t step; };
struct prims {
  struct block *b;
  int nrecv, nsend, proto, sps, spc; /* steps per slice, slices per chunk */
  struct end r[4], s[4];
  enum element type;
  enum operation op;
  uint64_t arg;
  size_t step_elts;
};

static void prims_open(struct prims *p, struct block *b, const struct function *f, int sps, int spc, const int *recv,
                       int nrecv, const int *send, int nsend, int conn, uint64_t arg, size_t step_bytes) {
  memset(p, 0, sizeof *p);
  p->b = b; p->proto = f->protocol; p->sps = sps; p->spc = spc; p->type = f->element; p->op = f->operation; p->arg = arg;
  if (!step_bytes) step_bytes = b->comm->buff_sizes[RN_SIMPLE] / RN_STEPS;
  p->step_elts = step_bytes / elt_size(f->element);
  uint64_t unit = p->proto == RN_SIMPLE ? (uint64_t)sps * spc : 1;
  for (int i = 0; i < nrecv; i++) if (recv[i] >= 0) {
    struct end *e = &p->r[p->nrecv++];
    e->c = &b->ch->peers[recv[i]]->recv[conn];
    e->step = DIVUP(e->c->step, unit) * unit;
    if (p->proto == RN_SIMPLE) ST(e->c->head, e->step); /* give back credits lost by rounding */
  }
  for (int i = 0; i < nsend; i++) if (send[i] >= 0) {
    struct end *e = &p->s[p->nsend++];
    e->c = &b->ch->peers[send[i]]->send[conn];
    e->step = DIVUP(e->c->step, unit) * unit;
  }
}
static void prims_close(struct prims *p) {
  for (int i = 0; i < p->nrecv; i++) p->r[i].c->step = p->r[i].step;
  for (int i = 0; i < p->nsend; i++) p->s[i].c->step = p->s[i].step;
}

static char *slot_ptr(struct end *e) {
  struct rn_conn *c = e->c;
  unsigned s = e->step % RN_STEPS;
  if (c->fifo && *(volatile int32_t *)&c->fifo[s].mode == 1)
    return c->buffs[RN_SIMPLE] + *(volatile int32_t *)&c->fifo[s].offset;
  return c->buffs[RN_SIMPLE] + (size_t)s * c->step_bytes;
}

/* combine sources into `acc` and fan out */
static void combine(struct prims *p, const void **rsrc, int nr, const void *src, int pre, void *dst, void **sdst,
                    int ns, size_t n, int post) {
  size_t bytes = n * elt_size(p->type);
  if (!n) return;
  const void *out;
  int plain = (nr + (src != NULL)) == 1 && !(src && pre && p->op == PRE_MUL_SUM) && !(post && p->op == SUM_POST_DIV);
  if (plain) out = src ? src : rsrc[0];
  else {
    char *acc = scratch(p->b, bytes);
    int k = 0;
    if (src) { memcpy(acc, src, bytes); if (pre) pre_op(p->type, p->op, p->arg, acc, n); }
    else memcpy(acc, rsrc[k++], bytes);
    for (; k < nr; k++) reduce_into(p->type, p->op, p->arg, acc, rsrc[k], n);
    if (post) post_op(p->type, p->op, p->arg, acc, n);
    out = acc;
  }
  if (dst && dst != out) memmove(dst, out, bytes);
  for (int i = 0; i < ns; i++) if (sdst[i] != out) memcpy(sdst[i], out, bytes);
}

static void op_simple(struct prims *p, int recv, int send, const char *src, int pre, char *dst, ssize_t nelem, int post) {
  struct block *b = p->b;
  int es = elt_size(p->type), nr = recv ? p->nrecv : 0, ns = send ? p->nsend : 0;
  if (nelem < 0) nelem = 0;
  ssize_t slice = MAX((ssize_t)DIVUP(nelem, 16 * p->spc) * 16, (ssize_t)(p->step_elts * p->sps / 32)), off = 0;
  for (int k = 0; k < p->spc; k++) {
    ssize_t n = MIN(slice, nelem - off);
    const void *rp[4]; void *sp[4];
    for (int i = 0; i < ns; i++) {
      unsigned spins = 0;
      while (!b->aborted && LD(p->s[i].c->head) + RN_STEPS < p->s[i].step + p->sps) relax(b, &spins);
      struct rn_fifo *f = p->s[i].c->fifo;
      if (f) __atomic_store_n(&f[p->s[i].step % RN_STEPS].size, (int64_t)n * es, __ATOMIC_RELAXED);
      sp[i] = slot_ptr(&p->s[i]);
    }
    for (int i = 0; i < nr; i++) {
      unsigned spins = 0;
      while (!b->aborted && LD(p->r[i].c->tail) < p->r[i].step + p->sps) relax(b, &spins);
      rp[i] = slot_ptr(&p->r[i]);
    }
    if (b->slice_us && n > 0) usleep(b->slice_us);
    if (!b->aborted)
      combine(p, rp, nr, src ? src + off * es : NULL, pre, dst ? dst + off * es : NULL, sp, ns, n, post);
    for (int i = 0; i < nr; i++) { p->r[i].step += p->sps; ST(p->r[i].c->head, p->r[i].step); }
    for (int i = 0; i < ns; i++) { p->s[i].step += p->sps; ST(p->s[i].c->tail, p->s[i].step); }
    off += n;
  }
}

/* LL: every 16-byte line carries 8 data bytes and twice a 4-byte flag */
struct line { uint32_t d1, f1, d2, f2; };
#define LL_CLEAN 0x7ffffff8u
static int ll_ready(struct end *e, struct line *l, size_t lines) {
  uint32_t flag = (uint32_t)(e->step + 1);
  for (size_t i = 0; i < lines; i++)
    if (LD(&l[i].f1) != flag || LD(&l[i].f2) != flag) return 0;
  return 1;
}
static void ll_unpack(struct line *l, size_t lines, char *out) {
  for (size_t i = 0; i < lines; i++) { memcpy(out + 8 * i, &l[i].d1, 4); memcpy(out + 8 * i + 4, &l[i].d2, 4); }
}
static void ll_pack(struct end *e, struct line *l, size_t lines, const char *in, size_t bytes, size_t step_lines) {
  uint32_t flag = (uint32_t)(e->step + 1);
  size_t total = (e->step & LL_CLEAN) == LL_CLEAN ? step_lines : lines;
  for (size_t i = 0; i < total; i++) {
    uint32_t d[2] = {0, 0};
    if (8 * i < bytes) memcpy(d, in + 8 * i, MIN((size_t)8, bytes - 8 * i));
    l[i].d1 = d[0]; l[i].d2 = d[1];
    ST(&l[i].f1, flag); ST(&l[i].f2, flag);
  }
}
static void op_ll(struct prims *p, int recv, int send, const char *src, int pre, char *dst, ssize_t nelem, int post) {
  struct block *b = p->b;
  int es = elt_size(p->type), nr = recv ? p->nrecv : 0, ns = send ? p->nsend : 0;
  if (nelem < 0) nelem = 0;
  size_t bytes = nelem * es, lines = DIVUP(bytes, 8), step_lines = b->comm->buff_sizes[RN_LL] / RN_STEPS / 16;
  char *tmp = malloc((nr + 2) * (lines * 8 + 16));
  const void *rp[4]; void *sp[1];
  struct line *sl[4];
  for (int i = 0; i < ns; i++) {
    unsigned spins = 0;
    while (!b->aborted && LD(p->s[i].c->head) + RN_STEPS < p->s[i].step + 1) relax(b, &spins);
    struct rn_fifo *f = p->s[i].c->fifo;
    size_t sz = (p->s[i].step & LL_CLEAN) == LL_CLEAN ? step_lines * 16 : lines * 16;
    if (f) __atomic_store_n(&f[p->s[i].step % RN_STEPS].size, (int64_t)sz, __ATOMIC_RELEASE);
    sl[i] = (struct line *)p->s[i].c->buffs[RN_LL] + (p->s[i].step % RN_STEPS) * step_lines;
  }
  for (int i = 0; i < nr; i++) {
    unsigned spins = 0;
    struct line *l = (struct line *)p->r[i].c->buffs[RN_LL] + (p->r[i].step % RN_STEPS) * step_lines;
    while (!b->aborted && !ll_ready(&p->r[i], l, lines)) relax(b, &spins);
    char *u = tmp + (i + 1) * (lines * 8 + 16);
    ll_unpack(l, lines, u);
    rp[i] = u;
  }
  if (!b->aborted) {
    sp[0] = tmp;
    combine(p, rp, nr, src, pre, dst, sp, 1, nelem, post);
  }
  for (int i = 0; i < nr; i++) { p->r[i].step++; if (p->r[i].c->head) ST(p->r[i].c->head, p->r[i].step); }
  for (int i = 0; i < ns; i++) { ll_pack(&p->s[i], sl[i], lines, tmp, bytes, step_lines); p->s[i].step++; }
  free(tmp);
}
static void op(struct prims *p, int recv, int send, const char *src, int pre, char *dst, ssize_t nelem, int post) {
  (p->proto == RN_LL ? op_ll : op_simple)(p, recv, send, src, pre, dst, nelem, post);
}

/* ---- collectives ------------------------------------------------------ */
static void split(struct rn_coll *w, int channel, int proto, int es, size_t *count, size_t *off, size_t *n, size_t *chunk) {
  int grain = (proto == RN_LL ? 16 : 512) / es;
  long mid = (long)w->ch_hi - w->ch_lo - 1;
  *count = w->cnt_lo + (mid > 0 ? w->cnt_mid * mid : 0) + w->cnt_hi;
  if (channel == (int)w->ch_lo) { *off = 0; *n = w->cnt_lo; *chunk = w->grains_lo * grain; }
  else if (channel == (int)w->ch_hi) { *off = w->cnt_lo + (mid > 0 ? mid * w->cnt_mid : 0); *n = w->cnt_hi; *chunk = w->grains_hi * grain; }
  else { *off = w->cnt_lo + (channel - w->ch_lo - 1) * w->cnt_mid; *n = w->cnt_mid; *chunk = w->grains_mid * grain; }
}

static void run_coll(struct block *b, const struct function *f, struct rn_coll *w) {
  struct rn_channel *c = b->ch;
  const int es = elt_size(f->element), N = b->comm->nranks;
  uint64_t arg = w->redop_arg;
  if (w->arg_is_ptr) memcpy(&arg, (void *)w->redop_arg, es);
  size_t count, base, n, chunk;
  split(w, b->channel, (int)f->protocol, es, &count, &base, &n, &chunk);
  if (chunk == 0) chunk = 1;
  const char *in = w->sendbuff; char *out = w->recvbuff;
  struct prims p;
  int big = f->collective == ALL_REDUCE || f->collective == ALL_GATHER || f->collective == REDUCE_SCATTER;
  int sps = big ? RN_STEPS / 4 : 1, spc = big ? 2 : 1;

  if (f->collective == ALL_REDUCE && f->algorithm == TREE) {
    int es_ = es; const int *dn = c->tree.down; int up = c->tree.up;
    /* Tree kernels use one step per slice and one slice per chunk. */
    struct prims q;
    prims_open(&p, b, f, 1, 1, dn, 3, &up, 1, 0, arg, 0);
    prims_open(&q, b, f, 1, 1, &up, 1, dn, 3, 0, arg, 0);
    int root = up < 0, leaf = p.nrecv == 0;
    /* Reduce up one chunk, then see whether a finished chunk came down; a
     * strict up/down alternation would stall, so keep a small window. */
    size_t eu = 0, ed = 0;
    while ((eu < n || ed < n) && !b->aborted) {
      if (root) {
        size_t m = MIN(chunk, n - eu), o = (base + eu) * es_;
        op(&p, 1, 0, in + o, 1, out + o, m, 1);
        op(&q, 0, 1, out + o, 0, NULL, m, 0);
        eu += chunk; ed += chunk;
        continue;
      }
      size_t win = 2 * chunk;
      if (eu < n && eu < ed + win) {
        size_t m = MIN(chunk, n - eu), o = (base + eu) * es_;
        op(&p, !leaf, 1, in + o, 1, NULL, m, 0);
        eu += chunk;
      } else {
        size_t m = MIN(chunk, n - ed), o = (base + ed) * es_;
        op(&q, 1, !leaf, NULL, 0, out + o, m, 0);
        ed += chunk;
      }
    }
    prims_close(&p); prims_close(&q);
    return;
  }

  prims_open(&p, b, f, sps, spc, &c->ring.prev, 1, &c->ring.next, 1, 0, arg, 0);
  const int *ur = c->ring.user_ranks;
  switch (f->collective) {
  case ALL_REDUCE: {
    int ix = c->ring.index;
    for (size_t e = 0; e < n; e += (size_t)N * chunk) {
      size_t rem = n - e, ck = chunk;
      if (rem < (size_t)N * chunk) { size_t a = 16 / es; ck = DIVUP(DIVUP(rem, (size_t)N), a) * a; }
      for (int k = 0; k < 2 * N - 1; k++) {
        int part = ((ix - 1 - k) % N + 2 * N) % N; /* travels backwards around the ring */
        size_t po = (size_t)part * ck;
        ssize_t m = MIN((ssize_t)ck, (ssize_t)rem - (ssize_t)po);
        size_t o = (base + e + po) * es;
        if (k == 0) op(&p, 0, 1, in + o, 1, NULL, m, 0);
        else if (k < N - 1) op(&p, 1, 1, in + o, 1, NULL, m, 0);
        else if (k == N - 1) op(&p, 1, 1, in + o, 1, out + o, m, 1);
        else if (k < 2 * N - 2) op(&p, 1, 1, NULL, 0, out + o, m, 0);
        else op(&p, 1, 0, NULL, 0, out + o, m, 0);
      }
    }
  } break;
  case BROADCAST:
    for (size_t e = 0; e < n; e += chunk) {
      size_t m = MIN(chunk, n - e), o = (base + e) * es;
      if (ur[0] == (int)w->root) op(&p, 0, 1, in + o, 0, in == out ? NULL : out + o, m, 0);
      else op(&p, 1, ur[1] != (int)w->root, NULL, 0, out + o, m, 0);
    }
    break;
  case REDUCE:
    for (size_t e = 0; e < n; e += chunk) {
      size_t m = MIN(chunk, n - e), o = (base + e) * es;
      if (ur[N - 1] == (int)w->root) op(&p, 0, 1, in + o, 1, NULL, m, 0);
      else if (b->comm->rank == (int)w->root) op(&p, 1, 0, in + o, 1, out + o, m, 1);
      else op(&p, 1, 1, in + o, 1, NULL, m, 0);
    }
    break;
  case ALL_GATHER:
    for (size_t e = 0; e < n; e += chunk) {
      size_t m = MIN(chunk, n - e), d = base + e;
      for (int k = 0; k < N; k++) {
        size_t o = (d + (size_t)ur[k == 0 ? 0 : N - k] * count) * es;
        if (k == 0) op(&p, 0, 1, in + d * es, 0, in + d * es == out + o ? NULL : out + o, m, 0);
        else op(&p, 1, k < N - 1, NULL, 0, out + o, m, 0);
      }
    }
    break;
  case REDUCE_SCATTER:
    for (size_t e = 0; e < n; e += chunk) {
      size_t m = MIN(chunk, n - e), d = base + e;
      for (int k = 0; k < N; k++) {
        size_t o = (d + (size_t)ur[N - 1 - k] * count) * es;
        if (k == 0) op(&p, 0, 1, in + o, 1, NULL, m, 0);
        else if (k < N - 1) op(&p, 1, 1, in + o, 1, NULL, m, 0);
        else op(&p, 1, 0, in + o, 1, out + d * es, m, 1);
      }
    }
    break;
  default: break;
  }
  prims_close(&p);
}

static void run_bcast_batch(struct block *b, const struct function *f) {
  struct rn_bcast *w = (struct rn_bcast *)b->storage;
  struct function g = *f; g.element = NO_ELEMENT;
  struct prims p;
  prims_open(&p, b, &g, 1, 1, &b->ch->ring.prev, 1, &b->ch->ring.next, 1, 0, 0, 0);
  for (int i = 0, left = 1; left && !b->aborted; i = (i + 1) % b->nworks) {
    size_t m = MIN(w[i].bytes, (size_t)w[i].chunk), o = w[i].done;
    if (m) {
      if (w[i].depth == 0) op(&p, 0, 1, w[i].sendbuff + o, 0, w[i].sendbuff == w[i].recvbuff ? NULL : w[i].recvbuff + o, m, 0);
      else op(&p, 1, w[i].depth != b->comm->nranks - 1, NULL, 0, w[i].recvbuff + o, m, 0);
    }
    w[i].bytes -= m; w[i].done += m;
    left = 0;
    for (int k = 0; k < b->nworks; k++) left |= w[k].bytes != 0;
  }
  prims_close(&p);
}

/* ---- point to point: all sends and receives of a batch progress together -- */
struct xfer { int send, ll, done; char *addr; size_t bytes, cursor, chunk; struct end e; };
static size_t fp8(uint8_t x) { uint32_t e = x >> 3, m = (x & 7) | (e ? 8 : 0); return (size_t)m << (e ? e - 1 : 0); }

static int xfer_step(struct block *b, struct xfer *x) {
  struct rn_conn *c = x->e.c;
  size_t n = MIN(x->chunk, x->bytes - x->cursor), lines = DIVUP(n, 8);
  size_t step_lines = b->comm->buff_sizes[RN_LL] / RN_STEPS / 16;
  struct line *l = (struct line *)c->buffs[RN_LL] + (x->e.step % RN_STEPS) * step_lines;
  if (x->send) {
    if (LD(c->head) + RN_STEPS < x->e.step + 1) return 0;
    if (x->ll) {
      size_t sz = (x->e.step & LL_CLEAN) == LL_CLEAN ? step_lines * 16 : lines * 16;
      if (c->fifo) ST(&c->fifo[x->e.step % RN_STEPS].size, (int64_t)sz);
      ll_pack(&x->e, l, lines, x->addr + x->cursor, n, step_lines);
      x->e.step++;
    } else {
      if (c->fifo) __atomic_store_n(&c->fifo[x->e.step % RN_STEPS].size, (int64_t)n, __ATOMIC_RELAXED);
      memcpy(slot_ptr(&x->e), x->addr + x->cursor, n);
      x->e.step++;
      ST(c->tail, x->e.step);
    }
  } else {
    if (x->ll) {
      if (!ll_ready(&x->e, l, lines)) return 0;
      char *t = scratch(b, lines * 8 + 8);
      ll_unpack(l, lines, t);
      memcpy(x->addr + x->cursor, t, n);
    } else {
      if (LD(c->tail) < x->e.step + 1) return 0;
      memcpy(x->addr + x->cursor, slot_ptr(&x->e), n);
    }
    x->e.step++;
    if (c->head) ST(c->head, x->e.step);
  }
  x->cursor += n;
  if (x->cursor >= x->bytes) { x->done = 1; c->step = x->e.step; }
  return 1;
}

static void run_p2p(struct block *b) {
  struct xfer x[64];
  int nx = 0;
  for (int i = 0; i < b->nworks; i++) {
    struct rn_p2p *w = (struct rn_p2p *)(b->storage + i * sizeof *w);
    int part = (b->channel - w->channel_base) & (w->n_p2p_channels - 1);
    size_t lo[2] = {0, 0}, sz[2] = {0, 0};
    for (int s = 0; s < 2; s++) {
      size_t bytes = s ? w->send_bytes : w->recv_bytes;
      int parts = s ? w->n_send_ch : w->n_recv_ch;
      if (!parts) continue;
      size_t each = DIVUP(DIVUP(bytes, (size_t)parts), 4096) * 4096;
      lo[s] = MIN(part * each, bytes);
      sz[s] = MIN((part + 1) * each, bytes) - lo[s];
    }
    if (w->send_rank == b->comm->rank) { /* local copy, needs no connection */
      if (part < w->n_send_ch) memmove(w->recv_addr + lo[0], w->send_addr + lo[1], sz[1]);
      continue;
    }
    for (int s = 1; s >= 0; s--) {
      if (part >= (s ? w->n_send_ch : w->n_recv_ch)) continue;
      struct xfer *t = &x[nx++];
      memset(t, 0, sizeof *t);
      t->send = s; t->ll = s ? w->send_ll : w->recv_ll;
      t->addr = (s ? w->send_addr : w->recv_addr) + lo[s];
      t->bytes = sz[s];
      t->chunk = fp8(s ? w->send_chunk8 : w->recv_chunk8);
      struct rn_peer *pr = b->ch->peers[s ? w->send_rank : w->recv_rank];
      t->e.c = s ? &pr->send[1] : &pr->recv[1];
      t->e.step = t->e.c->step;
      if (!s && !t->ll) ST(t->e.c->head, t->e.step);
    }
  }
  unsigned spins = 0;
  for (int left = nx; left && !b->aborted;) {
    int moved = 0;
    left = 0;
    for (int i = 0; i < nx; i++) if (!x[i].done) { moved |= xfer_step(b, &x[i]); left += !x[i].done; }
    if (moved) spins = 0; else if (left) relax(b, &spins);
  }
}

/* ---- kernel main loop ------------------------------------------------- */
static void load_batch(struct block *b, int ix) {
  const struct rn_args *a = (const struct rn_args *)b->args;
  const struct rn_batch *bt = (const struct rn_batch *)(a + 1);
  int at = 0;
  for (;;) {
    const struct rn_batch *k = &bt[ix];
    size_t ws = k->type == RN_W_P2P ? sizeof(struct rn_p2p) : k->type == RN_W_COLL ? sizeof(struct rn_coll) :
                k->type == RN_W_BCAST ? sizeof(struct rn_bcast) : RN_COLLREG_SIZE;
    b->work_size = (int)ws;
    for (int bit = 0; bit < 64; bit++) {
      if (!((k->offset_bits >> bit) & 1)) continue;
      for (size_t o = 0; o < ws; o += 16) {
        size_t pos = k->offset_base + bit * ws + o;
        const char *src = a->storage == 0 ? b->args + pos : (const char *)a->work_buf + (pos & a->work_mask);
        if ((at + 1) * ws <= sizeof b->storage) memcpy(b->storage + at * ws + o, src, 16);
      }
      at++;
    }
    if (k->next_extends) { ix += k->next_jump; continue; }
    b->next_batch = k->next_jump ? ix + (int)k->next_jump : -1;
    b->type = k->type; b->func = k->func; b->nworks = at;
    return;
  }
}
static int prof_on(struct block *b, int i) {
  /* mirrors the kernel: any non-p2p batch is indexed as if it held coll works */
  if (b->type == RN_W_P2P) return ((struct rn_p2p *)b->storage)[i].prof;
  return ((struct rn_coll *)b->storage)[i].prof;
}
static void stamp(struct block *b, int stop) {
  struct rn_prof *p = (stop ? b->comm->completed : b->comm->started) + b->channel;
  uint64_t wc = b->counter;
  for (int i = 0; i < b->nworks; i++) {
    wc++;
    if (!prof_on(b, i)) continue;
    unsigned s = wc % RN_PROF_RING;
    __atomic_store_n(&p->slot[s].timestamp, emu_globaltimer(b->device), __ATOMIC_RELAXED);
    __atomic_store_n(&p->slot[s].counter, wc, __ATOMIC_RELEASE);
  }
  if (stop) b->counter += b->nworks;
}
/* ground truth: one line per batch a block has run, on the recorder's clock */
static void truth(struct block *b, const struct function *f, uint64_t t0, uint64_t t1, uint64_t first) {
  static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
  static FILE *out;
  static int state; /* 0 unknown, 1 on, -1 off */
  pthread_mutex_lock(&mu);
  if (!state) {
    const char *d = getenv("REALNCCL_TRUTH");
    char p[512];
    state = -1;
    if (d) {
      snprintf(p, sizeof p, "%s/kernel.%d.jsonl", d, (int)getpid());
      if ((out = fopen(p, "a"))) { state = 1; setvbuf(out, NULL, _IOLBF, 0); }
    }
  }
  if (state > 0) {
    struct rn_prof *p = b->comm->started + b->channel, *q = b->comm->completed + b->channel;
    fprintf(out, "{\"dev\":%d,\"commRank\":%d,\"nranks\":%d,\"channel\":%d,\"func\":\"%s\",\"works\":%d,\"firstCounter\":%llu,\"t0\":%llu,\"t1\":%llu,\"aborted\":%d,\"pTimers\":[",
            b->device, b->comm->rank, b->comm->nranks, b->channel, f->name, b->nworks, (unsigned long long)first + 1,
            (unsigned long long)t0, (unsigned long long)t1, b->aborted);
    for (int i = 0; i < b->nworks; i++) { /* start and stop stamp of each work, null where the library did not ask for them */
      unsigned s = (first + 1 + i) % RN_PROF_RING;
      if (prof_on(b, i)) fprintf(out, "%s[%llu,%llu]", i ? "," : "", (unsigned long long)p->slot[s].timestamp, (unsigned long long)q->slot[s].timestamp);
      else fprintf(out, "%snull", i ? "," : "");
    }
    fprintf(out, "]}\n");
  }
  pthread_mutex_unlock(&mu);
}
static uint64_t raw_ns(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC_RAW, &t); return t.tv_sec * 1000000000ull + t.tv_nsec; }

static void *block_main(void *v) {
  struct block *b = v;
  b->counter = b->ch->work_counter;
  load_batch(b, b->block_idx);
  if (g_start_delay_us) usleep(g_start_delay_us);
  for (;;) {
    uint64_t t0 = raw_ns(), first = b->counter;
    stamp(b, 0);
    const struct function *f = function(b->func);
    if (!f || (f->algorithm != RING && f->algorithm != TREE && f->algorithm != NO_ALGORITHM) || f->protocol == LL128) {
      fprintf(stderr, "realnccl: kernel %s (%d) is not emulated\n", f ? f->name : "?", b->func);
      abort();
    }
    if (f->collective == SEND_RECV) run_p2p(b);
    else if (f->collective == ALL_GATHER_V) run_bcast_batch(b, f);
    else for (int i = 0; i < b->nworks && !b->aborted; i++) run_coll(b, f, (struct rn_coll *)(b->storage + i * b->work_size));
    stamp(b, 1);
    truth(b, f, t0, raw_ns(), first);
    if (b->aborted || b->next_batch < 0) break;
    load_batch(b, b->next_batch);
  }
  b->ch->work_counter = b->counter;
  free(b->scratch);
  free(b);
  return NULL;
}

static void log_slow(int dev, const char *kind, long us, unsigned launch) {
  static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
  const char *d = getenv("REALNCCL_TRUTH");
  if (!d) return;
  pthread_mutex_lock(&mu);
  char p[512];
  snprintf(p, sizeof p, "%s/inject.%d.jsonl", d, (int)getpid());
  FILE *f = fopen(p, "a");
  if (f) { fprintf(f, "{\"t\":%llu,\"worldRank\":%s,\"dev\":%d,\"kind\":\"gpu %s\",\"us\":%ld,\"launch\":%u}\n", (unsigned long long)raw_ns(), getenv("NCCLRUN_CHILD") ? getenv("NCCLRUN_CHILD") : "-1", dev, kind, us, launch); fclose(f); }
  pthread_mutex_unlock(&mu);
}

void emu_run_kernel(int device, const void *args, size_t bytes, unsigned grid) {
  pthread_once(&g_once, load_table);
  unsigned launch = __atomic_fetch_add(&g_launch[device & 63], 1, __ATOMIC_RELAXED);
  long slice_us = 0;
  for (int i = 0; i < g_nslow; i++) if (g_slow[i].dev == device && (long)launch % g_slow[i].every == g_slow[i].phase) {
    log_slow(device, g_slow[i].slice ? "slice" : "start", g_slow[i].us, launch);
    if (g_slow[i].slice) slice_us = g_slow[i].us; else usleep(g_slow[i].us);
  }
  const struct rn_args *a = args;
  pthread_t th[RN_MAXCH];
  unsigned n = 0;
  for (int c = 0; c < RN_MAXCH; c++) {
    if (!((a->channel_mask >> c) & 1)) continue;
    struct block *b = calloc(1, sizeof *b);
    b->device = device; b->channel = c; b->args = args; b->args_bytes = bytes; b->block_idx = n;
    b->comm = a->comm; b->ch = &a->comm->channels[c]; b->slice_us = slice_us;
    pthread_attr_t at;
    pthread_attr_init(&at);
    pthread_attr_setstacksize(&at, 256 << 10);
    pthread_create(&th[n++], &at, block_main, b);
    pthread_attr_destroy(&at);
  }
  if (n != grid) fprintf(stderr, "realnccl: grid %u but %u channels in the mask\n", grid, n);
  for (unsigned i = 0; i < n; i++) pthread_join(th[i], NULL);
}
