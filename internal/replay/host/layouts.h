/* SPDX-License-Identifier: Apache-2.0
 *
 * What differs between the versions of the plugin interface: where descriptors have which member,
 * how large things are, and which types and states there are.
 */
#ifndef REPLAY_HOST_LAYOUTS_H
#define REPLAY_HOST_LAYOUTS_H

#include "events.h"

enum init_kind { INIT_V1, INIT_V4, INIT_V5 };

/* One version of the plugin interface. */
struct layout {
  int version;
  int minor;         /* of the first release 2.minor that has it */
  const char *symbol;
  size_t descr_size, args_size, type_size; /* bytes */
  enum init_kind init;
  uint32_t types;  /* bits of the types that there are, by enum event_type */
  int last_state;  /* the highest state value that there is */
  bool codes;      /* names of functions, types, algorithms and protocols are one-byte codes */
  uint16_t at[TYPE_COUNT][FIELD_MAX]; /* offset of each field; 0: the version does not have it */
};

/* Versions 7 to 1, in the order in which NCCL looks for them. */
extern const struct layout layouts[VERSION_COUNT];

/* RCCL's own version 6, exported under the name of NCCL's. */
extern const struct layout layout_rccl_v6;

/* The same at the start of all descriptors; of `type`, only the first type_size bytes count. */
struct descr_head {
  uint64_t type;
  void *parent;
  int rank;
};

#endif
