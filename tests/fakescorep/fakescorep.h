/* SPDX-License-Identifier: Apache-2.0
 *
 * A Score-P for tests: the symbols that a program has that was linked by `scorep --user` with shared libraries, with what
 * Score-P 8.4 was seen to do when they are called. Where the real one ends the program by SIGABRT, so does this, with a line
 * on stderr. Three things are stricter, where the real one would do harm without dying of it: a call before the measurement
 * (which would start it, on that thread), a call from a second thread in the model that knows only one, and a name or
 * file that is NULL.
 *
 * Folders, one per thread model: none, omp, pthread. In each libscorep_measurement.so has the measurement and the thread
 * library, and libscorep_adapter_user_event.so.11 the functions for user regions, which a program that uses none of its
 * macros does not load. no-user/libscorep_measurement.so is of a program that was linked without --user, old/ has both libraries
 * and does not tell the phase, lean/ is pthread/ and does not tell what memory and threads it has.
 *
 * The measurement begins when the libraries are loaded, with a region "main" on the main thread, and ends with the process.
 * Set by the environment then:
 *
 *   FAKESCOREP_PHASE=N        the phase to begin with: -1, 0 (default), 1
 *   FAKESCOREP_RECORDING=off  … and recording
 *   FAKESCOREP_MEMORY=N       MiB for the traces of all threads; default as SCOREP_TOTAL_MEMORY's: 14 threads
 *   FAKESCOREP_RANK=N         the process's number, as substrate plugins get it (SCOREP_SUBSTRATE_PLUGINS, as with the real one)
 *   FAKESCOREP_SWIFT=1        regions are counted and nothing more is done: no system call, allocation or lock
 *   FAKESCOREP_TRUTH=FILE     what was recorded, one JSON line per event, at the end: "thread" counts from 0, the main
 *                             thread; "event" is enter, leave or metric, "name" whose, "file" of a region; the last line has the counts.
 *                             %p is the pid
 */
#ifndef FAKESCOREP_H
#define FAKESCOREP_H

#include <stdbool.h>
#include <stdint.h>

/* Exported by the measurement as `fakescorep`. */
struct fakescorep {
  void (*set_phase)(int phase);
  void (*flush)(void); /* the trace's memory is full and is emptied: no thread that is new from here on is survived */
  void (*end)(void); /* as when the process ends, and not again then */
  /* The application's own instrumentation, on the calling thread. */
  void (*enter)(const char *name);
  void (*leave)(const char *name);
  /* So far: enters, leaves, and values of the metric of all user regions; their sum; regions that were defined; calls
   * that were ignored behind the measurement. */
  uint64_t (*enters)(void);
  uint64_t (*leaves)(void);
  uint64_t (*values)(void);
  uint64_t (*sum)(void);
  uint64_t (*regions)(void);
  uint64_t (*ignored)(void);
  const char *(*last)(void);   /* the region entered last, on any thread */
  uint64_t (*depth)(void);     /* regions open on this thread, the application's among them */
  uint64_t (*locations)(void); /* threads seen */
};
extern const struct fakescorep fakescorep;

/* What the user adapter calls in the measurement. */
void *fakescorep_define(const char *name, const char *file);
void fakescorep_begin(void *region);
void fakescorep_end(void *region);
uint32_t fakescorep_metric(const char *name, const char *unit);
void fakescorep_value(uint32_t metric, double value);
bool fakescorep_recording(void);
void fakescorep_record(bool on);
bool fakescorep_measures(void); /* … and checks that this thread may call */
void fakescorep_die(const char *why) __attribute__((noreturn));
void *fakescorep_named(const char *name, bool make);

#endif
