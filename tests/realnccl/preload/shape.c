/* SPDX-License-Identifier: Apache-2.0 */
/* shape.c: LD_PRELOAD: makes one TCP path slow.  NCCLRUN_CHILD (rank of this process) must equal SHAPE_FROM; then send() of pieces of
 * at least SHAPE_MIN bytes on non-local-control sockets is held to SHAPE_KBPS kilobytes a second (token bucket of SHAPE_BURST
 * bytes), by answering EAGAIN, which is what a full socket buffer of a slow link answers. SHAPE_PORTS: not used. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
static ssize_t (*real_send)(int, const void *, size_t, int);
static int on = -1; static double rate, burst, tokens; static size_t minsz; static uint64_t last, held, let, since;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static uint64_t ns(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC_RAW, &t); return t.tv_sec * 1000000000ull + t.tv_nsec; }
static void setup(void) {
  const char *c = getenv("NCCLRUN_CHILD"), *f = getenv("SHAPE_FROM"), *e;
  real_send = (ssize_t (*)(int, const void *, size_t, int))dlsym(RTLD_NEXT, "send");
  rate = ((e = getenv("SHAPE_KBPS")) ? atof(e) : 10000) * 1e3; /* bytes/s */
  burst = (e = getenv("SHAPE_BURST")) ? atof(e) : 16384; tokens = burst;
  minsz = (e = getenv("SHAPE_MIN")) ? (size_t)atol(e) : 1024;
  last = since = ns();
  on = c && f && atoi(c) == atoi(f);
}
__attribute__((destructor)) static void fini(void) {
  if (on != 1) return;
  const char *d = getenv("REALNCCL_TRUTH");
  char p[512];
  snprintf(p, sizeof p, "%s/inject.%d.jsonl", d ? d : ".", (int)getpid());
  FILE *o = fopen(p, "a");
  if (o) { fprintf(o, "{\"t\":%llu,\"t1\":%llu,\"worldRank\":%s,\"kind\":\"link shaped\",\"bytesPerSecond\":%.0f,\"bytesSent\":%llu,\"timesHeldBack\":%llu}\n", (unsigned long long)since, (unsigned long long)ns(), getenv("NCCLRUN_CHILD"), rate, (unsigned long long)let, (unsigned long long)held); fclose(o); }
}
ssize_t send(int fd, const void *b, size_t n, int fl) {
  if (on < 0) { pthread_mutex_lock(&mu); if (on < 0) setup(); pthread_mutex_unlock(&mu); }
  if (on != 1 || n < minsz || !(fl & MSG_DONTWAIT)) return real_send(fd, b, n, fl);
  pthread_mutex_lock(&mu);
  uint64_t t = ns();
  tokens += (t - last) * 1e-9 * rate; last = t;
  if (tokens > burst) tokens = burst;
  size_t m = tokens >= 1024 ? (size_t)tokens : 0;
  if (m > n) m = n;
  if (!m) { held++; pthread_mutex_unlock(&mu); errno = EAGAIN; return -1; }
  ssize_t k = real_send(fd, b, m, fl);
  if (k > 0) { tokens -= k; let += k; }
  pthread_mutex_unlock(&mu);
  return k;
}
