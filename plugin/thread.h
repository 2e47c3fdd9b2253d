/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of the plugin in the application's process.
 */
#ifndef NCCLOTF2_THREAD_H
#define NCCLOTF2_THREAD_H

#include <stdbool.h>

/* Starts a detached thread with a small stack. All signals are blocked on it, so that it never runs one of the
 * program's handlers. Returns false if no thread can be created (process limits). */
bool ncclotf2_thread_start(void *(*run)(void *));

/* Called by a thread that lives as long as the program, at its start and before its end. */
void ncclotf2_thread_stays(void);
void ncclotf2_thread_leaves(void);

/* Returns whether the program's main thread and all its other threads have ended, so that only the threads that stay keep the
 * process alive. */
bool ncclotf2_thread_is_left_alone(void);

#endif
