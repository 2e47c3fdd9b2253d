/* SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"
#include "settings.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static uint64_t read_clock(clockid_t id) {
  struct timespec now;
  clock_gettime(id, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t ncclotf2_clock_monotonic(void) { return read_clock(CLOCK_MONOTONIC); }

uint64_t ncclotf2_clock_realtime(void) {
  const struct ncclotf2_host_clock *host = ncclotf2_fast.clock == NCCLOTF2_CLOCK_HOST ? ncclotf2_clock_host() : NULL;
  return host ? host->anchor.real + (host->now() - host->anchor.ticks) : read_clock(CLOCK_REALTIME);
}

uint64_t ncclotf2_ticks_slow(void) {
  if (ncclotf2_fast.clock == NCCLOTF2_CLOCK_HOST) return ncclotf2_fast.host_now();
  return ncclotf2_clock_monotonic();
}

void ncclotf2_host_ticks_raise(uint64_t ticks) {
  uint64_t *greatest = &ncclotf2_header_at(ncclotf2_session.base)->host_ticks;
  uint64_t seen = __atomic_load_n(greatest, __ATOMIC_RELAXED);
  while (seen < ticks &&
         !__atomic_compare_exchange_n(greatest, &seen, ticks, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
  }
}

const struct ncclotf2_host_clock *ncclotf2_clock_host(void) {
  return dlsym(RTLD_DEFAULT, "ncclotf2_host_clock");
}

#if defined(__x86_64__)
/* The kernel compares the TSC with other clocks and stops using it when it drifts or differs between sockets. The
 * kernel's own clock source is therefore the best evidence that the TSC is reliable. */
static bool kernel_trusts_tsc(void) {
  char name[8] = "";
  int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t got = read(fd, name, sizeof name - 1);
  close(fd);
  return got >= 4 && memcmp(name, "tsc\n", 4) == 0;
}

static bool tsc_is_invariant(void) {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(0x80000007u, &eax, &ebx, &ecx, &edx) && (edx & (1u << 8));
}

/* Under some hypervisors each read traps and costs a microsecond. */
static bool tsc_is_cheap(void) {
  enum { TRIES = 3, READS = 1000, MOST_NS = 50 };
  for (int i = 0; i < TRIES; i++) {
    uint64_t before = ncclotf2_clock_monotonic();
    for (int k = 0; k < READS; k++) (void)*(volatile uint64_t *)&(uint64_t){__builtin_ia32_rdtsc()};
    if (ncclotf2_clock_monotonic() - before < (uint64_t)READS * MOST_NS) return true;
  }
  return false;
}
#endif

uint32_t ncclotf2_clock_choose(uint64_t setting, const char **why) {
  *why = NULL;
  if (setting == NCCLOTF2_CHOICE_CLOCK_MONOTONIC) return NCCLOTF2_CLOCK_MONOTONIC;
  if (setting == NCCLOTF2_CHOICE_CLOCK_HOST) {
    if (ncclotf2_clock_host()) return NCCLOTF2_CLOCK_HOST;
    *why = "NCCL_OTF2_CLOCK=host, but the program exports no ncclotf2_host_clock; CLOCK_MONOTONIC is used";
    return NCCLOTF2_CLOCK_MONOTONIC;
  }
  const bool tsc = setting == NCCLOTF2_CHOICE_CLOCK_TSC;
#if defined(__x86_64__)
  if (tsc) return NCCLOTF2_CLOCK_TSC;
  if (kernel_trusts_tsc() && tsc_is_invariant() && tsc_is_cheap()) return NCCLOTF2_CLOCK_TSC;
  return NCCLOTF2_CLOCK_MONOTONIC;
#elif defined(__aarch64__)
  if (tsc)
    *why = "NCCL_OTF2_CLOCK=tsc, but this processor has none; its virtual counter is used";
  return NCCLOTF2_CLOCK_CNTVCT;
#else
  if (tsc)
    *why = "NCCL_OTF2_CLOCK=tsc, but this processor has none; CLOCK_MONOTONIC is used";
  return NCCLOTF2_CLOCK_MONOTONIC;
#endif
}

uint64_t ncclotf2_clock_hz(uint32_t source) {
#if defined(__aarch64__)
  if (source == NCCLOTF2_CLOCK_CNTVCT) {
    uint64_t hz;
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hz));
    return hz;
  }
#endif
  return source == NCCLOTF2_CLOCK_MONOTONIC || source == NCCLOTF2_CLOCK_HOST ? 1000000000u : 0;
}

struct ncclotf2_clock_tuple ncclotf2_clock_tuple(void) {
  struct ncclotf2_clock_tuple best = {0};
  if (ncclotf2_fast.clock == NCCLOTF2_CLOCK_HOST) {
    /* All clocks of the program run at the same rate from its anchor. */
    const struct ncclotf2_host_clock *host = ncclotf2_clock_host();
    if (!host) return best;
    best = host->anchor;
    uint64_t latest = ncclotf2_session.base
                          ? __atomic_load_n(&ncclotf2_header_at(ncclotf2_session.base)->host_ticks, __ATOMIC_ACQUIRE)
                          : 0;
    if (latest > best.ticks) {
      uint64_t since = latest - best.ticks;
      best = (struct ncclotf2_clock_tuple){latest, best.raw + since, best.mono + since, best.real + since};
    }
    return best;
  }
  uint64_t narrowest = UINT64_MAX;
  for (int i = 0; i < 16; i++) {
    uint64_t before = ncclotf2_ticks();
    uint64_t raw = read_clock(CLOCK_MONOTONIC_RAW);
    uint64_t mono = read_clock(CLOCK_MONOTONIC);
    uint64_t real = read_clock(CLOCK_REALTIME);
    uint64_t after = ncclotf2_ticks();
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    best = (struct ncclotf2_clock_tuple){before + (after - before) / 2, raw, mono, real};
    if (ncclotf2_fast.clock == NCCLOTF2_CLOCK_MONOTONIC) best.ticks = mono;
  }
  return best;
}
