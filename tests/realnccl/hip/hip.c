/* SPDX-License-Identifier: Apache-2.0
 *
 * The HIP runtime, as far as RCCL calls it, made of the stand-in for CUDA's: most functions are the same by another name, and
 * so are the values that are asked about. The symbols have the versions that hip.map gives them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cudart/cudart.h"
#include "../gpu/settings.h"

enum { MAJOR = 9, PROCESSORS = 104, WAVE = 64, BLOCK = 1024, SHARED = 64 << 10, CLOCK_KHZ = 100000, RUNTIME = 70226015 };

/* Where HIP's function is CUDA's: the name, its parameters, and what they are called. */
#define SAME(hip, cuda, parameters, names) \
  API cuda parameters;                     \
  API hip parameters { return cuda names; }

SAME(hipMalloc, cudaMalloc, (void **at, size_t bytes), (at, bytes))
SAME(hipFree, cudaFree, (void *at), (at))
SAME(hipMallocFromPoolAsync, cudaMallocFromPoolAsync, (void **at, size_t bytes, cudaMemPool_t pool, cudaStream_t s),
     (at, bytes, pool, s))
SAME(hipHostMalloc, cudaHostAlloc, (void **at, size_t bytes, unsigned flags), (at, bytes, flags))
SAME(hipHostFree, cudaFreeHost, (void *at), (at))
SAME(hipHostRegister, cudaHostRegister, (void *at, size_t bytes, unsigned flags), (at, bytes, flags))
SAME(hipHostUnregister, cudaHostUnregister, (void *at), (at))
SAME(hipHostGetDevicePointer, cudaHostGetDevicePointer, (void **device, void *host, unsigned flags), (device, host, flags))
SAME(hipMemcpy, cudaMemcpy, (void *to, const void *from, size_t bytes, int kind), (to, from, bytes, kind))
SAME(hipMemset, cudaMemset, (void *to, int value, size_t bytes), (to, value, bytes))
SAME(hipMemcpyAsync, cudaMemcpyAsync, (void *to, const void *from, size_t bytes, int kind, cudaStream_t s),
     (to, from, bytes, kind, s))
SAME(hipMemsetAsync, cudaMemsetAsync, (void *to, int value, size_t bytes, cudaStream_t s), (to, value, bytes, s))
SAME(hipMemPoolCreate, cudaMemPoolCreate, (cudaMemPool_t * pool, const void *properties), (pool, properties))
SAME(hipMemPoolDestroy, cudaMemPoolDestroy, (cudaMemPool_t pool), (pool))
SAME(hipMemPoolSetAttribute, cudaMemPoolSetAttribute, (cudaMemPool_t pool, int attribute, void *value),
     (pool, attribute, value))
SAME(hipIpcGetMemHandle, cudaIpcGetMemHandle, (cudaIpcMemHandle_t * handle, void *at), (handle, at))
SAME(hipIpcOpenMemHandle, cudaIpcOpenMemHandle, (void **at, cudaIpcMemHandle_t handle, unsigned flags), (at, handle, flags))
SAME(hipIpcCloseMemHandle, cudaIpcCloseMemHandle, (void *at), (at))
SAME(hipStreamCreate, cudaStreamCreate, (cudaStream_t * s), (s))
SAME(hipStreamCreateWithFlags, cudaStreamCreateWithFlags, (cudaStream_t * s, unsigned flags), (s, flags))
SAME(hipStreamDestroy, cudaStreamDestroy, (cudaStream_t s), (s))
SAME(hipStreamSynchronize, cudaStreamSynchronize, (cudaStream_t s), (s))
SAME(hipStreamQuery, cudaStreamQuery, (cudaStream_t s), (s))
SAME(hipStreamWaitEvent, cudaStreamWaitEvent, (cudaStream_t s, cudaEvent_t event, unsigned flags), (s, event, flags))
SAME(hipStreamIsCapturing, cudaStreamIsCapturing, (cudaStream_t s, enum cudaStreamCaptureStatus *status), (s, status))
SAME(hipStreamGetCaptureInfo_v2, cudaStreamGetCaptureInfo_v2,
     (cudaStream_t s, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
      const cudaGraphNode_t **d, size_t *n),
     (s, status, id, graph, d, n))
SAME(hipStreamUpdateCaptureDependencies, cudaStreamUpdateCaptureDependencies,
     (cudaStream_t s, void *d, size_t n, unsigned flags), (s, d, n, flags))
