/* SPDX-License-Identifier: Apache-2.0 */
#include "life.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "caller.h"
#include "clock.h"
#include "consumer.h"
#include "cupti.h"
#include "device.h"
#include "handle.h"
#include "intern.h"
#include "log.h"
#include "loss_notices.h"
#include "mask.h"
#include "measurement.h"
#include "memory.h"
#include "ring.h"
#include "scorep.h"
#include "session.h"
#include "session_open.h"
#include "settings.h"

enum {
  LOCK_SECONDS = 5, /* at the process's end: for another thread that is inside init or finalize */
  CUPTI_SECONDS = 3 /* for CUPTI to give back what it has */
};

/* ncclotf2_comm.ready */
enum { UNKNOWN = 0, READY = 1, CLAIMED = 2 };

_Static_assert(NCCLOTF2_COMM_MAX == 65536, "what init says of it");

static bool tried; /* whether a session was or could not be made: not again in this process */

/* In a forked child there is neither collector nor spool thread, and the memory is the parent's. Where the kernel does not
 * see to it (struct ncclotf2_fast in session.h), this does. */
static void after_fork(void) {
  __atomic_store_n(&ncclotf2_fast.base, NULL, __ATOMIC_RELEASE);
  __atomic_store_n(&ncclotf2_fast.cupti, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&ncclotf2_fast.scorep, 0, __ATOMIC_RELEASE);
}

/* Another thread may be inside init and stay there: then no other handler waits for it either. Tried again and again, because
 * pthread_mutex_timedlock goes by a clock that can be set. */
static bool lock_at_end(void) {
  static bool in_vain;
  const uint64_t deadline = ncclotf2_clock_monotonic() + LOCK_SECONDS * (uint64_t)1000000000;
  while (pthread_mutex_trylock(&ncclotf2_life) != 0) {
    if (__atomic_load_n(&in_vain, __ATOMIC_RELAXED)) return false;
    if (ncclotf2_clock_monotonic() < deadline)
      nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    else
      __atomic_store_n(&in_vain, true, __ATOMIC_RELAXED);
  }
  return true;
}

/* Exit handlers run in the opposite order of their registration. This one is registered when CUPTI and the driver are
 * at work, so that it runs before theirs, and before process_ends. */
static void cupti_ends(void) {
  if (!ncclotf2_session_is_owner() || !lock_at_end()) return;
  ncclotf2_log_use(NULL);
  ncclotf2_cupti_end(CUPTI_SECONDS);
  pthread_mutex_unlock(&ncclotf2_life);
}

static void process_ends(void) {
  if (!ncclotf2_session_is_owner() || !lock_at_end()) return;
  ncclotf2_log_use(NULL); /* libnccl's own exit handlers may have run already */
  ncclotf2_measurement_threads();
  __atomic_store_n(&ncclotf2_header_at(ncclotf2_session.base)->ended, 1, __ATOMIC_RELEASE);
  ncclotf2_consumer_flush();
  pthread_mutex_unlock(&ncclotf2_life);
}

/* Called by Score-P, whose exit handler may run before ours. */
static void measurement_ends(void) {
  if (!ncclotf2_session_is_owner() || !lock_at_end()) return;
  ncclotf2_log_use(NULL);
  ncclotf2_measurement_threads();
  ncclotf2_consumer_flush();
  pthread_mutex_unlock(&ncclotf2_life);
}

static bool open_session(const struct ncclotf2_init_args *args) {
  if (tried) return ncclotf2_session_is_owner();
  tried = true;
  const char *note;
  const uint32_t clock = ncclotf2_clock_choose(ncclotf2_setting(NCCLOTF2_SETTING_CLOCK).number, &note);
  if (note) ncclotf2_log(NCCLOTF2_LOG_WARN, "%s", note);
  char why[512];
  const struct ncclotf2_session_wish wish = {
      .memory = ncclotf2_setting(NCCLOTF2_SETTING_MEMORY).number,
      .in_shm = ncclotf2_setting(NCCLOTF2_SETTING_RING).number == NCCLOTF2_CHOICE_RING_SHM,
      .processes = args->nranks > 0 && args->nnodes > 0 ? (uint32_t)((args->nranks - 1) / args->nnodes + 1) : 0,
      .clock = clock,
      .api_version = args->api.version};
  const bool opened = ncclotf2_session_open(&wish, why, sizeof why);
  if (*why) ncclotf2_log(NCCLOTF2_LOG_WARN, "%s", why);
  if (!opened) return false;
  ncclotf2_mask_open(args->api.version);
  ncclotf2_caller_identify(ncclotf2_header_at(ncclotf2_session.base), args->logger, args->caller);
  pthread_atfork(NULL, NULL, after_fork);
  atexit(process_ends); /* the library is never unmapped, so the handler is always there */
  return true;
}

