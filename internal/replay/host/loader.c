/* SPDX-License-Identifier: Apache-2.0 */
#include "loader.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tally.h"

#define NAME_SIZE 255 /* NCCL's buffer: longer names are cut */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int newest_version, references;
static bool is_rccl, unwanted;
static void *library;
static struct plugin loaded;
const struct plugin *_Atomic loader_plugin;
static const char *version_name = "none";

void loader_begin(int newest, bool rccl)
{
  newest_version = newest;
  is_rccl = rccl;
}

static void __attribute__((noreturn)) give_up(const char *what, const char *why)
{
  fprintf(stderr, "replay-host: %s: %s\n", what, why);
  exit(1);
}

static void *try_open(const char *name, char *why, size_t size)
{
  char cut[NAME_SIZE];
  snprintf(cut, sizeof cut, "%.*s", NAME_SIZE - 1, name);
  void *lib = dlopen(cut, RTLD_NOW | RTLD_LOCAL);
  if (!lib) snprintf(why, size, "%s", dlerror());
  return lib;
}

static bool is_library_name(const char *name)
{
  size_t n = strlen(name);
  return n > 6 && strncmp(name, "lib", 3) == 0 && strcmp(name + n - 3, ".so") == 0;
}

static void *open_library(void)
{
  char why[512] = "", built[NAME_SIZE + 32];
  const char *name = getenv("NCCL_PROFILER_PLUGIN");
  if (!name || !*name) name = "libnccl-profiler.so";
  if (strcasecmp(name, "none") == 0) {
    unwanted = true;
    return NULL;
  }
  /* NCCL compares only as many letters as the name has, so any beginning of the word counts. */
  if (strncasecmp(name, "STATIC_PLUGIN", strlen(name)) == 0) return dlopen(NULL, RTLD_NOW | RTLD_LOCAL);
  void *lib = try_open(name, why, sizeof why);
  if (!lib && !strchr(name, '/') && !is_library_name(name)) {
    snprintf(built, sizeof built, "libnccl-profiler-%s.so", name);
    lib = try_open(built, why, sizeof why);
  }
  if (!lib) give_up("no plugin", why);
  count(&tally.loads);
  return lib;
}

static void load(void)
{
  library = open_library();
  if (!library) return;
  for (int i = 0; i < VERSION_COUNT; i++) {
    const struct layout *l = &layouts[i];
    if (l->version > newest_version) continue;
    const struct profiler_vtable *table = dlsym(library, l->symbol);
    if (!table) continue;
    loaded.layout = is_rccl && l->version == 6 ? &layout_rccl_v6 : l;
    loaded.table = *table;
    version_name = l->symbol + strlen("ncclProfiler_");
    return;
  }
  fprintf(stderr, "replay-host: the library has no plugin: none of ncclProfiler_v1 to ncclProfiler_v%d is in it\n", newest_version);
  exit(1);
}

const struct plugin *loader_acquire(void)
{
  pthread_mutex_lock(&lock);
  if (references++ == 0 && !unwanted) load();
  const struct plugin *plugin = unwanted ? NULL : &loaded;
  atomic_store(&loader_plugin, plugin);
  pthread_mutex_unlock(&lock);
  return plugin;
}

void loader_release(void)
{
  pthread_mutex_lock(&lock);
  if (--references == 0 && library) {
    atomic_store(&loader_plugin, NULL);
    dlclose(library);
    library = NULL;
  }
  pthread_mutex_unlock(&lock);
}

const char *loader_version(void)
{
  pthread_mutex_lock(&lock);
  const char *name = version_name;
  pthread_mutex_unlock(&lock);
  return name;
}
