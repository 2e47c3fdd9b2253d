/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiting on words of the shared memory. The waiters are in different processes, so the private
 * form of the calls will not do.
 */
#ifndef NCCLOTF2_FUTEX_H
#define NCCLOTF2_FUTEX_H

#include <linux/futex.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleeps while *word is `value`, at most `milliseconds`; may also return early. */
static inline void ncclotf2_futex_wait(uint32_t *word, uint32_t value, long milliseconds) {
  struct timespec limit = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0);
}

static inline void ncclotf2_futex_wake(uint32_t *word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

#endif
