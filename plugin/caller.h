/* SPDX-License-Identifier: Apache-2.0
 *
 * Which library calls: NCCL or RCCL, and its version.
 */
#ifndef NCCLOTF2_CALLER_H
#define NCCLOTF2_CALLER_H

#include "abi.h"
#include "shm.h"

/* Fills in library, library_version and library_path from the file that the logger lies in (or, without
 * one, the calling code). What is not known stays 0. */
void ncclotf2_caller_identify(struct ncclotf2_header *header, ncclotf2_logger logger, const void *caller);

#endif
