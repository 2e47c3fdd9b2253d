/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of this library in the application's process.
 */
#ifndef NCCLOTF2_THREAD_H
#define NCCLOTF2_THREAD_H

#include <stdbool.h>

/* Starts a detached thread with a small stack. It inherits a mask of all signals blocked, so none of
 * the program's is ever handled on it. False if there is none to be had (process limits). */
bool ncclotf2_thread_start(void *(*run)(void *));

/* To be called by such a thread that lives as long as the program: at its begin, and before its end. */
void ncclotf2_thread_stays(void);
void ncclotf2_thread_leaves(void);

/* Whether the program's main thread has ended by itself, and all others with it but those that stay: then the program
 * would be over if it were not for them. */
bool ncclotf2_thread_is_left_alone(void);

#endif
