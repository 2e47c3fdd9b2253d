/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of CUDA 12's interface that NCCL's host library meets, declared anew: nothing of CUDA has to be installed.
 * Values and layouts are those of the binary interface (x86-64); what nobody here reads is padding. The three headers of
 * this folder are also what nccl.h asks for.
 */
#ifndef REALNCCL_CUDA_RUNTIME_H
#define REALNCCL_CUDA_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#define CUDART_VERSION 12090

typedef int cudaError_t;
typedef int CUresult; /* the driver's errors have the runtime's numbers, as far as we use them */
enum {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidDevice = 101,
  cudaErrorMapBufferObjectFailed = 205,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorIllegalState = 401,
  cudaErrorNotFound = 500,
  cudaErrorNotReady = 600,
  cudaErrorNotSupported = 801,
  cudaErrorStreamCaptureUnsupported = 900
};

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUuserObject_st *cudaUserObject_t;
typedef struct CUfunc_st *cudaFunction_t;
typedef struct CUmemPoolHandle_st *cudaMemPool_t;
typedef struct CUctx_st *CUcontext;
typedef int CUdevice;
typedef uintptr_t CUdeviceptr;
typedef void (*cudaHostFn_t)(void *);
typedef struct {
  unsigned x, y, z;
} dim3;
typedef struct {
  char bytes[16];
} cudaUUID_t;
typedef struct {
  char reserved[64];
} cudaIpcMemHandle_t;

enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2, cudaEventRecordExternal = 1, cudaEventWaitExternal = 1 };
enum { cudaMemcpyHostToDevice = 1, cudaMemcpyDefault = 4 };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed };
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess, cudaDriverEntryPointSymbolNotFound };
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice };
enum {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrWarpSize = 10,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrPciBusId = 33,
  cudaDevAttrUnifiedAddressing = 41,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};

struct cudaPointerAttributes {
  int type, device;
  void *devicePointer, *hostPointer;
};

struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  char pad0[16];
  size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  size_t memPitch;
  int maxThreadsPerBlock, pad1[9];
  int major, minor, pad2[5];
  int multiProcessorCount, pad3[48];
  int pciBusID, pciDeviceID, pciDomainID, pad4[2];
  int unifiedAddressing, pad5[22];
  size_t sharedMemPerBlockOptin;
  char pad6[328];
};
_Static_assert(sizeof(struct cudaDeviceProp) == 1032 && offsetof(struct cudaDeviceProp, totalGlobalMem) == 288 &&
                 offsetof(struct cudaDeviceProp, major) == 360 && offsetof(struct cudaDeviceProp, multiProcessorCount) == 388 &&
                 offsetof(struct cudaDeviceProp, pciBusID) == 584 &&
                 offsetof(struct cudaDeviceProp, unifiedAddressing) == 604 &&
                 offsetof(struct cudaDeviceProp, sharedMemPerBlockOptin) == 696,
               "cudaDeviceProp of CUDA 12");

struct cudaFuncAttributes {
  size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock;
  char pad[116];
};
_Static_assert(sizeof(struct cudaFuncAttributes) == 144, "cudaFuncAttributes of CUDA 12");

/* The driver's launch, reached by cuLaunchKernelEx. */
typedef struct {
  int id;
  char pad[4];
  union {
    char pad[64];
    struct {
      cudaEvent_t event;
      int flags;
    } launchCompletionEvent;
  } value;
} CUlaunchAttribute;
typedef struct {
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  cudaStream_t hStream;
  CUlaunchAttribute *attrs;
  unsigned numAttrs;
} CUlaunchConfig;
_Static_assert(sizeof(CUlaunchAttribute) == 72 && sizeof(CUlaunchConfig) == 56, "launch configuration of CUDA 12");
enum { CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT = 12 };
#define CU_LAUNCH_PARAM_END ((void *)0)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE ((void *)2)

/* What programs call (tests/realnccl/run, tests/realnccl/play). */
cudaError_t cudaGetDeviceCount(int *count);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaMalloc(void **at, size_t bytes);
cudaError_t cudaFree(void *at);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventDestroy(cudaEvent_t event);

#endif
