/* SPDX-License-Identifier: Apache-2.0 */
#include "mask.h"

#include "api_versions.h"
#include "clock.h"
#include "config.h"
#include "log.h"
#include "loss_notices.h"
#include "proxy_pool.h"
#include "ring.h"
#include "session.h"
#include "settings.h"

enum { WORDS_MOST = 8 }; /* copies of libnccl in one process */

/* What else is watched beside what was asked for. */
enum { CHANNELS = 1u << NCCLOTF2_KERNEL_CH };

static struct {
  int *word;
  bool asked;
} words[WORDS_MOST];
static unsigned word_count;

struct ncclotf2_watched ncclotf2_watched;

/* Asked for phases, NCCL reports the channels as well. */
enum { STAMPS = 1u << NCCLOTF2_KERNEL_CH | 1u << NCCLOTF2_KERNEL_PHASE };

static char no_room[192];

static void withhold(enum ncclotf2_withheld_why why) {
  struct ncclotf2_header *header = ncclotf2_header_at(ncclotf2_session.base);
  if (header->withheld & STAMPS) return;
  __atomic_store_n(&header->withheld_why, why, __ATOMIC_RELAXED);
  __atomic_fetch_or(&header->withheld, STAMPS, __ATOMIC_RELEASE);
}

/* A thread of NCCL's looks for the stamps of kernels. It finds a kernel's by counting the work on its channel, as the GPU
 * does. Where the two counts differ it waits for ever, and ncclCommDestroy for it (to 2.30), or takes stamps of
 * earlier kernels and reads memory that ncclCommDestroy has freed (2.31). To ask for stamps all the same and take it back
 * in time is no way: operations of the same group, and graphs, may have been enqueued with the bit, and a pair of a send
 * with it and a receive without is enough. */
void ncclotf2_mask_open(unsigned version) {
  if (!ncclotf2_config_stamps(version)) withhold(NCCLOTF2_WITHHELD_BROADCASTS);
}

/* Up to 2.30 the thread that looks for stamps is the proxy's, and NCCL crashes if it cannot make the memory in which that gets its
 * work. It makes that for other reasons, too: at init without NCCL_RUNTIME_CONNECT, and then a failure is one of init. */
void ncclotf2_mask_admit(unsigned version, uint32_t comm) {
  if (version > NCCLOTF2_PROXIED_STAMPS || !ncclotf2_nccl_switch(NCCLOTF2_RUNTIME_CONNECT, true)) return;
  struct ncclotf2_header *header = ncclotf2_header_at(ncclotf2_session.base);
  if (!(header->withheld & STAMPS) && !ncclotf2_proxy_pools_fit(comm, no_room, sizeof no_room)) withhold(NCCLOTF2_WITHHELD_ROOM);
}

static void announce_stamps(uint32_t stamps) {
  static bool reported;
  if (!stamps || reported) return;
  reported = true;
  switch (ncclotf2_header_at(ncclotf2_session.base)->withheld_why) {
    case NCCLOTF2_WITHHELD_ROOM:
      ncclotf2_log(NCCLOTF2_LOG_WARN, "no GPU times are recorded from here on: NCCL up to 2.30 crashes with them if it lacks room for its proxies, and %s", no_room);
      return;
    case NCCLOTF2_WITHHELD_LATE:
      ncclotf2_log(NCCLOTF2_LOG_INFO,
                   "no GPU times are recorded: the collector was ready late (NCCL_OTF2_START_LIMIT), and NCCL cannot begin with them later");
      return;
    default:
      ncclotf2_log(NCCLOTF2_LOG_INFO, "no GPU times are recorded: NCCL 2.29 and newer can hang or crash with them after Broadcasts; "
                                      "NCCL_ALLGATHERV_ENABLE=0 in all processes of the job makes them safe");
  }
}

/* What had been asked for before there was no more room. Communicators with a pool go on as they were; those without one do not
 * come to need it. */
static void take_back(int *word) {
  const uint32_t withheld = __atomic_load_n(&ncclotf2_header_at(ncclotf2_session.base)->withheld, __ATOMIC_RELAXED);
  const uint32_t before = (uint32_t)__atomic_load_n(word, __ATOMIC_RELAXED);
  if (!(before & withheld & STAMPS)) return;
  __atomic_fetch_and(word, (int)~withheld, __ATOMIC_RELAXED);
  announce_stamps(STAMPS);
}

static void ask(int *word, unsigned version, uint32_t known, bool late) {
  struct ncclotf2_header *header = ncclotf2_header_at(ncclotf2_session.base);
  if (late) withhold(NCCLOTF2_WITHHELD_LATE); /* the GPU has counted what the host has not */
  const uint32_t withheld = __atomic_load_n(&header->withheld, __ATOMIC_RELAXED);
  uint32_t wanted = __atomic_load_n(&header->event_mask, __ATOMIC_ACQUIRE) & known;
  if (wanted & STAMPS) wanted |= CHANNELS; /* NCCL would add it anyway */
  announce_stamps(wanted & withheld & STAMPS);
  __atomic_store_n(word, (int)(wanted & ~withheld), __ATOMIC_RELAXED);
  if (version < 7 || word_count != 1) return;
  ncclotf2_watched.seen = wanted & ~withheld;
  ncclotf2_watched.types = ncclotf2_watched.seen | CHANNELS;
  __atomic_store_n(&ncclotf2_watched.word, word, __ATOMIC_RELEASE);
}

void ncclotf2_mask_changed(uint8_t *base, uint32_t now) {
  uint32_t before = __atomic_load_n(&ncclotf2_watched.seen, __ATOMIC_RELAXED);
  if (before == now || !__atomic_compare_exchange_n(&ncclotf2_watched.seen, &before, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    return; /* another thread reports it */
  if (now & ~before & CHANNELS) ncclotf2_notice_loss(NCCLOTF2_NOTICE_STAMPS);
  const uint64_t ticks = ncclotf2_ticks();
  unsigned loss;
  struct ncclotf2_record *at = ncclotf2_reserve(base, sizeof *at, NCCLOTF2_CLASS_STOP, ticks, &loss);
  if (!at) return;
  *at = (struct ncclotf2_record){.ticks = ticks, .kind = NCCLOTF2_RECORD_MASK, .units = 1, .aux = now, .arg = before};
  ncclotf2_commit(base, sizeof *at);
  ncclotf2_ticks_recorded(ticks);
}

void ncclotf2_mask_ask(int *word, unsigned version, uint32_t known, bool ready) {
  unsigned i = 0;
  while (i < word_count && words[i].word != word) i++;
  if (i == WORDS_MOST) return;
  const bool late = i < word_count; /* communicators have been made with it as it was */
  if (!late) {
    words[i].word = word;
    words[i].asked = false;
    word_count++;
    if (word_count > 1) __atomic_store_n(&ncclotf2_watched.word, NULL, __ATOMIC_RELAXED); /* it is not known whose callback it is */
  }
  if (!ready) return;
  if (words[i].asked) {
    take_back(word);
    return;
  }
  ask(word, version, known, late);
  words[i].asked = true;
}

void ncclotf2_mask_forget(void) {
  __atomic_store_n(&ncclotf2_watched.word, NULL, __ATOMIC_RELAXED);
  word_count = 0;
}
