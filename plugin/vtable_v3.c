/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiler API version 3 (NCCL 2.26).
 */
#include "api_versions.h"

#define VERSION 3
#define FUNCTION(name) (name)
#define DATATYPE(name) (name)
#define ALGORITHM(name) (name)
#define PROTOCOL(name) (name)
#include "vtable_early.inc"
