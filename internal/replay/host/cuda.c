/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda.h"

#include <stdio.h>
#include <string.h>

/* CUresult values, cuda.h of CUDA 12. */
enum { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_NOT_INITIALIZED = 3, CUDA_ERROR_INVALID_DEVICE = 101,
       CUDA_ERROR_INVALID_CONTEXT = 201 };

struct cu_uuid { unsigned char bytes[16]; };

static bool is_absent;
static _Thread_local int current = -1;

void cuda_begin(bool absent) { is_absent = absent; }

void cuda_set_device(int device) { current = device; }

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int cuCtxGetDevice(int *device);
EXPORTED int cuDeviceGetUuid(struct cu_uuid *uuid, int device);
EXPORTED int cuDeviceGetUuid_v2(struct cu_uuid *uuid, int device);
EXPORTED int cuDeviceGetPCIBusId(char *id, int length, int device);

int cuCtxGetDevice(int *device)
{
  if (is_absent) return CUDA_ERROR_NOT_INITIALIZED;
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  if (current < 0) return CUDA_ERROR_INVALID_CONTEXT;
  *device = current;
  return CUDA_SUCCESS;
}

int cuDeviceGetUuid(struct cu_uuid *uuid, int device)
{
  if (is_absent) return CUDA_ERROR_NOT_INITIALIZED;
  if (!uuid) return CUDA_ERROR_INVALID_VALUE;
  if (device < 0 || device > 255) return CUDA_ERROR_INVALID_DEVICE;
  memcpy(uuid->bytes, "NCCL-OTF2-FAKE-", 15);
  uuid->bytes[15] = (unsigned char)device;
  return CUDA_SUCCESS;
}

int cuDeviceGetUuid_v2(struct cu_uuid *uuid, int device) { return cuDeviceGetUuid(uuid, device); }

int cuDeviceGetPCIBusId(char *id, int length, int device)
{
  if (is_absent) return CUDA_ERROR_NOT_INITIALIZED;
  if (!id || length < 1) return CUDA_ERROR_INVALID_VALUE;
  if (device < 0 || device > 255) return CUDA_ERROR_INVALID_DEVICE;
  snprintf(id, (size_t)length, "00000000:%02X:00.0", (unsigned)device & 0xffu);
  return CUDA_SUCCESS;
}
