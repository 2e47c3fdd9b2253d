/* SPDX-License-Identifier: Apache-2.0
 *
 * A stand-in for the library that calls the plugin: it has a logger, a version, and calls init from its own
 * code. Built under several names; FAKE_VERSION is what ncclGetVersion says (without: there is none).
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../api_versions.h"

#ifdef FAKE_VERSION
int ncclGetVersion(int *version);
int ncclGetVersion(int *version) {
#ifdef FAKE_VERSION_FAILS
  *version = 4711;
  return 4;
#else
  *version = FAKE_VERSION;
  return 0;
#endif
}
#endif

#ifdef FAKE_HIP
int hipGetDeviceCount(int *count);
int hipGetDeviceCount(int *count) {
  *count = 0;
  return 0;
}
#endif

static void logger(int level, unsigned long flags, const char *file, int line, const char *format, ...) {
  (void)level, (void)flags, (void)file, (void)line, (void)format;
}

/* The results go through memory, so that neither call is the last thing done: a tail call would not return
 * into this library. */
int fake_init_v1(struct ncclotf2_plugin_v1 *plugin, void **context, int *mask);
int fake_init_v1(struct ncclotf2_plugin_v1 *plugin, void **context, int *mask) {
  volatile int result = plugin->init(context, mask);
  return result;
}

int fake_init_v6(struct ncclotf2_plugin_v6 *plugin, void **context, int *mask);
int fake_init_v6(struct ncclotf2_plugin_v6 *plugin, void **context, int *mask) {
  volatile int result = plugin->init(context, 1, mask, NULL, 1, 2, 0, logger);
  return result;
}
