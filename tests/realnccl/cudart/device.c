/* SPDX-License-Identifier: Apache-2.0
 *
 * Pretended devices: REALNCCL_NDEV of them (8), of compute capability REALNCCL_CC (80).
 */
#include <stdio.h>
#include <string.h>

#include "../gpu/settings.h"
#include "cudart.h"

__thread int current_device;
static __thread cudaError_t last_error;

cudaError_t answer(cudaError_t error)
{
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

int device_count(void) { return (int)setting_number("REALNCCL_NDEV", 8); }

static int capability(void) { return (int)setting_number("REALNCCL_CC", 80); }

enum { FIRST_BUS = 0x10, WARP = 32, BLOCK = 1024, PROCESSORS = 108 };
static int bus_of(int device) { return FIRST_BUS * (device + 1); }

int device_attribute(int attribute, int device)
{
  const int cc = capability();
  switch (attribute) {
  case cudaDevAttrComputeCapabilityMajor: return cc / 10;
  case cudaDevAttrComputeCapabilityMinor: return cc % 10;
  case cudaDevAttrMaxSharedMemoryPerBlockOptin: return cc >= 90 ? 232448 : cc >= 80 ? 166912 : 98304;
  case cudaDevAttrMultiProcessorCount: return PROCESSORS;
  case cudaDevAttrWarpSize: return WARP;
  case cudaDevAttrMaxThreadsPerBlock: return BLOCK;
  case cudaDevAttrPciBusId: return bus_of(device);
  case cudaDevAttrUnifiedAddressing: return 1;
  default: return 0; /* RDMA, virtual memory, multicast, …: none */
  }
}

cudaUUID_t device_uuid(int device)
{
  cudaUUID_t uuid;
  memcpy(uuid.bytes, "fakegpu-uuid-00", 15);
  uuid.bytes[15] = (char)('0' + device);
  return uuid;
}

API cudaGetDeviceCount(int *count)
{
  *count = device_count();
  return answer(cudaSuccess);
}

API cudaGetDevice(int *device)
{
  *device = current_device;
  return answer(cudaSuccess);
}

API cudaDeviceSynchronize(void) { return answer(cudaSuccess); }
API cudaDeviceSetLimit(int limit, size_t value) { return answer(cudaSuccess); }
API cudaDeviceCanAccessPeer(int *can, int a, int b)
{
  *can = a != b;
  return answer(cudaSuccess);
}

API cudaDeviceEnablePeerAccess(int device, unsigned flags) { return answer(cudaSuccess); }
API cudaDeviceDisablePeerAccess(int device) { return answer(cudaSuccess); }
API cudaDriverGetVersion(int *version)
{
  *version = CUDART_VERSION;
  return answer(cudaSuccess);
}

API cudaRuntimeGetVersion(int *version)
{
  *version = CUDART_VERSION;
  return answer(cudaSuccess);
}

API cudaDeviceGetAttribute(int *value, int attribute, int device)
{
  *value = device_attribute(attribute, device);
  return answer(cudaSuccess);
}

API cudaSetDevice(int device)
{
  if (device < 0 || device >= device_count()) return answer(cudaErrorInvalidDevice);
  current_device = device;
  return answer(cudaSuccess);
}

API cudaDeviceGetPCIBusId(char *name, int size, int device)
{
  snprintf(name, (size_t)size, "0000:%02X:00.0", (unsigned)bus_of(device));
  return answer(cudaSuccess);
}

API cudaDeviceGetByPCIBusId(int *device, const char *name)
{
  unsigned domain, bus;
  if (sscanf(name, "%x:%x:", &domain, &bus) != 2 || bus % FIRST_BUS || bus < FIRST_BUS ||
      (int)(bus / FIRST_BUS) > device_count())
    return answer(cudaErrorInvalidDevice);
  *device = (int)(bus / FIRST_BUS) - 1;
  return answer(cudaSuccess);
}

API cudaGetDeviceProperties_v2(struct cudaDeviceProp *p, int device)
{
  *p = (struct cudaDeviceProp){
    .uuid = device_uuid(device),
    .totalGlobalMem = 16ull << 30,
    .sharedMemPerBlock = 48 << 10,
    .warpSize = WARP,
    .maxThreadsPerBlock = BLOCK,
    .major = capability() / 10,
    .minor = capability() % 10,
    .multiProcessorCount = PROCESSORS,
    .pciBusID = bus_of(device),
    .unifiedAddressing = 1,
    .sharedMemPerBlockOptin = (size_t)device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device)};
  snprintf(p->name, sizeof p->name, "Imaginary GPU %d", capability());
  return answer(cudaSuccess);
}

API cudaGetLastError(void)
{
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

API cudaPeekAtLastError(void) { return last_error; }

__attribute__((visibility("default"))) const char *cudaGetErrorString(cudaError_t error)
{
  return error == cudaSuccess ? "no error" : error == cudaErrorNotReady ? "not ready" : "imaginary error";
}

__attribute__((visibility("default"))) const char *cudaGetErrorName(cudaError_t error)
{
  return error == cudaSuccess ? "cudaSuccess" : "cudaErrorImaginary";
}

API cudaProfilerStart(void) { return answer(cudaSuccess); }
API cudaProfilerStop(void) { return answer(cudaSuccess); }

/* What a profiler finds of the driver by its name: which device the calling thread has. */
#define DRIVER __attribute__((visibility("default"))) CUresult

DRIVER cuCtxGetDevice(CUdevice *device)
{
  *device = current_device;
  return cudaSuccess;
}

DRIVER cuDeviceGetUuid_v2(cudaUUID_t *uuid, CUdevice device)
{
  *uuid = device_uuid(device);
  return cudaSuccess;
}

DRIVER cuDeviceGetPCIBusId(char *name, int size, CUdevice device) { return cudaDeviceGetPCIBusId(name, size, device); }
