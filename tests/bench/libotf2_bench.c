/* SPDX-License-Identifier: Apache-2.0 */

//go:build ignore

/*
 * The benchmark cases with libotf2's C API; ours.go has the same ones with package otf2. One case per process:
 *
 *   libotf2_bench FILES write KIND LOCATIONS EVENTS DIR      makes the archive DIR/traces.otf2
 *   libotf2_bench FILES local|global KIND LOCATIONS ANCHOR   reads all its events
 *
 * KIND: enter-leave, collectives or attributes. EVENTS is per location and even. FILES: limit of open files to set
 * first, 0 leaves it. The result is one line of JSON on standard output; "sum" is over all times, fields and attribute
 * values that were read, so that it can be compared.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <otf2/otf2.h>

#if defined(OTF2_VERSION_MAJOR) && OTF2_VERSION_MAJOR < 3
#error "libotf2 3.0 or later is needed"
#endif

enum kind { ENTER_LEAVE,
            COLLECTIVES,
            ATTRIBUTES };
enum { REGIONS = 8,
       FIRST_REGION_STRING = 10,
       STRINGS = FIRST_REGION_STRING + REGIONS,
       TICK = 10 };

static _Noreturn void die(const char *what, OTF2_ErrorCode code)
{
  fprintf(stderr, "libotf2_bench: %s: %s (%s)\n", what, OTF2_Error_GetName(code), OTF2_Error_GetDescription(code));
  exit(1);
}

#define CHECK(call) \
  do { \
    OTF2_ErrorCode code_ = (call); \
    if (code_ != OTF2_SUCCESS) \
      die(#call, code_); \
  } while (0)
#define CHECK_HANDLE(handle, what) \
  do { \
    if (!(handle)) \
      die(what, OTF2_ERROR_INVALID_ARGUMENT); \
  } while (0)

/* ---- what is measured ---- */

struct moment {
  uint64_t wall, cpu;
};