SAME(hipThreadExchangeStreamCaptureMode, cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode * mode), (mode))
SAME(hipEventCreate, cudaEventCreate, (cudaEvent_t * event), (event))
SAME(hipEventCreateWithFlags, cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), (event, flags))
SAME(hipEventDestroy, cudaEventDestroy, (cudaEvent_t event), (event))
SAME(hipEventQuery, cudaEventQuery, (cudaEvent_t event), (event))
SAME(hipEventRecord, cudaEventRecord, (cudaEvent_t event, cudaStream_t s), (event, s))
SAME(hipEventSynchronize, cudaEventSynchronize, (cudaEvent_t event), (event))
SAME(hipEventElapsedTime, cudaEventElapsedTime, (float *ms, cudaEvent_t from, cudaEvent_t to), (ms, from, to))
SAME(hipGraphAddDependencies, cudaGraphAddDependencies, (cudaGraph_t graph, const void *from, const void *to, size_t n),
     (graph, from, to, n))
SAME(hipGraphAddEventRecordNode, cudaGraphAddEventRecordNode,
     (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *d, size_t n, cudaEvent_t event),
     (node, graph, d, n, event))
SAME(hipGraphRetainUserObject, cudaGraphRetainUserObject,
     (cudaGraph_t graph, cudaUserObject_t object, unsigned n, unsigned flags), (graph, object, n, flags))
SAME(hipUserObjectCreate, cudaUserObjectCreate,
     (cudaUserObject_t * object, void *data, cudaHostFn_t destroy, unsigned n, unsigned flags),
     (object, data, destroy, n, flags))
SAME(hipLaunchHostFunc, cudaLaunchHostFunc, (cudaStream_t s, cudaHostFn_t call, void *argument), (s, call, argument))
SAME(hipGetDevice, cudaGetDevice, (int *device), (device))
SAME(hipSetDevice, cudaSetDevice, (int device), (device))
SAME(hipGetDeviceCount, cudaGetDeviceCount, (int *count), (count))
SAME(hipDeviceSynchronize, cudaDeviceSynchronize, (void), ())
SAME(hipDeviceSetLimit, cudaDeviceSetLimit, (int limit, size_t value), (limit, value))
SAME(hipDeviceGetPCIBusId, cudaDeviceGetPCIBusId, (char *name, int size, int device), (name, size, device))
SAME(hipDeviceGetByPCIBusId, cudaDeviceGetByPCIBusId, (int *device, const char *name), (device, name))
SAME(hipDeviceCanAccessPeer, cudaDeviceCanAccessPeer, (int *can, int a, int b), (can, a, b))
SAME(hipDeviceEnablePeerAccess, cudaDeviceEnablePeerAccess, (int device, unsigned flags), (device, flags))
SAME(hipFuncSetAttribute, cudaFuncSetAttribute, (const void *function, int attribute, int value), (function, attribute, value))
SAME(hipGetLastError, cudaGetLastError, (void), ())
SAME(hipLaunchKernel, cudaLaunchKernel,
     (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t s),
     (function, grid, block, arguments, shared, s))

extern const char *cudaGetErrorString(cudaError_t error);

__attribute__((visibility("default"))) const char *hipGetErrorString(cudaError_t error) { return cudaGetErrorString(error); }

API hipExtMallocWithFlags(void **at, size_t bytes, unsigned flags) { return cudaMalloc(at, bytes); }

/* Events around the launch. */
API hipExtLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t s,
                       cudaEvent_t before, cudaEvent_t after, int flags)
{
  if (before) cudaEventRecord(before, s);
  cudaLaunchKernel(function, grid, block, arguments, shared, s);
  if (after) cudaEventRecord(after, s);
  return answer(cudaSuccess);
}

API hipDeviceGet(int *device, int ordinal)
{
  *device = ordinal;
  return answer(cudaSuccess);
}

API hipCtxGetCurrent(void **context)
{
  static int some;
  *context = &some;
  return answer(cudaSuccess);
}

API hipDriverGetVersion(int *version)
{
  *version = RUNTIME;
  return answer(cudaSuccess);
}

API hipRuntimeGetVersion(int *version) { return hipDriverGetVersion(version); }

