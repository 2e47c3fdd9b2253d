/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads settings, by the table that config/ has of them (settings_table.h) and as the collector and the tool do. Pure: no
 * locale, no memory of its own, nothing but the environment.
 */
#ifndef NCCLOTF2_SETTINGS_H
#define NCCLOTF2_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "settings_table.h"

struct ncclotf2_value {
  bool understood;  /* if false, the value is the default; an unset variable is understood */
  uint64_t number;  /* 0 or 1, bytes, seconds, NCCLOTF2_CHOICE_…, bits of events or of activities; the first of a window */
  uint64_t last;    /* of a window: the first operation behind it; UINT64_MAX if unlimited */
  const char *text; /* as it stands in the environment; NULL if it is unset */
};

/* A variable of the environment, NULL if it is unset or has nothing but blanks. */
const char *ncclotf2_variable(const char *name);

struct ncclotf2_value ncclotf2_setting(enum ncclotf2_setting setting);

/* NCCL_PROFILE_EVENT_MASK. */
struct ncclotf2_value ncclotf2_event_mask(void);

/* Writes one line about a problem with a setting; returns false if there is none. */
bool ncclotf2_setting_problem(enum ncclotf2_setting setting, char *why, size_t why_size);

/* A setting of NCCL's, on unless it is 0, as NCCL reads it: with strtoll and a base of 0. `otherwise` where it is unset or out of
 * range, or binary, which some C libraries read and others do not. */
bool ncclotf2_nccl_switch(const char *name, bool otherwise);

#endif