static uint64_t nanoseconds(clockid_t clock)
{
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct moment now(void)
{
  return (struct moment){nanoseconds(CLOCK_MONOTONIC), nanoseconds(CLOCK_PROCESS_CPUTIME_ID)};
}

static void print_phase(const char *name, struct moment from, struct moment to)
{
  printf("\"%s\":{\"wall_ns\":%" PRIu64 ",\"cpu_ns\":%" PRIu64 "}", name, to.wall - from.wall, to.cpu - from.cpu);
}

/* Not ru_maxrss: that starts at the size of the process that started this one. */
static long peak_rss_kib(void)
{
  FILE *status = fopen("/proc/self/status", "r");
  if (!status) {
    return -1;
  }
  char line[256];
  long kib = -1;
  while (kib < 0 && fgets(line, sizeof line, status)) {
    if (sscanf(line, "VmHWM: %ld kB", &kib) != 1) {
      kib = -1;
    }
  }
  fclose(status);
  return kib;
}

static int open_files(void)
{
  DIR *dir = opendir("/proc/self/fd");
  if (!dir) {
    return -1;
  }
  int n = 0;
  for (struct dirent *entry; (entry = readdir(dir));) {
    n += entry->d_name[0] != '.';
  }
  closedir(dir);
  return n - 1; /* without the one that reads the folder */
}

/* ---- writing ---- */

static OTF2_FlushType flush_always(void *data, OTF2_FileType type, OTF2_LocationRef location, void *caller, bool final)
{
  (void)data, (void)type, (void)location, (void)caller, (void) final;
  return OTF2_FLUSH;
}

static void write_events(OTF2_EvtWriter *w, enum kind kind, uint64_t events, uint64_t first, uint64_t step)
{
  uint64_t at = first;
  OTF2_AttributeList *list;
  switch (kind) {
  case ENTER_LEAVE:
    for (uint64_t i = 0; i < events; i += 2, at += 2 * step) {
      uint32_t region = i / 2 % REGIONS;
      CHECK(OTF2_EvtWriter_Enter(w, NULL, at, region));
      CHECK(OTF2_EvtWriter_Leave(w, NULL, at + step, region));
    }
    break;
  case COLLECTIVES:
    for (uint64_t i = 0; i < events; i += 2, at += 2 * step) {
      CHECK(OTF2_EvtWriter_MpiCollectiveBegin(w, NULL, at));
      CHECK(OTF2_EvtWriter_MpiCollectiveEnd(w, NULL, at + step, OTF2_COLLECTIVE_OP_ALLREDUCE, 0,
                                            OTF2_COLLECTIVE_ROOT_NONE, 4 << 20, 4 << 20));
    }
    break;
  case ATTRIBUTES:
    list = OTF2_AttributeList_New();
    for (uint64_t i = 0; i < events; i++, at += step) {
      CHECK(OTF2_AttributeList_AddUint64(list, 0, i << 12));
      CHECK(OTF2_AttributeList_AddUint32(list, 1, (uint32_t)(i & 0xffff)));
      CHECK(OTF2_AttributeList_AddInt64(list, 2, -(int64_t)i));
      CHECK(OTF2_AttributeList_AddStringRef(list, 3, (OTF2_StringRef)(i % STRINGS)));
      CHECK(OTF2_AttributeList_AddUint8(list, 4, (uint8_t)(i % 7)));
      CHECK(OTF2_EvtWriter_Enter(w, list, at, i % REGIONS));
    }
    OTF2_AttributeList_Delete(list);
    break;
  }
}

static void write_definitions(OTF2_GlobalDefWriter *d, uint64_t locations, uint64_t events)
{
  static const char *const names[FIRST_REGION_STRING] = {"", "number", "small", "signed", "text",
                                                         "choice", "world", "node", "process", "thread"};
  static const OTF2_Type types[5] = {OTF2_TYPE_UINT64, OTF2_TYPE_UINT32, OTF2_TYPE_INT64, OTF2_TYPE_STRING,
                                     OTF2_TYPE_UINT8};
  CHECK(OTF2_GlobalDefWriter_WriteClockProperties(d, 1000000000, 0, locations * events * TICK + 1,
                                                  OTF2_UNDEFINED_TIMESTAMP));
  for (uint32_t i = 0; i < FIRST_REGION_STRING; i++) {
    CHECK(OTF2_GlobalDefWriter_WriteString(d, i, names[i]));
  }
  for (uint32_t i = 0; i < REGIONS; i++) {
    char name[32];
    snprintf(name, sizeof name, "region %" PRIu32, i);
    CHECK(OTF2_GlobalDefWriter_WriteString(d, FIRST_REGION_STRING + i, name));
  }
  for (uint32_t i = 0; i < 5; i++) {
    CHECK(OTF2_GlobalDefWriter_WriteAttribute(d, i, 1 + i, 0, types[i]));
  }
  CHECK(OTF2_GlobalDefWriter_WriteSystemTreeNode(d, 0, 7, 7, OTF2_UNDEFINED_SYSTEM_TREE_NODE));
  CHECK(OTF2_GlobalDefWriter_WriteLocationGroup(d, 0, 8, OTF2_LOCATION_GROUP_TYPE_PROCESS, 0,
                                                OTF2_UNDEFINED_LOCATION_GROUP));
  uint64_t *members = calloc(locations, sizeof *members);
  uint64_t *ranks = calloc(locations, sizeof *ranks);
  CHECK_HANDLE(members && ranks, "memory");
  for (uint64_t l = 0; l < locations; l++) {
    members[l] = ranks[l] = l;
    CHECK(OTF2_GlobalDefWriter_WriteLocation(d, l, 9, OTF2_LOCATION_TYPE_CPU_THREAD, events, 0));
  }
  for (uint32_t i = 0; i < REGIONS; i++) {
    CHECK(OTF2_GlobalDefWriter_WriteRegion(d, i, FIRST_REGION_STRING + i, FIRST_REGION_STRING + i, 0,
                                           OTF2_REGION_ROLE_FUNCTION, OTF2_PARADIGM_USER, OTF2_REGION_FLAG_NONE, 0,
                                           0, 0));
  }
  CHECK(OTF2_GlobalDefWriter_WriteGroup(d, 0, 6, OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_MPI,
                                        OTF2_GROUP_FLAG_NONE, (uint32_t)locations, members));
  CHECK(OTF2_GlobalDefWriter_WriteGroup(d, 1, 6, OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE,
                                        (uint32_t)locations, ranks));
  CHECK(OTF2_GlobalDefWriter_WriteComm(d, 0, 6, 1, OTF2_UNDEFINED_COMM, OTF2_COMM_FLAG_NONE));
  free(members);
  free(ranks);
}

static void write_archive(enum kind kind, uint64_t locations, uint64_t events, const char *dir)
{
  static const OTF2_FlushCallbacks flush = {.otf2_pre_flush = flush_always, .otf2_post_flush = NULL};
  struct moment begin = now();
  OTF2_Archive *a = OTF2_Archive_Open(dir, "traces", OTF2_FILEMODE_WRITE, OTF2_CHUNK_SIZE_EVENTS_DEFAULT,
                                      OTF2_CHUNK_SIZE_DEFINITIONS_DEFAULT, OTF2_SUBSTRATE_POSIX,
                                      OTF2_COMPRESSION_NONE);
  CHECK_HANDLE(a, "OTF2_Archive_Open");
  CHECK(OTF2_Archive_SetFlushCallbacks(a, &flush, NULL));
  CHECK(OTF2_Archive_SetSerialCollectiveCallbacks(a));
  CHECK(OTF2_Archive_OpenEvtFiles(a));
  struct moment calls[2] = {{0, 0}, {0, 0}};
  for (uint64_t l = 0; l < locations; l++) {
    OTF2_EvtWriter *w = OTF2_Archive_GetEvtWriter(a, l);
    CHECK_HANDLE(w, "OTF2_Archive_GetEvtWriter");
    struct moment from = now();
    write_events(w, kind, events, 1 + l * TICK, locations * TICK);
    struct moment to = now();
    calls[1].wall += to.wall - from.wall;
    calls[1].cpu += to.cpu - from.cpu;
    CHECK(OTF2_Archive_CloseEvtWriter(a, w));
  }
  CHECK(OTF2_Archive_CloseEvtFiles(a));
  CHECK(OTF2_Archive_OpenDefFiles(a));
  for (uint64_t l = 0; l < locations; l++) { /* without content, but libotf2's readers complain of absent ones */
    OTF2_DefWriter *w = OTF2_Archive_GetDefWriter(a, l);
    CHECK_HANDLE(w, "OTF2_Archive_GetDefWriter");
    CHECK(OTF2_Archive_CloseDefWriter(a, w));
  }
  CHECK(OTF2_Archive_CloseDefFiles(a));
  OTF2_GlobalDefWriter *d = OTF2_Archive_GetGlobalDefWriter(a);
  CHECK_HANDLE(d, "OTF2_Archive_GetGlobalDefWriter");
  write_definitions(d, locations, events);
  CHECK(OTF2_Archive_Close(a));
  struct moment end = now();
  printf("{\"events\":%" PRIu64 ",\"phases\":{", locations * events);
  print_phase("calls", calls[0], calls[1]);
  printf(",");
  print_phase("archive", begin, end);
  printf("},");
}

/* ---- reading ---- */

static struct {
  uint64_t events, sum;
  int files;
  struct moment first;
} seen;

static inline void count_event(uint64_t time)
{
  if (seen.events++ == 0) {
    seen.first = now();
    seen.files = open_files();
  }
  seen.sum += time;
}

static OTF2_CallbackCode on_region(OTF2_LocationRef l, OTF2_TimeStamp time, uint64_t position, void *data,
                                   OTF2_AttributeList *list, OTF2_RegionRef region)
{
  (void)l, (void)position, (void)data, (void)list;
  count_event(time);
  seen.sum += region;
  return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode on_region_attributes(OTF2_LocationRef l, OTF2_TimeStamp time, uint64_t position, void *data,
                                              OTF2_AttributeList *list, OTF2_RegionRef region)
{
  OTF2_AttributeRef id;
  OTF2_Type type;
  OTF2_AttributeValue value;
  /* The cheapest way to see them all: access by index walks the list from its beginning. */
  for (uint32_t n = OTF2_AttributeList_GetNumberOfElements(list); n > 0; n--) {
    CHECK(OTF2_AttributeList_PopAttribute(list, &id, &type, &value));
    switch (type) {
    case OTF2_TYPE_UINT8:
      seen.sum += value.uint8;
      break;
    case OTF2_TYPE_UINT32:
    case OTF2_TYPE_STRING:
      seen.sum += value.uint32;
      break;
    default:
      seen.sum += value.uint64;
    }
  }
  return on_region(l, time, position, data, list, region);
}

static OTF2_CallbackCode on_begin(OTF2_LocationRef l, OTF2_TimeStamp time, uint64_t position, void *data,
                                  OTF2_AttributeList *list)
{
  (void)l, (void)position, (void)data, (void)list;
  count_event(time);
  return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode on_end(OTF2_LocationRef l, OTF2_TimeStamp time, uint64_t position, void *data,
                                OTF2_AttributeList *list, OTF2_CollectiveOp op, OTF2_CommRef comm, uint32_t root,
                                uint64_t sent, uint64_t received)
{
  (void)l, (void)position, (void)data, (void)list;
  count_event(time);
  seen.sum += (uint64_t)op + comm + root + sent + received;
  return OTF2_CALLBACK_SUCCESS;
}

/* The callbacks that the global reader takes differ from these in the position only, which it does not give. */
static OTF2_CallbackCode on_global_region(OTF2_LocationRef l, OTF2_TimeStamp time, void *data, OTF2_AttributeList *list,
                                          OTF2_RegionRef region)
{
  return on_region(l, time, 0, data, list, region);
}
static OTF2_CallbackCode on_global_region_attributes(OTF2_LocationRef l, OTF2_TimeStamp time, void *data,
                                                     OTF2_AttributeList *list, OTF2_RegionRef region)
{
  return on_region_attributes(l, time, 0, data, list, region);
}
static OTF2_CallbackCode on_global_begin(OTF2_LocationRef l, OTF2_TimeStamp time, void *data, OTF2_AttributeList *list)
{
  return on_begin(l, time, 0, data, list);
}
static OTF2_CallbackCode on_global_end(OTF2_LocationRef l, OTF2_TimeStamp time, void *data, OTF2_AttributeList *list,
                                       OTF2_CollectiveOp op, OTF2_CommRef comm, uint32_t root, uint64_t sent,
                                       uint64_t received)
{
  return on_end(l, time, 0, data, list, op, comm, root, sent, received);
}

static OTF2_CallbackCode on_location(void *data, OTF2_LocationRef self, OTF2_StringRef name, OTF2_LocationType type,
                                     uint64_t events, OTF2_LocationGroupRef group)
{
  (void)name, (void)type, (void)events, (void)group;
  return OTF2_Reader_SelectLocation(data, self) == OTF2_SUCCESS ? OTF2_CALLBACK_SUCCESS : OTF2_CALLBACK_INTERRUPT;
}

static uint64_t read_global(OTF2_Reader *r, enum kind kind)
{
  OTF2_GlobalEvtReader *events = OTF2_Reader_GetGlobalEvtReader(r);
  CHECK_HANDLE(events, "OTF2_Reader_GetGlobalEvtReader");
  OTF2_GlobalEvtReaderCallbacks *c = OTF2_GlobalEvtReaderCallbacks_New();
  CHECK(OTF2_GlobalEvtReaderCallbacks_SetEnterCallback(
      c, kind == ATTRIBUTES ? on_global_region_attributes : on_global_region));
  CHECK(OTF2_GlobalEvtReaderCallbacks_SetLeaveCallback(c, on_global_region));
  CHECK(OTF2_GlobalEvtReaderCallbacks_SetMpiCollectiveBeginCallback(c, on_global_begin));
  CHECK(OTF2_GlobalEvtReaderCallbacks_SetMpiCollectiveEndCallback(c, on_global_end));
  CHECK(OTF2_Reader_RegisterGlobalEvtCallbacks(r, events, c, NULL));
  OTF2_GlobalEvtReaderCallbacks_Delete(c);
  uint64_t n = 0;
  CHECK(OTF2_Reader_ReadAllGlobalEvents(r, events, &n));
  return n;
}

static uint64_t read_local(OTF2_Reader *r, enum kind kind, uint64_t location)
{
  OTF2_EvtReader *events = OTF2_Reader_GetEvtReader(r, location);
  CHECK_HANDLE(events, "OTF2_Reader_GetEvtReader");
  OTF2_EvtReaderCallbacks *c = OTF2_EvtReaderCallbacks_New();
  CHECK(OTF2_EvtReaderCallbacks_SetEnterCallback(c, kind == ATTRIBUTES ? on_region_attributes : on_region));
  CHECK(OTF2_EvtReaderCallbacks_SetLeaveCallback(c, on_region));
  CHECK(OTF2_EvtReaderCallbacks_SetMpiCollectiveBeginCallback(c, on_begin));
  CHECK(OTF2_EvtReaderCallbacks_SetMpiCollectiveEndCallback(c, on_end));
  CHECK(OTF2_Reader_RegisterEvtCallbacks(r, events, c, NULL));
  OTF2_EvtReaderCallbacks_Delete(c);
  uint64_t n = 0;
  CHECK(OTF2_Reader_ReadAllLocalEvents(r, events, &n));
  return n;
}

static void read_archive(bool global, enum kind kind, uint64_t locations, const char *anchor)
{
  struct moment begin = now();
  OTF2_Reader *r = OTF2_Reader_Open(anchor);
  CHECK_HANDLE(r, "OTF2_Reader_Open");
  CHECK(OTF2_Reader_SetSerialCollectiveCallbacks(r));
  OTF2_GlobalDefReader *defs = OTF2_Reader_GetGlobalDefReader(r);
  CHECK_HANDLE(defs, "OTF2_Reader_GetGlobalDefReader");
  OTF2_GlobalDefReaderCallbacks *c = OTF2_GlobalDefReaderCallbacks_New();
  CHECK(OTF2_GlobalDefReaderCallbacks_SetLocationCallback(c, on_location));
  CHECK(OTF2_Reader_RegisterGlobalDefCallbacks(r, defs, c, r));
  OTF2_GlobalDefReaderCallbacks_Delete(c);
  uint64_t n = 0;
  CHECK(OTF2_Reader_ReadAllGlobalDefinitions(r, defs, &n));

  bool local_defs = OTF2_Reader_OpenDefFiles(r) == OTF2_SUCCESS; /* they may be absent */
  CHECK(OTF2_Reader_OpenEvtFiles(r));
  for (uint64_t l = 0; l < locations; l++) {
    if (local_defs) {
      OTF2_DefReader *reader = OTF2_Reader_GetDefReader(r, l);
      if (reader) {
        CHECK(OTF2_Reader_ReadAllLocalDefinitions(r, reader, &n));
        CHECK(OTF2_Reader_CloseDefReader(r, reader));
      }
    }
    CHECK_HANDLE(OTF2_Reader_GetEvtReader(r, l), "OTF2_Reader_GetEvtReader (limit of open files?)");
  }
  if (local_defs) {
    CHECK(OTF2_Reader_CloseDefFiles(r));
  }
  uint64_t events = 0;
  if (global) {
    events = read_global(r, kind);
  } else {
    for (uint64_t l = 0; l < locations; l++) {
      events += read_local(r, kind, l);
    }
  }
  struct moment end = now();
  int files = open_files();
  if (events != seen.events) {
    fprintf(stderr, "libotf2_bench: %" PRIu64 " events read, %" PRIu64 " delivered\n", events, seen.events);
    exit(1);
  }
  printf("{\"events\":%" PRIu64 ",\"sum\":%" PRIu64 ",\"open_files\":%d,\"phases\":{", seen.events, seen.sum,
         files > seen.files ? files : seen.files);
  print_phase("open", begin, seen.first);
  printf(",");
  print_phase("events", seen.first, end);
  printf(",");
  print_phase("all", begin, end);
  printf("},");
  CHECK(OTF2_Reader_Close(r));
}

static uint64_t number(const char *text)
{
  char *end;
  uint64_t n = strtoull(text, &end, 10);
  if (*text == 0 || *end != 0) {
    fprintf(stderr, "libotf2_bench: %s is not a number\n", text);
    exit(2);
  }
  return n;
}

int main(int argc, char **argv)
{
  static const char *const kinds[] = {"enter-leave", "collectives", "attributes"};
  bool writes = argc == 7 && strcmp(argv[2], "write") == 0;
  bool global = argc == 6 && strcmp(argv[2], "global") == 0;
  bool local = argc == 6 && strcmp(argv[2], "local") == 0;
  int kind = 3;
  if (writes || global || local) {
    for (kind = 0; kind < 3 && strcmp(argv[3], kinds[kind]) != 0; kind++) {
    }
  }
  if (kind == 3) {
    fprintf(stderr, "usage: libotf2_bench FILES write KIND LOCATIONS EVENTS DIR\n"
                    "       libotf2_bench FILES local|global KIND LOCATIONS ANCHOR\n");
    return 2;
  }
  uint64_t files = number(argv[1]), locations = number(argv[4]);
  if (files > 0) {
    struct rlimit limit = {files, files};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
      perror("libotf2_bench: setrlimit");
      return 1;
    }
  }
  if (writes) {
    write_archive((enum kind)kind, locations, number(argv[5]), argv[6]);
  } else {
    read_archive(global, (enum kind)kind, locations, argv[5]);
  }
  printf("\"rss_kib\":%ld}\n", peak_rss_kib());
  return 0;
}
