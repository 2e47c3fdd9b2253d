/* SPDX-License-Identifier: Apache-2.0 */
#include "prepare.h"

#include <pthread.h>

#include "clock.h"
#include "consumer.h"
#include "futex.h"
#include "ring.h"
#include "session.h"
#include "thread.h"

enum { PERIOD_MS = 1000 }; /* how late it notices what there is to tell, and that the program is over */

static struct ncclotf2_header *header(void) { return ncclotf2_header_at(ncclotf2_session.base); }

static void *run(void *unused) {
  pthread_setname_np(pthread_self(), "nccl-otf2 pages");
  ncclotf2_thread_stays();
  for (uint64_t looked = ncclotf2_clock_monotonic();;) {
    const uint32_t asked = __atomic_load_n(&header()->prepare, __ATOMIC_ACQUIRE);
    ncclotf2_ring_prepare();
    if (ncclotf2_clock_monotonic() - looked >= PERIOD_MS * 1000000ULL) {
      if (ncclotf2_thread_is_left_alone()) break;
      ncclotf2_consumer_look();
      looked = ncclotf2_clock_monotonic();
    }
    ncclotf2_futex_wait(&header()->prepare, asked, PERIOD_MS);
  }
  __atomic_store_n(&header()->preparer, 0, __ATOMIC_RELEASE);
  ncclotf2_thread_leaves();
  return unused;
}

void ncclotf2_prepare_start(void) {
  static bool tried;
  if (tried) return;
  tried = true;
  if (ncclotf2_thread_start(run)) __atomic_store_n(&header()->preparer, 1, __ATOMIC_RELEASE);
}
