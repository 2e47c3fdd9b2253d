/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that says which calls have returned, and what handle each start got: shared memory, so that it is
 * true whatever the process dies of.
 */
#ifndef REPLAY_HOST_LEDGER_H
#define REPLAY_HOST_LEDGER_H

#include "program.h"

/* Eight bytes for each call of the program, zero at first. */
enum { LEDGER_RETURNED = 1, LEDGER_SIZE = 8 };

/* path: a shared file, zero-filled, of LEDGER_SIZE for each call; NULL: nobody wants to know. */
void ledger_begin(const struct program *program, const char *path);

/* The call has returned; handle: what a start was given, else NULL. */
void ledger_returned(uint32_t call, const void *handle);

#endif
