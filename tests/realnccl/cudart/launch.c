/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches, and the driver's functions that NCCL asks for by name (cudaGetDriverEntryPoint).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../gpu/gpu.h"
#include "cudart.h"
#include "registration.h"

enum { ARGUMENTS = 4096 }; /* NCCL's kernels take one block of this size by value */

void arguments_copy(struct task *kernel, const void *arguments)
{
  kernel->from = malloc(ARGUMENTS + 64);
  kernel->to = (void *)(((uintptr_t)kernel->from + 15) & ~(uintptr_t)15);
  memcpy(kernel->to, arguments, kernel->bytes);
}

static void launch(cudaStream_t stream, const void *function, const void *arguments, size_t bytes, unsigned grid,
                   cudaEvent_t begun)
{
  const char *name = registered_name(function);
  if (name && !strstr(name, "ncclDevKernel_")) {
    fprintf(stderr, "realnccl: kernel %s is not emulated: left out\n", name);
    return;
  }
  struct task t = {.kind = KERNEL,
                   .bytes = bytes < ARGUMENTS ? bytes : ARGUMENTS,
                   .grid = grid,
                   .function = function,
                   .label = gpu_label(arguments)};
  arguments_copy(&t, arguments);
  if (begun && stream_captured_into(stream)) cudaEventRecord(begun, stream);
  else if (begun) t.ticket = event_arm(begun);
  stream_push(stream, t);
}

API cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)
{
  launch(stream, function, arguments[0], ARGUMENTS, grid.x, NULL);
  return answer(cudaSuccess);
}

API cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function)
{
  *attributes = (struct cudaFuncAttributes){.sharedSizeBytes = 30000, .maxThreadsPerBlock = 640};
  return answer(cudaSuccess);
}

API cudaFuncSetAttribute(const void *function, int attribute, int value) { return answer(cudaSuccess); }
API cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol)
{
  *function = (cudaFunction_t)symbol;
  return answer(cudaSuccess);
}

static int packed_arguments(void **extra, void **arguments, size_t *bytes)
{
  *arguments = NULL;
  *bytes = 0;
  for (int i = 0; extra && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) *arguments = extra[i + 1];
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) *bytes = *(size_t *)extra[i + 1];
  }
  return *arguments != NULL;
}

static CUresult driver_launch_ex(const CUlaunchConfig *c, const void *function, void **parameters, void **extra)
{
  void *arguments;
  size_t bytes;
  cudaEvent_t begun = NULL;
  if (parameters || !packed_arguments(extra, &arguments, &bytes)) return cudaErrorInvalidValue;
  for (unsigned i = 0; i < c->numAttrs; i++)
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) begun = c->attrs[i].value.launchCompletionEvent.event;
  launch(c->hStream, function, arguments, bytes, c->gridDimX, begun);
  return cudaSuccess;
}

static CUresult driver_launch(const void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                              unsigned bz, unsigned shared, cudaStream_t stream, void **parameters, void **extra)
{
  void *arguments;
  size_t bytes;
  if (parameters || !packed_arguments(extra, &arguments, &bytes)) return cudaErrorInvalidValue;
  launch(stream, function, arguments, bytes, gx, NULL);
  return cudaSuccess;
}

static CUresult driver_error_string(CUresult error, const char **text)
{
  *text = error ? "imaginary driver error" : "no error";
  return cudaSuccess;
}

static CUresult driver_error_name(CUresult error, const char **text)
{
  *text = error ? "CUDA_ERROR_IMAGINARY" : "CUDA_SUCCESS";
  return cudaSuccess;
}

static CUresult driver_device(CUdevice *device, int ordinal)
{
  *device = ordinal;
  return cudaSuccess;
}

static CUresult driver_attribute(int *value, int attribute, CUdevice device)
{
  *value = device_attribute(attribute, device);
  return cudaSuccess;
}

static CUresult driver_uuid(cudaUUID_t *uuid, CUdevice device)
{
  *uuid = device_uuid(device);
  return cudaSuccess;
}

static CUresult driver_address_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
  struct allocation a;
  if (!memory_find((const void *)address, &a)) return cudaErrorNotFound;
  if (base) *base = (CUdeviceptr)a.at;
  if (bytes) *bytes = a.bytes;
  return cudaSuccess;
}

static CUresult driver_pointer_attribute(void *value, int attribute, CUdeviceptr address) { return cudaErrorNotSupported; }

/* Asked by 2.30 even where there is no virtual memory. */
static CUresult driver_granularity(size_t *bytes, const void *properties, int which)
{
  *bytes = 2 << 20;
  return cudaSuccess;
}

/* A context is the number of its device. */
static __thread CUcontext context;
static CUcontext context_of(int device) { return (CUcontext)(uintptr_t)(0x1000 + device); }
static CUresult driver_context_create(CUcontext *c, unsigned flags, CUdevice device)
{
  *c = context = context_of(device);
  return cudaSuccess;
}

static CUresult driver_context_destroy(CUcontext c) { return cudaSuccess; }
static CUresult driver_context_get(CUcontext *c)
{
  *c = context ? context : context_of(current_device);
  return cudaSuccess;
}

static CUresult driver_context_device(CUdevice *device)
{
  *device = current_device;
  return cudaSuccess;
}

static CUresult driver_context_set(CUcontext c)
{
  context = c;
  if (c) current_device = (int)((uintptr_t)c - 0x1000);
  return cudaSuccess;
}

static const struct {
  const char *name;
  void *function;
} driver[] = {
  {"cuGetErrorString", driver_error_string},
  {"cuGetErrorName", driver_error_name},
  {"cuDeviceGet", driver_device},
  {"cuDeviceGetAttribute", driver_attribute},
  {"cuDeviceGetUuid", driver_uuid},
  {"cuMemGetAddressRange", driver_address_range},
  {"cuCtxCreate", driver_context_create},
  {"cuCtxDestroy", driver_context_destroy},
  {"cuCtxGetCurrent", driver_context_get},
  {"cuCtxSetCurrent", driver_context_set},
  {"cuCtxGetDevice", driver_context_device},
  {"cuLaunchKernel", driver_launch},
  {"cuLaunchKernelEx", driver_launch_ex},
  {"cuPointerGetAttribute", driver_pointer_attribute},
  {"cuMemGetAllocationGranularity", driver_granularity},
};

API cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags,
                            enum cudaDriverEntryPointQueryResult *result)
{
  *function = NULL;
  for (size_t i = 0; i < sizeof driver / sizeof *driver; i++)
    if (strcmp(name, driver[i].name) == 0) *function = driver[i].function;
  if (result) *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return answer(cudaSuccess);
}

API cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version, unsigned long long flags,
                                     enum cudaDriverEntryPointQueryResult *result)
{
  return cudaGetDriverEntryPoint(name, function, flags, result);
}
