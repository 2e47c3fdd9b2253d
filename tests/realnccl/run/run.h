/* SPDX-License-Identifier: Apache-2.0
 *
 * ncclrun: starts processes with ranks on pretended GPUs and lets them run a small program. The language is in
 * tests/realnccl/README.md.
 */
#ifndef NCCLRUN_H
#define NCCLRUN_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <nccl.h>

enum { RANKS_MOST = 64, COMMS_MOST = 32, SLOTS = 8, STREAMS = 4, GRAPHS = 4, EVENTS = 8, ARGUMENTS_MOST = 5 };

/* How a process, and with it the job, ends. */
enum exit_code { DONE, WRONG_RESULTS, BAD_USAGE, CUDA_FAILED, NCCL_FAILED, PROCESS_KILLED, TIME_LIMIT = 124 };

enum driving { BY_GROUPS, BY_THREADS, BY_INIT_ALL };

/* Options; the same in all processes. */
struct options {
  int processes, ranks_each, communicators, non_blocking, spin, hosts;
  enum driving driving;
  const char *name, *folder, *program;
  size_t buffer_bytes;
  long seconds;
};
extern struct options options;
extern int process_number;

/* Seen by all processes. */
struct shared {
  pthread_barrier_t barrier;
  struct {
    ncclUniqueId id;
    unsigned round; /* how many have been made; written last */
  } ids[COMMS_MOST][RANKS_MOST]; /* [slot of the communicator][first of its ranks] */
  int kill_all;
  struct {
    char word[96]; /* that the rank's thread is at; empty: none any more */
    uint64_t hash; /* of all results that were checked */
    unsigned checks, wrong;
  } ranks[RANKS_MOST];
};
extern struct shared *shared;

struct rank {
  int rank, device;
  int communicators, current, stream;
  int capturing; /* number of the graph, -1: none */
  ncclComm_t comm[COMMS_MOST];
  int gone[COMMS_MOST], finalized[COMMS_MOST]; /* gone: destroyed or aborted */
  const char *comm_name[COMMS_MOST];
  cudaStream_t streams[STREAMS];
  char *send[SLOTS], *receive[SLOTS];
  cudaGraph_t graph[GRAPHS];
  cudaGraphExec_t exec[GRAPHS];
  cudaEvent_t event[EVENTS];
  void *registered[COMMS_MOST];
};

/* One word of a program: name:argument:argument… */
struct word {
  char name[24];
  char argument[ARGUMENTS_MOST][192]; /* empty: not given; 64 ranks of a communicator have room */
  size_t number;                     /* the first argument's, with k and m */
  const char *after;                 /* the rest of the program */
};

/* One thread and the ranks that it drives. */
struct actor {
  struct rank *ranks[RANKS_MOST];
  int count, index; /* index: in its process */
  int depth;        /* of groups */
  int slot;
  int keep; /* leaves its communicators alone at the end */
  struct {
    struct word word;
    struct rank *rank;
    int slot;
  } pending[SLOTS * RANKS_MOST]; /* to be verified at the end of the group */
  int pending_count;
  unsigned rounds[COMMS_MOST][RANKS_MOST]; /* of ids that it has used */
  pthread_t thread;
};

#define EACH_RANK(a, r) \
  for (struct rank * r, *const *r##_at = (a)->ranks; r##_at < (a)->ranks + (a)->count && (r = *r##_at); r##_at++)

void __attribute__((noreturn, format(printf, 2, 3))) give_up(enum exit_code code, const char *format, ...);
void cuda_must(cudaError_t error, const char *what);
void nccl_must(ncclResult_t result, const char *what);
#define CUDA(call) cuda_must((call), #call)
#define NCCL(call) nccl_must((call), #call)

/* program.c */
void run_program(struct actor *a, const char *begin, const char *end);
size_t number_of(const char *text);

/* ranks.c */
int run_process(void);
void settle(struct actor *a); /* waits for non-blocking communicators */
void group_begin(struct actor *a); /* a group where one thread drives several ranks */
void group_end(struct actor *a);
ncclConfig_t new_config(const char *name);
void init_slot(struct actor *a, int slot, const int *members, int count, const char *name);
int is_alive(const struct rank *r, int slot);
void label(struct rank *r, int slot); /* tells the pretended GPU what a new communicator is called */
void bury(struct rank *r, int slot);  /* it is about to end */

/* operations.c: false if there is no such word */
int is_operation(const char *name);
void issue(struct rank *r, const struct word *w, int slot);
/* Counts of an uneven all-gather, COUNT,COUNT,…: the part of a rank, and where it begins. */
struct uneven {
  size_t begin, count;
};
struct uneven uneven_part(const struct word *w, int rank);

/* results.c */
void fill(struct rank *r, const struct word *w, int slot);
void fill_all(struct rank *r);
void verify(struct rank *r, const struct word *w, int slot);
size_t type_bytes(ncclDataType_t type);
ncclDataType_t type_of(const char *name);
ncclRedOp_t operation_of(const char *name);

/* The parts of an operation, by what its word says. */
struct operation {
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t reduction;
  int root, peer, to; /* ranks of the communicator */
};
struct operation operation(const struct word *w, int rank, int ranks);

/* communicators.c, graphs.c, life.c */
struct word_action {
  const char *name;
  void (*act)(struct actor *a, const struct word *w);
};
extern const struct word_action communicator_words[], graph_words[], life_words[];

/* log.c: lines of JSON in FOLDER/KIND.PID.jsonl, times in CLOCK_MONOTONIC_RAW ns. */
uint64_t now_ns(void);
void __attribute__((format(printf, 2, 3))) log_line(const char *kind, const char *format, ...);
void sleep_ms(long ms);

#endif
