/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REALNCCL_CLOCK_H
#define REALNCCL_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC_RAW in ns: the clock of everything that is written down as truth. */
static inline uint64_t raw_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
