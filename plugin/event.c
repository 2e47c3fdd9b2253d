/* SPDX-License-Identifier: Apache-2.0 */
#include "event.h"

#include "loss_notices.h"
#include "measurement.h"

/* An unknown type is counted with the newest. */
static unsigned counter_of(uint64_t type) {
  unsigned bit = type ? (unsigned)__builtin_ctzll(type) : NCCLOTF2_TYPES - 1;
  return bit < NCCLOTF2_TYPES ? bit : NCCLOTF2_TYPES - 1;
}

ncclotf2_result ncclotf2_start_inactive(uint64_t type) {
  uint8_t *base = ncclotf2_session.base;
  if (base) ncclotf2_count(&ncclotf2_header_at(base)->lost[NCCLOTF2_LOSS_FORK][counter_of(type)]);
  return NCCLOTF2_SUCCESS;
}

/* Clears the correlation id, so that this launch's kernel is not attributed to the launch before. */
static void launch_refused(unsigned type) {
  if (type == NCCLOTF2_KERNEL_LAUNCH && __atomic_load_n(&ncclotf2_fast.cupti, __ATOMIC_ACQUIRE)) ncclotf2_cupti_launch(0);
}

ncclotf2_result ncclotf2_count_lost_start(uint8_t *base, unsigned loss, unsigned type) {
  launch_refused(type);
  ncclotf2_count(&ncclotf2_header_at(base)->lost[loss][type]);
  ncclotf2_notice_loss(loss);
  return NCCLOTF2_SUCCESS;
}

/* Where the disk caused the loss, the collector gets the exact range of missing operations. */
static void call_refused(uint8_t *base, const struct ncclotf2_call *call) {
  const uint64_t calls = call->api >= 5 ? 1u << NCCLOTF2_COLL_API | 1u << NCCLOTF2_P2P_API : 1u << NCCLOTF2_COLL | 1u << NCCLOTF2_P2P;
  if (call->comm == NCCLOTF2_NONE || !(call->bit & calls) || call->captured) return;
  struct ncclotf2_comm *comm = ncclotf2_comm_at(base, call->comm);
  __atomic_store_n(&comm->refused_last, call->ordinal + 1, __ATOMIC_RELAXED);
  if (!__atomic_load_n(&comm->refused_first, __ATOMIC_RELAXED))
    __atomic_store_n(&comm->refused_first, call->ordinal + 1, __ATOMIC_RELEASE);
}

bool ncclotf2_start_unusual(uint8_t *base, struct ncclotf2_call call, void **eHandle) {
  struct ncclotf2_header *header = ncclotf2_header_at(base);
  const unsigned type = counter_of(call.bit);
  const bool window =
      call.record_mask & NCCLOTF2_RECORD_WINDOW || __atomic_load_n(&ncclotf2_fast.measured, __ATOMIC_RELAXED);
  launch_refused(type);
  if (call.record_mask & NCCLOTF2_RECORD_FULL) call_refused(base, &call);
  if (call.wanted) {
    if (call.record_mask & NCCLOTF2_RECORD_FULL)
      ncclotf2_count(&header->lost[NCCLOTF2_LOSS_DISK][type]);
    else if (window && !ncclotf2_window_admits(base, &call))
      ncclotf2_count(&header->paused[type]);
    else
      return true;
    return false;
  }
  ncclotf2_count(&header->filtered[type]);
  /* Inside the window, but of a type that is not recorded: its children must be recognized as inside, too. */
  const bool parent = call.bit & call.known & NCCLOTF2_PARENTS && !(call.bit & (call.bit - 1));
  if (!window || !parent || call.record_mask & NCCLOTF2_RECORD_FULL || !ncclotf2_window_admits(base, &call)) return false;
  if (!ncclotf2_ring && ncclotf2_ring_room(NCCLOTF2_UNIT, NCCLOTF2_CLASS_OPERATION, ncclotf2_ticks()) >= 0) return false;
  *eHandle = (void *)(uintptr_t)(ncclotf2_handle(ncclotf2_fast.tag_bits, type, ncclotf2_next_number()) |
                                 NCCLOTF2_SILENT_BIT | (call.captured ? NCCLOTF2_CAPTURED_BIT : 0));
  return false;
}

void ncclotf2_record_before(uint8_t *base, void *at, uint64_t handle, uint64_t before, uint64_t ticks) {
  *(struct ncclotf2_record *)at = (struct ncclotf2_record){.ticks = ticks,
                                                           .kind = NCCLOTF2_RECORD_BEFORE,
                                                           .type = (uint8_t)ncclotf2_handle_type(handle),
                                                           .units = 1,
                                                           .handle = handle,
                                                           .arg = before};
  ncclotf2_commit(base, sizeof(struct ncclotf2_record));
}

