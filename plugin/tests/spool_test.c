/* SPDX-License-Identifier: Apache-2.0
 *
 * Spool files: a small reader checks every frame, and that all that was recorded is in them once.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "../clock.h"
#include "host.h"
#include "sandbox.h"
#include "test.h"

static char directory[PATH_MAX];

static void *begin(const char *events) {
  snprintf(directory, sizeof directory, "%s/experiment", host_folder());
  setenv("NCCL_OTF2_DIR", directory, 1);
  setenv("NCCL_OTF2_COLLECTOR", "spool", 1);
  setenv("NCCL_OTF2_EVENTS", events, 1);
  return host_init(0xabcdef, 2, 1);
}

static void spool_path(char *path, size_t size) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  snprintf(path, size, "%s/shards/%s-%d-%04x.spool", directory, host, (int)getpid(), host_header()->tag);
}

struct found {
  uint64_t frames[NCCLOTF2_FRAME_FAILED + 1];
  uint64_t positions[NCCLOTF2_RING_MAX];
  uint64_t kinds[8];
  uint64_t stops_of[16];
  uint64_t string_bytes, clock_ticks;
  uint32_t comms;
  struct ncclotf2_comm comm[8];
  struct ncclotf2_header header;
  uint64_t count_next; /* of coll.count */
  struct ncclotf2_header first; /* of a file that failed */
  uint64_t failed, size;        /* bytes of whole frames: when it failed, and now */
  bool ended;
  bool may_be_cut; /* set by the caller: the file may end within a frame */
};

static void check_records(struct found *found, const uint8_t *at, uint64_t length) {
  while (length) {
    const struct ncclotf2_record *record = (const void *)at;
    CHECK(length >= 32 && record->units && record->units * 32u <= length, "%u units in %llu bytes", record->units,
          (unsigned long long)length);
    CHECK(record->kind >= 1 && record->kind <= 6, "kind %u", record->kind);
    found->kinds[record->kind]++;
    if (record->kind == NCCLOTF2_RECORD_INIT) CHECK(record->aux < found->comms, "communicator %u is not there yet", record->aux);
    if (record->kind == NCCLOTF2_RECORD_STOP) found->stops_of[record->type]++;
    if (record->kind == NCCLOTF2_RECORD_START) {
      CHECK(record->aux < found->comms, "communicator %u is not there yet", record->aux);
      if (record->type == NCCLOTF2_COLL) {
        const struct ncclotf2_coll *coll = (const void *)record;
        EQUAL(coll->count, found->count_next, "count");
        found->count_next++;
        CHECK(coll->func && (coll->func - 1) * 8ULL < found->string_bytes, "name %u is not there yet", coll->func);
      }
    }
    at += record->units * 32u;
    length -= record->units * 32u;
  }
}

