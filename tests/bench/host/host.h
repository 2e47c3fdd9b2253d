/* SPDX-License-Identifier: Apache-2.0
 *
 * A program in NCCL's place that calls a plugin (its path is the first argument) as fast or as slowly as it is
 * told, and prints what it cost, as JSON:
 *
 *   host PLUGIN cost  PIECE THREADS WARM_UP SEQUENCES PERIOD_NS   single callbacks, see cost.c
 *   host PLUGIN start LATER                                       initialization, see start.c
 *   host PLUGIN job   NRANKS FIRST COUNT RATE SECONDS CHURN       whole ranks at work, see job.c
 *   host PLUGIN idle                                              a communicator, and nothing but waiting for the
 *                                                                 end of the standard input
 *
 * It needs no GPU and no NCCL. It ends with 1 and a line on the standard error stream if something is wrong.
 */
#ifndef BENCH_HOST_H
#define BENCH_HOST_H

#include <stdint.h>

#include "plugin/api_versions.h"

extern const struct ncclotf2_plugin_v6 *host_plugin;

/* init of a communicator rank; its context. */
void *host_init(uint64_t comm_id, int nranks, int rank);

void *host_allocate(uint64_t count, uint64_t size); /* with its pages in place */
int host_count(unsigned long number); /* checks that it is one of threads or ranks */

_Noreturn void host_fail(const char *what, const char *why);

int cost_main(char **arguments);
int start_main(char **arguments);
int job_main(char **arguments);
int idle_main(char **arguments);

#endif
