/* SPDX-License-Identifier: Apache-2.0
 *
 * A collector for tests: says what it was told to say and reports what it found in itself.
 *
 *   STUB        ready    gets ready, answers requests, ends after the process's exit request
 *               refuse   refuses with a message
 *               exit     ends at once
 *               late     does nothing while there is a file STUB_GATE, then gets ready
 *               leave    gets ready, then ends
 *               die      gets ready, then ends by itself at the first request, unanswered
 *               busy     gets ready, answers nothing, and always wants a processor
 *   STUB_MASK   event and record mask
 *   STUB_CUPTI  header.cupti_kinds
 *   STUB_OUT    file to which a report line is appended
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../futex.h"
#include "../shm.h"

static void report(int fd) {
  const char *path = getenv("STUB_OUT");
  FILE *out = path ? fopen(path, "a") : NULL;
  if (!out) return;
  int open_fds = 0;
  DIR *fds = opendir("/proc/self/fd");
  for (struct dirent *entry; fds && (entry = readdir(fds));) {
    int number = entry->d_name[0] == '.' ? -1 : atoi(entry->d_name);
    if (number > 2 && number != fd && number != dirfd(fds) && number != fileno(out)) open_fds++;
  }
  if (fds) closedir(fds);
  struct stat standard[3], null;
  stat("/dev/null", &null);
  int nulls = 0;
  for (int i = 0; i < 3; i++) nulls += fstat(i, &standard[i]) == 0 && standard[i].st_rdev == null.st_rdev;
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, NULL, &blocked);
  int unusual = 0;
  for (int number = 1; number < 65; number++) {
    struct sigaction action;
    if (sigismember(&blocked, number) > 0) unusual++;
    if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL) unusual++;
  }
  fprintf(out, "leader=%d fds=%d nulls=%d signals=%d nice=%d preload=%s kept=%s pid=%d\n", getsid(0) == getpid(),
          open_fds, nulls, unusual, getpriority(PRIO_PROCESS, 0), getenv("LD_PRELOAD") || getenv("LD_AUDIT") ? "set" : "unset",
          getenv("KEPT") ? getenv("KEPT") : "unset", (int)getpid());
  fclose(out);
}

static void say(struct ncclotf2_header *header, uint32_t state) {
  snprintf(header->place, sizeof header->place, "/stub");
  header->collector_pid = (uint32_t)getpid();
  __atomic_store_n(&header->collector_state, state, __ATOMIC_RELEASE);
  ncclotf2_futex_wake(&header->collector_state);
}

static void post(struct ncclotf2_header *header, const char *text) {
  size_t length = strnlen(text, sizeof header->message - 1);
  for (size_t i = 0; i < length; i++) __atomic_store_n(&header->message[i], text[i], __ATOMIC_RELAXED);
  __atomic_store_n(&header->message[length], 0, __ATOMIC_RELAXED);
  __atomic_add_fetch(&header->message_number, 1, __ATOMIC_RELEASE);
}

int main(int argc, char **argv) {
  if (argc != 4 || strcmp(argv[1], "collect") != 0 || strcmp(argv[2], "--fd") != 0) return 2;
  int fd = atoi(argv[3]);
  struct stat info;
  if (fstat(fd, &info) != 0) return 1;
  struct ncclotf2_header *header = mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (header == MAP_FAILED || header->magic != NCCLOTF2_SHM_MAGIC) return 1;
  alarm(1200);
  report(fd);
  const char *behavior = getenv("STUB") ? getenv("STUB") : "";
  uint32_t mask = (uint32_t)strtoul(getenv("STUB_MASK") ? getenv("STUB_MASK") : "0", NULL, 0);
  if (strcmp(behavior, "exit") == 0) return 3;
  if (strcmp(behavior, "late") == 0)
    while (access(getenv("STUB_GATE"), F_OK) == 0 && kill((pid_t)header->pid, 0) == 0) usleep(1000);
  /* The default directory is named after the first communicator, so it must be there by now; before v4
   * nobody knows who it is. */
  struct ncclotf2_comm *comms = (void *)((char *)header + header->comm_offset);
  if (header->comm_used == 0 || (header->api_version >= 4 && (!comms[0].ready || comms[0].comm_id == 0))) {
    post(header, "stub: no communicator yet");
    say(header, NCCLOTF2_COLLECTOR_REFUSED);
    return 1;
  }
  if (strcmp(behavior, "refuse") == 0) {
    post(header, "stub: refused because it was told to");
    say(header, NCCLOTF2_COLLECTOR_REFUSED);
    return 1;
  }
  header->event_mask = header->record_mask = mask;
  header->cupti_kinds = strtoull(getenv("STUB_CUPTI") ? getenv("STUB_CUPTI") : "0", NULL, 0);
  post(header, "stub: ready");
  say(header, NCCLOTF2_COLLECTOR_READY);
  if (strcmp(behavior, "leave") == 0) return 5;
  while (strcmp(behavior, "busy") == 0)
    if (kill((pid_t)header->pid, 0) != 0) return 0;
  for (uint32_t answered = 0;;) {
    uint32_t request = __atomic_load_n(&header->request, __ATOMIC_ACQUIRE);
    bool ended = __atomic_load_n(&header->ended, __ATOMIC_ACQUIRE);
    if (request != answered) {
      if (strcmp(behavior, "die") == 0) return 4;
      __atomic_store_n(&header->answered, request, __ATOMIC_RELEASE);
      ncclotf2_futex_wake(&header->answered);
      answered = request;
      if (ended) return 0;
    }
    if (kill((pid_t)header->pid, 0) != 0 && errno == ESRCH) return 0;
    ncclotf2_futex_wait(&header->request, request, 50);
  }
}
