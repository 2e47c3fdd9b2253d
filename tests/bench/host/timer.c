/* SPDX-License-Identifier: Apache-2.0 */
#include "timer.h"

double timer_ns_per_tick;
static uint64_t first_ticks, first_ns;

/* Both clocks at one instant, as near as the best of some tries comes. */
static void both(uint64_t *ticks, uint64_t *ns)
{
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < 100; i++) {
    uint64_t before = timer_begin(), at = timer_monotonic(), after = timer_end();
    if (after - before >= best) continue;
    best = after - before;
    *ticks = before + best / 2;
    *ns = at;
  }
}

void timer_calibrate_again(void)
{
  uint64_t ticks, ns;
  both(&ticks, &ns);
  timer_ns_per_tick = (double)(ns - first_ns) / (double)(ticks - first_ticks);
}

void timer_calibrate(void)
{
  both(&first_ticks, &first_ns);
  const struct timespec wait = {.tv_nsec = 50000000};
  nanosleep(&wait, NULL);
  timer_calibrate_again();
}
