/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiler API version 2 (NCCL 2.24 and 2.25).
 */
#include "api_versions.h"

#define VERSION 2
#define FUNCTION(name) (name)
#define DATATYPE(name) (name)
#define ALGORITHM(name) (name)
#define PROTOCOL(name) (name)
#include "vtable_early.inc"
