/* SPDX-License-Identifier: Apache-2.0 */
#include "host.h"

#include <dirent.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../chunk.h"
#include "../config.h"
#include "../ring.h"
#include "test.h"

int host_mask;
_Atomic int host_lines;
unsigned long host_subsystems = 0x1 | 0x80 | 0x1000;
char host_line[1024];

#if defined(__SANITIZE_THREAD__)
/* Else no thread can begin in the child of a process with threads, and each process with threads sleeps for a second at its end:
 * the plugin has some. */
const char *__tsan_default_options(void);
__attribute__((visibility("default"))) const char *__tsan_default_options(void) { return "die_after_fork=0:atexit_sleep_ms=50"; }
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static bool others_sleep(void) {
  DIR *tasks = opendir("/proc/self/task");
  bool sleep = true;
  for (const struct dirent *task; tasks && (task = readdir(tasks));) {
    char name[64], line[256] = "";
    snprintf(name, sizeof name, "/proc/self/task/%.16s/stat", task->d_name);
    FILE *stat = *task->d_name != '.' && atoi(task->d_name) != gettid() ? fopen(name, "r") : NULL;
    const char *state = stat && fgets(line, sizeof line, stat) ? strrchr(line, ')') : NULL;
    sleep = sleep && (!state || state[2] == 'S');
    if (stat) fclose(stat);
  }
  if (tasks) closedir(tasks);
  return sleep;
}

/* The sanitizers' allocators have locks that a child inherits as they are: AddressSanitizer's before GCC 14, and both where a
 * child is made past the C library. A thread takes them when it begins, also one that never allocates: the plugin's. So threads
 * begin before a child is made; those that are always busy are not waited for. */
static void before_fork(void) {
  for (int tries = 0; tries < 2000 && !others_sleep(); tries++) usleep(1000);
}
#else
static void before_fork(void) {}
#endif

#if defined(__SANITIZE_ADDRESS__)
__attribute__((constructor)) static void wait_before_forks(void) { pthread_atfork(before_fork, NULL, NULL); }
#endif

