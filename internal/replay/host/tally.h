/* SPDX-License-Identifier: Apache-2.0
 *
 * What was delivered to the plugin and what was held back, counted by all threads and reported as
 * one JSON line.
 */
#ifndef REPLAY_HOST_TALLY_H
#define REPLAY_HOST_TALLY_H

#include <stdatomic.h>

#include "profiler.h"

typedef _Atomic uint64_t counter;

struct tally {
  /* called */
  counter started[TYPE_COUNT];  /* the plugin gave a handle */
  counter declined[TYPE_COUNT]; /* the plugin gave NULL */
  counter stopped[TYPE_COUNT];  /* with a handle */
  counter states[STATE_COUNT + 1];  /* with a handle */
  counter inits, finalizes;
  counter null_handles; /* stops and states made with NULL */
  counter stale_stops;  /* second stops of an event, as NCCL makes them after a start that the mask left out */
  counter raw_handles;  /* … with a number that was in the recording, or another process's handle */
  counter unwritten;    /* starts that left a non-NULL *eHandle as it was: the plugin's fault */
  counter errors;       /* callbacks that answered other than success: the plugin's fault */
  /* not called, though recorded: by the mask, because the plugin's version does not have it, or because
   * the handle is NULL */
  counter held_starts[TYPE_COUNT], held_stops[TYPE_COUNT], held_states[STATE_COUNT + 1];
  counter held_finalizes; /* the context is NULL, or the host was told not to finalize */
  /* the plugin's log lines */
  counter warnings, infos;
  counter loads; /* dlopen */
  /* the system's numbers of the threads, in the order of the program; 0: has not begun */
  _Atomic int32_t *tids;
  uint32_t thread_count;
};

extern struct tally tally;

/* A state's place in the tables: those that nobody defines share the last. */
static inline int state_index(int state) { return state >= 0 && state < STATE_COUNT ? state : STATE_COUNT; }

static inline void count(counter *c) { atomic_fetch_add_explicit(c, 1, memory_order_relaxed); }

/* Writes the line to standard output with one write(2), so that it is out even if the process kills
 * itself next. plugin: which interface was taken, "none" if none. */
void tally_report(const char *plugin, int mask);

#endif
