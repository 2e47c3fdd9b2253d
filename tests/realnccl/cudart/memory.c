/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory lies in memfds, so that other processes can open it (cudaIpc…).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cudart.h"

struct node {
  struct allocation a;
  struct node *next;
};
static struct node *allocations;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Takes the descriptor. */
static void *map(int file, size_t bytes, int on_host)
{
  struct node *n = calloc(1, sizeof *n);
  void *at = n ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  if (at == MAP_FAILED) {
    free(n);
    close(file);
    return NULL;
  }
  n->a = (struct allocation){at, bytes, current_device, file, on_host};
  pthread_mutex_lock(&lock);
  n->next = allocations;
  allocations = n;
  pthread_mutex_unlock(&lock);
  return at;
}

static cudaError_t allocate(void **at, size_t bytes, int on_host)
{
  const size_t size = ((bytes ? bytes : 1) + 4095) & ~(size_t)4095;
  int file = memfd_create(on_host ? "realnccl-host" : "realnccl-device", MFD_CLOEXEC);
  *at = NULL;
  if (file < 0) return answer(cudaErrorMemoryAllocation);
  if (ftruncate(file, (off_t)size) == 0) *at = map(file, size, on_host);
  else close(file);
  return answer(*at ? cudaSuccess : cudaErrorMemoryAllocation);
}

int memory_find(const void *address, struct allocation *found)
{
  int hit = 0;
  pthread_mutex_lock(&lock);
  for (struct node *n = allocations; n && !hit; n = n->next) {
    hit = (const char *)address >= n->a.at && (const char *)address < n->a.at + n->a.bytes;
    if (hit) *found = n->a;
  }
  pthread_mutex_unlock(&lock);
  return hit;
}

int memory_free(void *at)
{
  struct node **at_node = &allocations;
  pthread_mutex_lock(&lock);
  while (*at_node && (*at_node)->a.at != at) at_node = &(*at_node)->next;
  struct node *hit = *at_node;
  if (hit) *at_node = hit->next;
  pthread_mutex_unlock(&lock);
  if (!hit) return 0;
  munmap(hit->a.at, hit->a.bytes);
  close(hit->a.file);
  free(hit);
  return 1;
}

API cudaMalloc(void **at, size_t bytes) { return allocate(at, bytes, 0); }
API cudaMallocAsync(void **at, size_t bytes, cudaStream_t stream) { return allocate(at, bytes, 0); }
API cudaMallocFromPoolAsync(void **at, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) { return allocate(at, bytes, 0); }
API cudaHostAlloc(void **at, size_t bytes, unsigned flags) { return allocate(at, bytes, 1); }
API cudaMallocHost(void **at, size_t bytes) { return allocate(at, bytes, 1); }
API cudaFree(void *at) { return answer(!at || memory_free(at) ? cudaSuccess : cudaErrorInvalidValue); }
API cudaFreeHost(void *at) { return cudaFree(at); }
API cudaFreeAsync(void *at, cudaStream_t stream)
{
  stream_push(stream, (struct task){.kind = FREE, .to = at});
  return answer(cudaSuccess);
}

API cudaHostRegister(void *at, size_t bytes, unsigned flags) { return answer(cudaSuccess); }
API cudaHostUnregister(void *at) { return answer(cudaSuccess); }
API cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
  *device = host;
  return answer(cudaSuccess);
}

API cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
  memmove(to, from, bytes);
  return answer(cudaSuccess);
}

API cudaMemset(void *to, int value, size_t bytes)
{
  memset(to, value, bytes);
  return answer(cudaSuccess);
}

API cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, cudaStream_t stream)
{
  struct allocation a;
  if (!stream_captured_into(stream) &&
      !memory_find(from, &a)) { /* memory that CUDA does not know is copied before it returns */
    cudaStreamSynchronize(stream);
    memmove(to, from, bytes);
  } else {
    stream_push(stream, (struct task){.kind = COPY, .to = to, .from = (void *)from, .bytes = bytes});
  }
  return answer(cudaSuccess);
}

API cudaMemcpyBatchAsync(void **to, void **from, size_t *bytes, size_t count, const void *attributes, const size_t *which,
                         size_t attribute_count, size_t *failed, cudaStream_t stream)
{
  for (size_t i = 0; i < count; i++)
    stream_push(stream, (struct task){.kind = COPY, .to = to[i], .from = from[i], .bytes = bytes[i]});
  return answer(cudaSuccess);
}

API cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
  stream_push(stream, (struct task){.kind = SET, .to = to, .value = value, .bytes = bytes});
  return answer(cudaSuccess);
}

API cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *address)
{
  struct allocation a;
  *attributes = (struct cudaPointerAttributes){cudaMemoryTypeUnregistered, 0, NULL, (void *)address};
  if (memory_find(address, &a))
    *attributes = (struct cudaPointerAttributes){a.on_host ? cudaMemoryTypeHost : cudaMemoryTypeDevice, a.device,
                                                 (void *)address, a.on_host ? (void *)address : NULL};
  return answer(cudaSuccess);
}

/* Pools have no memory of their own. */
API cudaMemPoolCreate(cudaMemPool_t *pool, const void *properties)
{
  *pool = calloc(1, 16);
  return answer(cudaSuccess);
}

API cudaMemPoolDestroy(cudaMemPool_t pool)
{
  free(pool);
  return answer(cudaSuccess);
}

API cudaMemPoolSetAttribute(cudaMemPool_t pool, int attribute, void *value) { return answer(cudaSuccess); }

/* A handle names the memfd of the process that exports it. */
struct handle {
  char magic[8];
  int process, file;
  size_t bytes;
};
_Static_assert(sizeof(struct handle) <= sizeof(cudaIpcMemHandle_t), "a handle fits");

API cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *at)
{
  struct allocation a;
  if (!memory_find(at, &a)) return answer(cudaErrorInvalidValue);
  const struct handle h = {"rnccl", getpid(), a.file, a.bytes};
  memset(handle, 0, sizeof *handle);
  memcpy(handle, &h, sizeof h);
  return answer(cudaSuccess);
}

API cudaIpcOpenMemHandle(void **at, cudaIpcMemHandle_t handle, unsigned flags)
{
  struct handle h;
  char path[64];
  memcpy(&h, &handle, sizeof h);
  snprintf(path, sizeof path, "/proc/%d/fd/%d", h.process, h.file);
  int file = open(path, O_RDWR | O_CLOEXEC);
  *at = file < 0 ? NULL : map(file, h.bytes, 0);
  return answer(*at ? cudaSuccess : cudaErrorMapBufferObjectFailed);
}

API cudaIpcCloseMemHandle(void *at) { return cudaFree(at); }
