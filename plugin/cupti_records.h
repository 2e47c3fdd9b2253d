/* SPDX-License-Identifier: Apache-2.0
 *
 * From CUPTI's buffers into a ring: activity records, each as it is, and what CUPTI's clock says.
 */
#ifndef NCCLOTF2_CUPTI_RECORDS_H
#define NCCLOTF2_CUPTI_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "cupti_abi.h"

/* Whether the API record of a call is worth keeping: one that launches a kernel or a graph. */
bool ncclotf2_cupti_is_launch(enum cupti_kind kind, uint32_t cbid);

/* Writes the wanted records of all buffers that have come back into the calling thread's ring. What finds no room is
 * counted in header.cupti_lost; where CUPTI cannot tell the next record the rest of that buffer is left, and the place is
 * counted in header.cupti_unknown. `kinds` as in header.cupti_kinds; `version` as cuptiGetVersion has it. */
void ncclotf2_cupti_drain(const struct cupti_functions *functions, uint32_t version, uint64_t kinds);

/* Writes what CUPTI's clock says now. */
void ncclotf2_cupti_clock(const struct cupti_functions *functions);

#endif
