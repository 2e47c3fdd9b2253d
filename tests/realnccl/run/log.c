/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "run.h"

uint64_t now_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void sleep_ms(long ms)
{
  const struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&t, NULL);
}

/* Whole lines, appended at once: a process that is killed leaves none that is cut. */
void log_line(const char *kind, const char *format, ...)
{
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static struct {
    const char *kind;
    FILE *file;
  } files[8];
  char path[512];
  va_list list;
  size_t i = 0;
  pthread_mutex_lock(&lock);
  while (i < 7 && files[i].kind && strcmp(files[i].kind, kind) != 0) i++;
  if (!files[i].kind) {
    snprintf(path, sizeof path, "%s/%s.%d.jsonl", options.folder, kind, (int)getpid());
    files[i].kind = kind;
    files[i].file = fopen(path, "ae");
    if (files[i].file) setvbuf(files[i].file, NULL, _IOLBF, 1 << 16);
  }
  va_start(list, format);
  if (files[i].file) vfprintf(files[i].file, format, list);
  va_end(list);
  pthread_mutex_unlock(&lock);
}

void give_up(enum exit_code code, const char *format, ...)
{
  va_list list;
  char text[512];
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  fprintf(stderr, "ncclrun: process %d: %s\n", process_number, text);
  fflush(NULL);
  _exit(code); /* other threads are still at it */
}

void cuda_must(cudaError_t error, const char *what)
{
  if (error != cudaSuccess) give_up(CUDA_FAILED, "%s: CUDA error %d", what, error);
}

void nccl_must(ncclResult_t result, const char *what)
{
  if (result != ncclSuccess && result != ncclInProgress)
    give_up(NCCL_FAILED, "%s: %s (%s)", what, ncclGetErrorString(result), ncclGetLastError(NULL));
}
