/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel.PID.jsonl: one line per batch of works that a channel has run.
 */
#include <inttypes.h>
#include <pthread.h>

#include "kernel.h"
#include "settings.h"

static FILE *file;
static pid_t opened_by; /* a forked child gets a file of its own */

static void write_stamps(const struct kernel *k, uint64_t first)
{
  const struct stamps *started = &k->communicator->started[k->number], *completed = &k->communicator->completed[k->number];
  for (int i = 0; i < k->works; i++) {
    const size_t slot = (first + 1 + (uint64_t)i) % STAMPS;
    if (i) fputc(',', file);
    if (work_is_stamped(k->type, k->storage, i))
      fprintf(file, "[%" PRIu64 ",%" PRIu64 "]", started->slot[slot].time, completed->slot[slot].time);
    else fputs("null", file);
  }
}

void truth_batch(const struct kernel *k, const struct function *f, uint64_t end, uint64_t first)
{
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  if (opened_by != getpid()) {
    opened_by = getpid();
    file = truth_open("kernel");
  }
  if (file) {
    fprintf(
      file,
      "{\"dev\":%d,\"launch\":%u,%s\"commRank\":%d,\"nranks\":%d,\"channel\":%d,\"func\":\"%s\",\"works\":%d,\"parts\":%d,\"firstCounter\":%" PRIu64
      ",\"t0\":%" PRIu64 ",\"tDone\":%" PRIu64 ",\"t1\":%" PRIu64 ",\"aborted\":%d,\"pTimers\":[",
      k->device, k->launch, k->label, k->communicator->rank, k->communicator->ranks, k->number, f->name, k->works, k->parts,
      first + 1, k->begun, k->done, end, k->aborted);
    write_stamps(k, first);
    fputs("]}\n", file);
  }
  pthread_mutex_unlock(&lock);
}
