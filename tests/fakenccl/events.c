/* SPDX-License-Identifier: Apache-2.0 */
#include "events.h"

#define BIT(t) TYPE_BIT(t)
#define CE (BIT(CE_COLL) | BIT(CE_SYNC) | BIT(CE_BATCH))
#define PROXY (BIT(PROXY_OP) | BIT(PROXY_STEP) | BIT(NET_PLUGIN))
#define TASK (PROXY | BIT(KERNEL_CH))

#define F(type, name, kind) { #name, FIELD_##kind },

/* Implied starts: NCCL 2.28–2.30, src/misc/profiler.cc and src/plugin/profiler.cc, one condition
 * per start function; older releases have the same for the types that they have. */
const struct event_info event_info[TYPE_COUNT] = {
  [TYPE_GROUP] = { .name = "Group", .implied_by = BIT(GROUP) | BIT(COLL) | BIT(P2P) | TASK },
  [TYPE_COLL] = { .name = "Coll", .implied_by = BIT(COLL) | TASK, .needed_parent = true, .fields = { COLL_FIELDS(F) } },
  [TYPE_P2P] = { .name = "P2p", .implied_by = BIT(P2P) | TASK, .needed_parent = true, .fields = { P2P_FIELDS(F) } },
  [TYPE_PROXY_OP] = { .name = "ProxyOp", .implied_by = PROXY, .fields = { PROXY_OP_FIELDS(F) } },
  [TYPE_PROXY_STEP] = { .name = "ProxyStep", .implied_by = BIT(PROXY_STEP) | BIT(NET_PLUGIN), .needed_parent = true, .fields = {
    PROXY_STEP_FIELDS(F) } },
  [TYPE_PROXY_CTRL] = { .name = "ProxyCtrl", .implied_by = BIT(PROXY_CTRL) },
  [TYPE_KERNEL_CH] = { .name = "KernelCh", .implied_by = BIT(KERNEL_CH), .fields = { KERNEL_CH_FIELDS(F) } },
  [TYPE_NET_PLUGIN] = { .name = "NetPlugin", .implied_by = BIT(NET_PLUGIN), .called_on_null = true, .fields = { NET_PLUGIN_FIELDS(F) } },
  [TYPE_GROUP_API] = { .name = "GroupApi",
    .implied_by = BIT(GROUP_API) | BIT(P2P_API) | BIT(COLL_API) | BIT(KERNEL_LAUNCH) | BIT(GROUP) | BIT(COLL) |
                  BIT(P2P) | TASK | CE, .fields = { GROUP_API_FIELDS(F) } },
  [TYPE_COLL_API] = { .name = "CollApi", .implied_by = BIT(COLL_API) | BIT(COLL) | TASK | CE, .stale_slot = true, .fields = {
    COLL_API_FIELDS(F) } },
  [TYPE_P2P_API] = { .name = "P2pApi", .implied_by = BIT(P2P_API) | BIT(P2P) | TASK, .fields = { P2P_API_FIELDS(F) } },
  [TYPE_KERNEL_LAUNCH] = { .name = "KernelLaunch", .implied_by = BIT(KERNEL_LAUNCH), .fields = { KERNEL_LAUNCH_FIELDS(F) } },
  [TYPE_CE_COLL] = { .name = "CeColl", .implied_by = CE, .fields = { CE_COLL_FIELDS(F) } },
  [TYPE_CE_SYNC] = { .name = "CeSync", .implied_by = BIT(CE_SYNC), .needs_parent = true, .fields = { CE_SYNC_FIELDS(F) } },
  [TYPE_CE_BATCH] = { .name = "CeBatch", .implied_by = BIT(CE_BATCH), .needs_parent = true, .fields = { CE_BATCH_FIELDS(F) } },
  [TYPE_KERNEL_PHASE] = { .name = "KernelPhase", .implied_by = BIT(KERNEL_PHASE), .fields = { KERNEL_PHASE_FIELDS(F) } },
  [TYPE_PROXY_DIAG] = { .name = "ProxyDiag", .implied_by = PROXY_DIAG_BIT },
  [TYPE_OTHER] = { .name = "?", .fields = { OTHER_FIELDS(F) } },
};

const char *const state_names[STATE_COUNT + 1] = {
  "ProxyOpSendPosted", "ProxyOpSendRemFifoWait", "ProxyOpSendTransmitted", "ProxyOpSendDone",
  "ProxyOpRecvPosted", "ProxyOpRecvReceived", "ProxyOpRecvTransmitted", "ProxyOpRecvDone",
  "ProxyStepSendGPUWait", "ProxyStepSendWait", "ProxyStepRecvWait", "ProxyStepRecvFlushWait",
  "ProxyStepRecvGPUWait", "ProxyCtrlIdle", "ProxyCtrlActive", "ProxyCtrlSleep", "ProxyCtrlWakeup",
  "ProxyCtrlAppend", "ProxyCtrlAppendEnd", "ProxyOpInProgress", "ProxyStepSendPeerWait",
  "NetPluginUpdate", "KernelChStop", "GroupStartApiStop", "GroupEndApiStart", "CeCollStart",
  "CeCollComplete", "CeSyncStart", "CeSyncComplete", "CeBatchStart", "CeBatchComplete", "KernelPhaseStop", "?",
};
