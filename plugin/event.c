/* SPDX-License-Identifier: Apache-2.0 */
#include "event.h"

/* What a state's argument holds, by the value of the state. */
enum argument { NONE, TRANS_SIZE, APPENDED_OPS, GPU_TIMER };
static const uint8_t argument_of[] = {
    [NCCLOTF2_STATE_STEP_SEND_GPU_WAIT... NCCLOTF2_STATE_STEP_RECV_GPU_WAIT] = TRANS_SIZE,
    [NCCLOTF2_STATE_CTRL_IDLE... NCCLOTF2_STATE_CTRL_APPEND_END] = APPENDED_OPS,
    [NCCLOTF2_STATE_STEP_SEND_PEER_WAIT] = TRANS_SIZE,
    [NCCLOTF2_STATE_KERNEL_CH_STOP] = GPU_TIMER,
};

/* An unknown type has no counter of its own; the table's last one is no type of v5 or v6. */
static unsigned counter_of(uint64_t type) {
  unsigned bit = type ? (unsigned)__builtin_ctzll(type) : NCCLOTF2_TYPES - 1;
  return bit < NCCLOTF2_TYPES ? bit : NCCLOTF2_TYPES - 1;
}

ncclotf2_result ncclotf2_start_inactive(uint64_t type) {
  uint8_t *base = ncclotf2_session.base;
  if (base) ncclotf2_count(&ncclotf2_header_at(base)->lost[NCCLOTF2_LOSS_FORK][counter_of(type)]);
  return NCCLOTF2_SUCCESS;
}

ncclotf2_result ncclotf2_start_filtered(uint8_t *base, uint64_t type) {
  ncclotf2_count(&ncclotf2_header_at(base)->filtered[counter_of(type)]);
  return NCCLOTF2_SUCCESS;
}

ncclotf2_result ncclotf2_start_lost(uint8_t *base, unsigned loss, unsigned type) {
  ncclotf2_count(&ncclotf2_header_at(base)->lost[loss][type]);
  return NCCLOTF2_SUCCESS;
}

bool ncclotf2_parent_refused(const struct ncclotf2_header *header, unsigned type) {
  unsigned parent = type == NCCLOTF2_PROXY_STEP ? NCCLOTF2_PROXY_OP : NCCLOTF2_PROXY_STEP;
  if (!(__atomic_load_n(&header->record_mask, __ATOMIC_RELAXED) & 1u << parent)) return false;
  return __atomic_load_n(&header->lost[NCCLOTF2_LOSS_MEMORY][parent], __ATOMIC_RELAXED) ||
         __atomic_load_n(&header->lost[NCCLOTF2_LOSS_RING][parent], __ATOMIC_RELAXED);
}

/* One unit for an event of ours; false if the handle is none or there is no room. */
static inline __attribute__((always_inline)) void record_unit(uint64_t handle, uint8_t kind, uint32_t aux,
                                                              uint64_t arg, uint8_t flags,
                                                              enum ncclotf2_class class) {
  uint8_t *base = __atomic_load_n(&ncclotf2_fast.base, __ATOMIC_ACQUIRE);
  if (!handle || __builtin_expect(!base, 0)) return;
  const uint64_t ticks = ncclotf2_ticks();
  if (__builtin_expect(!ncclotf2_handle_is_ours(ncclotf2_fast.tag_bits, handle), 0)) {
    ncclotf2_count(&ncclotf2_header_at(base)->foreign);
    return;
  }
  const unsigned type = ncclotf2_handle_type(handle);
  unsigned loss;
  struct ncclotf2_record *record = ncclotf2_reserve(base, sizeof *record, class, ticks, &loss);
  if (__builtin_expect(!record, 0)) {
    if (loss == NCCLOTF2_LOSS_MEMORY) loss = NCCLOTF2_LOSS_STOP_MEMORY;
    ncclotf2_count(&ncclotf2_header_at(base)->lost[loss][type]);
    return;
  }
  *record = (struct ncclotf2_record){.ticks = ticks,
                                     .kind = kind,
                                     .type = (uint8_t)type,
                                     .units = 1,
                                     .flags = flags,
                                     .aux = aux,
                                     .handle = handle,
                                     .arg = arg};
  ncclotf2_commit(base, sizeof *record);
  ncclotf2_ticks_recorded(ticks);
}

ncclotf2_result ncclotf2_stop(void *eHandle) {
  record_unit(ncclotf2_value(eHandle), NCCLOTF2_RECORD_STOP, 0, 0, 0, NCCLOTF2_CLASS_STOP);
  return NCCLOTF2_SUCCESS;
}

ncclotf2_result ncclotf2_state(void *eHandle, int eState, union ncclotf2_state_args *eStateArgs) {
  if (!eHandle) return NCCLOTF2_SUCCESS;
  uint64_t arg = 0;
  uint8_t flags = 0;
  if (eStateArgs && (unsigned)eState < sizeof argument_of / sizeof *argument_of) {
    flags = NCCLOTF2_FLAG_HAS_ARG;
    switch (argument_of[eState]) {
      case TRANS_SIZE: arg = eStateArgs->proxyStep.transSize; break;
      case APPENDED_OPS: arg = (uint32_t)eStateArgs->proxyCtrl.appendedProxyOps; break;
      case GPU_TIMER: arg = eStateArgs->kernelCh.pTimer; break;
      default: flags = 0; break;
    }
  }
  /* The GPU's stop time is half of what a KernelCh event is for; it may use the stops' reserve. */
  if (eState == NCCLOTF2_STATE_KERNEL_CH_STOP)
    record_unit(ncclotf2_value(eHandle), NCCLOTF2_RECORD_STATE, (uint32_t)eState, arg, flags, NCCLOTF2_CLASS_STOP);
  else
    record_unit(ncclotf2_value(eHandle), NCCLOTF2_RECORD_STATE, (uint32_t)eState, arg, flags, NCCLOTF2_CLASS_START);
  return NCCLOTF2_SUCCESS;
}