/* INIT and FINALIZE repeat for the stream of records what the communicator's entry says; without
 * room they are left out. */
static void record_life(uint8_t kind, uint32_t comm, uint64_t ticks) {
  unsigned loss;
  struct ncclotf2_record *at =
      ncclotf2_reserve(ncclotf2_session.base, sizeof *at, NCCLOTF2_CLASS_STOP, ticks, &loss);
  if (!at) return;
  *at = (struct ncclotf2_record){.ticks = ticks, .kind = kind, .units = 1, .aux = comm};
  ncclotf2_commit(ncclotf2_session.base, sizeof *at);
  ncclotf2_ticks_recorded(ticks);
}

/* Fills in who a communicator is, makes it known, and begins its life in the stream of records. */
static void introduce(uint32_t index, uint64_t comm_id, const char *name, int rank) {
  struct ncclotf2_comm *comm = ncclotf2_comm_at(ncclotf2_session.base, index);
  comm->comm_id = comm_id;
  comm->rank = rank;
  comm->name = ncclotf2_string_id(name);
  __atomic_store_n(&comm->ready, READY, __ATOMIC_RELEASE);
  record_life(NCCLOTF2_RECORD_INIT, index, comm->init_ticks);
}

void ncclotf2_identify(void *context, uint64_t comm_id, const char *name, int rank) {
  uint8_t *base = __atomic_load_n(&ncclotf2_fast.base, __ATOMIC_ACQUIRE);
  if (!base) return;
  const uint64_t index = ncclotf2_value(context) ^ ncclotf2_fast.context_bits;
  if (index >= __atomic_load_n(&ncclotf2_header_at(base)->comm_used, __ATOMIC_ACQUIRE)) return;
  struct ncclotf2_comm *comm = ncclotf2_comm_at(base, (uint32_t)index);
  uint32_t unknown = UNKNOWN;
  if (__atomic_load_n(&comm->ready, __ATOMIC_ACQUIRE) == UNKNOWN &&
      __atomic_compare_exchange_n(&comm->ready, &unknown, CLAIMED, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
    introduce((uint32_t)index, comm_id, name, rank);
}

/* `early`: no communicator is alive but the one that is being made. */
static void begin_cupti(bool early) {
  static bool registered;
  if (!ncclotf2_cupti_begin(early) || registered) return;
  registered = true;
  atexit(cupti_ends);
}

/* The new communicator's index, or NCCLOTF2_NONE if there is no room for it. */
static uint32_t add_comm(const struct ncclotf2_init_args *args) {
  struct ncclotf2_header *header = ncclotf2_header_at(ncclotf2_session.base);
  uint32_t index = header->comm_used;
  if (index == NCCLOTF2_COMM_MAX || !ncclotf2_memory_reaches(ncclotf2_session.base, NCCLOTF2_TABLE_COMMS, sizeof(struct ncclotf2_comm) * (index + 1ull)))
    return NCCLOTF2_NONE;
  struct ncclotf2_comm *comm = ncclotf2_comm_at(ncclotf2_session.base, index);
  comm->api_version = args->api.version;
  comm->nranks = args->nranks;
  comm->nnodes = args->nnodes;
  comm->init_ticks = ncclotf2_ticks();
  comm->init_tid = (uint32_t)syscall(SYS_gettid);
  ncclotf2_device(comm, header->library);
  comm->first = __atomic_load_n(&header->window_first, __ATOMIC_RELAXED);
  comm->last = __atomic_load_n(&header->window_last, __ATOMIC_RELAXED);
  comm->recording = 3; /* if it begins outside of the window, its first call says so */
  __atomic_store_n(&header->comm_used, index + 1, __ATOMIC_RELEASE);
  if (args->api.version >= 4) introduce(index, args->comm_id, args->name, args->rank);
  return index;
}

ncclotf2_result ncclotf2_init(const struct ncclotf2_init_args *args) {
  *args->context = NCCLOTF2_CONTEXT_IGNORED;
  if (ncclotf2_session_is_foreign()) return NCCLOTF2_SUCCESS;
  if (!ncclotf2_setting(NCCLOTF2_SETTING_ENABLE).number) return NCCLOTF2_SUCCESS;

  pthread_mutex_lock(&ncclotf2_life);
  ncclotf2_log_use(args->logger);
  if (!open_session(args)) goto done;
  ncclotf2_measurement_find(measurement_ends);

  struct ncclotf2_header *header = ncclotf2_header_at(ncclotf2_session.base);
  const bool first = header->comm_used == 0, early = header->live_comms == 0;
  if (!first && early) /* libnccl may have been unmapped and others' names lie there */
    __atomic_fetch_add(&ncclotf2_fast.intern_epoch, 1, __ATOMIC_RELAXED);
  const uint32_t index = add_comm(args);
  if (index == NCCLOTF2_NONE) {
    static bool said[2];
    const bool full = header->comm_used == NCCLOTF2_COMM_MAX;
    if (!said[full] && full)
      ncclotf2_log(NCCLOTF2_LOG_WARN, "more than %u communicators in this process: calls on further ones are counted, not recorded",
                   NCCLOTF2_COMM_MAX);
    else if (!said[full])
      ncclotf2_log(NCCLOTF2_LOG_WARN, "no memory for a communicator: calls on further ones are counted, not recorded; record less with NCCL_OTF2_EVENTS");
    said[full] = true;
    *args->context =
        (void *)(uintptr_t)(ncclotf2_fast.context_bits | NCCLOTF2_NUMBER_MASK); /* this process's tag; its events are counted as lost */
    goto done;
  }
  *args->context = (void *)(uintptr_t)(ncclotf2_fast.context_bits | index);
  __atomic_add_fetch(&header->live_comms, 1, __ATOMIC_ACQ_REL);
  ncclotf2_mask_admit(args->api.version, index);

  /* Only now: the collector names its directory after the first communicator. */
  if (first)
    ncclotf2_consumer_start(args->api.known);
  else
    ncclotf2_consumer_check();
  ncclotf2_consumer_introduce();
  if (ncclotf2_consumer_ready()) {
    begin_cupti(early);
    ncclotf2_scorep_begin(args->api.version, args->caller);
  }
  ncclotf2_mask_ask(args->mask, args->api.version, args->api.known, ncclotf2_consumer_ready());
  ncclotf2_consumer_messages();
done:
  pthread_mutex_unlock(&ncclotf2_life);
  ncclotf2_scorep_prepare();
  return NCCLOTF2_SUCCESS;
}

ncclotf2_result ncclotf2_finalize(void *context) {
  uint8_t *base = __atomic_load_n(&ncclotf2_fast.base, __ATOMIC_ACQUIRE);
  if (!base || !ncclotf2_session_is_owner()) return NCCLOTF2_SUCCESS;
  struct ncclotf2_header *header = ncclotf2_header_at(base);
  const uint64_t index = (uint64_t)(uintptr_t)context ^ ncclotf2_fast.context_bits;

  pthread_mutex_lock(&ncclotf2_life);
  if (index < header->comm_used) {
    struct ncclotf2_comm *comm = ncclotf2_comm_at(base, (uint32_t)index);
    if (!comm->final_ticks) {
      const uint64_t ticks = ncclotf2_ticks();
      record_life(NCCLOTF2_RECORD_FINALIZE, (uint32_t)index, ticks);
      __atomic_store_n(&comm->final_ticks, ticks ? ticks : 1, __ATOMIC_RELEASE);
      if (__atomic_sub_fetch(&header->live_comms, 1, __ATOMIC_ACQ_REL) == 0) {
        ncclotf2_cupti_end(CUPTI_SECONDS);
        ncclotf2_measurement_threads();
        ncclotf2_consumer_flush();
        ncclotf2_log_loss_totals();
        ncclotf2_scorep_report();
        ncclotf2_consumer_messages();
        ncclotf2_log_use(NULL); /* NCCL may now close us and be closed itself */
        ncclotf2_mask_forget();
      } else {
        ncclotf2_consumer_messages();
      }
    }
  }
  pthread_mutex_unlock(&ncclotf2_life);
  return NCCLOTF2_SUCCESS;
}
