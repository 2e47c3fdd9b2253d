/* SPDX-License-Identifier: Apache-2.0
 *
 * What NCCL does to calls of plugins that were made for an older version of the interface than its
 * own: which calls they get, and what is lost, zero or left over in descriptors and arguments. The
 * releases are NCCL's, by their minor number: 29 is 2.29.7.
 */
#ifndef REPLAY_HOST_ADAPT_H
#define REPLAY_HOST_ADAPT_H

#include "layouts.h"

/* What descriptors hold where NCCL writes nothing: what was on the stack. */
#define FILLER 0xa5

/* The version that a release speaks itself. */
int adapt_native(int minor);

/* Event bits that NCCL takes out of the mask after init, and those that it adds. */
int adapt_mask(const struct layout *l, int minor, int mask);

/* Whether a start reaches the plugin. bits: the type's in the descriptor. */
bool adapt_has_type(const struct layout *l, int minor, enum event_type type, uint64_t bits);

/* Whether a state reaches it. */
bool adapt_has_state(const struct layout *l, int minor, int state);

/* Whether a child of NULL is not started. */
bool adapt_needs_parent(int minor, enum event_type type);

/* Whether the parent is replaced by the field parentGroup. */
bool adapt_parent_is_group(const struct layout *l, int minor, enum event_type type);

/* Fills a descriptor. values: one for each field of the type, numbers and addresses as they are,
 * strings as addresses. */
void adapt_descr(void *descr, const struct layout *l, int minor, enum event_type type, uint64_t bits, uint64_t parent, int rank,
                 const uint64_t *values);

/* Fills the state arguments, and returns what to pass: args or NULL. given: size bytes at value, or
 * NULL if NCCL has none to pass. */
void *adapt_args(void *args, const struct layout *l, int minor, int state, bool given, const void *value, size_t size);

#endif
