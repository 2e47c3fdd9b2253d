/* SPDX-License-Identifier: Apache-2.0
 *
 * How long the job waits for whoever writes its records down: once, a bounded time, and not again until there is an answer.
 */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../collector.h"
#include "../consumer.h"
#include "host.h"
#include "test.h"

/* How long is waited where no answer comes, and where one does, however busy the machine is. */
enum { SHORT_MS = 300, LONG_MS = 300000 };

enum { LIFES = 20, EVENTS = 100 };

static pid_t collector(void) { return (pid_t)host_header()->collector_pid; }

static void live(uint64_t id) {
  void *context = host_init(id, 2, 0);
  for (int i = 0; i < EVENTS; i++) {
    void *handle = host_start(context, host_descr(NCCLOTF2_COLL));
    CHECK(handle, "refused");
    ncclProfiler_v6.stopEvent(handle);
  }
  ncclProfiler_v6.finalize(context);
}

static void await_answer(void) {
  EVENTUALLY(__atomic_load_n(&host_header()->answered, __ATOMIC_ACQUIRE) == host_header()->request);
}

/* Shown as stopped a little after it was told to. */
static void stop_collector(void) {
  CHECK(kill(collector(), SIGSTOP) == 0, "SIGSTOP: %s", strerror(errno));
  const char *state;
  EVENTUALLY((state = ncclotf2_process_holdup(collector())) && strcmp(state, "it is stopped") == 0);
}

static uint64_t count_records(void) {
  struct reader *reader = calloc(1, sizeof *reader);
  CHECK(reader, "no memory");
  reader->keep = true;
  const uint64_t count = reader_drain(reader, NULL, NULL);
  free(reader);
  return count;
}

static void stopped(void) {
  host_use_stub("ready", 0xf47);
  ncclotf2_patience.collector_ms = SHORT_MS;
  host_init(1, 2, 0);
  live(2); /* the first communicator is alive: nobody asks */
  EQUAL(host_header()->request, 0, "requests");
  stop_collector();
  const int lines = host_lines;
  ncclotf2_consumer_flush();
  EQUAL(host_header()->unanswered, 1, "unanswered");
  const uint64_t once = host_header()->waited;
  CHECK(once >= SHORT_MS * 1000000, "it has waited for %llu ns", (unsigned long long)once);
  CHECK(host_logged("did not answer within") && host_logged("it is stopped") && host_logged("kill -CONT"), "%s", host_line);
  for (int i = 0; i < LIFES; i++) ncclotf2_consumer_flush();
  EQUAL(host_header()->unanswered, 1 + LIFES, "unanswered");
  CHECK(host_header()->waited - once < LIFES * SHORT_MS * 500000ULL, "it has waited again, for %llu ns", (unsigned long long)(host_header()->waited - once));
  EQUAL(host_lines, lines + 1, "warnings");

  kill(collector(), SIGCONT);
  await_answer();
  ncclotf2_patience.collector_ms = LONG_MS;
  ncclotf2_consumer_flush(); /* waited for as before */
  EQUAL(host_header()->unanswered, 1 + LIFES, "unanswered once it goes on");
  EQUAL(host_header()->answered, host_header()->request, "answers");

  ncclotf2_patience.collector_ms = SHORT_MS;
  stop_collector(); /* and the second time like the first, but for the line */
  ncclotf2_consumer_flush();
  ncclotf2_consumer_flush();
  EQUAL(host_header()->unanswered, 3 + LIFES, "unanswered the second time");
  EQUAL(host_lines, lines + 1, "warnings");
  kill(collector(), SIGCONT);
}