static void check_file(struct found *found) {
  char path[PATH_MAX];
  spool_path(path, sizeof path);
  FILE *file = fopen(path, "rb");
  CHECK(file, "%s: %s", path, strerror(errno));
  *found = (struct found){.may_be_cut = found->may_be_cut};
  struct ncclotf2_frame frame;
  while (fread(&frame, sizeof frame, 1, file) == 1) {
    EQUAL(frame.magic, NCCLOTF2_FRAME_MAGIC, "magic");
    CHECK(frame.kind >= 1 && frame.kind <= 7, "kind %u", frame.kind);
    CHECK(!found->ended, "frames after the last one");
    const bool first = !found->frames[NCCLOTF2_FRAME_HEADER] && !found->frames[NCCLOTF2_FRAME_FAILED];
    CHECK(!first || frame.kind == NCCLOTF2_FRAME_HEADER || frame.kind == NCCLOTF2_FRAME_FAILED, "the first frame is of kind %u", frame.kind);
    CHECK(first || frame.kind != NCCLOTF2_FRAME_FAILED, "a failure within the file");
    uint64_t padded = (frame.length + 7) & ~7ULL;
    uint8_t *body = malloc(padded + 1);
    if (fread(body, 1, padded, file) != padded) {
      CHECK(found->may_be_cut, "a frame of kind %u is cut off", frame.kind);
      free(body);
      break;
    }
    found->frames[frame.kind]++;
    found->size += sizeof frame + padded;
    switch (frame.kind) {
      case NCCLOTF2_FRAME_FAILED:
        CHECK(frame.index, "a failure without a reason");
        EQUAL(frame.length, sizeof found->first, "header");
        memcpy(&found->first, body, sizeof found->first);
        found->failed = frame.position;
        /* fall through */
      case NCCLOTF2_FRAME_HEADER:
        EQUAL(frame.length, sizeof found->header, "header");
        memcpy(&found->header, body, sizeof found->header);
        EQUAL(found->header.magic, NCCLOTF2_SHM_MAGIC, "magic");
        EQUAL(found->header.pid, getpid(), "pid");
        break;
      case NCCLOTF2_FRAME_COMM:
        EQUAL(frame.length, sizeof(struct ncclotf2_comm), "communicator");
        CHECK(frame.index <= found->comms && frame.index < 8, "communicator %llu", (unsigned long long)frame.index);
        memcpy(&found->comm[frame.index], body, sizeof found->comm[0]);
        EQUAL(found->comm[frame.index].ready, 1, "ready");
        if (frame.index == found->comms) found->comms++;
        break;
      case NCCLOTF2_FRAME_STRINGS:
        EQUAL(frame.index, found->string_bytes, "offset of strings");
        found->string_bytes += frame.length;
        break;
      case NCCLOTF2_FRAME_RING:
        CHECK(frame.index < NCCLOTF2_RING_MAX, "ring %llu", (unsigned long long)frame.index);
        if (frame.position != found->positions[frame.index]) /* the next chunk */
          EQUAL(frame.position, ((found->positions[frame.index] >> 32) + 1) << 32, "position");
        found->positions[frame.index] = frame.position + frame.length;
        check_records(found, body, frame.length);
        break;
      case NCCLOTF2_FRAME_CLOCK: {
        const struct ncclotf2_clock_tuple *tuple = (const void *)body;
        EQUAL(frame.length, sizeof *tuple, "clock");
        CHECK(tuple->ticks >= found->clock_ticks && tuple->raw && tuple->mono && tuple->real, "clocks go back");
        found->clock_ticks = tuple->ticks;
        break;
      }
      case NCCLOTF2_FRAME_END:
        found->ended = true;
        break;
    }
    free(body);
  }
  CHECK(feof(file), "cannot read %s", path);
  fclose(file);
}

static void record(void *context, uint64_t from, uint64_t count) {
  struct ncclotf2_descr_v6 d = host_descr(NCCLOTF2_COLL);
  d.coll.func = "AllReduce";
  for (uint64_t i = from; i < from + count; i++) {
    d.coll.count = i;
    void *handle;
    while (!(handle = host_start(context, d))) usleep(1000);
    ncclProfiler_v6.stopEvent(handle);
  }
}

/* Until so many events are in the file. */
static void await_events(uint64_t count) {
  struct found *found = calloc(1, sizeof *found);
  do {
    usleep(1000);
    found->may_be_cut = true;
    check_file(found);
  } while (found->count_next < count);
  free(found);
}

static void all_is_there(void) {
  setenv("NCCL_OTF2_MEMORY", "4M", 1);
  void *context = begin("gpu");
  EQUAL(host_mask, 0xf47, "mask");
  EQUAL(host_header()->record_mask, 0xf47, "record mask");
  EQUAL(host_header()->collector_state, NCCLOTF2_COLLECTOR_SPOOL, "state");
  enum { EVENTS = 200000 }; /* 32 MB through 4 MB */
  record(context, 0, EVENTS);
  void *second = NULL;
  ncclProfiler_v6.init(&second, 0x77, &host_mask, "second", 1, 4, 2, host_logger);
  record(second, EVENTS, 10);
  ncclProfiler_v6.finalize(context);
  ncclProfiler_v6.finalize(second);
  struct found *found = calloc(1, sizeof *found);
  check_file(found);
  EQUAL(found->count_next, EVENTS + 10, "events");
  EQUAL(found->stops_of[NCCLOTF2_COLL] + found->header.lost[NCCLOTF2_LOSS_STOP_MEMORY][NCCLOTF2_COLL], EVENTS + 10, "stops");
  EQUAL(found->comms, 2, "communicators");
  CHECK(found->comm[0].final_ticks && found->comm[1].final_ticks, "the ends of the communicators are missing");
  EQUAL(found->comm[1].comm_id, 0x77, "id");
  EQUAL(found->kinds[NCCLOTF2_RECORD_FINALIZE], 2, "FINALIZE records");
  CHECK(found->frames[NCCLOTF2_FRAME_CLOCK] > 1, "one clock frame only");
  CHECK(!found->ended, "ended before the end");
  free(found);
}

