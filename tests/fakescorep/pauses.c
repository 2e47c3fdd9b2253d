/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that switches Score-P's recording off between calls of NCCL's, and calls from several threads:
 *
 *	pauses PLUGIN CALLS THREADS
 *
 * The main thread makes CALLS AllReduce on communicator 1, as many in a pause of the recording, and as many behind it. Then each of
 * THREADS threads, OpenMP's if it is compiled so, makes CALLS on a communicator of its own (2, 3, …), at the same time. The
 * communicators have one rank. Prints the tid of each thread, the main one's first, as a line.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "plugin/api_versions.h"

static struct ncclotf2_plugin_v6 *plugin;
static int mask;
static pthread_mutex_t one_by_one = PTHREAD_MUTEX_INITIALIZER;

static void fail(const char *what)
{
  fprintf(stderr, "pauses: %s\n", what);
  exit(1);
}

static void logger(int level, unsigned long flags, const char *file, int line, const char *format, ...)
{
  (void)level, (void)flags, (void)file, (void)line, (void)format;
}

static void *start(void *context, struct ncclotf2_descr_v6 *d, unsigned type, void *parent)
{
  void *handle = NULL;
  d->type = 1u << type;
  d->parentObj = parent;
  plugin->startEvent(context, &handle, d);
  return handle;
}

static void stop(void *handle)
{
  if (handle) plugin->stopEvent(handle);
}

static void all_reduce(void *context, uint64_t number)
{
  struct ncclotf2_descr_v6 d = { .groupApi = { .groupDepth = 1 } };
  void *group = start(context, &d, NCCLOTF2_GROUP_API, NULL);
  d = (struct ncclotf2_descr_v6){ .collApi = { .func = "AllReduce", .count = 100, .datatype = "ncclFloat32" } };
  void *call = start(context, &d, NCCLOTF2_COLL_API, group);
  stop(call);
  d = (struct ncclotf2_descr_v6){ .type = 0 };
  void *plan = start(context, &d, NCCLOTF2_GROUP, NULL);
  d = (struct ncclotf2_descr_v6){ .coll = { .seqNumber = number, .func = "AllReduce", .count = 100, .datatype = "ncclFloat32",
                                            .nChannels = 1, .nWarps = 8, .algo = "RING", .proto = "LL", .parentGroup = plan } };
  stop(start(context, &d, NCCLOTF2_COLL, call));
  stop(plan);
  stop(group);
}

static void *communicator(uint64_t id)
{
  void *context = NULL;
  pthread_mutex_lock(&one_by_one);
  plugin->init(&context, id, &mask, NULL, 1, 1, 0, logger);
  pthread_mutex_unlock(&one_by_one);
  return context;
}

static unsigned long calls;

static void *work(void *id)
{
  void *context = communicator((uint64_t)(uintptr_t)id);
  for (uint64_t i = 0; i < calls; i++) all_reduce(context, i);
  pthread_mutex_lock(&one_by_one);
  printf("%ld\n", syscall(SYS_gettid));
  pthread_mutex_unlock(&one_by_one);
  plugin->finalize(context);
  return NULL;
}

int main(int argc, char **argv)
{
  if (argc != 4) fail("usage: pauses PLUGIN CALLS THREADS");
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  plugin = library ? dlsym(library, "ncclProfiler_v6") : NULL;
  void (*off)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "SCOREP_User_DisableRecording");
  void (*on)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "SCOREP_User_EnableRecording");
  if (!plugin || !off || !on) fail("there is no plugin, or no Score-P");
  calls = strtoul(argv[2], NULL, 10);
  const int threads = atoi(argv[3]);
  printf("%ld\n", syscall(SYS_gettid));
  void *context = communicator(1);
  for (uint64_t i = 0; i < 3 * calls; i++) {
    if (i == calls) off();
    if (i == 2 * calls) on();
    all_reduce(context, i);
  }
#ifdef _OPENMP
#pragma omp parallel num_threads(threads)
  {
    int number;
#pragma omp critical
    {
      static int next;
      number = next++;
    }
    work((void *)(uintptr_t)(number + 2));
  }
#else
  pthread_t ids[64];
  if (threads > 64) fail("more than 64 threads");
  for (int i = 0; i < threads; i++) pthread_create(&ids[i], NULL, work, (void *)(uintptr_t)(i + 2));
  for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
#endif
  plugin->finalize(context);
  return 0;
}
