/* SPDX-License-Identifier: Apache-2.0
 *
 * What one process of a recording called, in the form that this host plays: a text made by package
 * replay (program.go), private to the two. One line each, tokens separated by one space:
 *
 *   replay-program 2
 *   nccl API RELEASE PID BASE    newest plugin API that is looked up; NCCL release, 22907 for 2.29.7;
 *                                recorded pid; time (ns) of the first call of all processes, by this one's clock
 *   anchor T MONO REAL           one instant on the recorded clocks, ns
 *   counts STRINGS THREADS CONTEXTS EVENTS CALLS
 *   string TEXT                  bytes other than '!'…'~', and '%', as %XX
 *   thread NAME MAIN SPAWN       MAIN 1: played by the process's main thread; SPAWN: call after which the
 *                                thread is created, '-' for the start
 *   context COMMID NAME NNODES NRANKS RANK DEVICE MEETING MEMBERS
 *                                MEETING: number of the communicator among all of the recording, from 0;
 *                                MEMBERS: how many of its ranks all processes play together
 *   init THREAD T CONTEXT
 *   start THREAD T CONTEXT EVENT TYPE ROOT PARENT BEFORE RANK FIELD…
 *   stop THREAD T CONTEXT EVENT
 *   state THREAD T CONTEXT EVENT STATE ARGS
 *   finalize THREAD T CONTEXT
 *   end CHECKSUM                 FNV-1a, 64 bits, of all bytes before this line, in hex
 *
 * Calls come in the recorded order and count from 0; threads count from 0; contexts and events from
 * 1. A call may end in tokens @CALL: calls of other threads that must have returned before it is made;
 * an init or start also in !N: what the plugin gave it is published under this number.
 * ROOT is the GroupApi event (up to NCCL 2.27: Group) whose mask travels with the event, 0 if the mask
 * is read at the call. TYPE is a number of enum event_type. The other operands are values:
 *
 *   -        NULL, none, 0              cN  context N's pointer, as the plugin gave it
 *   =N       a decimal number           eN  event N's handle, as the plugin gave it
 *   xN       a hexadecimal number       sN  string N (from 0)
 *   iN       (ARGS) an int              pN  what any process of the replay published under N
 *   self     the playing process's pid  aN  the pid of the process that published N
 *   wild     an address that must not be read
 *   kTYPE:FD:OP:LENGTH                     a socket descriptor
 *   qTYPE:DEVICE:WRID:OPCODE:QP:LENGTH     an InfiniBand descriptor
 *   oBYTES:STEPS                           (ARGS) of a ProxyOp, up to version 3
 *   dKIND:FLAGS:VALUE:VALUE                (ARGS) of RCCL's proxy diagnostics
 *   .        (ARGS) there are state arguments, but none that this state defines
 */
#ifndef REPLAY_HOST_PROGRAM_H
#define REPLAY_HOST_PROGRAM_H

#include <stdio.h>

#include "events.h"

enum value_how {
  VALUE_NULL, VALUE_BITS, VALUE_INT, VALUE_CONTEXT, VALUE_EVENT, VALUE_STRING, VALUE_PID, VALUE_PUBLISHED, VALUE_AUTHOR,
  VALUE_WILD, VALUE_SOCKET, VALUE_IB, VALUE_PROXY_OP, VALUE_PROXY_DIAG, VALUE_EMPTY
};

struct value {
  enum value_how how;
  uint64_t bits; /* number, or index of the context, event, string or blob */
};

/* What a value points to (sockets, InfiniBand), or stands for (arguments). */
union blob {
  struct net_socket socket;
  struct net_ib ib;
  union args_v1 proxy_op;
  union args_rccl_v6 proxy_diag;
};

#define NOT_PUBLISHED UINT32_MAX

enum call_kind { CALL_INIT, CALL_START, CALL_STOP, CALL_STATE, CALL_FINALIZE, CALL_KINDS };

struct call {
  enum call_kind kind;
  uint32_t thread, position; /* the thread's position-th call, from 0 */
  uint64_t time;             /* recorded, ns */
  struct value context;
  struct value event;        /* EVENT, PUBLISHED, BITS or NULL */
  uint32_t type, root;       /* START */
  struct value parent, before;
  int rank;
  const struct value *fields; /* START: as many as the type has */
  int state;
  struct value args;
  const uint32_t *after;      /* calls */
  uint32_t after_count;
  uint32_t publish;           /* number, or NOT_PUBLISHED */
};

struct thread {
  const char *name;
  bool main;
  int64_t spawn; /* call, or -1 */
  uint32_t calls;
};

struct context {
  uint64_t comm_id;
  const char *name; /* or NULL */
  int nnodes, nranks, rank, device;
  uint32_t meeting, members;
};

struct program {
  const char *path;
  int api, release, pid;
  uint64_t base;
  uint64_t anchor_raw, anchor_mono, anchor_real;
  uint32_t string_count, thread_count, context_count, event_count, call_count, blob_count, published_count;
  char **strings;
  struct thread *threads;
  struct context *contexts;    /* [1 … context_count] */
  uint32_t *event_types;       /* [1 … event_count] */
  struct call *calls;
  union blob *blobs;
  struct value *values;        /* storage behind call.fields */
  uint32_t *afters;            /* storage behind call.after */
};

/* Minor number of the NCCL release: 29 of 2.29.7. */
static inline int program_minor(const struct program *program) { return program->release / 100 % 100; }

extern const char *const call_names[CALL_KINDS];

/* Reads and checks a whole program. What is wrong with it is said in one line on stderr and ends
 * the process with status 1: nothing has been played by then. There is no way to free it. */
void program_read(struct program *program, const char *path);

/* One JSON line per call, then one with the counts. */
void program_dump(const struct program *program, FILE *to);

#endif
