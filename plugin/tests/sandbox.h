/* SPDX-License-Identifier: Apache-2.0
 *
 * Sandboxes for tests: system calls that fail, and file systems that only this process sees.
 */
#ifndef NCCLOTF2_TEST_SANDBOX_H
#define NCCLOTF2_TEST_SANDBOX_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "test.h"

enum { SANDBOX_ANY = -1 };

/* From now on the call fails with `error` in this process and in all that it starts; with an argument's number and value only where
 * the argument's lower half has it. */
static inline void sandbox_forbid(long call, int error, int argument, uint32_t value) {
  const uint32_t at = (uint32_t)(offsetof(struct seccomp_data, args) + 8 * (size_t)(argument < 0 ? 0 : argument)); /* little-endian */
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
      BPF_JUMP(BPF_JMP | (argument < 0 ? BPF_JGE : BPF_JEQ) | BPF_K, argument < 0 ? 0 : value, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs: %s", strerror(errno));
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "seccomp: %s", strerror(errno));
}

/* Where a case cannot have something of its own it ends, loudly; as a failure where that may not be. */
static inline void sandbox_lacks(const char *what) {
  printf("     NOT TESTED: no %s of one's own can be had here: %s\n", what, strerror(errno));
  fflush(stdout);
  const char *ci = getenv("CI");
  _exit(getuid() == 0 && ci && strcmp(ci, "true") == 0);
}

/* Mounts of its own for this process. */
static inline void sandbox_mounts(void) {
  if (unshare(getuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) sandbox_lacks("mounts");
}

/* A name of the host that only this process, and what it starts, sees. */
static inline void sandbox_names(void) {
  if (unshare(getuid() == 0 ? CLONE_NEWUTS : CLONE_NEWUTS | CLONE_NEWUSER) != 0) sandbox_lacks("host name");
}

/* A /dev/shm of this size. */
static inline void sandbox_shm(unsigned mebibytes) {
  char size[32];
  snprintf(size, sizeof size, "size=%um,mode=1777", mebibytes);
  CHECK(mount("tmpfs", "/dev/shm", "tmpfs", 0, size) == 0, "tmpfs: %s", strerror(errno));
}

/* A file of the system says something else. */
static inline void sandbox_file(const char *path, const char *folder, const char *text) {
  char other[4096];
  snprintf(other, sizeof other, "%s/instead", folder);
  FILE *file = fopen(other, "w");
  CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0, "%s: %s", other, strerror(errno));
  CHECK(mount(other, path, NULL, MS_BIND, NULL) == 0, "%s: %s", path, strerror(errno));
}

#endif
