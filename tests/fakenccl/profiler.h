/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL's profiler plugin interface, versions 5 and 6, as this host calls it and as the recording
 * plugin beside it receives it. Written down from the published layouts (x86-64 Linux, LP64) on its
 * own, not shared with the product's plugin: two independent spellings check each other. The offsets
 * asserted at the end are those that the compiler gives for NCCL's headers profiler_v5.h, profiler_v6.h.
 *
 * Version 6 adds the copy-engine members to the union and changes nothing else, so one set of
 * structs serves both.
 */
#ifndef FAKENCCL_PROFILER_H
#define FAKENCCL_PROFILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nccl_result { NCCL_SUCCESS = 0 };

/* Levels of NCCL's debug log. */
enum nccl_log_level { NCCL_LOG_NONE, NCCL_LOG_VERSION, NCCL_LOG_WARN, NCCL_LOG_INFO, NCCL_LOG_ABORT, NCCL_LOG_TRACE };

typedef void (*nccl_logger)(int level, unsigned long flags, const char *file, int line, const char *fmt, ...);

/* Event types are bits of the activation mask; these are their numbers. */
enum event_type {
  TYPE_GROUP, TYPE_COLL, TYPE_P2P, TYPE_PROXY_OP, TYPE_PROXY_STEP, TYPE_PROXY_CTRL, TYPE_KERNEL_CH,
  TYPE_NET_PLUGIN, TYPE_GROUP_API, TYPE_COLL_API, TYPE_P2P_API, TYPE_KERNEL_LAUNCH, TYPE_CE_COLL,
  TYPE_CE_SYNC, TYPE_CE_BATCH, TYPE_COUNT
};

/* State values run from 0 to 30 in version 6. */
#define STATE_COUNT 31

struct profiler_descr {
  uint64_t type; /* one bit */
  void *parent;
  int rank;
  union {
    struct { bool captured; int depth; } group_api;
    struct { const char *func; size_t count; const char *datatype; int root; void *stream; bool captured; } coll_api;
    struct { const char *func; size_t count; const char *datatype; void *stream; bool captured; } p2p_api;
    struct { void *stream; } kernel_launch;
    struct {
      uint64_t seq;
      const char *func;
      const void *send;
      void *recv;
      size_t count;
      int root;
      const char *datatype;
      uint8_t channels, warps;
      const char *algo, *proto;
      void *group;
    } coll;
    struct { const char *func; void *buff; const char *datatype; size_t count; int peer; uint8_t channels; void *group; } p2p;
    struct { int pid; uint8_t channel; int peer, steps, chunk, send; } proxy_op;
    struct { int step; } proxy_step;
    struct { uint8_t channel; uint64_t ptimer; } kernel_ch;
    struct { int64_t id; void *data; } net_plugin;
    struct {
      uint64_t seq;
      const char *func;
      const void *send;
      void *recv;
      size_t count;
      int root;
      const char *datatype, *strategy;
      bool intra_batch;
      uint32_t batch_size, batches, ce_seq;
      void *stream;
    } ce_coll;
    struct { bool complete; int ranks; } ce_sync;
    struct { int ops; size_t bytes; bool intra; } ce_batch;
  };
};

union profiler_args {
  struct { size_t trans_size; } proxy_step;
  struct { int appended; } proxy_ctrl;
  struct { void *data; } net_plugin;
  struct { uint64_t ptimer; } kernel_ch;
};

/* What netPlugin.data points to when netPlugin.id is that of NCCL's socket transport. */
#define NET_PLUGIN_SOCKET 0x20001
struct net_socket {
  uint8_t type; /* 1 */
  union {
    struct { int fd, op; size_t length; }; /* op: 0 send, 1 receive */
  };
};

/* What netPlugin.data points to when netPlugin.id is that of NCCL's InfiniBand transport. */
#define NET_PLUGIN_IB 0x10001

struct profiler_vtable {
  const char *name;
  int (*init)(void **context, uint64_t comm_id, int *mask, const char *comm_name, int nnodes, int nranks,
              int rank, nccl_logger log);
  int (*start)(void *context, void **handle, struct profiler_descr *descr);
  int (*stop)(void *handle);
  int (*state)(void *handle, int state, union profiler_args *args);
  int (*finalize)(void *context);
};

#define AT(member, offset) \
  _Static_assert(offsetof(struct profiler_descr, member) == (offset), "offset of " #member)
_Static_assert(sizeof(struct profiler_vtable) == 48, "size of the plugin struct");
_Static_assert(sizeof(struct profiler_descr) == 112, "size of the descriptor");
_Static_assert(sizeof(union profiler_args) == 8, "size of the state arguments");
_Static_assert(sizeof(struct net_socket) == 24, "size of the socket descriptor");
_Static_assert(offsetof(struct net_socket, fd) == 8 && offsetof(struct net_socket, op) == 12 &&
               offsetof(struct net_socket, length) == 16, "socket descriptor");
AT(type, 0); AT(parent, 8); AT(rank, 16);
AT(group_api.captured, 24); AT(group_api.depth, 28);
AT(coll_api.func, 24); AT(coll_api.count, 32); AT(coll_api.datatype, 40); AT(coll_api.root, 48);
AT(coll_api.stream, 56); AT(coll_api.captured, 64);
AT(p2p_api.func, 24); AT(p2p_api.count, 32); AT(p2p_api.datatype, 40); AT(p2p_api.stream, 48); AT(p2p_api.captured, 56);
AT(kernel_launch.stream, 24);
AT(coll.seq, 24); AT(coll.func, 32); AT(coll.send, 40); AT(coll.recv, 48); AT(coll.count, 56); AT(coll.root, 64);
AT(coll.datatype, 72); AT(coll.channels, 80); AT(coll.warps, 81); AT(coll.algo, 88); AT(coll.proto, 96); AT(coll.group, 104);
AT(p2p.func, 24); AT(p2p.buff, 32); AT(p2p.datatype, 40); AT(p2p.count, 48); AT(p2p.peer, 56); AT(p2p.channels, 60); AT(p2p.group, 64);
AT(proxy_op.pid, 24); AT(proxy_op.channel, 28); AT(proxy_op.peer, 32); AT(proxy_op.steps, 36); AT(proxy_op.chunk, 40); AT(proxy_op.send, 44);
AT(proxy_step.step, 24);
AT(kernel_ch.channel, 24); AT(kernel_ch.ptimer, 32);
AT(net_plugin.id, 24); AT(net_plugin.data, 32);
AT(ce_coll.seq, 24); AT(ce_coll.func, 32); AT(ce_coll.send, 40); AT(ce_coll.recv, 48); AT(ce_coll.count, 56); AT(ce_coll.root, 64);
AT(ce_coll.datatype, 72); AT(ce_coll.strategy, 80); AT(ce_coll.intra_batch, 88); AT(ce_coll.batch_size, 92); AT(ce_coll.batches, 96);
AT(ce_coll.ce_seq, 100); AT(ce_coll.stream, 104);
AT(ce_sync.complete, 24); AT(ce_sync.ranks, 28);
AT(ce_batch.ops, 24); AT(ce_batch.bytes, 32); AT(ce_batch.intra, 40);
#undef AT

#endif
