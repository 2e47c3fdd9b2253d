/* SPDX-License-Identifier: Apache-2.0 */
/* Code generated from plugin/api/generate/table.go by make generate; DO NOT EDIT. */
/* Records of kind START, by type: see shm.h. Names are string ids. Types without members are the bare head. */
#ifndef NCCLOTF2_API_RECORDS_H
#define NCCLOTF2_API_RECORDS_H

struct ncclotf2_coll { /* one collective of a plan: 4 units */
  struct ncclotf2_record head;
  uint64_t seq, send_buff, recv_buff, count, parent_group, user_tag; uint32_t func; int32_t root;
  uint32_t datatype, algo, proto, kernel_variant; int32_t rank; uint8_t nchannels, nwarps; uint8_t pad[18];
};
struct ncclotf2_p2p { /* one send or receive of a plan: 3 units */
  struct ncclotf2_record head;
  uint64_t send_buff, count, parent_group, user_tag; uint32_t func, datatype; int32_t peer, rank; uint8_t nchannels;
  uint8_t pad[15];
};
struct ncclotf2_proxy_op { /* one channel's network transfers of an operation, in one direction: 2 units */
  struct ncclotf2_record head;
  uint64_t context; int32_t pid, peer, nsteps, chunk_size, rank; uint8_t channel; uint8_t pad[3];
};
struct ncclotf2_proxy_step { /* one network transfer: 2 units */
  struct ncclotf2_record head;
  uint64_t context; int32_t step, rank; uint8_t pad[16];
};
struct ncclotf2_kernel_ch { /* one channel of a kernel on the GPU: 2 units */
  struct ncclotf2_record head;
  uint64_t ptimer; uint8_t channel; uint8_t pad[23];
};
struct ncclotf2_net_plugin { /* what a network plugin reports under a ProxyStep: 3 units */
  struct ncclotf2_record head;
  uint64_t context; int64_t net_id; uint64_t data, length, wr_id; int32_t device_or_fd, opcode, qp, rank;
  uint8_t pad[8];
};
struct ncclotf2_group_api { /* an outermost group, or a call outside any: 2 units */
  struct ncclotf2_record head;
  int32_t group_depth; uint8_t pad[28];
};
struct ncclotf2_coll_api { /* the call of a collective: 3 units */
  struct ncclotf2_record head;
  uint64_t count, stream, user_tag; uint32_t func, datatype; int32_t root; uint8_t pad[28];
};
struct ncclotf2_kernel_launch { /* the launch of a plan's kernel: 2 units */
  struct ncclotf2_record head;
  uint64_t stream; uint8_t pad[24];
};
struct ncclotf2_ce_coll { /* a collective by copy engine: 4 units */
  struct ncclotf2_record head;
  uint64_t seq, send_buff, recv_buff, count, stream, user_tag; uint32_t func; int32_t root;
  uint32_t datatype, sync_strategy, batch_size, num_batches, ce_seq; int32_t rank; uint8_t pad[16];
};
struct ncclotf2_ce_sync { /* a synchronization of a CeColl: 2 units */
  struct ncclotf2_record head;
  int32_t nranks, rank; uint8_t pad[24];
};
struct ncclotf2_ce_batch { /* a batch of copies of a CeColl: 2 units */
  struct ncclotf2_record head;
  uint64_t bytes; int32_t num_ops, rank; uint8_t pad[16];
};
struct ncclotf2_kernel_phase { /* a part of a KernelCh: 2 units */
  struct ncclotf2_record head;
  uint64_t ptimer; uint32_t phase_name; uint8_t channel, phase; uint8_t pad[18];
};

#endif
