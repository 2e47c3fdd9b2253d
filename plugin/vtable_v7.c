/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiler API version 7 (NCCL 2.31 and later).
 */
#include "api_versions.h"

#define VERSION 7
#define STATE ncclotf2_state_v7
#include "vtable.inc"
