/* SPDX-License-Identifier: Apache-2.0
 *
 * What all versions of NCCL's profiler API have in common, declared from the published ABI
 * (x86-64 and arm64 Linux, LP64). Layouts that differ are in abi_v1.h … abi_v7.h.
 *
 * bool members are declared as uint8_t: NCCL's compatibility shims leave parts of descriptors
 * uninitialised, and a C bool that is neither 0 nor 1 must not be read as one.
 */
#ifndef NCCLOTF2_ABI_H
#define NCCLOTF2_ABI_H

#include <stddef.h>
#include <stdint.h>

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

/* Bit numbers of the activation mask and of a descriptor's type. */
enum ncclotf2_type {
  NCCLOTF2_GROUP = 0,
  NCCLOTF2_COLL = 1,
  NCCLOTF2_P2P = 2,
  NCCLOTF2_PROXY_OP = 3,
  NCCLOTF2_PROXY_STEP = 4,
  NCCLOTF2_PROXY_CTRL = 5,
  NCCLOTF2_KERNEL_CH = 6,
  NCCLOTF2_NET_PLUGIN = 7,
  NCCLOTF2_GROUP_API = 8,     /* from v5 on */
  NCCLOTF2_COLL_API = 9,
  NCCLOTF2_P2P_API = 10,
  NCCLOTF2_KERNEL_LAUNCH = 11,
  NCCLOTF2_CE_COLL = 12,      /* from v6 on */
  NCCLOTF2_CE_SYNC = 13,
  NCCLOTF2_CE_BATCH = 14,
  NCCLOTF2_KERNEL_PHASE = 15  /* v7; under the same bit RCCL's v6 has its proxy diagnostics */
};

/* Types that each version knows. Bit 15 means different things to NCCL's v7 and RCCL's v6, so it is
 * in no set before v7. */
#define NCCLOTF2_KNOWN_V1 0x003fu
#define NCCLOTF2_KNOWN_V2 0x003fu
#define NCCLOTF2_KNOWN_V3 0x00ffu
#define NCCLOTF2_KNOWN_V4 0x00ffu
#define NCCLOTF2_KNOWN_V5 0x0fffu
#define NCCLOTF2_KNOWN_V6 0x7fffu
#define NCCLOTF2_KNOWN_V7 0xffffu

/* States whose argument carries something; all others come with no or with meaningless arguments. */
enum ncclotf2_state {
  NCCLOTF2_STATE_OP_SEND_POSTED = 0, /* 0 … 7: of ProxyOp, API v1 … v3 on NCCL 2.23 … 2.26 */
  NCCLOTF2_STATE_OP_RECV_DONE = 7,
  NCCLOTF2_STATE_STEP_SEND_GPU_WAIT = 8,
  NCCLOTF2_STATE_STEP_RECV_GPU_WAIT = 12,
  NCCLOTF2_STATE_CTRL_IDLE = 13,
  NCCLOTF2_STATE_CTRL_APPEND_END = 18,
  NCCLOTF2_STATE_STEP_SEND_PEER_WAIT = 20,
  NCCLOTF2_STATE_NET_PLUGIN_UPDATE = 21,
  NCCLOTF2_STATE_KERNEL_CH_STOP = 22,
  NCCLOTF2_STATE_GROUP_END_API_START = 24, /* of GroupApi: no more operations come, they are launched */
  NCCLOTF2_STATE_KERNEL_PHASE_STOP = 31 /* v7; in RCCL's v6 the same number is another one's */
};

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
