/* SPDX-License-Identifier: Apache-2.0
 *
 * How long init takes: the first, which starts the collector, and LATER further ones; and the finalize of the last
 * communicator, which waits until everything is on disk.
 */
#include <stdio.h>
#include <stdlib.h>

#include "host.h"
#include "timer.h"

int start_main(char **arguments)
{
  const int later = host_count(strtoul(arguments[0], NULL, 10));
  void **contexts = host_allocate((uint64_t)later + 1, sizeof *contexts);
  uint64_t began = timer_monotonic();
  contexts[0] = host_init(0x57a27, 2, 0);
  printf("{\"first_ns\":%llu,\"later_ns\":[", (unsigned long long)(timer_monotonic() - began));
  for (int i = 1; i <= later; i++) {
    began = timer_monotonic();
    contexts[i] = host_init(0x57a27 + (uint64_t)i, 2, 0);
    printf("%s%llu", i > 1 ? "," : "", (unsigned long long)(timer_monotonic() - began));
  }
  for (int i = 1; i <= later; i++) host_plugin->finalize(contexts[i]);
  began = timer_monotonic();
  host_plugin->finalize(contexts[0]);
  printf("],\"last_finalize_ns\":%llu}\n", (unsigned long long)(timer_monotonic() - began));
  free(contexts);
  return 0;
}
