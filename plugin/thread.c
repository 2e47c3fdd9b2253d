/* SPDX-License-Identifier: Apache-2.0 */
#include "thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STACK = 256 << 10 };

static uint32_t staying;

void ncclotf2_thread_stays(void) { __atomic_add_fetch(&staying, 1, __ATOMIC_RELAXED); }

void ncclotf2_thread_leaves(void) { __atomic_sub_fetch(&staying, 1, __ATOMIC_RELAXED); }

/* Told by paths alone: opening anything here could take a number that the program expects for itself. */
bool ncclotf2_thread_is_left_alone(void) {
  char leader[64], target[8];
  struct stat tasks;
  snprintf(leader, sizeof leader, "/proc/self/task/%d/exe", (int)getpid());
  return stat("/proc/self/task", &tasks) == 0 &&
         tasks.st_nlink == 2 + 1 + __atomic_load_n(&staying, __ATOMIC_RELAXED) && readlink(leader, target, sizeof target) < 0 &&
         errno == ENOENT;
}

bool ncclotf2_thread_start(void *(*run)(void *)) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, STACK);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  bool started = pthread_create(&thread, &attributes, run, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return started;
}
