/* SPDX-License-Identifier: Apache-2.0
 *
 * What object files with device code call before main: their kernels' host functions get names here. The device code itself
 * stays where it is and is never run.
 */
#include "registration.h"

#include <stdlib.h>

#include "cudart.h"

#define EXPORT __attribute__((visibility("default")))

enum { BUCKETS = 1024 };
struct kernel_name {
  const void *host;
  const char *name;
  struct kernel_name *next;
};
static struct kernel_name *names[BUCKETS];

static size_t bucket(const void *host) { return ((uintptr_t)host >> 4) % BUCKETS; }

const char *registered_name(const void *host)
{
  for (const struct kernel_name *n = names[bucket(host)]; n; n = n->next)
    if (n->host == host) return n->name;
  return NULL;
}

EXPORT void **__cudaRegisterFatBinary(void *image)
{
  void **handle = malloc(sizeof *handle);
  *handle = image;
  return handle;
}

EXPORT void __cudaRegisterFatBinaryEnd(void **handle) {}
EXPORT void __cudaUnregisterFatBinary(void **handle) { free(handle); }
EXPORT char __cudaInitModule(void **handle) { return 0; }

EXPORT void __cudaRegisterFunction(void **handle, const void *host, char *device, const char *name, int limit, void *a, void *b,
                                   void *c, void *d, int *e)
{
  struct kernel_name *n = malloc(sizeof *n);
  *n = (struct kernel_name){host, name, names[bucket(host)]};
  names[bucket(host)] = n;
}

EXPORT void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t size,
                              int constant, int global)
{
}

/* What the <<<…>>> of a launch leaves for the host function. */
static __thread struct {
  dim3 grid, block;
  size_t shared;
  void *stream;
} configuration;

EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream)
{
  configuration.grid = grid;
  configuration.block = block;
  configuration.shared = shared;
  configuration.stream = stream;
  return 0;
}

EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void **stream)
{
  *grid = configuration.grid;
  *block = configuration.block;
  *shared = configuration.shared;
  *stream = configuration.stream;
  return cudaSuccess;
}
