/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles and contexts that one process of a replay tells the others, as NCCL's PXN does: the
 * originator of a send passes them to the process that carries it out, which names them to its own
 * plugin.
 */
#ifndef REPLAY_HOST_PUBLISH_H
#define REPLAY_HOST_PUBLISH_H

#include "program.h"

/* path: a file that all processes of the replay share, zero-filled, with PUBLISH_SIZE bytes for each
 * number; NULL: the process hears only itself. What is wrong with it ends the process with status 1. */
#define PUBLISH_SIZE 16
void publish_begin(const struct program *program, const char *path);

/* value: of the plugin; 0 if it gave none. */
void publish(uint32_t number, uint64_t value);

/* Wait until the number is published. After 30 s that is an error that ends the process with
 * status 1. */
uint64_t published_value(uint32_t number);
int published_author(uint32_t number); /* pid */

#endif
