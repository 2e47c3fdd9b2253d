/* SPDX-License-Identifier: Apache-2.0
 *
 * What one process of a recording called, in the form that this host plays: a text made by package
 * replay (compile.go), private to the two. One line each, tokens separated by one space:
 *
 *   fakenccl-program 1
 *   nccl API NATIVE PID BASE     newest plugin API that is looked up; API that this NCCL release speaks
 *                                natively; recorded pid; time (ns) of the first call of all processes
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
 * 1. A call may end in tokens @CALL: calls of other threads that must have returned before it is made.
 * ROOT is the GroupApi event whose mask travels with the event, 0 if the mask is read at the call.
 * The other operands are values:
 *
 *   -        NULL, none                 cN  context N's pointer, as the plugin gave it
 *   =N       a decimal number           eN  event N's handle, as the plugin gave it
 *   xN       a hexadecimal number       sN  string N (from 0)
 *   self     the playing process's pid  kTYPE:FD:OP:LENGTH  a socket descriptor
 *   .        (ARGS) there are state arguments, but none that this state defines
 */
#ifndef FAKENCCL_PROGRAM_H
#define FAKENCCL_PROGRAM_H

#include <stdio.h>

#include "events.h"

enum value_how { VALUE_NULL, VALUE_BITS, VALUE_CONTEXT, VALUE_EVENT, VALUE_STRING, VALUE_PID, VALUE_SOCKET, VALUE_EMPTY };

struct value {
  enum value_how how;
  uint64_t bits; /* number, or index of the context, event, string or socket */
};

enum call_kind { CALL_INIT, CALL_START, CALL_STOP, CALL_STATE, CALL_FINALIZE, CALL_KINDS };

struct call {
  enum call_kind kind;
  uint32_t thread, position; /* the thread's position-th call, from 0 */
  uint64_t time;             /* recorded, ns */
  struct value context;
  struct value event;        /* EVENT or NULL */
  uint32_t type, root;       /* START */
  struct value parent, before;
  int rank;
  const struct value *fields; /* START: as many as the type has */
  int state;
  struct value args;
  const uint32_t *after;      /* calls */
  uint32_t after_count;
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
  int api, native, pid;
  uint64_t base;
  uint64_t anchor_raw, anchor_mono, anchor_real;
  uint32_t string_count, thread_count, context_count, event_count, call_count, socket_count;
  char **strings;
  struct thread *threads;
  struct context *contexts;    /* [1 … context_count] */
  uint32_t *event_types;       /* [1 … event_count] */
  struct call *calls;
  struct net_socket *sockets;
  struct value *values;        /* storage behind call.fields */
  uint32_t *afters;            /* storage behind call.after */
};

extern const char *const call_names[CALL_KINDS];

/* Reads and checks a whole program. What is wrong with it is said in one line on stderr and ends
 * the process with status 1: nothing has been played by then. There is no way to free it. */
void program_read(struct program *program, const char *path);

/* One JSON line per call, then one with the counts. */
void program_dump(const struct program *program, FILE *to);

#endif