/* Runs last in the process: after the plugin's exit handler, which was registered later. */
static uint64_t expected_events;
static void check_at_exit(void) {
  struct found *found = calloc(1, sizeof *found);
  check_file(found);
  EQUAL(found->count_next, expected_events, "events");
  EQUAL(found->header.ended, 1, "ended in the header");
  CHECK(found->ended, "no last frame");
  free(found);
}

static void at_exit(void) {
  host_folder();
  atexit(check_at_exit);
  expected_events = 1000;
  record(begin("gpu"), 0, 1000); /* no finalize: most programs never call it */
}

static void *recorder(void *context) {
  for (int i = 0; i < 20000; i++) {
    void *handle = host_start(context, host_descr(NCCLOTF2_GROUP));
    if (handle) ncclProfiler_v6.stopEvent(handle);
  }
  return NULL;
}
static void several_threads_run(void) {
  void *context = begin("gpu");
  pthread_t threads[6];
  for (unsigned i = 0; i < 6; i++) pthread_create(&threads[i], NULL, recorder, context);
  for (unsigned i = 0; i < 6; i++) pthread_join(threads[i], NULL);
  ncclProfiler_v6.finalize(context);
  struct found *found = calloc(1, sizeof *found);
  check_file(found);
  EQUAL(found->kinds[NCCLOTF2_RECORD_START] + found->header.lost[NCCLOTF2_LOSS_MEMORY][NCCLOTF2_GROUP], 6 * 20000, "starts");
  EQUAL(found->kinds[NCCLOTF2_RECORD_START], found->kinds[NCCLOTF2_RECORD_STOP], "stops");
  free(found);
}