/* HIP's numbers of attributes. */
API hipDeviceGetAttribute(int *value, int attribute, int device)
{
  static const int values[][2] = {{23, MAJOR}, {61, 0},      {87, WAVE},     {63, PROCESSORS},
                                  {56, BLOCK}, {74, SHARED}, {5, CLOCK_KHZ}, {10017, CLOCK_KHZ}};
  *value = 0;
  for (size_t i = 0; i < sizeof values / sizeof *values; i++)
    if (values[i][0] == attribute) *value = values[i][1];
  return answer(cudaSuccess);
}

/* What has a meaning for CUDA lies where CUDA has it. */
API hipGetDevicePropertiesR0600(char *properties, int device)
{
  enum { SIZE = 1472, CLOCK = 348, ARCHITECTURE = 1160 };
  const int clock = 1700000;
  struct cudaDeviceProp p = {.totalGlobalMem = 16ull << 30,
                             .sharedMemPerBlock = SHARED,
                             .warpSize = WAVE,
                             .maxThreadsPerBlock = BLOCK,
                             .major = MAJOR,
                             .multiProcessorCount = PROCESSORS,
                             .pciBusID = 0x10 * (device + 1),
                             .unifiedAddressing = 1,
                             .uuid = device_uuid(device)};
  const char *architecture = setting("REALNCCL_GCN") ? setting("REALNCCL_GCN") : "gfx90a:sramecc+:xnack-";
  snprintf(p.name, sizeof p.name, "Imaginary GPU");
  memset(properties, 0, SIZE);
  memcpy(properties, &p, offsetof(struct cudaDeviceProp, sharedMemPerBlockOptin));
  memcpy(properties + CLOCK, &clock, sizeof clock);
  snprintf(properties + ARCHITECTURE, 256, "%s", architecture);
  return answer(cudaSuccess);
}

API hipFuncGetAttributes(char *attributes, const void *function)
{
  enum { SIZE = 56, THREADS = 28, SHARED_BYTES = 48 };
  const int threads = BLOCK;
  const size_t shared = 30000;
  memset(attributes, 0, SIZE);
  memcpy(attributes + THREADS, &threads, sizeof threads);
  memcpy(attributes + SHARED_BYTES, &shared, sizeof shared);
  return answer(cudaSuccess);
}

extern cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *address);

/* Two more members at the end. */
API hipPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *address)
{
  memset(attributes + 1, 0, 8);
  return cudaPointerGetAttributes(attributes, address);
}

API hipMemGetAddressRange(void **base, size_t *bytes, void *address)
{
  struct allocation a;
  if (!memory_find(address, &a)) return answer(cudaErrorNotFound);
  if (base) *base = a.at;
  if (bytes) *bytes = a.bytes;
  return answer(cudaSuccess);
}

API hipMemGetAllocationGranularity(size_t *bytes, const void *properties, int which)
{
  *bytes = 2 << 20;
  return answer(cudaSuccess);
}

/* There is no virtual memory; and graphs get no nodes by hand. */
#define NONE(name) \
  API name(void) { return answer(cudaErrorNotSupported); }
NONE(hipMemAddressFree)
NONE(hipMemAddressReserve)
NONE(hipMemCreate)
NONE(hipMemExportToShareableHandle)
NONE(hipMemGetAllocationPropertiesFromHandle)
NONE(hipMemImportFromShareableHandle)
NONE(hipMemMap)
NONE(hipMemRelease)
NONE(hipMemRetainAllocationHandle)
NONE(hipMemSetAccess)
NONE(hipMemUnmap)
NONE(hipPointerGetAttribute)
NONE(hipGraphAddHostNode)

#define EXPORT __attribute__((visibility("default")))
extern void **__cudaRegisterFatBinary(void *image);
extern void __cudaUnregisterFatBinary(void **handle);
extern void __cudaRegisterFunction(void **, const void *, char *, const char *, int, void *, void *, void *, void *, int *);

EXPORT void **__hipRegisterFatBinary(void *image) { return __cudaRegisterFatBinary(image); }

EXPORT void __hipUnregisterFatBinary(void **handle) { __cudaUnregisterFatBinary(handle); }

EXPORT void __hipRegisterFunction(void **handle, const void *host, char *device, const char *name, int limit, void *a, void *b,
                                  void *c, void *d, int *e)
{
  __cudaRegisterFunction(handle, host, device, name, limit, a, b, c, d, e);
}

EXPORT cudaError_t __hipPopCallConfiguration(void *grid, void *block, void *shared, void *stream)
{
  fputs("realnccl: launches by <<<>>> are not emulated for HIP\n", stderr);
  abort();
}
