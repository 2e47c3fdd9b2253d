/* SPDX-License-Identifier: Apache-2.0
 *
 * Playing a program: one thread per recorded thread, each making its calls in the recorded order.
 */
#ifndef REPLAY_HOST_PLAY_H
#define REPLAY_HOST_PLAY_H

#include <stdarg.h>

#include "program.h"

struct play_options {
  bool in_order;    /* all calls in the order of the program, one at a time; else the threads run
                       freely, held back only by the calls that a call says it comes after */
  bool paced;       /* keep the recorded distances in time; else as fast as that allows */
  uint64_t faster;  /* paced: so many times as fast as recorded */
  uint64_t slower;  /* paced: so many times as long as recorded */
  uint64_t start_at; /* paced: CLOCK_MONOTONIC time, ns, that stands for program->base */
  bool finalize;    /* else finalize is never called, and the library stays open */
  uint64_t stop_after; /* SIGSTOP to itself after so many calls, for somebody to look or do harm, and when those are made of the
                          program's first ones that other processes wait for; 0: never */
  uint64_t die_after; /* SIGKILL after so many calls of the program, made or held back; 0: never;
                         UINT64_MAX: after the last */
  nccl_logger log;  /* passed to init */
  bool verbose;     /* the plugin's INFO lines, too, go to stderr */
};

/* Returns when all calls are made and all threads have ended. */
void play(const struct program *program, const struct play_options *options);

/* Where the plugin's log lines end: counted, and warnings printed. */
void play_log(int level, unsigned long flags, const char *file, int line, const char *fmt, va_list ap);

/* The activation mask as it stands. */
int play_mask(void);

#endif