/* As stopped, by what NCCL calls; and the process's end does not wait either. */
static void stopped_for_several_lives(void) {
  host_use_stub("ready", 0xf47);
  ncclotf2_patience.collector_ms = LONG_MS;
  live(1);
  EQUAL(host_header()->unanswered, 0, "unanswered");
  ncclotf2_patience.collector_ms = SHORT_MS;
  stop_collector();
  const int lines = host_lines;
  for (uint64_t life = 2; life < 2 + LIFES; life++) live(life);
  EQUAL(host_header()->unanswered, LIFES, "unanswered");
  CHECK(host_header()->waited < LIFES * SHORT_MS * 500000ULL, "it has waited for %llu ns", (unsigned long long)host_header()->waited);
  EQUAL(host_lines, lines + 1, "warnings");
  EQUAL(count_records(), 1 + (1 + LIFES) * (2 + 2 * EVENTS), "records in memory"); /* thread; init, finalize, starts and stops */
  kill(collector(), SIGCONT);
  await_answer();
}

/* One that wants a processor and gets none, or cannot keep up, is no cause to warn. */
static void busy(void) {
  host_use_stub("busy", 0xf47);
  ncclotf2_patience.collector_ms = SHORT_MS;
  host_subsystems = ~0UL;
  const int lines = host_lines;
  live(1);
  live(2);
  EQUAL(host_header()->unanswered, 2, "unanswered");
  CHECK(host_logged("got no processor to answer within"), "%s", host_line);
  EQUAL(host_lines, lines + 1, "warnings"); /* the stub's own "ready" */
  kill(collector(), SIGKILL);
}

/* A collector that ends is replaced also while another is stuck. */
static void killed_while_stopped(void) {
  host_use_stub("ready", 0xf47);
  ncclotf2_patience.collector_ms = SHORT_MS;
  host_init(1, 2, 0);
  stop_collector();
  ncclotf2_consumer_flush();
  EQUAL(host_header()->unanswered, 1, "unanswered");
  const pid_t dead = collector();
  kill(dead, SIGKILL);
  EVENTUALLY(!ncclotf2_process_alive(dead));
  ncclotf2_patience.collector_ms = LONG_MS;
  ncclotf2_consumer_flush();
  CHECK(host_logged("a new one is started"), "%s", host_line);
  EQUAL(host_header()->answered, host_header()->request, "answers of the new one");
  EQUAL(host_header()->unanswered, 1, "unanswered");
}

/* ---- a disk that hangs ---- */

static atomic_bool hangs;

__attribute__((visibility("default"))) ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at);
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
  while (atomic_load(&hangs)) usleep(1000);
  ssize_t written = 0;
  for (int i = 0; i < count; i++) {
    const ssize_t got = parts[i].iov_len ? pwrite(fd, parts[i].iov_base, parts[i].iov_len, at + written) : 0;
    if (got < 0) return written ? written : got;
    written += got;
    if ((size_t)got < parts[i].iov_len) break;
  }
  return written;
}

static void hanging_disk(void) {
  char directory[PATH_MAX];
  snprintf(directory, sizeof directory, "%s/experiment", host_folder());
  setenv("NCCL_OTF2_DIR", directory, 1);
  setenv("NCCL_OTF2_COLLECTOR", "spool", 1);
  ncclotf2_patience.longest_ms = LONG_MS;
  live(1);
  EQUAL(host_header()->unanswered, 0, "unanswered");
  ncclotf2_patience.longest_ms = SHORT_MS;
  atomic_store(&hangs, true);
  const int lines = host_lines;
  for (uint64_t life = 2; life < 2 + LIFES; life++) live(life);
  EQUAL(host_header()->unanswered, LIFES, "unanswered");
  CHECK(host_logged("the raw file was not written within"), "%s", host_line);
  EQUAL(host_lines, lines + 1, "warnings");
  atomic_store(&hangs, false);
  await_answer();
  ncclotf2_patience.longest_ms = LONG_MS;
  live(100);
  EQUAL(host_header()->unanswered, LIFES, "unanswered once it goes on");
}

TEST_MAIN({"a stopped collector is waited for once, until it answers again", stopped},
          {"a stopped collector costs several lives one wait", stopped_for_several_lives},
          {"a busy collector is waited for once, without a warning", busy},
          {"a collector that dies while it is waited for in vain is replaced", killed_while_stopped},
          {"a hanging disk is waited for once, until it goes on", hanging_disk})
