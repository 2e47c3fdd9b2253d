/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded: makes what one rank's process sends slow. In the process whose NCCLRUN_CHILD is SHAPE_FROM, pieces of at least
 * SHAPE_MIN bytes (1024) are held to SHAPE_KBPS kilobytes a second (10000) by a token bucket of SHAPE_BURST bytes (16384): what
 * does not fit is answered with EAGAIN, as a full socket of a slow link answers. What it did is written to inject.PID.jsonl at
 * the end.
 */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sys/socket.h>

#include "../gpu/clock.h"
#include "../gpu/settings.h"

enum { PIECE_LEAST = 1024 };

static int shaped; /* this process is the one */
static double bytes_per_second, burst, tokens;
static size_t smallest;
static uint64_t began, refilled, held_back, sent;
static ssize_t (*next_send)(int, const void *, size_t, int);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void read_settings(void)
{
  next_send = (ssize_t(*)(int, const void *, size_t, int))dlsym(RTLD_NEXT, "send");
  bytes_per_second = (double)setting_number("SHAPE_KBPS", 10000) * 1e3;
  tokens = burst = (double)setting_number("SHAPE_BURST", 16384);
  smallest = (size_t)setting_number("SHAPE_MIN", 1024);
  began = refilled = raw_ns();
  shaped = setting_number("NCCLRUN_CHILD", -1) == setting_number("SHAPE_FROM", -2);
}

__attribute__((destructor)) static void write_down(void)
{
  FILE *file = shaped ? truth_open("inject") : NULL;
  if (!file) return;
  fprintf(file,
          "{\"t\":%" PRIu64 ",\"t1\":%" PRIu64
          ",\"worldRank\":%ld,\"kind\":\"link shaped\",\"bytesPerSecond\":%.0f,\"bytesSent\":%" PRIu64
          ",\"timesHeldBack\":%" PRIu64 "}\n",
          began, raw_ns(), setting_number("NCCLRUN_CHILD", -1), bytes_per_second, sent, held_back);
  fclose(file);
}

ssize_t send(int socket, const void *data, size_t bytes, int flags)
{
  pthread_once(&once, read_settings);
  if (!shaped || bytes < smallest || !(flags & MSG_DONTWAIT)) return next_send(socket, data, bytes, flags);
  pthread_mutex_lock(&lock);
  const uint64_t now = raw_ns();
  tokens += (double)(now - refilled) * 1e-9 * bytes_per_second;
  refilled = now;
  if (tokens > burst) tokens = burst;
  ssize_t done = -1;
  if (tokens < PIECE_LEAST) {
    held_back++;
    errno = EAGAIN;
  } else {
    done = next_send(socket, data, bytes < (size_t)tokens ? bytes : (size_t)tokens, flags);
    if (done > 0) {
      tokens -= (double)done;
      sent += (uint64_t)done;
    }
  }
  pthread_mutex_unlock(&lock);
  return done;
}
