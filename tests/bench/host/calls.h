/* SPDX-License-Identifier: Apache-2.0
 *
 * What NCCL calls for one AllReduce (docs/nccl-profiler-api.md §3.2), in pieces: the calls of the application's
 * thread, those of the proxy thread for one transfer of several steps, and those for the channels of the
 * kernel. Each call goes through the plugin's table, with a descriptor on the stack, as NCCL's do.
 *
 * Every piece exists twice, compiled from one text: with the time of each single call written down, and
 * without.
 */
#ifndef BENCH_CALLS_H
#define BENCH_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "plugin/api_versions.h"
#include "timer.h"

/* NCCL's names of the states that come without a name in the plugin's headers. */
enum {
  STATE_STEP_SEND_WAIT = 9,
  STATE_STEP_RECV_WAIT = 10,
  STATE_STEP_RECV_FLUSH_WAIT = 11,
  STATE_OP_IN_PROGRESS = 19,
  STATE_GROUP_START_STOP = 23,
  STATE_GROUP_END_START = 24
};

/* Kinds of callbacks, to tell their times apart. */
enum call_kind { CALL_START, CALL_STOP, CALL_STATE, CALL_KINDS };

/* A thread that calls: its counts, and where it writes down times. */
struct caller {
  const struct ncclotf2_plugin_v6 *plugin;
  void *context;
  int rank, peer;
  uint64_t calls[CALL_KINDS]; /* that were made */
  uint64_t refused[NCCLOTF2_CE_BATCH + 1]; /* starts that got no handle, by type */
  uint32_t *samples; /* ticks of single calls; at least as much room as the piece has calls */
};

#define CALLS_INLINE static inline __attribute__((always_inline))

CALLS_INLINE void take_sample(struct caller *c, uint64_t ticks)
{
  *c->samples++ = ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX;
}

/* Returns the handle. What the slot held before is garbage, as in NCCL. */
CALLS_INLINE void *call_start(struct caller *c, struct ncclotf2_descr_v6 *d, unsigned type, void *parent, bool timed)
{
  void *handle = (void *)(uintptr_t)0xbadbadbadULL;
  d->type = 1u << type;
  d->parentObj = parent;
  if (timed) {
    uint64_t begin = timer_begin();
    c->plugin->startEvent(c->context, &handle, d);
    take_sample(c, timer_end() - begin);
  } else {
    c->plugin->startEvent(c->context, &handle, d);
  }
  c->calls[CALL_START]++;
  if (__builtin_expect(!handle, 0)) c->refused[type]++;
  return handle;
}

/* NCCL does not go on with an event that has no handle. While times are taken the calls are made all the same, for
 * each sample to be of the call that its place says. */
CALLS_INLINE void call_stop(struct caller *c, void *handle, bool timed)
{
  if (timed) {
    uint64_t begin = timer_begin();
    c->plugin->stopEvent(handle);
    take_sample(c, timer_end() - begin);
  } else {
    if (__builtin_expect(!handle, 0)) return;
    c->plugin->stopEvent(handle);
  }
  c->calls[CALL_STOP]++;
}

CALLS_INLINE void call_state(struct caller *c, void *handle, int state, union ncclotf2_state_args *args, bool timed)
{
  if (timed) {
    uint64_t begin = timer_begin();
    c->plugin->recordEventState(handle, state, args);
    take_sample(c, timer_end() - begin);
  } else {
    if (__builtin_expect(!handle, 0)) return;
    c->plugin->recordEventState(handle, state, args);
  }
  c->calls[CALL_STATE]++;
}

/* ---- the application's thread: one ncclAllReduce outside of groups ---- */

#define ALLREDUCE_CALLS 12
#define ALLREDUCE_COUNT (1u << 20) /* elements, float32 */
#define ALLREDUCE_STREAM ((void *)(uintptr_t)0x7000)

struct api_call {
  void *group, *coll; /* handles of GroupApi and CollApi */
};

/* The call's beginning, on the thread that calls. */
CALLS_INLINE struct api_call api_begin(struct caller *c, bool timed)
{
  struct ncclotf2_descr_v6 group, coll;
  struct api_call call;
  memset(&group, 0, sizeof group);
  group.groupApi.groupDepth = 1;
  call.group = call_start(c, &group, NCCLOTF2_GROUP_API, NULL, timed);
  call_state(c, call.group, STATE_GROUP_START_STOP, NULL, timed);
  memset(&coll, 0, sizeof coll);
  coll.collApi.func = "AllReduce";
  coll.collApi.count = ALLREDUCE_COUNT;
  coll.collApi.datatype = "ncclFloat32";
  coll.collApi.stream = ALLREDUCE_STREAM;
  call.coll = call_start(c, &coll, NCCLOTF2_COLL_API, call.group, timed);
  call_stop(c, call.coll, timed);
  call_state(c, call.group, STATE_GROUP_END_START, NULL, timed);
  return call;
}

CALLS_INLINE void api_end(struct caller *c, struct api_call call, bool timed) { call_stop(c, call.group, timed); }

