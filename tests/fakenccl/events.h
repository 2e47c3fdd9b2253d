/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of event types: how each is named, which bits of the activation mask make NCCL start
 * it, and the members of its descriptor. The program's reader, the dump, the player and the
 * recording plugin all work from it.
 */
#ifndef FAKENCCL_EVENTS_H
#define FAKENCCL_EVENTS_H

#include "profiler.h"

enum field_kind {
  FIELD_U8,
  FIELD_BOOL,
  FIELD_I32,
  FIELD_U32,
  FIELD_I64,
  FIELD_U64,
  FIELD_STRING,  /* const char * to an interned constant */
  FIELD_POINTER, /* opaque */
  FIELD_HANDLE,  /* another event's handle */
  FIELD_NET_DATA /* pointer to a network plugin's own descriptor */
};

struct field {
  const char *name;
  enum field_kind kind;
  size_t offset;
};

#define FIELD_MAX 14

struct event_info {
  const char *name;
  uint32_t implied_by;  /* NCCL starts the event when any of these bits is in the operation's mask */
  bool needs_parent;    /* not started below a NULL parent (the others are, from 2.28 on) */
  bool called_on_null;  /* stop and state are called even with a NULL handle */
  bool stale_slot;      /* the slot keeps its handle after the stop, so a start that the mask leaves
                           out makes NCCL stop the earlier event again */
  struct field fields[FIELD_MAX]; /* in the program's order, ended by a NULL name */
};

extern const struct event_info event_info[TYPE_COUNT];
extern const char *const state_names[STATE_COUNT];

#endif
