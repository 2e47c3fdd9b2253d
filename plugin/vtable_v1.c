/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiler API version 1 (NCCL 2.23). Functions, algorithms, protocols and datatypes are numbers.
 */
#include "api_versions.h"

/* The numbers of NCCL 2.23 (nccl_common.h, nccl.h), as the names that later versions pass. */
static const char *const functions[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                        "AllReduce", "SendRecv", "Send",      "Recv"};
static const char *const algorithms[] = {"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
static const char *const protocols[] = {"LL", "LL128", "SIMPLE"};
static const char *const datatypes[] = {"ncclInt8",    "ncclUint8",   "ncclInt32",   "ncclUint32",
                                        "ncclInt64",   "ncclUint64",  "ncclFloat16", "ncclFloat32",
                                        "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};

#define NAME(table, number) ((number) < sizeof(table) / sizeof *(table) ? (table)[number] : "Unknown")

#define VERSION 1
#define FUNCTION(number) NAME(functions, number)
#define DATATYPE(number) NAME(datatypes, number)
#define ALGORITHM(number) NAME(algorithms, number)
#define PROTOCOL(number) NAME(protocols, number)
#include "vtable_early.inc"
