/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages to the user go through NCCL's logger, so they obey NCCL_DEBUG and NCCL_DEBUG_FILE: warnings, once per cause
 * and process, say what is amiss and what to do about it. What NCCL was last warned of it shows in errors, too, so nothing
 * that is as it should be is a warning. The logger lives in libnccl: it is forgotten after the last finalize, and messages after that are
 * dropped.
 */
#ifndef NCCLOTF2_LOG_H
#define NCCLOTF2_LOG_H

#include <stdbool.h>

#include "abi.h"

/* NULL forgets it. Caller holds the life lock. */
void ncclotf2_log_use(ncclotf2_logger logger);

/* Whether lines reach anybody. */
bool ncclotf2_log_is_there(void);

/* One line, "NCCL_OTF2: …". Never from an event callback. */
void ncclotf2_log(enum ncclotf2_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
