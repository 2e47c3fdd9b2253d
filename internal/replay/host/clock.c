/* SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include "../../../plugin/shm.h"
#include "program.h"

static bool use_recorded;
static _Thread_local uint64_t present; /* recorded time of the thread's callback, 0 before its first */
static _Atomic uint64_t latest;

static uint64_t read_clock(clockid_t id)
{
  struct timespec t;
  clock_gettime(id, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now(void)
{
  if (!use_recorded) return read_clock(CLOCK_MONOTONIC_RAW);
  return present ? present : atomic_load(&latest);
}

/* Looked up by the plugin under this name with dlsym(RTLD_DEFAULT). */
__attribute__((visibility("default"))) struct ncclotf2_host_clock ncclotf2_host_clock = { .now = now };

void clock_begin(const struct program *program, bool recorded)
{
  struct ncclotf2_clock_tuple *a = &ncclotf2_host_clock.anchor;
  use_recorded = recorded;
  if (recorded) {
    /* The recorder wrote its first line from inside the first init: the anchor lies a little after
     * the time of that call. */
    *a = (struct ncclotf2_clock_tuple){ program->anchor_raw, program->anchor_raw, program->anchor_mono, program->anchor_real };
    atomic_store(&latest, program->call_count ? program->calls[0].time : program->anchor_raw);
  } else {
    a->raw = read_clock(CLOCK_MONOTONIC_RAW);
    a->mono = read_clock(CLOCK_MONOTONIC);
    a->real = read_clock(CLOCK_REALTIME);
    a->ticks = a->raw;
  }
}

void clock_enter(uint64_t recorded)
{
  present = recorded;
  uint64_t seen = atomic_load_explicit(&latest, memory_order_relaxed);
  while (seen < recorded && !atomic_compare_exchange_weak(&latest, &seen, recorded)) {
  }
}

void clock_pace(uint64_t start_at, uint64_t base, uint64_t recorded)
{
  uint64_t at = start_at + (recorded - base);
  struct timespec t = { .tv_sec = (time_t)(at / 1000000000u), .tv_nsec = (long)(at % 1000000000u) };
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
  }
}
