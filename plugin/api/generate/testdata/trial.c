/* SPDX-License-Identifier: Apache-2.0
 *
 * A job process that speaks a version of the API that does not exist: trial PLUGIN. See trial_test.go.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>

#include "api_versions.h"

static void logger(int level, unsigned long flags, const char *file, int line, const char *format, ...) {
  (void)flags, (void)file, (void)line;
  if (level != NCCLOTF2_LOG_WARN) return;
  va_list args;
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
}

static struct ncclotf2_plugin_v8 *plugin;
static void *context;

static void *start(struct ncclotf2_descr_v8 d, unsigned type, void *parent) {
  void *handle = NULL;
  d.type = 1ull << type;
  d.parentObj = parent;
  plugin->startEvent(context, &handle, &d);
  if (!handle) fprintf(stderr, "type %u is refused\n", type);
  return handle;
}

int main(int argc, char **argv) {
  void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  plugin = library ? dlsym(library, "ncclProfiler_v8") : NULL;
  int mask = 0;
  if (!plugin) return fprintf(stderr, "%s\n", dlerror()), 1;
  plugin->init(&context, 0xabc, &mask, "trial", 1, 2, 0, logger);
  if (!(mask & 1 << NCCLOTF2_CE_FENCE)) return fprintf(stderr, "the mask is %#x\n", (unsigned)mask), 1;
  void *call = start((struct ncclotf2_descr_v8){.collApi = {.func = "AllGather", .datatype = "ncclInt8", .count = 8}}, NCCLOTF2_COLL_API, NULL);
  plugin->stopEvent(call);
  void *coll = start((struct ncclotf2_descr_v8){.coll = {.func = "AllGather", .datatype = "ncclInt8", .count = 8, .deadline = 123456}},
                     NCCLOTF2_COLL, call);
  plugin->stopEvent(coll);
  void *copy = start((struct ncclotf2_descr_v8){.ceColl = {.func = "AllGather", .datatype = "ncclInt8", .count = 8}}, NCCLOTF2_CE_COLL, call);
  void *fence = start((struct ncclotf2_descr_v8){.ceFence = {.reason = "late", .peer = 1}}, NCCLOTF2_CE_FENCE, copy);
  union ncclotf2_state_args args = {.proxyStep = {.transSize = 77}};
  plugin->recordEventState(fence, NCCLOTF2_STATE_CE_FENCE_REACHED, &args);
  plugin->stopEvent(fence);
  plugin->stopEvent(copy);
  plugin->finalize(context);
  return 0;
}
