/* SPDX-License-Identifier: Apache-2.0
 *
 * init and finalize, and the ends of the process that NCCL does not announce.
 */
#ifndef NCCLOTF2_LIFE_H
#define NCCLOTF2_LIFE_H

#include <stdint.h>

#include "abi.h"
#include "event.h"

#define NCCLOTF2_NAME "nccl-otf2"

struct ncclotf2_init_args {
  struct ncclotf2_api api;
  void **context;
  uint64_t comm_id;
  int *mask;
  const char *name; /* may be NULL; NCCL does not keep it alive */
  int nnodes, nranks, rank;
  ncclotf2_logger logger; /* NULL before v4 */
  const void *caller;     /* an address in the library that calls */
};

/* Always success, and always a context that is not NULL: what NCCL does with a failed init is
 * broken in every release, and a NULL context never gets its finalize. Any thread, concurrently. */
ncclotf2_result ncclotf2_init(const struct ncclotf2_init_args *args);
ncclotf2_result ncclotf2_finalize(void *context);

/* API v1 … v3: an operation says which communicator its context is; the first one counts. Any thread. */
void ncclotf2_identify(void *context, uint64_t comm_id, const char *name, int rank);

#endif