void ncclotf2_measure(uint8_t *base, enum ncclotf2_callback callback, unsigned type, uint64_t ticks) {
  /* The program's own clock stands still within a callback. */
  if (ncclotf2_fast.clock == NCCLOTF2_CLOCK_HOST) return;
  const uint64_t took = ncclotf2_ticks() - ticks;
  struct ncclotf2_cost *cost = &ncclotf2_header_at(base)->cost[callback][type];
  ncclotf2_count(&cost->samples);
  __atomic_fetch_add(&cost->ticks, took, __ATOMIC_RELAXED);
  uint64_t most = __atomic_load_n(&cost->most, __ATOMIC_RELAXED);
  while (took > most &&
         !__atomic_compare_exchange_n(&cost->most, &most, took, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

bool ncclotf2_parent_refused(const struct ncclotf2_header *header, unsigned type) {
  unsigned parent = type == NCCLOTF2_PROXY_STEP   ? NCCLOTF2_PROXY_OP
                    : type == NCCLOTF2_NET_PLUGIN ? NCCLOTF2_PROXY_STEP
                                                  : NCCLOTF2_KERNEL_CH;
  if (!(__atomic_load_n(&header->record_mask, __ATOMIC_RELAXED) & 1u << parent)) return false;
  return __atomic_load_n(&header->lost[NCCLOTF2_LOSS_MEMORY][parent], __ATOMIC_RELAXED) ||
         __atomic_load_n(&header->lost[NCCLOTF2_LOSS_RING][parent], __ATOMIC_RELAXED) ||
         __atomic_load_n(&header->lost[NCCLOTF2_LOSS_DISK][parent], __ATOMIC_RELAXED);
}

/* A stop or a state on its way into the ring. */
struct unit {
  uint8_t *base; /* NULL: not to be recorded */
  uint64_t handle, ticks;
  bool ours;
};

/* Not a handle of this process: NULL, or another process's. Only record mode records it. */
static __attribute__((noinline)) bool takes_foreign(uint8_t *base, uint64_t handle) {
  if (ncclotf2_handle_is_silent(ncclotf2_fast.tag_bits, handle)) return false;
  struct ncclotf2_header *header = ncclotf2_header_at(base);
  ncclotf2_count(handle ? &header->foreign : &header->null_handles);
  return __atomic_load_n(&header->record_mask, __ATOMIC_RELAXED) & NCCLOTF2_RECORD_RAW;
}

/* Before anything else of the callback is looked at: what comes with a foreign handle means nothing. */
static inline __attribute__((always_inline)) struct unit begin_unit(const void *eHandle) {
  struct unit unit = {.base = __atomic_load_n(&ncclotf2_fast.base, __ATOMIC_ACQUIRE), .handle = ncclotf2_value(eHandle)};
  if (__builtin_expect(!unit.base, 0)) return unit;
  unit.ours = ncclotf2_handle_is_ours(ncclotf2_fast.tag_bits, unit.handle);
  if (__builtin_expect(!unit.ours, 0) && !takes_foreign(unit.base, unit.handle)) unit.base = NULL;
  unit.ticks = ncclotf2_ticks();
  return unit;
}

static inline __attribute__((always_inline)) void record_unit(struct unit unit, enum ncclotf2_callback callback,
                                                              uint32_t aux, uint64_t arg, uint8_t flags,
                                                              enum ncclotf2_class class) {
  const unsigned type = ncclotf2_handle_type(unit.handle);
  unsigned loss;
  struct ncclotf2_record *record = ncclotf2_reserve(unit.base, sizeof *record, class, unit.ticks, &loss);
  if (__builtin_expect(!record, 0)) {
    if (loss == NCCLOTF2_LOSS_MEMORY) loss = NCCLOTF2_LOSS_STOP_MEMORY;
    ncclotf2_count(&ncclotf2_header_at(unit.base)->lost[loss][type]);
    return;
  }
  *record = (struct ncclotf2_record){.ticks = unit.ticks,
                                     .kind = callback == NCCLOTF2_CALLBACK_STOP ? NCCLOTF2_RECORD_STOP : NCCLOTF2_RECORD_STATE,
                                     .type = (uint8_t)type,
                                     .units = 1,
                                     .flags = flags,
                                     .aux = aux,
                                     .handle = unit.handle,
                                     .arg = arg};
  ncclotf2_commit(unit.base, sizeof *record);
  ncclotf2_ticks_recorded(unit.ticks);
  if (__builtin_expect(unit.handle % NCCLOTF2_COST_PERIOD == 0, 0) && unit.ours)
    ncclotf2_measure(unit.base, callback, type, unit.ticks);
}

ncclotf2_result ncclotf2_stop(void *eHandle) {
  const struct unit unit = begin_unit(eHandle);
  if (!unit.base) return NCCLOTF2_SUCCESS;
  if (__builtin_expect(__atomic_load_n(&ncclotf2_fast.cupti, __ATOMIC_ACQUIRE), 0)) ncclotf2_cupti_stopped(unit.handle);
  record_unit(unit, NCCLOTF2_CALLBACK_STOP, 0, 0, 0, NCCLOTF2_CLASS_STOP);
  ncclotf2_mask_look(unit.base);
  if (__builtin_expect(__atomic_load_n(&ncclotf2_fast.scorep, __ATOMIC_ACQUIRE), 0))
    ncclotf2_scorep_stopped(unit.base, unit.handle);
  return NCCLOTF2_SUCCESS;
}

static inline __attribute__((always_inline)) void record_state(struct unit unit, int eState, uint32_t steps,
                                                               uint64_t arg, bool has_arg) {
  const uint8_t flags = has_arg ? NCCLOTF2_FLAG_HAS_ARG : 0;
  const uint32_t aux = (uint32_t)eState | steps << 8;
  /* The GPU's stop time is half of what a KernelCh event is for; it may use the stops' reserve. */
  if (eState == NCCLOTF2_STATE_KERNEL_CH_STOP)
    record_unit(unit, NCCLOTF2_CALLBACK_STATE, aux, arg, flags, NCCLOTF2_CLASS_STOP);
  else
    record_unit(unit, NCCLOTF2_CALLBACK_STATE, aux, arg, flags, NCCLOTF2_CLASS_OPERATION);
}

/* v1 … v3: sizes come with the states of ProxyOp; those of ProxyStep have no argument of their own. */
ncclotf2_result ncclotf2_state_v1(void *eHandle, int eState, union ncclotf2_state_args_v1 *eStateArgs) {
  const struct unit unit = begin_unit(eHandle);
  if (!unit.base) return NCCLOTF2_SUCCESS;
  const bool op = eState >= NCCLOTF2_STATE_OP_SEND_POSTED && eState <= NCCLOTF2_STATE_OP_RECV_DONE;
  const bool control = eState >= NCCLOTF2_STATE_CTRL_IDLE && eState <= NCCLOTF2_STATE_CTRL_APPEND_END;
  if (eStateArgs && op)
    record_state(unit, eState, (uint32_t)eStateArgs->proxyOp.steps, eStateArgs->proxyOp.transSize, true);
  else if (eStateArgs && control)
    record_state(unit, eState, 0, (uint32_t)eStateArgs->proxyCtrl.appendedProxyOps, true);
  else
    record_state(unit, eState, 0, 0, false);
  return NCCLOTF2_SUCCESS;
}

static inline __attribute__((always_inline)) ncclotf2_result state(void *eHandle, int eState,
                                                                   const union ncclotf2_state_args *args, int newest) {
  const struct unit unit = begin_unit(eHandle);
  if (!unit.base) return NCCLOTF2_SUCCESS;
  uint64_t arg = 0;
  const bool has_arg = args && eState >= 0 && eState <= newest && ncclotf2_argument_of[eState];
  if (has_arg) {
    switch (ncclotf2_argument_of[eState]) {
      case NCCLOTF2_ARGUMENT_TRANS_SIZE: arg = args->proxyStep.transSize; break;
      case NCCLOTF2_ARGUMENT_APPENDED_OPS: arg = (uint32_t)args->proxyCtrl.appendedProxyOps; break;
      case NCCLOTF2_ARGUMENT_NET_DATA: arg = ncclotf2_value(args->netPlugin.data); break;
      default: arg = args->kernelCh.pTimer; break;
    }
  }
  record_state(unit, eState, 0, arg, has_arg);
  if (__builtin_expect(eState == NCCLOTF2_STATE_GROUP_END_API_START, 0) && __atomic_load_n(&ncclotf2_fast.scorep, __ATOMIC_ACQUIRE))
    ncclotf2_scorep_launches(unit.base, unit.handle);
  return NCCLOTF2_SUCCESS;
}

ncclotf2_result ncclotf2_state_v4(void *eHandle, int eState, union ncclotf2_state_args *eStateArgs) {
  return state(eHandle, eState, eStateArgs, NCCLOTF2_STATE_KERNEL_CH_STOP);
}

ncclotf2_result ncclotf2_state_v7(void *eHandle, int eState, union ncclotf2_state_args *eStateArgs) {
  return state(eHandle, eState, eStateArgs, NCCLOTF2_STATES - 1);
}
