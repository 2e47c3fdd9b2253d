/* SPDX-License-Identifier: Apache-2.0 */
/* yield.c: LD_PRELOAD: sched_yield gives the core up for 40 us, and recv/accept that find nothing 16 times in a row for 50 us, so that
 * the spinning threads of all ranks do not queue for the two cores (a real node has a core for each).
 * SOCKBUF=N: socket buffers of N bytes, so that a sender feels its receiver. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
static __thread int idle;
static void nap(long ns) { struct timespec t = {0, ns}; nanosleep(&t, 0); }
int sched_yield(void) { nap(40000); return 0; }
static void tally(int bad) { if (!bad) { idle = 0; return; } int e = errno; if ((e == EAGAIN || e == EWOULDBLOCK) && ++idle > 16) nap(50000); errno = e; }
ssize_t recv(int fd, void *b, size_t n, int fl) {
  static ssize_t (*real)(int, void *, size_t, int);
  if (!real) real = (ssize_t (*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv");
  ssize_t k = real(fd, b, n, fl);
  tally(k < 0);
  return k;
}
int accept(int fd, struct sockaddr *a, socklen_t *l) {
  static int (*real)(int, struct sockaddr *, socklen_t *);
  if (!real) real = (int (*)(int, struct sockaddr *, socklen_t *))dlsym(RTLD_NEXT, "accept");
  int k = real(fd, a, l);
  tally(k < 0);
  return k;
}
int socket(int d, int t, int p) {
  static int (*real)(int, int, int);
  if (!real) real = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
  int fd = real(d, t, p);
  const char *e = getenv("SOCKBUF");
  if (fd >= 0 && e) { int n = atoi(e); setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &n, sizeof n); setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &n, sizeof n); }
  return fd;
}
