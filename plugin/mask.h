/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL's activation mask: the one word per copy of libnccl in which plugins say what events they want.
 */
#ifndef NCCLOTF2_MASK_H
#define NCCLOTF2_MASK_H

#include <stdbool.h>
#include <stdint.h>

/* Says in header.withheld what NCCL must not be asked for because it could hang or crash the job; before a consumer is started.
 * Caller holds the life lock. */
void ncclotf2_mask_open(unsigned version);

/* The same for what a new communicator makes dangerous. Caller holds the life lock. */
void ncclotf2_mask_admit(unsigned version, uint32_t comm);

/* Asks for what the settings choose, if a consumer is `ready` for it, once per word and life of the communicators:
 * NCCL passes the same word to every init, and it may have been changed since by whoever pauses recording. What has been
 * withheld is left out, and taken back from a word that has it. Caller holds the life lock. */
void ncclotf2_mask_ask(int *word, unsigned version, uint32_t known, bool ready);

/* The word that is watched, NULL for none, the types that are, and what of them was last seen in it: from API v7 on (NCCL
 * 2.31) RAS may change it at any time. Types are those asked for, and KernelCh, which is dangerous when it comes. It lies in libnccl, so it may be read within a callback of that library and nowhere else. */
extern struct ncclotf2_watched {
  int *word;
  uint32_t types, seen;
} ncclotf2_watched;

/* Records that watched types have vanished, or have come. */
void ncclotf2_mask_changed(uint8_t *base, uint32_t now);

/* Within a callback: two loads, if nothing has changed. */
static inline void ncclotf2_mask_look(uint8_t *base) {
  const int *word = __atomic_load_n(&ncclotf2_watched.word, __ATOMIC_ACQUIRE);
  if (__builtin_expect(!word, 1)) return;
  const uint32_t now = (uint32_t)__atomic_load_n(word, __ATOMIC_RELAXED) & ncclotf2_watched.types;
  if (__builtin_expect(now != __atomic_load_n(&ncclotf2_watched.seen, __ATOMIC_RELAXED), 0)) ncclotf2_mask_changed(base, now);
}

/* No communicator is left: the words may be unmapped. Caller holds the life lock. */
void ncclotf2_mask_forget(void);

#endif
