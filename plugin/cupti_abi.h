/* SPDX-License-Identifier: Apache-2.0
 *
 * What of CUPTI is used, as its headers of CUDA 11.8 to 13.4 have it: plain C functions that return an int, and
 * numbers that no release has changed. Records only grow at their end, so what an older release puts at an offset
 * every newer one has there, too.
 */
#ifndef NCCLOTF2_CUPTI_ABI_H
#define NCCLOTF2_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

enum cupti_result {
  CUPTI_OK = 0,
  CUPTI_INVALID_PARAMETER = 1,
  CUPTI_MAX_LIMIT_REACHED = 12, /* GetNextRecord: the end of the buffer */
  CUPTI_NOT_COMPATIBLE = 14,
  CUPTI_NOT_INITIALIZED = 15,   /* no driver, or one older than this CUPTI */
  CUPTI_INSUFFICIENT_PRIVILEGES = 35,
  CUPTI_MULTIPLE_SUBSCRIBERS = 39
};

enum cupti_kind {
  CUPTI_MEMCPY = 1,
  CUPTI_MEMSET = 2,
  CUPTI_KERNEL = 3, /* never switched on: it serializes kernels, which can hang NCCL */
  CUPTI_DRIVER = 4,
  CUPTI_CONCURRENT_KERNEL = 10,
  CUPTI_MEMCPY2 = 22, /* between devices; switched on with MEMCPY */
  CUPTI_SYNCHRONIZATION = 38,
  CUPTI_EXTERNAL_CORRELATION = 39,
  CUPTI_MEMORY2 = 49
};

/* The stack of external correlation ids that is ours: PyTorch's profiler has CUSTOM0 and CUSTOM1. */
enum { CUPTI_EXTERNAL_CUSTOM2 = 5 };

enum { CUPTI_THREAD_ID_SYSTEM = 1, CUPTI_FLUSH_FORCED = 1 };

/* Offsets in records, bytes. */
enum {
  CUPTI_AT_KIND = 0,           /* uint32_t, all */
  CUPTI_AT_API_CBID = 4,       /* uint32_t */
  CUPTI_AT_EXTERNAL_KIND = 4,  /* uint32_t */
  CUPTI_AT_MEMORY2_NAME = 64,  /* const char * */
  CUPTI_AT_KERNEL_NAME = 104   /* const char *, one for all records of the kernel */
};

typedef void (*cupti_request)(uint8_t **buffer, size_t *size, size_t *most_records);
typedef void (*cupti_complete)(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
typedef void (*cupti_callback)(void *user, int domain, uint32_t cbid, const void *data);

/* X(needed, member, symbol, parameters) */
#define CUPTI_FUNCTIONS(X)                                                                                       \
  X(1, get_version, cuptiGetVersion, (uint32_t *))                                                               \
  X(1, get_timestamp, cuptiGetTimestamp, (uint64_t *))                                                           \
  X(1, subscribe, cuptiSubscribe, (void **, cupti_callback, void *))                                             \
  X(1, unsubscribe, cuptiUnsubscribe, (void *))                                                                  \
  X(1, register_callbacks, cuptiActivityRegisterCallbacks, (cupti_request, cupti_complete))                      \
  X(1, enable, cuptiActivityEnable, (int))                                                                       \
  X(1, disable, cuptiActivityDisable, (int))                                                                     \
  X(1, next_record, cuptiActivityGetNextRecord, (uint8_t *, size_t, uint8_t **))                                 \
  X(1, dropped, cuptiActivityGetNumDroppedRecords, (void *, uint32_t, size_t *))                                 \
  X(1, flush_all, cuptiActivityFlushAll, (uint32_t))                                                             \
  X(1, push, cuptiActivityPushExternalCorrelationId, (int, uint64_t))                                            \
  X(1, pop, cuptiActivityPopExternalCorrelationId, (int, uint64_t *))                                            \
  X(0, set_thread_id_type, cuptiSetThreadIdType, (int))                                                          \
  X(0, result_string, cuptiGetResultString, (int, const char **))                                                \
  X(0, enable_driver_api, cuptiActivityEnableDriverApi, (uint32_t, uint8_t))

struct cupti_functions {
#define MEMBER(needed, member, symbol, parameters) int(*member) parameters;
  CUPTI_FUNCTIONS(MEMBER)
#undef MEMBER
};

#endif