/* The default directory bears the first communicator's id; relative names stay where they began. */
static void default_directory(void) {
  setenv("NCCL_OTF2_COLLECTOR", "spool", 1);
  static const char *const variables[] = {"NCCL_OTF2_DIR", "SLURM_JOB_ID", "PMIX_NAMESPACE", "LSB_JOBID",
                                          "PBS_JOBID",     "FLUX_JOB_ID",  "TORCHELASTIC_RUN_ID"};
  for (unsigned i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
  CHECK(chdir(host_folder()) == 0, "%s", host_folder());
  void *context = host_init(0x123456789abcdef0ULL, 2, 0);
  CHECK(chdir("/") == 0, "/");
  record(context, 0, 10);
  ncclProfiler_v6.finalize(context);
  snprintf(directory, sizeof directory, "%s/nccl-otf2-123456789abcdef0", host_folder());
  struct found *found = calloc(1, sizeof *found);
  check_file(found);
  EQUAL(found->count_next, 10, "events");
  free(found);
}

static void no_directory(void) {
  snprintf(directory, sizeof directory, "%s/file", host_folder());
  close(open(directory, O_CREAT | O_WRONLY, 0600));
  strcat(directory, "/below");
  setenv("NCCL_OTF2_DIR", directory, 1);
  setenv("NCCL_OTF2_COLLECTOR", "spool", 1);
  host_mask = 0x12;
  void *context = host_init(1, 2, 0);
  CHECK(host_logged("cannot be made (Not a directory); nothing is recorded"), "%s", host_line);
  EQUAL(host_mask, 0x12, "mask");
  CHECK(!host_start(context, host_descr(NCCLOTF2_COLL)), "recorded");
  ncclProfiler_v6.finalize(context);
}

/* Whoever made the folder before us could take away or exchange what we write there: it is left as it is, and nothing is recorded. */
static const struct folder {
  const char *what;
  mode_t mode; /* 0: a link that leads to a folder of ours */
  uid_t owner;
  const char *reason; /* NULL: it is taken */
} folders[] = {
    {"ours alone", 0700, 0, NULL},
    {"readable by others", 0755, 0, NULL},
    {"where nobody can take away what another has made", 01777, 0, NULL},
    {"writable by everybody", 0777, 0, "cannot be made (the folder belongs to another user or can be written by others)"},
    {"writable by a group", 0770, 0, "cannot be made (the folder belongs to another user or can be written by others)"},
    {"another user's", 0700, 65534, "cannot be made (the folder belongs to another user or can be written by others)"},
    {"another user's, sticky", 01777, 65534, "cannot be made (the folder belongs to another user or can be written by others)"},
    {"a link", 0, 0, "cannot be made (Not a directory)"},
};
static const struct folder *planted; /* by the case that runs */

static int files_in(const char *path) {
  DIR *folder = opendir(path);
  CHECK(folder, "%s: %s", path, strerror(errno));
  int count = 0;
  for (const struct dirent *entry; (entry = readdir(folder));) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

static void planted_folder(void) {
  char path[PATH_MAX], target[PATH_MAX];
  snprintf(path, sizeof path, "%s/experiment", host_folder());
  CHECK(mkdir(path, 0700) == 0, "%s: %s", path, strerror(errno));
  strcat(path, "/shards");
  snprintf(target, sizeof target, "%s/elsewhere", host_folder());
  const char *made = planted->mode ? path : target;
  CHECK(mkdir(made, 0700) == 0 && chmod(made, planted->mode ? planted->mode : 0700) == 0, "%s: %s", made, strerror(errno));
  if (!planted->mode) CHECK(symlink(target, path) == 0, "%s: %s", path, strerror(errno));
  if (planted->owner) CHECK(chown(path, planted->owner, planted->owner) == 0, "%s: %s", path, strerror(errno));
  void *context = begin("gpu");
  void *handle = host_start(context, host_descr(NCCLOTF2_COLL));
  CHECK(!handle == !!planted->reason, "recorded: %p", handle);
  CHECK(!planted->reason || host_logged(planted->reason), "%s", host_line);
  ncclProfiler_v6.finalize(context);
  EQUAL(files_in(made), !planted->reason, "files");
}

static void planted_folders(void) {
  for (unsigned i = 0; i < sizeof folders / sizeof *folders; i++) {
    planted = &folders[i];
    if (planted->owner && geteuid() != 0) {
      printf("     NOT TESTED: a folder that is %s: only root can make one\n", planted->what);
      continue;
    }
    CHECK(test_run_one(&(struct test_case){planted->what, planted_folder}) == 0, "the folder is %s", planted->what);
  }
}

static void unknown_event(void) {
  begin("coll,sandwich");
  CHECK(host_logged("NCCL_OTF2_EVENTS: \"coll,sandwich\" is not a list of presets"), "%s", host_line);
  EQUAL(host_lines, 1, "lines");
  EQUAL(host_mask, 0xf47, "mask");
}

/* A full disk: what cannot be written waits, and nothing is there twice or in halves. */
static void full_disk(void) {
  host_folder();
  void *context = begin("gpu");
  struct rlimit limit = {1 << 20, RLIM_INFINITY};
  setrlimit(RLIMIT_FSIZE, &limit);
  record(context, 0, 30000); /* 4.8 MB */
  ncclProfiler_v6.init(&context, 2, &host_mask, NULL, 1, 2, 0, host_logger);
  EVENTUALLY(host_logged("cannot be written (File too large)"));
  struct found *found = calloc(1, sizeof *found);
  found->may_be_cut = true; /* seen while a write is being taken back */
  check_file(found);
  CHECK(found->count_next > 0 && found->count_next < 30000, "%llu events", (unsigned long long)found->count_next);
  CHECK(found->frames[NCCLOTF2_FRAME_FAILED], "the file does not say that the rest is missing");
  limit.rlim_cur = RLIM_INFINITY;
  setrlimit(RLIMIT_FSIZE, &limit);
  EVENTUALLY((check_file(found), found->count_next >= 30000));
  EQUAL(found->count_next, 30000, "events");
  free(found);
}

/* As long as it lasts, what is in the file and what it counts as lost are together what was recorded, and one line says so. */
static void full_to_the_end(void) {
  host_folder();
  void *context = begin("gpu");
  const struct rlimit limit = {1 << 20, RLIM_INFINITY};
  setrlimit(RLIMIT_FSIZE, &limit);
  record(context, 0, 30000);
  ncclProfiler_v6.finalize(context);
  CHECK(host_logged("events could not be written to the raw file (File too large)"), "%s", host_line);
  struct found *found = calloc(1, sizeof *found);
  check_file(found);
  CHECK(found->frames[NCCLOTF2_FRAME_FAILED], "the file does not say that the rest is missing");
  EQUAL(found->failed, found->size, "bytes of the file when it failed");
  EQUAL(found->count_next + found->first.lost[NCCLOTF2_LOSS_DISK][NCCLOTF2_COLL], 30000, "events in the file and counted");
  free(found);
}

/* Whoever removes the directory wants no more of it: nothing goes on filling the disk under no name, the memory for records is all
 * that is taken, and one line says so. */
static void removed_directory(void) {
  setenv("NCCL_OTF2_MEMORY", "8M", 1);
  void *context = begin("gpu");
  record(context, 0, 10);
  await_events(10);
  char path[PATH_MAX];
  spool_path(path, sizeof path);
  struct stat before, after;
  int file = open(path, O_RDONLY);
  CHECK(file >= 0 && unlink(path) == 0 && fstat(file, &before) == 0, "%s: %s", path, strerror(errno));
  const int lines = host_lines;
  for (int i = 0; i < 3; i++) {
    for (int k = 0; k < 60000; k++) ncclProfiler_v6.stopEvent(host_start(context, host_descr(NCCLOTF2_COLL)));
    usleep(50000);
    void *other = NULL;
    ncclProfiler_v6.init(&other, 2, &host_mask, NULL, 1, 2, 0, host_logger);
    ncclProfiler_v6.finalize(other);
  }
  CHECK(fstat(file, &after) == 0, "%s", strerror(errno));
  EQUAL(after.st_size, before.st_size, "bytes of a file without a name");
  CHECK(host_logged("cannot be written (No such file or directory)"), "%s", host_line);
  CHECK(host_lines <= lines + 2, "%d lines", host_lines - lines); /* and that memory is full */
  CHECK(host_header()->lost[NCCLOTF2_LOSS_MEMORY][NCCLOTF2_COLL] > 0, "nothing is counted");
  close(file);
}

static void closed_descriptors(void) {
  void *context = begin("gpu");
  record(context, 0, 10);
  /* The program closes all it does not know, and its own files get those numbers. */
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/own", host_folder());
  int own = open(path, O_CREAT | O_RDWR, 0600);
  CHECK(write(own, "precious", 8) == 8, "write");
  /* Between two flushes: a number that is taken anew in the middle of one, after the look at it, is beyond
   * what a thread with the program's own descriptors can notice. */
  await_events(10);
  usleep(300000);
  for (int fd = 3; fd < 64; fd++)
    if (fd != own) dup2(own, fd);
  record(context, 10, 10);
  ncclProfiler_v6.finalize(context);
  struct stat info;
  stat(path, &info);
  EQUAL(info.st_size, 8, "bytes in a file that is not ours");
  struct found *found = calloc(1, sizeof *found);
  check_file(found);
  EQUAL(found->count_next, 20, "events");
  free(found);
  /* The same when ours is gone, too. */
  char spooled[PATH_MAX];
  spool_path(spooled, sizeof spooled);
  CHECK(unlink(spooled) == 0, "%s: %s", spooled, strerror(errno));
  for (int fd = 3; fd < 2048; fd++)
    if (fd != own && fcntl(fd, F_GETFD) >= 0) dup2(own, fd);
  usleep(300000);
  stat(path, &info);
  EQUAL(info.st_size, 8, "bytes in a file that is not ours");
}

static void own_clock(void) {
  setenv("NCCL_OTF2_CLOCK", "monotonic", 1);
  void *context = begin("gpu");
  uint64_t before = ncclotf2_clock_monotonic();
  record(context, 0, 1);
  EQUAL(host_header()->clock_source, NCCLOTF2_CLOCK_MONOTONIC, "source");
  EQUAL(host_header()->clock_hz, 1000000000, "rate");
  const struct ncclotf2_record *last = reader_last();
  CHECK(last->ticks >= before && last->ticks <= ncclotf2_clock_monotonic(), "ticks %llu", (unsigned long long)last->ticks);
}

/* Files and folders below a folder, links not followed. */
static unsigned below(const char *folder) {
  DIR *entries = opendir(folder);
  unsigned count = 0;
  for (const struct dirent *entry; entries && (entry = readdir(entries));) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    for (const char *at = entry->d_name; *at; at++) CHECK((unsigned char)*at >= ' ' && *at != 0x7f, "a control character in a file's name");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    count += 1 + (entry->d_type == DT_DIR ? below(path) : 0);
  }
  if (entries) closedir(entries);
  return count;
}

/* Whatever the host is called, the file lies in the folder of shards, and a line has nothing that a terminal acts upon. */
static void names_of_hosts(void) {
  static const char *const names[] = {"../../x", "a/../../b", "/etc", "..", ".", "", " ", "two words", "\x1b[31mred\x1b[0m\n", "\xff\xfe", "\xc3\xa9", "-rf",
                                      "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"};
  sandbox_names();
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
    CHECK(sethostname(names[i], strlen(names[i])) == 0, "%s", strerror(errno));
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
      char outer[PATH_MAX];
      snprintf(outer, sizeof outer, "%s/%u", host_folder(), i);
      CHECK(mkdir(outer, 0777) == 0, "%s", strerror(errno));
      snprintf(directory, sizeof directory, "%s/outer", outer);
      CHECK(mkdir(directory, 0777) == 0, "%s", strerror(errno));
      snprintf(directory, sizeof directory, "%s/outer/experiment", outer);
      setenv("NCCL_OTF2_DIR", directory, 1);
      setenv("NCCL_OTF2_COLLECTOR", "spool", 1);
      setenv("NCCL_OTF2_EVENTS", "gpu", 1);
      void *context = host_init(0xabcdef, 2, 1);
      record(context, 0, 1);
      ncclProfiler_v6.finalize(context);
      char shards[PATH_MAX + 8];
      snprintf(shards, sizeof shards, "%s/shards", directory);
      EQUAL(below(shards), 1, "files of shards");
      EQUAL(below(outer), 4, "files and folders"); /* outer, experiment, shards, the file */
      EQUAL(host_lines, 0, "warnings");
      _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "host name %u", i);
  }
}

