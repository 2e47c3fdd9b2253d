/* SPDX-License-Identifier: Apache-2.0
 *
 * A library that launches one kernel as NCCL does, with something wrong about it: VERSION, ROWS, KERNEL_NAME, RANKS; and with
 * MAIN the program that calls it.
 */
#include <stdint.h>
#include <string.h>

#include "../cuda/cuda_runtime.h"

#ifndef VERSION
#define VERSION 22907
#endif
#ifndef ROWS
#define ROWS 1999
#endif
#ifndef KERNEL_NAME
#define KERNEL_NAME "ncclDevKernel_SendRecv"
#endif
#ifndef RANKS
#define RANKS 0
#endif
#ifdef WITHOUT_TABLE
#define ncclDevFuncRowToId other
#endif

#ifdef MAIN
int launch(void);
int main(void) { return launch(); }
#else
extern void __cudaRegisterFunction(void **, const void *, char *, const char *, int, void *, void *, void *, void *, int *);
extern cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);

static void kernel(void) {}
__attribute__((used)) const int ncclDevFuncRowToId[ROWS + 1] = {0, [1 ... ROWS] = -1};
__attribute__((used)) const int ncclDevFuncIdCount = 1;
__attribute__((used)) void *const ncclDevKernelForFunc[1] = {(void *)kernel};
__attribute__((used)) const unsigned char ncclDevKernelForFuncIsSpecialized[1] = {1};

int ncclGetVersion(int *version)
{
  *version = VERSION;
  return 0;
}

int launch(void)
{
  struct {
    const void *communicator;
    uint64_t channels;
    char rest[4080];
  } arguments = {0};
  int communicator[22] = {0, RANKS};
  void *list[] = {&arguments};
  cudaStream_t stream;
  arguments.communicator = communicator;
  arguments.channels = 1;
  __cudaRegisterFunction(NULL, (const void *)kernel, NULL, KERNEL_NAME, 0, NULL, NULL, NULL, NULL, NULL);
  cudaStreamCreateWithFlags(&stream, 0);
  cudaLaunchKernel((const void *)kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, list, 0, stream);
  cudaStreamSynchronize(stream);
  return 0;
}
#endif
