/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiler API version 5 (NCCL 2.28).
 */
#include "api_versions.h"

#define VERSION 5
#define STATE ncclotf2_state_v4
#include "vtable.inc"
