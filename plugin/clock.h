/* SPDX-License-Identifier: Apache-2.0
 *
 * Ticks: the clock of records. Chosen once, when the session is made; the collector maps ticks to
 * nanoseconds between the tuples it takes.
 */
#ifndef NCCLOTF2_CLOCK_H
#define NCCLOTF2_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "session.h"
#include "shm.h"

/* The source to use by NCCL_OTF2_CLOCK (NCCLOTF2_CHOICE_CLOCK_…); *why is set to one line
 * if what was asked for cannot be had, else NULL. */
uint32_t ncclotf2_clock_choose(uint64_t setting, const char **why);

/* The program's clock, if it exports one under NCCL_OTF2_CLOCK=host; else NULL. */
const struct ncclotf2_host_clock *ncclotf2_clock_host(void);

/* Ticks per second where that is known exactly, else 0. */
uint64_t ncclotf2_clock_hz(uint32_t source);

/* One instant on all four clocks, as tight as a few tries make it. */
struct ncclotf2_clock_tuple ncclotf2_clock_tuple(void);

uint64_t ncclotf2_clock_monotonic(void); /* ns */
uint64_t ncclotf2_clock_realtime(void);  /* ns since 1970; with the program's clock, what that says it is */
uint64_t ncclotf2_ticks_slow(void);      /* sources that are a call */
void ncclotf2_host_ticks_raise(uint64_t ticks);

static inline __attribute__((always_inline)) uint64_t ncclotf2_ticks(void) {
#if defined(__x86_64__)
  if (__builtin_expect(ncclotf2_fast.clock == NCCLOTF2_CLOCK_TSC, 1))
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  if (__builtin_expect(ncclotf2_fast.clock == NCCLOTF2_CLOCK_CNTVCT, 1)) {
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
  }
#endif
  return ncclotf2_ticks_slow();
}

/* To be called after the record with these ticks is committed: a collector that has seen the
 * greatest tick has then seen the record too. */
static inline __attribute__((always_inline)) void ncclotf2_ticks_recorded(uint64_t ticks) {
  if (__builtin_expect(ncclotf2_fast.clock == NCCLOTF2_CLOCK_HOST, 0))
    ncclotf2_host_ticks_raise(ticks);
}

#endif
