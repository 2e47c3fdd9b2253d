/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded: threads that wait for each other by spinning leave the few cores of a test machine to those they wait for.
 * sched_yield sleeps 40 us; recv and accept that found nothing 16 times in a row sleep 50 us. SOCKBUF=N: sockets with buffers
 * of N bytes, so that a sender feels a slow receiver.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

enum { YIELD_NS = 40000, IDLE_NS = 50000, IDLE_AFTER = 16 };

static void nap(long ns) { nanosleep(&(struct timespec){0, ns}, NULL); }

int sched_yield(void)
{
  nap(YIELD_NS);
  return 0;
}

static void count_idle(int failed)
{
  static __thread int idle;
  const int error = errno;
  if (!failed) idle = 0;
  else if ((error == EAGAIN || error == EWOULDBLOCK) && ++idle > IDLE_AFTER) nap(IDLE_NS);
  errno = error;
}

ssize_t recv(int socket, void *buffer, size_t bytes, int flags)
{
  static ssize_t (*next)(int, void *, size_t, int);
  if (!next) next = (ssize_t(*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv");
  const ssize_t got = next(socket, buffer, bytes, flags);
  count_idle(got < 0);
  return got;
}

int accept(int socket, struct sockaddr *address, socklen_t *size)
{
  static int (*next)(int, struct sockaddr *, socklen_t *);
  if (!next) next = (int (*)(int, struct sockaddr *, socklen_t *))dlsym(RTLD_NEXT, "accept");
  const int got = next(socket, address, size);
  count_idle(got < 0);
  return got;
}

int socket(int domain, int type, int protocol)
{
  static int (*next)(int, int, int);
  if (!next) next = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
  const int got = next(domain, type, protocol);
  const char *bytes = getenv("SOCKBUF");
  if (got < 0 || !bytes) return got;
  const int size = atoi(bytes);
  setsockopt(got, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  setsockopt(got, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  return got;
}