/* The launch, on the same thread, or (of communicators that do not block) on one made for it. Returns the handle of
 * Coll, the parent of what the proxy thread does. */
CALLS_INLINE void *launch_calls(struct caller *c, struct api_call call, uint64_t sequence, unsigned channels, bool timed)
{
  static char buffer[1];
  struct ncclotf2_descr_v6 launch, group, coll;
  memset(&launch, 0, sizeof launch);
  launch.kernelLaunch.stream = ALLREDUCE_STREAM;
  void *launch_handle = call_start(c, &launch, NCCLOTF2_KERNEL_LAUNCH, call.group, timed);
  call_stop(c, launch_handle, timed);

  memset(&group, 0, sizeof group);
  void *group_handle = call_start(c, &group, NCCLOTF2_GROUP, NULL, timed);
  memset(&coll, 0, sizeof coll);
  coll.rank = c->rank;
  coll.coll.seqNumber = sequence;
  coll.coll.func = "AllReduce";
  coll.coll.sendBuff = coll.coll.recvBuff = buffer;
  coll.coll.count = ALLREDUCE_COUNT;
  coll.coll.datatype = "ncclFloat32";
  coll.coll.nChannels = (uint8_t)channels;
  coll.coll.nWarps = 16;
  coll.coll.algo = "RING";
  coll.coll.proto = "SIMPLE";
  coll.coll.parentGroup = group_handle;
  void *coll_handle = call_start(c, &coll, NCCLOTF2_COLL, call.coll, timed);
  call_stop(c, coll_handle, timed);
  call_stop(c, group_handle, timed);
  return coll_handle;
}

CALLS_INLINE void *allreduce_calls(struct caller *c, uint64_t sequence, unsigned channels, bool timed)
{
  const struct api_call call = api_begin(c, timed);
  void *coll = launch_calls(c, call, sequence, channels, timed);
  api_end(c, call, timed);
  return coll;
}

/* ---- the proxy thread: one ProxyOp ---- */

#define STEP_CALLS 5
#define TRANSFER_CALLS(steps) (3 + STEP_CALLS * (steps))
#define STEP_BYTES (512u << 10)

CALLS_INLINE void transfer_calls(struct caller *c, void *coll, unsigned channel, bool send, unsigned steps, int pid,
                                 bool timed)
{
  struct ncclotf2_descr_v6 op, step;
  union ncclotf2_state_args args = {.proxyStep = {0}};
  memset(&op, 0, sizeof op);
  op.rank = c->rank;
  op.proxyOp.pid = pid;
  op.proxyOp.channelId = (uint8_t)channel;
  op.proxyOp.peer = c->peer;
  op.proxyOp.nSteps = (int)steps;
  op.proxyOp.chunkSize = STEP_BYTES;
  op.proxyOp.isSend = send;
  void *op_handle = call_start(c, &op, NCCLOTF2_PROXY_OP, coll, timed);
  call_state(c, op_handle, STATE_OP_IN_PROGRESS, &args, timed);
  for (unsigned i = 0; i < steps; i++) {
    memset(&step, 0, sizeof step);
    step.rank = c->rank;
    step.proxyStep.step = (int)i;
    void *handle = call_start(c, &step, NCCLOTF2_PROXY_STEP, op_handle, timed);
    call_state(c, handle, send ? NCCLOTF2_STATE_STEP_SEND_GPU_WAIT : STATE_STEP_RECV_WAIT, &args, timed);
    if (!send) args.proxyStep.transSize = STEP_BYTES;
    call_state(c, handle, send ? NCCLOTF2_STATE_STEP_SEND_PEER_WAIT : STATE_STEP_RECV_FLUSH_WAIT, &args, timed);
    args.proxyStep.transSize = STEP_BYTES;
    call_state(c, handle, send ? STATE_STEP_SEND_WAIT : NCCLOTF2_STATE_STEP_RECV_GPU_WAIT, &args, timed);
    call_stop(c, handle, timed);
  }
  call_stop(c, op_handle, timed);
}

/* ---- the proxy thread: the channels of a kernel ---- */

#define CHANNEL_CALLS 3

/* Times are of the GPU's clock, ns. */
CALLS_INLINE void *channel_start(struct caller *c, void *coll, unsigned channel, uint64_t at, bool timed)
{
  struct ncclotf2_descr_v6 kernel;
  memset(&kernel, 0, sizeof kernel);
  kernel.kernelCh.channelId = (uint8_t)channel;
  kernel.kernelCh.pTimer = at;
  return call_start(c, &kernel, NCCLOTF2_KERNEL_CH, coll, timed);
}

CALLS_INLINE void channel_stop(struct caller *c, void *handle, uint64_t at, bool timed)
{
  union ncclotf2_state_args args = {.kernelCh = {at}};
  call_state(c, handle, NCCLOTF2_STATE_KERNEL_CH_STOP, &args, timed);
  call_stop(c, handle, timed);
}

#endif
