/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static _Atomic uint64_t *ledger; /* [call] */
_Static_assert(sizeof *ledger == LEDGER_SIZE, "size of an entry");

void ledger_begin(const struct program *program, const char *path)
{
  const size_t size = program->call_count * sizeof *ledger;
  if (!path || size == 0) return;
  int fd = open(path, O_RDWR | O_CLOEXEC);
  void *at = MAP_FAILED;
  if (fd >= 0 && lseek(fd, 0, SEEK_END) >= (off_t)size) at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) {
    fprintf(stderr, "replay-host: %s: not a file for %u calls: %s\n", path, program->call_count, strerror(errno));
    exit(1);
  }
  close(fd);
  ledger = at;
}

void ledger_returned(uint32_t call, const void *handle)
{
  if (ledger) atomic_store(&ledger[call], handle ? (uint64_t)(uintptr_t)handle : LEDGER_RETURNED);
}
