/* SPDX-License-Identifier: Apache-2.0
 *
 * The time of single calls: the processor's counter, fenced, so that what stands between begin and end
 * is all in there and nothing else is. The fences keep a call from overlapping with its neighbors,
 * which makes it look dearer than it is among others; the mean of a sequence is taken without them.
 */
#ifndef BENCH_TIMER_H
#define BENCH_TIMER_H

#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
static inline uint64_t timer_begin(void)
{
  _mm_lfence();
  uint64_t ticks = __rdtsc();
  _mm_lfence();
  return ticks;
}
static inline uint64_t timer_end(void)
{
  unsigned cpu;
  uint64_t ticks = __rdtscp(&cpu);
  _mm_lfence();
  return ticks;
}
static inline uint64_t timer_read(void) { return __rdtsc(); }
static inline void timer_pause(void) { _mm_pause(); }
#elif defined(__aarch64__)
static inline uint64_t timer_read(void)
{
  uint64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
}
static inline uint64_t timer_begin(void)
{
  __asm__ volatile("isb" ::: "memory");
  uint64_t ticks = timer_read();
  __asm__ volatile("isb" ::: "memory");
  return ticks;
}
static inline uint64_t timer_end(void) { return timer_begin(); }
static inline void timer_pause(void) { __asm__ volatile("yield"); }
#else
#error "no counter of this processor is known"
#endif

static inline uint64_t timer_monotonic(void) /* ns */
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Nanoseconds per tick; set by timer_calibrate, better by timer_calibrate_again at the end of a run. */
extern double timer_ns_per_tick;
void timer_calibrate(void);
void timer_calibrate_again(void);

static inline uint64_t timer_ticks(double ns) { return (uint64_t)(ns / timer_ns_per_tick); }

#endif
