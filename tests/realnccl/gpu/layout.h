/* SPDX-License-Identifier: Apache-2.0 */
/* Minimal declarations of the device-visible structures that the NCCL host
 * library hands to its kernels, written down from observation of the ABI of
 * NCCL 2.28 to 2.30 (checked by size at start, see emu.c).  Only the fields the
 * emulator touches have meaningful names; the rest is padding. */
#ifndef REALNCCL_LAYOUT_H
#define REALNCCL_LAYOUT_H
#include <stdint.h>
#include <stddef.h>
#include <sys/types.h>

#ifndef RN_LAYOUT
#define RN_LAYOUT 29          /* minor version of the NCCL 2 release: 28, 29, 30 */
#endif
#define RN_STEPS 8            /* slots of a connection's FIFO                */
#define RN_MAXCH 64           /* channels                                    */
#define RN_PROF_RING 64       /* per-channel ring of profiler time stamps    */
enum { RN_LL = 0, RN_LL128 = 1, RN_SIMPLE = 2, RN_NPROTO = 3 };

struct rn_fifo {              /* GPU <-> proxy mailbox, one per step slot    */
  int32_t mode;               /* 1: data at .offset from the buffer start    */
  int32_t offset;
  int64_t size;               /* bytes in this slot, -1: empty               */
  void *ptr;
};

struct rn_conn {
  char *buffs[RN_NPROTO];
  void *mhandles[RN_NPROTO];
  uint64_t *tail;
  uint64_t *head;
  int32_t flags;
  int32_t shared;
  int32_t step_bytes;
  void **ptr_exchange;
  uint64_t *redop_exchange;
  struct rn_fifo *fifo;
  uint64_t step;
  uint64_t ll_last_clean;
  struct { int32_t type, version; void *handle; size_t size; int32_t needs; } netdev;
};

struct rn_peer { struct rn_conn send[2], recv[2]; };

struct rn_tree { int32_t depth, up, down[3]; };

struct rn_channel {           /* 16-byte aligned in the library              */
  struct rn_peer **peers;
  struct { int32_t prev, next; int32_t *user_ranks;
#if RN_LAYOUT >= 29 /* 2.28 lacks this pointer */
    int32_t *rank_to_index;
#endif
    int32_t index; } ring;
  struct rn_tree tree, chain;
  struct { int32_t v[5 + 8 + 7 + 7]; } direct;
  struct { int32_t v[3 + 32 + 1 + 1 + 3]; } nvls;
  uint32_t *fifo_done;
  uint64_t work_counter;
} __attribute__((aligned(16)));

struct rn_prof { struct { uint64_t counter, timestamp; } slot[RN_PROF_RING]; };

struct rn_comm {
  int32_t rank, nranks, node, nnodes;
  int32_t buff_sizes[RN_NPROTO];
  int32_t p2p_chunk;
  int32_t all_nvlink;
  int32_t *dense_to_user;
  volatile uint32_t *abort_flag;
  struct rn_channel *channels;
  int32_t *rank_to_local;
  struct rn_prof *started, *completed;
};

struct rn_args {              /* kernel parameter block, batches follow      */
  struct rn_comm *comm;
  uint64_t channel_mask;
  uint8_t storage;            /* 0: works inside this block, else in fifo    */
  uint32_t work_mask;
  void *work_buf;
} __attribute__((aligned(16)));

struct rn_batch {
  uint32_t next_jump : 14, next_extends : 1, type : 2, func : 15;
  uint32_t offset_base;
  uint64_t offset_bits;
} __attribute__((aligned(16)));

enum { RN_W_P2P = 0, RN_W_COLL = 1, RN_W_COLLREG = 2, RN_W_BCAST = 3 };

struct rn_p2p {
  char *send_addr, *recv_addr;
  size_t send_bytes, recv_bytes;
  int32_t send_rank, recv_rank;
  uint8_t n_p2p_channels, channel_base, n_send_ch, n_recv_ch;
  uint8_t send_chunk8, recv_chunk8;
  uint8_t send_ll : 1, recv_ll : 1, send_netreg : 1, recv_netreg : 1,
          send_ipcreg : 1, recv_ipcreg : 1, prof : 1;
} __attribute__((aligned(16)));

struct rn_coll {
  uint32_t ch_lo : 8, ch_hi : 8, nwarps : 8;
  uint32_t arg_is_ptr : 1, reg_used : 1, netreg_used : 1, one_node : 1, direct : 2, one_rpn : 1;
  uint32_t prof : 1;
  uint32_t root;
#if RN_LAYOUT >= 30 /* 2.30 pads the parts of this struct to 16 bytes */
  uint8_t pad1[12];
#endif
  char *recvbuff, *sendbuff;
#if RN_LAYOUT >= 30
  uint64_t pad0;
#endif
  uintptr_t send_off, recv_off;
  uintptr_t *send_rmt, *recv_rmt;
  size_t cnt_lo, cnt_mid, cnt_hi;
  uint64_t grains_lo : 21, grains_mid : 21, grains_hi : 21;
  uint64_t redop_arg;
} __attribute__((aligned(16)));

struct rn_bcast {
  int32_t depth, chunk;
  char *sendbuff, *recvbuff;
  size_t bytes, done;
  uint8_t pad[8];
} __attribute__((aligned(16)));

/* a "collreg" work is a coll work followed by three arrays of eight pointers */
#define RN_COLLREG_SIZE (sizeof(struct rn_coll) + 3 * 8 * sizeof(void *))

#endif
