/* SPDX-License-Identifier: Apache-2.0 */
#include "mask.h"

#include "config.h"
#include "log.h"
#include "session.h"

enum { WORDS_MOST = 8 }; /* copies of libnccl in one process */

static struct {
  int *word;
  bool asked;
} words[WORDS_MOST];
static unsigned word_count;

enum { STAMPS = 1u << NCCLOTF2_KERNEL_CH };

/* NCCL's progress threads wait for the stamps of kernels, and ncclCommDestroy for them. Up to 2.30 they find a kernel's by
 * counting the work on its channel, as the GPU does: where the two do not count alike they wait for ever. To ask for
 * stamps all the same and take it back in time is no way: operations of the same group, and graphs, may have been enqueued
 * with the bit, and a pair of a send with it and a receive without is enough. */
void ncclotf2_mask_open(unsigned version) {
  if (version == 6 && ncclotf2_config_allgatherv())
    __atomic_store_n(&ncclotf2_header_at(ncclotf2_session.base)->withheld, STAMPS, __ATOMIC_RELEASE);
}

static void tell(uint32_t stamps, bool late) {
  static bool told;
  if (!stamps || told) return;
  told = true;
  ncclotf2_log(NCCLOTF2_LOG_INFO, "no GPU times are recorded: %s",
               late ? "the collector was ready late (NCCL_OTF2_START_LIMIT), and NCCL before 2.31 cannot begin with them later"
                    : "NCCL 2.29 and 2.30 hang with them after grouped or captured Broadcasts; "
                      "NCCL_ALLGATHERV_ENABLE=0 in all processes of the job makes them safe");
}

static void ask(int *word, struct ncclotf2_api api, bool late) {
  struct ncclotf2_header *header = ncclotf2_header_at(ncclotf2_session.base);
  const bool safe = api.version >= 7 || !late;
  uint32_t withheld = __atomic_load_n(&header->withheld, __ATOMIC_RELAXED);
  const bool known = withheld & STAMPS;
  if (!safe) withheld |= STAMPS;
  const uint32_t wanted = __atomic_load_n(&header->event_mask, __ATOMIC_ACQUIRE) & api.known;
  __atomic_store_n(&header->withheld, withheld, __ATOMIC_RELEASE);
  tell(wanted & withheld & STAMPS, !known);
  __atomic_store_n(word, (int)(wanted & ~withheld), __ATOMIC_RELAXED);
}

void ncclotf2_mask_ask(int *word, struct ncclotf2_api api, bool ready) {
  unsigned i = 0;
  while (i < word_count && words[i].word != word) i++;
  if (i == WORDS_MOST) return;
  const bool late = i < word_count; /* communicators have been made with it as it was */
  if (!late) {
    words[i].word = word;
    words[i].asked = false;
    word_count++;
  }
  if (!ready || words[i].asked) return;
  ask(word, api, late);
  words[i].asked = true;
}

void ncclotf2_mask_forget(void) { word_count = 0; }