/* A line of the log says what is in a path, and does not do it. */
static void lines_are_escaped(void) {
  snprintf(directory, sizeof directory, "%s/file", host_folder());
  FILE *file = fopen(directory, "w");
  CHECK(file && fclose(file) == 0, "%s: %s", directory, strerror(errno));
  strcat(directory, "/a\x1b[31m\nb\xff\xe2\x80\xae\xc3\xa9");
  setenv("NCCL_OTF2_DIR", directory, 1);
  setenv("NCCL_OTF2_COLLECTOR", "spool", 1);
  host_init(1, 2, 0);
  CHECK(host_logged("/a\\x1b[31m\\x0ab\\xff\\xe2\\x80\\xae\xc3\xa9/shards/"), "%s", host_line);
}

TEST_MAIN({"everything recorded is in the file, once and in order", all_is_there},
          {"a program that never finalizes has a whole file", at_exit},
          {"several threads are written", several_threads_run},
          {"the default directory is named after the first communicator", default_directory},
          {"without a directory nothing is recorded", no_directory},
          {"a folder that somebody else could change is refused", planted_folders},
          {"an unknown event is named, and the default holds", unknown_event},
          {"on a full disk the records wait", full_disk},
          {"on a disk that stays full the missing ones are counted", full_to_the_end},
          {"a file that was removed is not written", removed_directory},
          {"nothing is written to a file that is not ours", closed_descriptors},
          {"whatever a host is called, its file lies where it is to lie", names_of_hosts},
          {"nothing in a line of the log is acted upon", lines_are_escaped},
          {"ticks can be CLOCK_MONOTONIC", own_clock})
