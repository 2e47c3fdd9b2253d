/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL's profiler plugin interface, as this host calls it and as the recording plugin beside it receives it: what all
 * versions have in common. Types, states and layouts are made of plugin/api/generate/table.go (api.h, api.c): offsets
 * here, where the product's plugin has C's structs, which the compiler holds to those offsets.
 */
#ifndef REPLAY_HOST_PROFILER_H
#define REPLAY_HOST_PROFILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api.h"

enum nccl_result { NCCL_SUCCESS = 0 };

/* Levels of NCCL's debug log. */
enum nccl_log_level { NCCL_LOG_NONE, NCCL_LOG_VERSION, NCCL_LOG_WARN, NCCL_LOG_INFO, NCCL_LOG_ABORT, NCCL_LOG_TRACE };

typedef void (*nccl_logger)(int level, unsigned long flags, const char *file, int line, const char *fmt, ...);

#define TYPE_BIT(t) (1u << TYPE_##t)
#define PROXY_DIAG_BIT (1u << 15) /* in descriptors and masks of RCCL's version 6 */

#define STATE_PROXY_OP_LAST 7
#define STATE_PROXY_STEP_FIRST 8
#define STATE_PROXY_STEP_LAST 12
#define STATE_PROXY_OP_IN_PROGRESS 19

/* State arguments. Versions 1 to 3 have the first, 4 to 7 the second; RCCL's version 6 the third. */
union args_v1 {
  struct { size_t trans_size; int steps; } proxy_op;
  struct { int appended; } proxy_ctrl;
};
union args_v4 {
  struct { size_t trans_size; } proxy_step;
  struct { int appended; } proxy_ctrl;
  struct { void *data; } net_plugin;
  struct { uint64_t ptimer; } kernel_ch;
};
union args_rccl_v6 {
  union args_v4 nccl;
  struct { uint8_t kind, reserved; uint16_t flags; int64_t value, value2; } proxy_diag;
};
_Static_assert(sizeof(union args_v1) == 16 && offsetof(union args_v1, proxy_op.steps) == 8, "state arguments of version 1");
_Static_assert(sizeof(union args_v4) == 8, "state arguments of version 4");
_Static_assert(sizeof(union args_rccl_v6) == 24 && offsetof(union args_rccl_v6, proxy_diag.flags) == 2 &&
               offsetof(union args_rccl_v6, proxy_diag.value) == 8 && offsetof(union args_rccl_v6, proxy_diag.value2) == 16,
               "state arguments of RCCL's version 6");

/* What netPlugin.data points to when netPlugin.id is that of NCCL's socket or InfiniBand transport. */
#define NET_PLUGIN_IB 0x10001
#define NET_PLUGIN_SOCKET 0x20001
struct net_socket {
  uint8_t type; /* 1 */
  union {
    struct { int fd, op; size_t length; }; /* op: 0 send, 1 receive */
  };
};
struct net_ib {
  uint8_t type; /* 1: queue pair */
  union {
    struct { int device; uint64_t wr_id; int opcode, qp; size_t length; };
  };
};
_Static_assert(sizeof(struct net_socket) == 24 && offsetof(struct net_socket, fd) == 8 && offsetof(struct net_socket, op) == 12 &&
               offsetof(struct net_socket, length) == 16, "socket descriptor");
_Static_assert(sizeof(struct net_ib) == 40 && offsetof(struct net_ib, device) == 8 && offsetof(struct net_ib, wr_id) == 16 &&
               offsetof(struct net_ib, opcode) == 24 && offsetof(struct net_ib, qp) == 28 && offsetof(struct net_ib, length) == 32,
               "InfiniBand descriptor");

typedef int (*init_v1)(void **context, int *mask);
typedef int (*init_v4)(void **context, int *mask, const char *comm_name, uint64_t comm_hash, int nnodes, int nranks,
                       int rank, nccl_logger log);
typedef int (*init_v5)(void **context, uint64_t comm_id, int *mask, const char *comm_name, int nnodes, int nranks,
                       int rank, nccl_logger log);

/* The same in all versions but for the type of init. */
struct profiler_vtable {
  const char *name;
  union {
    init_v1 v1; /* 1, 2, 3 */
    init_v4 v4;
    init_v5 v5; /* 5, 6, 7 */
  } init;
  int (*start)(void *context, void **handle, void *descr);
  int (*stop)(void *handle);
  int (*state)(void *handle, int state, void *args);
  int (*finalize)(void *context);
};
_Static_assert(sizeof(struct profiler_vtable) == 48 && offsetof(struct profiler_vtable, finalize) == 40, "plugin struct");

#endif
