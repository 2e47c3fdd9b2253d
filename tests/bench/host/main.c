/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"

const struct ncclotf2_plugin_v6 *host_plugin;

void host_fail(const char *what, const char *why)
{
  fprintf(stderr, "host: %s: %s\n", what, why);
  exit(1);
}

/* What the plugin has to say: it only speaks when something is amiss. */
static void logger(int level, unsigned long flags, const char *file, int line, const char *format, ...)
{
  (void)flags;
  (void)file;
  (void)line;
  if (level != NCCLOTF2_LOG_WARN) return;
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
}

static int event_mask;

void *host_init(uint64_t comm_id, int nranks, int rank)
{
  void *context = NULL;
  if (host_plugin->init(&context, comm_id, &event_mask, NULL, 1, nranks, rank, logger) != 0 || !context)
    host_fail("init", "no context");
  return context;
}

void *host_allocate(uint64_t count, uint64_t size)
{
  const uint64_t bytes = (count ? count : 1) * size, page = (uint64_t)sysconf(_SC_PAGESIZE);
  char *memory = calloc(1, bytes);
  if (!memory) host_fail("no memory", "calloc");
  for (uint64_t i = 0; i < bytes; i += page) ((volatile char *)memory)[i] = 0;
  return memory;
}

int host_count(unsigned long number)
{
  if (number < 1 || number > 1024) host_fail("number", "1 to 1024 wanted");
  return (int)number;
}

int idle_main(char **arguments)
{
  (void)arguments;
  void *context = host_init(0x1d1e, 2, 0);
  puts("ready");
  fflush(stdout);
  while (getchar() != EOF) {
  }
  host_plugin->finalize(context);
  return 0;
}

static const struct {
  const char *name;
  int arguments;
  int (*run)(char **arguments);
} modes[] = {
    {"cost", 5, cost_main},
    {"start", 1, start_main},
    {"job", 6, job_main},
    {"idle", 0, idle_main},
};

int main(int count, char **arguments)
{
  if (count < 3) host_fail("usage", "host PLUGIN MODE ARGUMENT…");
  setenv("NCCL_ALLGATHERV_ENABLE", "0", 1); /* so that the plugin asks version 6 for GPU times, */
  setenv("NCCL_RUNTIME_CONNECT", "0", 1);   /* whatever room there is in /dev/shm */
  void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) host_fail("dlopen", dlerror());
  host_plugin = dlsym(library, "ncclProfiler_v6");
  if (!host_plugin) host_fail("no plugin of version 6", dlerror());
  for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++)
    if (strcmp(arguments[2], modes[i].name) == 0 && count == 3 + modes[i].arguments) return modes[i].run(arguments + 3);
  host_fail("no such mode with as many arguments", arguments[2]);
}
