/* SPDX-License-Identifier: Apache-2.0
 *
 * Identifies the library that loaded the plugin: NCCL or RCCL, and its version.
 */
#ifndef NCCLOTF2_CALLER_H
#define NCCLOTF2_CALLER_H

#include "abi.h"
#include "shm.h"

/* Fills in library, library_version and library_path from the file that contains the logger, or without a
 * logger from the file that contains the calling code. Members that are not known stay 0. */
void ncclotf2_caller_identify(struct ncclotf2_header *header, ncclotf2_logger logger, const void *caller);

#endif
