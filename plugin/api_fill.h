/* SPDX-License-Identifier: Apache-2.0 */
/* Code generated from plugin/api/generate/table.go by make generate; DO NOT EDIT. */
/* Descriptors as records: see event.h, which includes this and has what is used here. */
#ifndef NCCLOTF2_API_FILL_H
#define NCCLOTF2_API_FILL_H

/* Which chunks a record of a type may go to: when memory runs out, what says least goes first. */
static const uint8_t ncclotf2_class_of[NCCLOTF2_TYPES] = {
    [NCCLOTF2_GROUP] = NCCLOTF2_CLASS_OPERATION,
    [NCCLOTF2_COLL] = NCCLOTF2_CLASS_OPERATION,
    [NCCLOTF2_P2P] = NCCLOTF2_CLASS_OPERATION,
    [NCCLOTF2_PROXY_OP] = NCCLOTF2_CLASS_CHANNEL,
    [NCCLOTF2_PROXY_STEP] = NCCLOTF2_CLASS_STEP,
    [NCCLOTF2_PROXY_CTRL] = NCCLOTF2_CLASS_CONTROL,
    [NCCLOTF2_KERNEL_CH] = NCCLOTF2_CLASS_CHANNEL,
    [NCCLOTF2_NET_PLUGIN] = NCCLOTF2_CLASS_STEP,
    [NCCLOTF2_GROUP_API] = NCCLOTF2_CLASS_OPERATION,
    [NCCLOTF2_COLL_API] = NCCLOTF2_CLASS_OPERATION,
    [NCCLOTF2_P2P_API] = NCCLOTF2_CLASS_OPERATION,
    [NCCLOTF2_KERNEL_LAUNCH] = NCCLOTF2_CLASS_OPERATION,
    [NCCLOTF2_CE_COLL] = NCCLOTF2_CLASS_OPERATION,
    [NCCLOTF2_CE_SYNC] = NCCLOTF2_CLASS_CHANNEL,
    [NCCLOTF2_CE_BATCH] = NCCLOTF2_CLASS_CHANNEL,
    [NCCLOTF2_KERNEL_PHASE] = NCCLOTF2_CLASS_CHANNEL,
};

/* Records by type: their size in bytes. */
static const uint8_t ncclotf2_start_bytes[NCCLOTF2_TYPES] = {
    [NCCLOTF2_GROUP] = sizeof(struct ncclotf2_record),
    [NCCLOTF2_COLL] = sizeof(struct ncclotf2_coll),
    [NCCLOTF2_P2P] = sizeof(struct ncclotf2_p2p),
    [NCCLOTF2_PROXY_OP] = sizeof(struct ncclotf2_proxy_op),
    [NCCLOTF2_PROXY_STEP] = sizeof(struct ncclotf2_proxy_step),
    [NCCLOTF2_PROXY_CTRL] = sizeof(struct ncclotf2_record),
    [NCCLOTF2_KERNEL_CH] = sizeof(struct ncclotf2_kernel_ch),
    [NCCLOTF2_NET_PLUGIN] = sizeof(struct ncclotf2_net_plugin),
    [NCCLOTF2_GROUP_API] = sizeof(struct ncclotf2_group_api),
    [NCCLOTF2_COLL_API] = sizeof(struct ncclotf2_coll_api),
    [NCCLOTF2_P2P_API] = sizeof(struct ncclotf2_coll_api),
    [NCCLOTF2_KERNEL_LAUNCH] = sizeof(struct ncclotf2_kernel_launch),
    [NCCLOTF2_CE_COLL] = sizeof(struct ncclotf2_ce_coll),
    [NCCLOTF2_CE_SYNC] = sizeof(struct ncclotf2_ce_sync),
    [NCCLOTF2_CE_BATCH] = sizeof(struct ncclotf2_ce_batch),
    [NCCLOTF2_KERNEL_PHASE] = sizeof(struct ncclotf2_kernel_phase),
};

/* What a state's argument holds from version 4 on, by the value of the state. */
enum ncclotf2_argument { NCCLOTF2_ARGUMENT_NONE, NCCLOTF2_ARGUMENT_TRANS_SIZE, NCCLOTF2_ARGUMENT_APPENDED_OPS,
                         NCCLOTF2_ARGUMENT_NET_DATA, NCCLOTF2_ARGUMENT_GPU_TIMER };
