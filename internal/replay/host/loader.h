/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding, opening and closing the plugin as NCCL 2.27 and later do (src/plugin/profiler.cc,
 * src/plugin/plugin_open.cc).
 */
#ifndef REPLAY_HOST_LOADER_H
#define REPLAY_HOST_LOADER_H

#include "layouts.h"

struct plugin {
  const struct layout *layout;
  struct profiler_vtable table; /* a copy: NCCL keeps none, but the struct goes away with dlclose */
};

/* What is open; NULL: nothing is delivered. Changed by the two functions below only. */
extern const struct plugin *_Atomic loader_plugin;

/* newest: plugin API that is looked up first. rccl: version 6 is RCCL's own. */
void loader_begin(int newest, bool rccl);

/* Once per communicator, before its init: opens the library if none is open. NULL if the user wants
 * no plugin (NCCL_PROFILER_PLUGIN=none). If there is none to be had this is said in one line, and
 * the process ends with status 1 (NCCL itself would go on without). Threads may call it at the same
 * time. */
const struct plugin *loader_acquire(void);

/* Once per communicator, after its finalize: closes the library with the last. */
void loader_release(void);

/* The version in use, or last in use: "v6"; "none" if there never was one. */
const char *loader_version(void);

#endif
