/* SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"

#include <pthread.h>

#include "gpu.h"
#include "settings.h"

static int64_t offset_ns, skew_ns, granularity_ns;
static double drift;

static void read_settings(void)
{
  const char *text = setting("REALNCCL_PTIMER_OFFSET_NS");
  offset_ns = text ? atoll(text) : -73500000000123ll; /* about 20 hours behind */
  skew_ns = setting_number("REALNCCL_DEVICE_SKEW_US", 0) * 1000;
  granularity_ns = setting_number("REALNCCL_PTIMER_GRANULARITY_NS", 32);
  if (granularity_ns < 1) granularity_ns = 1;
  text = setting("REALNCCL_PTIMER_DRIFT_PPM");
  drift = text ? atof(text) * 1e-6 : 0;
}

uint64_t gpu_clock(int device)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, read_settings);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  int64_t t = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + offset_ns + device * skew_ns;
  /* Drift adds up from the start of the UTC day, so that all processes agree. */
  t += (int64_t)(((double)(now.tv_sec % 86400) * 1e9 + (double)now.tv_nsec) * drift);
  return (uint64_t)(t - t % granularity_ns);
}
