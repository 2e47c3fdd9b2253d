/* SPDX-License-Identifier: Apache-2.0
 *
 * What the number of a device function means in the NCCL that is loaded. The library tells it itself: it numbers the functions
 * that it was built with by a table over all that there could be (ncclDevFuncRowToId), whose order is a fact of the release.
 */
#ifndef REALNCCL_FUNCTIONS_H
#define REALNCCL_FUNCTIONS_H

enum collective { SEND_RECV, ALL_GATHER, BROADCAST, ALL_GATHER_V, ALL_REDUCE, REDUCE, REDUCE_SCATTER };
enum operation { SUM, PROD, MIN_MAX, PRE_MUL_SUM, SUM_POST_DIV, NO_OPERATION };
enum element { I8, U8, I32, U32, I64, U64, F16, F32, F64, BF16, F8E4M3, F8E5M2, NO_ELEMENT };
enum algorithm { RING, TREE, COLLNET_DIRECT, COLLNET_CHAIN, NVLS, NVLS_TREE, PAT, NO_ALGORITHM };
enum protocol { LL, LL128, SIMPLE, NO_PROTOCOL };

struct function {
  enum collective collective;
  enum operation operation;
  enum element element;
  enum algorithm algorithm;
  enum protocol protocol;
  char name[64]; /* as in the names of kernels: AllReduce_Sum_f32_RING_LL */
};

/* Reads the tables of the library that a kernel's host function belongs to; ends the process with a message where they
 * are not there or do not fit the names under which the library registered its kernels. */
void functions_find(const void *kernel);

/* NULL: there is no such number. */
const struct function *function(unsigned number);

#endif
