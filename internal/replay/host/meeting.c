/* SPDX-License-Identifier: Apache-2.0 */
#include "meeting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static _Atomic uint32_t *arrived; /* [meeting] */

void meeting_begin(const struct program *program, const char *path)
{
  if (!path) return;
  uint32_t count = 0;
  for (uint32_t i = 1; i <= program->context_count; i++)
    if (program->contexts[i].meeting >= count) count = program->contexts[i].meeting + 1;
  size_t size = count * sizeof *arrived;
  int fd = open(path, O_RDWR | O_CLOEXEC);
  void *at = MAP_FAILED;
  if (fd >= 0 && lseek(fd, 0, SEEK_END) >= (off_t)size) at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) {
    fprintf(stderr, "replay-host: %s: not a file for %u meetings: %s\n", path, count, strerror(errno));
    exit(1);
  }
  close(fd);
  arrived = at;
}

void meeting_arrive(const struct context *context)
{
  if (arrived) atomic_fetch_add(&arrived[context->meeting], 1);
}

/* Some 20 s, once: a member that has not come by then has died. */
void meeting_wait(const struct context *context)
{
  static _Atomic bool given_up;
  if (!arrived) return;
  for (int i = 0; !atomic_load(&given_up) && atomic_load(&arrived[context->meeting]) < context->members; i++) {
    nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
    if (i == 100000) atomic_store(&given_up, true);
  }
}
