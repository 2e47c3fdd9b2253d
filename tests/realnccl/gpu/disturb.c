/* SPDX-License-Identifier: Apache-2.0
 *
 * Disturbances of a device, for recordings whose cause is to be known:
 * REALNCCL_SLOW="DEVICE:KIND:US:EVERY[:PHASE],…". KIND start: every EVERY-th launch of the device begins US late; slice: in
 * every EVERY-th launch each slice that is moved takes US more. Each is written to inject.PID.jsonl. REALNCCL_KERNEL_DELAY_US
 * holds every launch of every device up.
 */
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "clock.h"
#include "kernel.h"
#include "settings.h"

static struct disturbance {
  int device, slice;
  long us, every, phase;
} disturbances[16];
static int disturbance_count;
static long delay_us;
static unsigned launches[CHANNELS];

static void read_settings(void)
{
  char text[512], *rest = text, *one;
  snprintf(text, sizeof text, "%s", setting("REALNCCL_SLOW") ? setting("REALNCCL_SLOW") : "");
  while ((one = strsep(&rest, ",")) && disturbance_count < 16) {
    struct disturbance d = {.every = 1};
    char kind[16] = "";
    if (sscanf(one, "%d:%15[^:]:%ld:%ld:%ld", &d.device, kind, &d.us, &d.every, &d.phase) < 3 || d.every < 1) continue;
    d.slice = strcmp(kind, "slice") == 0;
    disturbances[disturbance_count++] = d;
  }
  delay_us = setting_number("REALNCCL_KERNEL_DELAY_US", 0);
}

static void write_down(const struct disturbance *d, unsigned launch)
{
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  FILE *file = truth_open("inject");
  if (file) {
    fprintf(file, "{\"t\":%" PRIu64 ",\"worldRank\":%ld,\"dev\":%d,\"kind\":\"gpu %s\",\"us\":%ld,\"launch\":%u}\n", raw_ns(),
            setting_number("NCCLRUN_CHILD", -1), d->device, d->slice ? "slice" : "start", d->us, launch);
    fclose(file);
  }
  pthread_mutex_unlock(&lock);
}

long disturb(int device)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, read_settings);
  const unsigned launch = __atomic_fetch_add(&launches[device % CHANNELS], 1, __ATOMIC_RELAXED);
  long slice_us = 0;
  for (int i = 0; i < disturbance_count; i++) {
    const struct disturbance *d = &disturbances[i];
    if (d->device != device || (long)launch % d->every != d->phase) continue;
    write_down(d, launch);
    if (d->slice) slice_us = d->us;
    else usleep((useconds_t)d->us);
  }
  if (delay_us) usleep((useconds_t)delay_us);
  return slice_us;
}