pid_t host_bare_fork(void) {
  before_fork();
  return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static char all_lines[64 << 10];
static pthread_mutex_t lines = PTHREAD_MUTEX_INITIALIZER; /* the plugin logs from threads of its own too */

void host_logger(int level, unsigned long flags, const char *file, int line, const char *format, ...) {
  pthread_mutex_lock(&lines);
  va_list args;
  va_start(args, format);
  vsnprintf(host_line, sizeof host_line, format, args);
  va_end(args);
  CHECK(level == NCCLOTF2_LOG_WARN || level == NCCLOTF2_LOG_INFO, "level %d: %s", level, host_line);
  CHECK(file && *file && line > 0, "no place given");
  CHECK(strncmp(host_line, "NCCL_OTF2: ", 11) == 0, "%s", host_line);
  CHECK(!strchr(host_line, '\n'), "more than a line: %s", host_line);
  if (!(flags & host_subsystems)) { /* as NCCL does, at every level */
    pthread_mutex_unlock(&lines);
    return;
  }
  if (level == NCCLOTF2_LOG_WARN) host_lines++;
  size_t used = strlen(all_lines);
  snprintf(all_lines + used, sizeof all_lines - used, "%s\n", host_line);
  pthread_mutex_unlock(&lines);
}

bool host_logged(const char *part) {
  pthread_mutex_lock(&lines);
  bool found = strstr(all_lines, part) != NULL;
  pthread_mutex_unlock(&lines);
  return found;
}

static char folder[PATH_MAX];
static pid_t folder_owner;

static int clean_one(const char *path, const struct stat *info, int type, struct FTW *walk) {
  (void)info;
  (void)type;
  (void)walk;
  return remove(path);
}

static void clean(void) {
  if (getpid() == folder_owner && nftw(folder, clean_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
    fprintf(stderr, "%s is left behind: %s\n", folder, strerror(errno));
}

/* As if grouped Broadcasts were harmless and /dev/shm had room for everybody, so that v6 is asked for all that the settings say. */
static __attribute__((constructor)) void no_dangers(void) {
  setenv("NCCL_ALLGATHERV_ENABLE", "0", 1);
  setenv("NCCL_RUNTIME_CONNECT", "0", 1);
}

const char *host_folder(void) {
  if (!*folder) {
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/nccl-otf2-test-XXXXXX", parent && *parent ? parent : "/tmp");
    CHECK(mkdtemp(folder), "%s: %s", folder, strerror(errno));
    folder_owner = getpid();
    atexit(clean); /* before the plugin's own handler is registered, so it runs after that */
  }
  return folder;
}

void host_use_stub(const char *behavior, uint32_t mask) {
  char program[PATH_MAX], text[PATH_MAX + 32];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  CHECK(length > 0, "who am I: %s", strerror(errno));
  program[length] = '\0';
  *strrchr(program, '/') = '\0';
  snprintf(text, sizeof text, "%s/stub_collector", program);
  CHECK(access(text, X_OK) == 0, "%s is missing", text);
  setenv("NCCL_OTF2_COLLECTOR", text, 1);
  setenv("STUB", behavior, 1);
  setenv("NCCL_OTF2_START_LIMIT", "60", 0); /* however busy the machine is elsewhere */
  snprintf(text, sizeof text, "%u", mask);
  setenv("STUB_MASK", text, 1);
  snprintf(text, sizeof text, "%s/stub.out", host_folder());
  setenv("STUB_OUT", text, 1);
}

const char *host_gate(void) {
  static char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/gate", host_folder());
  FILE *file = fopen(path, "w");
  CHECK(file && fclose(file) == 0, "%s: %s", path, strerror(errno));
  setenv("STUB_GATE", path, 1);
  return path;
}

uint64_t host_spooled(void) {
  char path[PATH_MAX + 300];
  char host[sizeof host_header()->hostname];
  memcpy(host, host_header()->hostname, sizeof host);
  ncclotf2_config_file_name(host);
  snprintf(path, sizeof path, "%s/shards/%s-%d-%04x.spool", getenv("NCCL_OTF2_DIR"), host, (int)host_header()->pid,
           host_header()->tag);
  struct stat file;
  return stat(path, &file) == 0 ? (uint64_t)file.st_size : 0;
}

void *host_init(uint64_t comm_id, int nranks, int rank) {
  void *context = NULL;
  EQUAL(ncclProfiler_v6.init(&context, comm_id, &host_mask, NULL, 1, nranks, rank, host_logger), 0, "init");
  CHECK(context, "NULL context");
  return context;
}

struct ncclotf2_descr_v6 host_descr(unsigned type) {
  struct ncclotf2_descr_v6 descr;
  memset(&descr, 0, sizeof descr);
  descr.type = 1ULL << type;
  return descr;
}

void *host_start(void *context, struct ncclotf2_descr_v6 descr) {
  void *handle = (void *)(uintptr_t)0xbadbadbadbadULL;
  EQUAL(ncclProfiler_v6.startEvent(context, &handle, &descr), 0, "startEvent");
  CHECK(handle != (void *)(uintptr_t)0xbadbadbadbadULL, "*eHandle was not written");
  return handle;
}

pid_t test_case_pid;

/* AddressSanitizer asks before it looks for leaks at a process's end. A case's children do without: it takes its
 * allocator's locks for that, which nobody gives back in them if another thread had one when they were made. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return test_case_pid && getpid() != test_case_pid; }

void *host_guarded(size_t size) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (size + page - 1) / page * page;
  uint8_t *start = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(start != MAP_FAILED && mprotect(start + room, page, PROT_NONE) == 0, "no guarded memory: %s", strerror(errno));
  memset(start, 0xa5, room);
  return start + room - size;
}

uint32_t host_string_id(const char *text) {
  uint32_t found = 0, count = 0;
  for (uint64_t at = 0; at < host_header()->string_used;) {
    struct ncclotf2_string *string = ncclotf2_string_at(ncclotf2_session.base, at);
    if (strcmp((const char *)string + offsetof(struct ncclotf2_string, bytes), text) == 0) {
      EQUAL(string->length, strlen(text) + 1, "length");
      found = (uint32_t)(at / 8 + 1);
      count++;
    }
    at += (4 + string->length + 7) & ~7ULL;
  }
  EQUAL(count, 1, text);
  return found;
}

void host_fill_free_chunks(void) {
  for (uint32_t i = 0; i < 8; i++) { /* those that were prepared first */
    uint8_t *chunk = (uint8_t *)ncclotf2_chunk_at(ncclotf2_session.base, i);
    const bool used = ncclotf2_chunk_states_at(ncclotf2_session.base)[i] == NCCLOTF2_CHUNK_USED;
    const size_t from = NCCLOTF2_CHUNK_HEAD + (used ? ncclotf2_chunk_at(ncclotf2_session.base, i)->committed : 0);
    memset(chunk + from, 0xa5, NCCLOTF2_CHUNK_SIZE - from);
  }
}

void host_same_record(const void *got, void *want, size_t size, unsigned kind, unsigned type) {
  const struct ncclotf2_record *have = got;
  struct ncclotf2_record *head = want;
  EQUAL(have->kind, kind, "kind");
  EQUAL(have->type, type, "type");
  EQUAL(have->units * NCCLOTF2_UNIT, size, "length");
  head->ticks = have->ticks;
  head->kind = (uint8_t)kind;
  head->type = (uint8_t)type;
  head->units = (uint8_t)(size / NCCLOTF2_UNIT);
  for (size_t i = 0; i < size; i++)
    CHECK(((const uint8_t *)got)[i] == ((const uint8_t *)want)[i], "kind %u, type %u: byte %zu is 0x%02x, want 0x%02x", kind,
          type, i, ((const uint8_t *)got)[i], ((const uint8_t *)want)[i]);
}

uint64_t reader_drain(struct reader *reader, void (*each)(uint32_t, const struct ncclotf2_record *, void *), void *closure) {
  uint8_t *base = ncclotf2_session.base;
  uint32_t used = __atomic_load_n(&host_header()->ring_used, __ATOMIC_ACQUIRE);
  uint64_t count = 0;
  for (uint32_t i = 0; i < used; i++) {
    struct ncclotf2_ring *ring = ncclotf2_ring_at(base, i);
    if (!reader->rings[i].chunk) {
      reader->rings[i].chunk = __atomic_load_n(&ring->first, __ATOMIC_ACQUIRE);
      if (!reader->rings[i].chunk) continue;
    }
    for (;;) {
      struct ncclotf2_chunk *chunk = ncclotf2_chunk_at(base, reader->rings[i].chunk - 1);
      uint32_t next = __atomic_load_n(&chunk->next, __ATOMIC_ACQUIRE);
      uint32_t committed = __atomic_load_n(&chunk->committed, __ATOMIC_ACQUIRE);
      EQUAL(chunk->ring, i, "chunk's ring");
      EQUAL(chunk->sequence, reader->rings[i].sequence, "chunk's sequence");
      CHECK(committed % NCCLOTF2_UNIT == 0 && committed <= NCCLOTF2_CHUNK_SIZE - NCCLOTF2_CHUNK_HEAD, "committed %u",
            committed);
      while (reader->rings[i].bytes < committed) {
        const struct ncclotf2_record *record =
            (const void *)((const uint8_t *)chunk + NCCLOTF2_CHUNK_HEAD + reader->rings[i].bytes);
        CHECK(record->units && record->units * NCCLOTF2_UNIT <= committed - reader->rings[i].bytes, "units %u", record->units);
        CHECK(record->kind >= NCCLOTF2_RECORD_THREAD && record->kind <= NCCLOTF2_RECORD_MASK, "kind %u",
              record->kind);
        CHECK(reader->rings[i].records++ || record->kind == NCCLOTF2_RECORD_THREAD, "a ring begins with kind %u", record->kind);
        if (each) each(i, record, closure);
        reader->rings[i].bytes += record->units * NCCLOTF2_UNIT;
        count++;
      }
      if (!next) break;
      if (!reader->keep) {
        __atomic_store_n(&ring->first, next, __ATOMIC_RELEASE);
        ncclotf2_chunk_free(reader->rings[i].chunk - 1);
      }
      reader->rings[i].chunk = next;
      reader->rings[i].bytes = 0;
      reader->rings[i].sequence++;
    }
  }
  return count;
}

struct own {
  const struct ncclotf2_record **list, *last;
  size_t most, count;
};

static void remember(uint32_t ring, const struct ncclotf2_record *record, void *closure) {
  struct own *own = closure;
  if (ncclotf2_ring != ncclotf2_ring_at(ncclotf2_session.base, ring)) return;
  if (own->count < own->most) own->list[own->count] = record;
  own->count++;
  own->last = record;
}

static struct own read_own(const struct ncclotf2_record **list, size_t most) {
  struct reader *reader = calloc(1, sizeof *reader);
  CHECK(reader, "no memory");
  reader->keep = true;
  struct own own = {.list = list, .most = most};
  reader_drain(reader, remember, &own);
  free(reader);
  return own;
}

const void *reader_last(void) {
  const struct ncclotf2_record *last = read_own(NULL, 0).last;
  CHECK(last, "this thread has no record");
  return last;
}

size_t reader_own(const struct ncclotf2_record **list, size_t most) { return read_own(list, most).count; }
