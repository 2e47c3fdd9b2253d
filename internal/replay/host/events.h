/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of event types: how each is named, which bits of the activation mask make NCCL start
 * it, and the members that descriptors of all versions have between them. The program's reader, the
 * dump, the player and the recording plugin all work from it; where a version keeps a member, if it
 * has it at all, is in layouts.h. The tables are made of plugin/api/generate/table.go: api.c.
 */
#ifndef REPLAY_HOST_EVENTS_H
#define REPLAY_HOST_EVENTS_H

#include "profiler.h"

enum field_kind {
  FIELD_NONE,
  FIELD_U8,
  FIELD_BOOL,
  FIELD_I32,
  FIELD_U32,
  FIELD_I64,
  FIELD_U64,
  FIELD_STRING,   /* const char * to an interned constant */
  FIELD_FUNC,     /* the same, but a one-byte code in version 1 */
  FIELD_DATATYPE, /* " */
  FIELD_ALGO,     /* " */
  FIELD_PROTO,    /* " */
  FIELD_POINTER,  /* opaque */
  FIELD_HANDLE,   /* another event's handle */
  FIELD_NET_DATA  /* pointer to a network plugin's own descriptor */
};

struct field {
  const char *name;
  enum field_kind kind;
};

struct event_info {
  const char *name;
  uint32_t implied_by;  /* NCCL starts the event when any of these bits is in the operation's mask; 0:
                           whatever the mask is */
  bool needs_parent;    /* not started below a NULL parent */
  bool needed_parent;   /* … up to NCCL 2.27 */
  bool called_on_null;  /* stop and state are called even with a NULL handle */
  bool stale_slot;      /* the slot keeps its handle after the stop, so a start that the mask leaves
                           out makes NCCL stop the earlier event again */
  struct field fields[FIELD_MAX]; /* ended by a NULL name */
};

extern const struct event_info event_info[TYPE_COUNT];
extern const char *const state_names[STATE_COUNT + 1]; /* the last: of states that nobody defines */

#endif