static const uint8_t ncclotf2_argument_of[NCCLOTF2_STATES] = {
    [NCCLOTF2_STATE_STEP_SEND_GPU_WAIT] = NCCLOTF2_ARGUMENT_TRANS_SIZE,
    [NCCLOTF2_STATE_STEP_SEND_WAIT] = NCCLOTF2_ARGUMENT_TRANS_SIZE,
    [NCCLOTF2_STATE_STEP_RECV_WAIT] = NCCLOTF2_ARGUMENT_TRANS_SIZE,
    [NCCLOTF2_STATE_STEP_RECV_FLUSH_WAIT] = NCCLOTF2_ARGUMENT_TRANS_SIZE,
    [NCCLOTF2_STATE_STEP_RECV_GPU_WAIT] = NCCLOTF2_ARGUMENT_TRANS_SIZE,
    [NCCLOTF2_STATE_CTRL_IDLE] = NCCLOTF2_ARGUMENT_APPENDED_OPS,
    [NCCLOTF2_STATE_CTRL_ACTIVE] = NCCLOTF2_ARGUMENT_APPENDED_OPS,
    [NCCLOTF2_STATE_CTRL_SLEEP] = NCCLOTF2_ARGUMENT_APPENDED_OPS,
    [NCCLOTF2_STATE_CTRL_WAKEUP] = NCCLOTF2_ARGUMENT_APPENDED_OPS,
    [NCCLOTF2_STATE_CTRL_APPEND] = NCCLOTF2_ARGUMENT_APPENDED_OPS,
    [NCCLOTF2_STATE_CTRL_APPEND_END] = NCCLOTF2_ARGUMENT_APPENDED_OPS,
    [NCCLOTF2_STATE_STEP_SEND_PEER_WAIT] = NCCLOTF2_ARGUMENT_TRANS_SIZE,
    [NCCLOTF2_STATE_NET_PLUGIN_UPDATE] = NCCLOTF2_ARGUMENT_NET_DATA,
    [NCCLOTF2_STATE_KERNEL_CH_STOP] = NCCLOTF2_ARGUMENT_GPU_TIMER,
    [NCCLOTF2_STATE_KERNEL_PHASE_STOP] = NCCLOTF2_ARGUMENT_GPU_TIMER,
};

/* Writes the whole record, padding too: chunks are used again and keep their old bytes. The rank is copied only where
 * NCCL sets it; members that the version lacks are not read. */
