/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiler API version 6 (NCCL 2.29 and 2.30). RCCL for a time exported an extended v6: its extra
 * members lie behind those read here, and its extra type and state values are ignored.
 */
#include "api_versions.h"

#define VERSION 6
#define STATE ncclotf2_state_v4
#include "vtable.inc"
