/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory that CUPTI fills with activity records.
 *
 * CUPTI asks for it on the application's thread, within a CUDA call, and gives it back full on that, on a thread of its
 * own or on the one that flushes. Both must be short and must not wait: a lock that is held around a call of CUPTI's
 * and taken here would be a deadlock. So there is none: buffers are numbers on lists that are changed by
 * compare-and-swap. The buffers lie in one range of addresses, by which a foreign one is recognized (another client's
 * callbacks may have been in force when it was handed out). A request is never declined, which CUPTI before CUDA 12.9
 * does not survive: when the pool is at its cap it gets a small buffer whose content will be counted and dropped.
 */
#ifndef NCCLOTF2_CUPTI_BUFFERS_H
#define NCCLOTF2_CUPTI_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sizes in bytes. Changed by tests only, before the first start. */
struct ncclotf2_cupti_limits {
  size_t size;            /* of a buffer */
  uint32_t count;         /* of buffers at most */
  uint32_t ready;         /* buffers that are kept at hand, with their pages in place */
  size_t scrap_size;      /* of those for what will be dropped */
  uint32_t scrap_count;
  uint32_t late_ms;       /* how long buffers that are still out are waited for at the end */
};
extern struct ncclotf2_cupti_limits ncclotf2_cupti_limits;

/* Sets up the pool once; false if there is no memory for it. The pool stays: CUPTI may keep buffers for ever. */
bool ncclotf2_cupti_buffers_open(void);

/* Brings the pages of as many buffers into place as are to be at hand; for the thread that drains. */
void ncclotf2_cupti_buffers_prepare(void);

/* CUPTI's callbacks. */
void ncclotf2_cupti_request(uint8_t **buffer, size_t *size, size_t *most_records);
void ncclotf2_cupti_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);

/* A buffer that has come back. */
struct ncclotf2_cupti_full {
  uint8_t *bytes;
  size_t valid;
  bool scrap;      /* its records are to be counted as lost */
  uint32_t number;
};

/* Takes all that have come back so far, oldest first, and hands each to `each`; then they can be handed out again. For
 * one thread at a time. */
void ncclotf2_cupti_buffers_drain(void (*each)(const struct ncclotf2_cupti_full *full));

/* Buffers that are out and have records. One that CUPTI has taken and not begun is no loss. */
uint64_t ncclotf2_cupti_buffers_out(void);

/* So far: buffers that came back and were none of those that were out; and times that there was no buffer left but
 * one that everybody writes to, whose records are gone. */
uint64_t ncclotf2_cupti_buffers_strange(void);
uint64_t ncclotf2_cupti_buffers_overwritten(void);

/* Raised, as a futex, when the buffers at hand run short. */
extern uint32_t ncclotf2_cupti_wake;

#endif
