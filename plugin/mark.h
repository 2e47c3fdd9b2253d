/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks of the application: its phases (a training step, a checkpoint) and points in time. They are shown
 * on the calling thread. A program need not be linked with the plugin: it finds the functions in the
 * library that NCCL has loaded, as python/nccl_otf2.py does,
 *
 *   void *plugin = dlopen("libnccl-profiler-otf2.so", RTLD_NOLOAD | RTLD_LAZY);
 *   void (*phase_begin)(const char *) = plugin ? dlsym(plugin, "nccl_otf2_phase_begin") : NULL;
 *
 * Without a recording (no communicator has been made yet, the plugin is off, a forked child) they do
 * nothing. Any thread; they never fail and never block.
 */
#ifndef NCCL_OTF2_MARK_H
#define NCCL_OTF2_MARK_H

#ifdef __cplusplus
extern "C" {
#endif

/* Begins a phase on this thread. Phases nest. Names longer than 127 bytes are cut. */
void nccl_otf2_phase_begin(const char *name);

/* Ends the phase that this thread began last. */
void nccl_otf2_phase_end(void);

/* Marks this moment. */
void nccl_otf2_mark(const char *text);

#ifdef __cplusplus
}
#endif

#endif