static inline __attribute__((always_inline)) void ncclotf2_fill(void *at, struct ncclotf2_record head, void *context,
                                                                const ncclotf2_descr *d, unsigned version) {
  struct ncclotf2_ring *ring = ncclotf2_ring;
  switch (head.type) {
    case NCCLOTF2_GROUP:
      *(struct ncclotf2_record *)at = head;
      break;
    case NCCLOTF2_COLL:
      head.flags = (uint8_t)((version >= 7 && d->coll.isSymColl ? NCCLOTF2_FLAG_SYM : 0) | (version <= 3 ? NCCLOTF2_FLAG_NO_CHANNELS : 0));
      *(struct ncclotf2_coll *)at = (struct ncclotf2_coll){
          .head = head, .seq = d->coll.seqNumber, .send_buff = ncclotf2_value(d->coll.sendBuff),
          .recv_buff = ncclotf2_value(d->coll.recvBuff), .count = d->coll.count,
          .parent_group = version >= 5 ? ncclotf2_value(d->coll.parentGroup) : head.arg,
          .user_tag = version >= 7 ? d->coll.userTag : 0, .func = ncclotf2_intern(ring, d->coll.func),
          .root = d->coll.root, .datatype = ncclotf2_intern(ring, d->coll.datatype),
          .algo = ncclotf2_intern(ring, d->coll.algo), .proto = ncclotf2_intern(ring, d->coll.proto),
          .kernel_variant = version >= 7 ? ncclotf2_intern(ring, d->coll.kernelVariant) : 0, .rank = d->rank,
          .nchannels = d->coll.nChannels, .nwarps = d->coll.nWarps};
      break;
    case NCCLOTF2_P2P:
      head.flags = version <= 4 ? NCCLOTF2_FLAG_NO_CHANNELS : 0;
      *(struct ncclotf2_p2p *)at = (struct ncclotf2_p2p){
          .head = head, .send_buff = ncclotf2_value(d->p2p.buff), .count = d->p2p.count,
          .parent_group = version >= 5 ? ncclotf2_value(d->p2p.parentGroup) : head.arg,
          .user_tag = version >= 7 ? d->p2p.userTag : 0, .func = ncclotf2_intern(ring, d->p2p.func),
          .datatype = ncclotf2_intern(ring, d->p2p.datatype), .peer = d->p2p.peer, .rank = d->rank,
          .nchannels = version >= 5 ? d->p2p.nChannels : 0};
      break;
    case NCCLOTF2_PROXY_OP:
      head.flags = d->proxyOp.isSend ? NCCLOTF2_FLAG_SEND : 0;
      *(struct ncclotf2_proxy_op *)at = (struct ncclotf2_proxy_op){
          .head = head, .context = ncclotf2_value(context), .pid = d->proxyOp.pid, .peer = d->proxyOp.peer,
          .nsteps = d->proxyOp.nSteps, .chunk_size = d->proxyOp.chunkSize, .rank = d->rank,
          .channel = d->proxyOp.channelId};
      break;
    case NCCLOTF2_PROXY_STEP:
      *(struct ncclotf2_proxy_step *)at = (struct ncclotf2_proxy_step){
          .head = head, .context = ncclotf2_value(context), .step = d->proxyStep.step, .rank = d->rank};
      break;
    case NCCLOTF2_PROXY_CTRL:
      *(struct ncclotf2_record *)at = head;
      break;
    case NCCLOTF2_KERNEL_CH:
      *(struct ncclotf2_kernel_ch *)at = (struct ncclotf2_kernel_ch){
          .head = head, .ptimer = version >= 4 ? d->kernelCh.pTimer : 0, .channel = d->kernelCh.channelId};
      break;
    case NCCLOTF2_NET_PLUGIN:
      *(struct ncclotf2_net_plugin *)at = (struct ncclotf2_net_plugin){
          .head = head, .context = ncclotf2_value(context), .net_id = d->netPlugin.id,
          .data = ncclotf2_value(d->netPlugin.data), .rank = d->rank};
      ncclotf2_fill_net(at, d);
      break;
    case NCCLOTF2_GROUP_API:
      head.flags = d->groupApi.graphCaptured ? NCCLOTF2_FLAG_GRAPH : 0;
      *(struct ncclotf2_group_api *)at = (struct ncclotf2_group_api){
          .head = head, .group_depth = d->groupApi.groupDepth};
      break;
    case NCCLOTF2_COLL_API:
      head.flags = d->collApi.graphCaptured ? NCCLOTF2_FLAG_GRAPH : 0;
      *(struct ncclotf2_coll_api *)at = (struct ncclotf2_coll_api){
          .head = head, .count = d->collApi.count, .stream = ncclotf2_value(d->collApi.stream),
          .user_tag = version >= 7 ? d->collApi.userTag : 0, .func = ncclotf2_intern(ring, d->collApi.func),
          .datatype = ncclotf2_intern(ring, d->collApi.datatype), .root = d->collApi.root};
      break;
    case NCCLOTF2_P2P_API:
      head.flags = d->p2pApi.graphCaptured ? NCCLOTF2_FLAG_GRAPH : 0;
      *(struct ncclotf2_coll_api *)at = (struct ncclotf2_coll_api){
          .head = head, .count = d->p2pApi.count, .stream = ncclotf2_value(d->p2pApi.stream),
          .user_tag = version >= 7 ? d->p2pApi.userTag : 0, .func = ncclotf2_intern(ring, d->p2pApi.func),
          .datatype = ncclotf2_intern(ring, d->p2pApi.datatype), .root = -1};
      break;
    case NCCLOTF2_KERNEL_LAUNCH:
      *(struct ncclotf2_kernel_launch *)at = (struct ncclotf2_kernel_launch){
          .head = head, .stream = ncclotf2_value(d->kernelLaunch.stream)};
      ncclotf2_launch_filled(at, d);
      break;
    case NCCLOTF2_CE_COLL:
      head.flags = d->ceColl.intraBatchSync ? NCCLOTF2_FLAG_COMPLETE : 0;
      *(struct ncclotf2_ce_coll *)at = (struct ncclotf2_ce_coll){
          .head = head, .seq = d->ceColl.seqNumber, .send_buff = ncclotf2_value(d->ceColl.sendBuff),
          .recv_buff = ncclotf2_value(d->ceColl.recvBuff), .count = d->ceColl.count,
          .stream = ncclotf2_value(d->ceColl.stream), .user_tag = version >= 7 ? d->ceColl.userTag : 0,
          .func = ncclotf2_intern(ring, d->ceColl.func), .root = d->ceColl.root,
          .datatype = ncclotf2_intern(ring, d->ceColl.datatype),
          .sync_strategy = ncclotf2_intern(ring, d->ceColl.syncStrategy), .batch_size = d->ceColl.batchSize,
          .num_batches = d->ceColl.numBatches, .ce_seq = d->ceColl.ceSeqNum, .rank = d->rank};
      break;
    case NCCLOTF2_CE_SYNC:
      head.flags = d->ceCollSync.isComplete ? NCCLOTF2_FLAG_COMPLETE : 0;
      *(struct ncclotf2_ce_sync *)at = (struct ncclotf2_ce_sync){
          .head = head, .nranks = d->ceCollSync.nRanks, .rank = d->rank};
      break;
    case NCCLOTF2_CE_BATCH:
      head.flags = d->ceCollBatch.useIntraSync ? NCCLOTF2_FLAG_COMPLETE : 0;
      *(struct ncclotf2_ce_batch *)at = (struct ncclotf2_ce_batch){
          .head = head, .bytes = d->ceCollBatch.totalBytes, .num_ops = d->ceCollBatch.numOps, .rank = d->rank};
      break;
    case NCCLOTF2_KERNEL_PHASE:
      *(struct ncclotf2_kernel_phase *)at = (struct ncclotf2_kernel_phase){
          .head = head, .ptimer = d->kernelPhase.pTimer, .phase_name = ncclotf2_intern(ring, d->kernelPhase.phaseName),
          .channel = d->kernelPhase.channelId, .phase = d->kernelPhase.phaseId};
      break;
  }
}

#endif
