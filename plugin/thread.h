/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of this library in somebody else's process.
 */
#ifndef NCCLOTF2_THREAD_H
#define NCCLOTF2_THREAD_H

#include <stdbool.h>

/* Starts a detached thread with a small stack. It inherits a mask of all signals blocked, so none of
 * the program's is ever handled on it. False if there is none to be had (process limits). */
bool ncclotf2_thread_start(void *(*run)(void *));

#endif
