/* SPDX-License-Identifier: Apache-2.0
 *
 * What all versions of NCCL's profiler API have in common, declared from the published ABI
 * (x86-64 and arm64 Linux, LP64). What differs between them, and
 * all numbers, are made of plugin/api/generate/table.go: api_versions.h, api_types.h.
 *
 * bool members are declared as uint8_t: NCCL's compatibility shims leave parts of descriptors
 * uninitialized, and a C bool that is neither 0 nor 1 must not be read as one.
 */
#ifndef NCCLOTF2_ABI_H
#define NCCLOTF2_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "api_types.h"

typedef int ncclotf2_result; /* ncclResult_t; the plugin only ever answers success */
#define NCCLOTF2_SUCCESS 0

/* ncclDebugLogLevel, and flags of NCCL_DEBUG_SUBSYS: NCCL shows no line, a warning neither, that has none of the subsystems
 * chosen there. Without a choice these are INIT, ENV and BOOTSTRAP. */
enum ncclotf2_log_level { NCCLOTF2_LOG_WARN = 2, NCCLOTF2_LOG_INFO = 3 };
#define NCCLOTF2_LOG_INIT 0x1UL
#define NCCLOTF2_LOG_PROFILE 0x4000UL
#define NCCLOTF2_LOG_ALL (~0UL)

typedef void (*ncclotf2_logger)(int level, unsigned long flags, const char *file, int line,
                                const char *format, ...);

union ncclotf2_state_args_v1 { /* ncclProfilerEventStateArgs_v1_t … _v3_t are the same */
  struct { size_t transSize; int steps; } proxyOp;
  struct { int appendedProxyOps; } proxyCtrl;
};

union ncclotf2_state_args {    /* ncclProfilerEventStateArgs_v4_t … _v7_t are the same */
  struct { size_t transSize; } proxyStep;
  struct { int appendedProxyOps; } proxyCtrl;
  struct { void *data; } netPlugin;
  struct { uint64_t pTimer; } kernelCh;
};

/* What netPlugin.data points to, by netPlugin.id. Other ids belong to net plugins unknown to us. */
#define NCCLOTF2_NET_ID_IB 0x10001
#define NCCLOTF2_NET_ID_SOCKET 0x20001

struct ncclotf2_net_ib {          /* ncclProfilerNetIbDescr_v1_t */
  uint8_t type;                   /* 1: queue pair */
  struct { int device; uint64_t wr_id; int opcode; int qpNum; size_t length; } qp;
};

struct ncclotf2_net_socket {      /* ncclProfilerNetSockDescr_v1_t */
  uint8_t type;                   /* 1: socket */
  union { uint64_t align; struct { int fd; int op; size_t length; } sock; };
};
#define NCCLOTF2_SOCKET_SEND 0

#endif
