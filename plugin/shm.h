/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory that the plugin and its collector share: one memfd per job process.
 *
 *   header (two pages) | chunk states | rings | communicators | strings | chunks
 *
 * The plugin writes, the collector reads; what flows back is only: free chunks, the resolved
 * settings, and answers to requests. Nothing in here is a pointer, so the memory means the same in
 * both processes, and in a file (spool.h writes the same bytes).
 *
 * The Go mirror, plugin/shm/zz_layout.go, is generated from this file by `make generate`; a test compares every size
 * and offset in it with what the C compiler says. Change Layout in plugin/api/generate/table.go with this file.
 *
 * Byte order is the machine's: both sides run on one machine, and spool files are converted on a
 * machine of the same kind. All sizes are in bytes, all ticks in units of the header's clock.
 */
#ifndef NCCLOTF2_SHM_H
#define NCCLOTF2_SHM_H

#include <stdint.h>

#include "api_types.h"

#define NCCLOTF2_SHM_MAGIC   0x3266744f6c63636eULL /* "ncclOtf2" read as little-endian */

#define NCCLOTF2_PAGE        4096u
#define NCCLOTF2_CHUNK_SIZE  65536u  /* ring memory is handed out in these units */
#define NCCLOTF2_RING_MAX    4096u   /* threads that can record at one time */
#define NCCLOTF2_COMM_MAX    65536u  /* communicator ranks over the life of the process */
#define NCCLOTF2_STRING_SIZE (4u << 20)
#define NCCLOTF2_SPARE_MAX   128u    /* most free chunks that the collector keeps at hand */
#define NCCLOTF2_UNIT        32u     /* records are multiples of this */
#define NCCLOTF2_REASON_SIZE 512     /* of a line that says why something is not recorded */
#define NCCLOTF2_NONE        0xffffffffu

/* ---- handles and contexts ------------------------------------------------------------------
 *
 *   63        48 47   43 42 41 40 39                                  0
 *  +------------+-------+--+--+--+-------------------------------------+
 *  | tag        | type  |C |G |S | number, never reused                |
 *  +------------+-------+--+--+--+-------------------------------------+
 *
 * tag: drawn once per process, never 0 or 0xffff, so that no canonical pointer looks like a handle.
 * type: bit number of the event type, contexts have all bits set. C: set in contexts, whose number is the index of
 * the communicator entry. G: set in calls that a CUDA graph captured; their operations come again
 * at each replay. S: set in handles of events that are not recorded and whose children are (their type is
 * not asked for, but they lie in the window). Numbers are taken from header.next_number in blocks of 4096 per ring.
 */
#define NCCLOTF2_TAG_SHIFT    48
#define NCCLOTF2_TYPE_SHIFT   43
#define NCCLOTF2_TYPE_MASK    31u
#define NCCLOTF2_CONTEXT_BIT  (1ULL << 42)
#define NCCLOTF2_CAPTURED_BIT (1ULL << 41)
#define NCCLOTF2_SILENT_BIT   (1ULL << 40)
#define NCCLOTF2_NUMBER_MASK  (NCCLOTF2_SILENT_BIT - 1)
#define NCCLOTF2_NUMBER_BLOCK 4096u

/* ---- clock ---------------------------------------------------------------------------------- */
enum ncclotf2_clock_source {
  NCCLOTF2_CLOCK_MONOTONIC = 1, /* CLOCK_MONOTONIC, ns */
  NCCLOTF2_CLOCK_TSC = 2,       /* x86-64 time-stamp counter */
  NCCLOTF2_CLOCK_CNTVCT = 3,    /* arm64 virtual counter */
  NCCLOTF2_CLOCK_HOST = 4       /* tests: ticks are ns that the host program hands out */
};

/* One instant on four clocks. */
struct ncclotf2_clock_tuple {
  uint64_t ticks;
  uint64_t raw;  /* CLOCK_MONOTONIC_RAW, ns */
  uint64_t mono; /* CLOCK_MONOTONIC, ns */
  uint64_t real; /* CLOCK_REALTIME, ns since 1970 */
};

/* ---- header --------------------------------------------------------------------------------- */
enum ncclotf2_loss {             /* why something was not recorded */
  NCCLOTF2_LOSS_MEMORY = 0,      /* start refused: memory at its cap */
  NCCLOTF2_LOSS_STOP_MEMORY = 1, /* stop or state dropped: even the reserve was used up */
  NCCLOTF2_LOSS_RING = 2,        /* start refused: no ring left for this thread */
  NCCLOTF2_LOSS_COMM = 3,        /* events of a communicator beyond NCCLOTF2_COMM_MAX */
  NCCLOTF2_LOSS_FORK = 4,        /* callback in a forked child */
  NCCLOTF2_LOSS_DISK = 5,        /* start refused: the collector has written all it may (NCCL_OTF2_DISK), or
                                    its disk is at fault */
  NCCLOTF2_LOSS_REASONS = 6
};

/* Bits of header.record_mask beyond those of the event types. */
#define NCCLOTF2_RECORD_RAW (1u << 28)    /* record mode: also what *eHandle held, and calls with handles of none */
#define NCCLOTF2_RECORD_WINDOW (1u << 29) /* operations are chosen by their ordinals (struct ncclotf2_comm) */
#define NCCLOTF2_RECORD_FULL (1u << 30)   /* nothing new is recorded: NCCLOTF2_LOSS_DISK */
#define NCCLOTF2_RECORD_NET_SUMS (1u << 31) /* the collector sums the network's steps up; the plugin does nothing else for it */

/* The library that calls the plugin, by the file that its logger lies in. */
enum ncclotf2_library { NCCLOTF2_LIBRARY_UNKNOWN = 0, NCCLOTF2_LIBRARY_NCCL = 1, NCCLOTF2_LIBRARY_RCCL = 2 };

enum ncclotf2_memory_kind {
  NCCLOTF2_MEMORY_MEMFD = 0, /* gone with the last process that has it open */
  NCCLOTF2_MEMORY_SHM = 1    /* a file in /dev/shm, header.memory_path: outlives job and collector */
};

/* What callbacks cost, measured on every 256th event by the plugin itself. */
enum ncclotf2_callback {
  NCCLOTF2_CALLBACK_START = 0,
  NCCLOTF2_CALLBACK_STOP = 1,
  NCCLOTF2_CALLBACK_STATE = 2,
  NCCLOTF2_CALLBACKS = 3
};
struct ncclotf2_cost {
  uint64_t samples;
  uint64_t ticks; /* sum over the samples */
  uint64_t most;  /* the greatest */
};
#define NCCLOTF2_COST_PERIOD 256u

enum ncclotf2_collector_state {
  NCCLOTF2_COLLECTOR_NONE = 0,
  NCCLOTF2_COLLECTOR_READY = 1,  /* settings are in place, events may come */
  NCCLOTF2_COLLECTOR_REFUSED = 2,/* the collector cannot work (message says why); it has gone */
  NCCLOTF2_COLLECTOR_SPOOL = 3   /* the plugin's own thread writes spool files */
};

/* What became of CUPTI in the process. */
enum ncclotf2_cupti_state {
  NCCLOTF2_CUPTI_OFF = 0,        /* not asked for */
  NCCLOTF2_CUPTI_ON = 1,
  NCCLOTF2_CUPTI_NO_LIBRARY = 2, /* no libcupti was found, or it lacks functions */
  NCCLOTF2_CUPTI_BUSY = 3,       /* another client has it */
  NCCLOTF2_CUPTI_FAILED = 4,     /* header.cupti_error says why */
  NCCLOTF2_CUPTI_ENDED = 5       /* was on; everything it had is in the rings */
};

/* Whether NCCL's calls are forwarded to a Score-P measurement in the process. */
enum ncclotf2_scorep_state {
  NCCLOTF2_SCOREP_OFF = 0,      /* not asked for, or there is no sign of Score-P */
  NCCLOTF2_SCOREP_ON = 1,
  NCCLOTF2_SCOREP_ABSENT = 2,   /* asked for, and there is none */
  NCCLOTF2_SCOREP_UNUSABLE = 3, /* it is there and cannot be called */
  NCCLOTF2_SCOREP_NO_CALLS = 4  /* NCCL does not report calls */
};

/* How Score-P sees the threads of the process, chosen when the program was linked. */
enum ncclotf2_scorep_model {
  NCCLOTF2_SCOREP_UNKNOWN = 0,
  NCCLOTF2_SCOREP_SINGLE = 1,     /* there is one */
  NCCLOTF2_SCOREP_FORK_JOIN = 2,  /* OpenMP's */
  NCCLOTF2_SCOREP_CREATE_WAIT = 3 /* pthreads, and any other thread that tells it something */
};

/* Why a call that is recorded was not forwarded. */
enum ncclotf2_scorep_kept {
  NCCLOTF2_SCOREP_KEPT_THREAD = 0,  /* not the main thread, and the model allows no other */
  NCCLOTF2_SCOREP_KEPT_OUTSIDE = 1, /* before or behind the measurement */
  NCCLOTF2_SCOREP_KEPT_PAUSED = 2,  /* its recording was off */
  NCCLOTF2_SCOREP_KEPT_UNDEFINED = 3, /* its region was not there (yet) */
  NCCLOTF2_SCOREP_KEPT_MEMORY = 4,    /* one thread more than it has memory for */
  NCCLOTF2_SCOREP_KEPT_REASONS = 5
};

struct ncclotf2_header {
  /* constant after creation */
  uint64_t magic;
  uint32_t version;
  uint32_t header_size;
  uint64_t total_size;
  uint64_t chunk_state_offset; /* uint32_t[chunk_count], enum ncclotf2_chunk_state */
  uint64_t ring_offset;        /* struct ncclotf2_ring[NCCLOTF2_RING_MAX] */
  uint64_t comm_offset;        /* struct ncclotf2_comm[NCCLOTF2_COMM_MAX] */
  uint64_t string_offset;      /* byte heap, see struct ncclotf2_string */
  uint64_t chunk_offset;       /* struct ncclotf2_chunk, NCCLOTF2_CHUNK_SIZE each */
  uint32_t chunk_count;
  uint32_t chunk_reserve;      /* last chunks that only stops may take (1/16) */
  uint32_t pid;                /* as the process itself sees it */
  uint32_t tag;
  uint64_t pid_start;          /* field 22 of /proc/self/stat */
  uint32_t clock_source;       /* enum ncclotf2_clock_source */
  uint32_t api_version;        /* NCCL profiler API that was taken: 1 … 7 */
  uint64_t clock_hz;           /* ticks per second if known exactly, else 0 */
  struct ncclotf2_clock_tuple created;
  char hostname[256];
  char boot_id[64];
  char executable[512];
  uint32_t library;            /* enum ncclotf2_library */
  int32_t library_version;     /* as ncclGetVersion has it (22907 is 2.29.7); 0 if it cannot be asked */
  char library_path[256];      /* of the file that the logger lies in; empty if that is not known */
  uint32_t memory_kind;        /* enum ncclotf2_memory_kind */
  uint32_t uid;                /* effective user of the process */
  char memory_path[128];       /* MEMORY_SHM: the file */
  uint8_t pad0[2048 - 104 - 32 - 256 - 64 - 512 - 8 - 256 - 8 - 128];

  /* written by the plugin (offset 2048) */
  uint32_t ring_used;          /* rings [0, ring_used) have been taken at least once */
  uint32_t comm_used;          /* entries [0, comm_used) exist; each has its own ready flag */
  uint64_t string_used;
  uint64_t next_number;
  uint64_t host_ticks;         /* CLOCK_HOST: the greatest tick handed out so far */
  uint32_t request;            /* futex: raised to ask for "everything on disk" */
  uint32_t ended;              /* 1 once the process's exit handler has run */
  uint32_t live_comms;         /* initialized minus finalized */
  uint32_t faulted_chunks;     /* chunks taken unprepared */
  uint64_t foreign;            /* stops and states with a handle that is none of this process's */
  uint64_t null_handles;       /* stops and states with the handle NULL */
  uint64_t lost_marks;         /* of the application, for want of memory */
  uint64_t filtered[NCCLOTF2_TYPES];                        /* starts not asked for by the settings */
  uint64_t paused[NCCLOTF2_TYPES];                          /* starts outside the window */
  uint64_t lost[NCCLOTF2_LOSS_REASONS][NCCLOTF2_TYPES];     /* by reason and type */
  struct ncclotf2_cost cost[NCCLOTF2_CALLBACKS][NCCLOTF2_TYPES];
  uint32_t cupti_state;        /* enum ncclotf2_cupti_state */
  uint32_t cupti_version;      /* as cuptiGetVersion gives it; 0 before */
  int32_t cupti_error;         /* the CUptiResult that ended it; 0 if none did */
  uint32_t withheld_why;       /* enum ncclotf2_withheld_why */
  uint64_t cupti_lost;         /* activity records for want of memory, or with the disk full */
  uint64_t cupti_dropped;      /* activity records that CUPTI dropped itself */
  uint64_t cupti_unknown;      /* places in buffers where CUPTI could not find the next record */
  uint64_t cupti_buffers_out;         /* with records, that CUPTI had not given back when it was switched off */
  uint64_t cupti_buffers_strange;     /* that it gave back and had not been given */
  uint64_t cupti_buffers_overwritten; /* for which there was no memory: their records are gone */
  char cupti_why[NCCLOTF2_REASON_SIZE];  /* one line, if it was asked for and is not on, or failed; else empty. Written before the state */
  uint32_t scorep_state;       /* enum ncclotf2_scorep_state */
  uint32_t scorep_model;       /* enum ncclotf2_scorep_model */
  uint64_t scorep_forwarded;   /* regions begun in Score-P */
  uint64_t scorep_kept[NCCLOTF2_SCOREP_KEPT_REASONS]; /* calls, by why they were not forwarded */
  char scorep_why[NCCLOTF2_REASON_SIZE]; /* one line, if calls cannot be forwarded; else empty. Written before the state */
  uint32_t scorep_measured;    /* 1: our substrate plugin is loaded in the Score-P measurement */
  int32_t scorep_rank;         /* then: Score-P's number of this process, -1 if it is not known */
  uint32_t scorep_points;      /* 1: forwarded calls are regions without duration */
  uint32_t withheld;           /* types that NCCL is not asked for because it could hang or crash (mask.c) */
  uint32_t preparer;           /* 1: a thread of the plugin fills the spare slots, or is about to; 0: the collector does */
  uint32_t unanswered;         /* requests whose answer was not waited for any longer */
  uint64_t waited;             /* ns that threads of the program have waited for answers */
  uint8_t pad1[6144 - 2048 - 72 - 8 * NCCLOTF2_TYPES * (2 + NCCLOTF2_LOSS_REASONS) -
               24 * NCCLOTF2_CALLBACKS * NCCLOTF2_TYPES - 64 - 512 - 16 - 8 * NCCLOTF2_SCOREP_KEPT_REASONS - 512 - 32];

  /* written by the collector (offset 6144) */
  uint32_t collector_state;    /* futex, enum ncclotf2_collector_state */
  uint32_t collector_pid;
  uint32_t answered;           /* futex: the latest request whose work is done */
  uint32_t event_mask;         /* what NCCL is to be asked for; less header.withheld that is what it is asked for */
  uint32_t record_mask;        /* types that are recorded, a subset of what event_mask implies; NCCLOTF2_RECORD_… */
  uint32_t message_number;     /* raised with each new message */
  uint64_t window_first;       /* what the entries of new communicators begin with, see struct ncclotf2_comm */
  uint64_t window_last;
  uint64_t freed;              /* raised after any chunk has become free, by whoever made it so */
  uint64_t cupti_kinds;        /* bit k: CUPTI activity kind k is wanted; 0: CUPTI is left alone. Before READY */
  uint32_t pad_spare;
  uint32_t spare[NCCLOTF2_SPARE_MAX]; /* chunk index + 1, or 0; exchanged atomically */
  char message[512];           /* one line for NCCL's logger, NUL-terminated: what is amiss */
  char place[512];             /* the experiment directory, NUL-terminated; before READY or SPOOL, then constant */
  uint8_t pad2[8192 - 6144 - 60 - 4 * NCCLOTF2_SPARE_MAX - 512 - 512];
};

enum ncclotf2_withheld_why {
  NCCLOTF2_WITHHELD_NOTHING = 0,
  NCCLOTF2_WITHHELD_BROADCASTS = 1, /* NCCL counts them wrongly */
  NCCLOTF2_WITHHELD_LATE = 2,       /* the collector was not ready in time */
  NCCLOTF2_WITHHELD_ROOM = 3        /* NCCL's proxies lack room, since some communicator */
};

/* ---- chunks and rings ----------------------------------------------------------------------- */
enum ncclotf2_chunk_state {
  NCCLOTF2_CHUNK_FREE = 0,  /* anybody may take it by compare-and-swap */
  NCCLOTF2_CHUNK_SPARE = 1, /* prepared, in header.spare */
  NCCLOTF2_CHUNK_USED = 2   /* belongs to a ring */
};

/* Records of one ring lie in a list of chunks. The owner writes records behind each other and
 * publishes them by raising `committed` (release). A record never crosses a chunk. When the next
 * one does not fit, the owner takes another chunk, fills in its head, and publishes it in `next`;
 * `committed` of the old chunk is final before `next` becomes non-zero. The reader frees a chunk
 * (state FREE or SPARE) when it has read it to the end, `next` is set, and what came of it is on disk. */
struct ncclotf2_chunk {
  uint32_t ring;
  uint32_t next;      /* index + 1 of the following chunk, or 0 */
  uint64_t sequence;  /* 0, 1, … in its ring */
  uint32_t committed; /* bytes of records after this head */
  uint32_t pad[11];
  /* records follow */
};
#define NCCLOTF2_CHUNK_HEAD 64u

enum ncclotf2_ring_state { NCCLOTF2_RING_FREE = 0, NCCLOTF2_RING_OWNED = 1 };

#define NCCLOTF2_INTERN_SLOTS 64u

struct ncclotf2_ring {
  /* shared */
  uint32_t state;      /* taken and given back by compare-and-swap */
  uint32_t first;      /* index + 1 of the oldest chunk not yet freed, 0 before the first; the
                          plugin sets it once, then only the reader does */
  uint32_t tid;        /* of the present owner */
  uint32_t generation; /* how many threads have owned it */
  uint8_t pad0[48];
  /* private to the owner */
  uint64_t cursor;     /* offset in the mapping of the next record */
  uint64_t limit;      /* offset where the current chunk ends */
  uint64_t number;     /* next handle number */
  uint64_t number_end;
  uint32_t chunk;      /* index + 1 of the current chunk */
  uint32_t intern_epoch;
  uint64_t sequence;   /* of the current chunk */
  uint8_t pad1[16];
  struct { uint64_t address; uint32_t string; uint32_t pad; } intern[NCCLOTF2_INTERN_SLOTS];
};

/* ---- strings -------------------------------------------------------------------------------- */
/* A string's id is its offset in the heap divided by 8, plus 1; 0 is "no string". `length` becomes
 * non-zero (release) after the bytes are in place: it is the true length plus 1. */
struct ncclotf2_string {
  uint32_t length;
  char bytes[4]; /* really `length` bytes with the closing NUL; the next string begins 8-aligned */
};
#define NCCLOTF2_STRING_MAX 127u /* longer ones are cut, */
#define NCCLOTF2_KERNEL_NAME_MAX 1000u /* … names of kernels here: they include template arguments */

/* ---- communicators -------------------------------------------------------------------------- */
struct ncclotf2_comm {
  uint32_t ready;       /* 1 (release) when the rest is filled in; API v1 … v3: with the first operation */
  uint32_t api_version;
  uint64_t comm_id;
  int32_t nranks, rank, nnodes;
  int32_t device;       /* CUDA ordinal, -1 if unknown */
  uint64_t init_ticks;
  uint64_t final_ticks; /* 0 while alive (release store) */
  uint32_t init_tid;
  uint32_t name;        /* string id, 0 if NCCL gave none */
  uint8_t uuid[16];     /* of the GPU; zero if unknown */
  uint8_t pci[16];      /* "dddddddd:bb:dd" style text, NUL-padded; empty if unknown */
  uint32_t has_uuid;
  uint32_t pad0;

  /* The calls refused since NCCLOTF2_RECORD_FULL was set, by the ordinals below: the first one's and the last one's, each plus 1;
   * 0: none. The collector takes them back to 0. */
  uint64_t refused_first, refused_last;
  uint32_t pad2[4];

  /* The window (second cache line and a half). With NCCLOTF2_RECORD_WINDOW an operation is recorded if
   * first <= ordinal < last, and what belongs to it likewise. Ordinals count from 0 on each communicator,
   * and all its members count in the same way: collectives as the application calls them, separately those that
   * replayed graphs bring. Messages have no common order: they go with the next collective, and on a
   * communicator without any collective they count themselves. */
  uint64_t collectives; /* called so far */
  uint64_t messages;    /* called so far */
  uint64_t replayed;    /* collectives of replayed graphs so far */
  uint64_t first;       /* written by the collector, or by the plugin at init */
  uint64_t last;
  uint32_t recording;   /* bit 0: the last call was inside; bit 1: so was the last replayed operation */
  uint32_t fresh;       /* bit 0: there have been calls inside since the last plan outside; bit 1: a graph has
                           captured calls */
  uint64_t replayed_messages;
  uint8_t pad1[8];
};

/* ---- records -------------------------------------------------------------------------------- */
enum ncclotf2_record_kind {
  NCCLOTF2_RECORD_THREAD = 1,   /* first in a ring, and again whenever its owner changes */
  NCCLOTF2_RECORD_START = 2,
  NCCLOTF2_RECORD_STOP = 3,
  NCCLOTF2_RECORD_STATE = 4,
  NCCLOTF2_RECORD_INIT = 5,     /* aux: communicator index */
  NCCLOTF2_RECORD_FINALIZE = 6, /* aux: communicator index */
  NCCLOTF2_RECORD_MARK = 7,     /* the application's own; type: enum ncclotf2_mark; aux: string id */
  NCCLOTF2_RECORD_WINDOW_EDGE = 8, /* aux: communicator index; arg: ordinal of the first operation that is
                                      chosen otherwise than those before; flags: enum ncclotf2_edge_flags */
  NCCLOTF2_RECORD_BEFORE = 9,   /* record mode; handle: the event started next in this ring; arg: what *eHandle
                                   held before */
  NCCLOTF2_RECORD_CUPTI = 10,   /* struct ncclotf2_cupti */
  NCCLOTF2_RECORD_CUPTI_CLOCK = 11, /* struct ncclotf2_cupti_clock */
  NCCLOTF2_RECORD_MASK = 13,        /* something else has changed the activation mask; aux: what of the types asked for, and of KernelCh, is
                                       set now, arg: what was */
  NCCLOTF2_RECORD_SCOREP_THREAD = 12 /* aux: tid; arg: number of a Score-P location that it recorded at */
};

enum ncclotf2_mark {
  NCCLOTF2_MARK_PHASE_BEGIN = 0,
  NCCLOTF2_MARK_PHASE_END = 1, /* no string */
  NCCLOTF2_MARK_POINT = 2
};

/* All records begin with this; all but START, THREAD and CUPTI's are this and nothing more (THREAD: 2 units).
 * In record mode, stops and states may carry any handle, also 0. */
struct ncclotf2_record {
  uint64_t ticks;
  uint8_t kind;
  uint8_t type;    /* bit number of the event type; of the handle for stops and states */
  uint8_t units;   /* length in NCCLOTF2_UNIT */
  uint8_t flags;   /* START: enum ncclotf2_record_flags */
  uint32_t aux;    /* START: communicator index, NCCLOTF2_NONE if the context is none of ours;
                      STATE: the state value, with ProxyOp's states 0 … 7 (API v1 … v3) the number of
                      steps in the upper 24 bits; THREAD: tid */
  uint64_t handle; /* START, STOP, STATE: the event */
  uint64_t arg;    /* START: parentObj as given; STATE: the argument's bits (see has_arg) */
};
enum ncclotf2_record_flags {
  NCCLOTF2_FLAG_GRAPH = 1,   /* graphCaptured */
  NCCLOTF2_FLAG_HAS_ARG = 2, /* STATE: NCCL passed an argument that this state defines */
  NCCLOTF2_FLAG_SYM = 4,     /* Coll: isSymColl (v7) */
  NCCLOTF2_FLAG_SEND = 8,    /* ProxyOp: isSend; NetPlugin socket: op is send */
  NCCLOTF2_FLAG_COMPLETE = 16, /* CeSync: isComplete; CeColl: intraBatchSync; CeBatch: useIntraSync */
  NCCLOTF2_FLAG_KNOWN_NET = 32, /* NetPlugin: the descriptor was of a known kind and was read */
  NCCLOTF2_FLAG_NO_CHANNELS = 64 /* P2p: the number of channels is not known (API v1 … v4); Coll: nchannels
                                    is a most (v1 … v3) */
};

enum ncclotf2_edge_flags {
  NCCLOTF2_EDGE_INSIDE = 1, /* from here on operations are recorded; else they are not */
  NCCLOTF2_EDGE_REPLAY = 2  /* the ordinal counts what replayed graphs bring; else calls */
};

struct ncclotf2_thread_record { /* 2 units */
  struct ncclotf2_record head;
  char name[16];                /* the thread's name at its first callback */
  uint8_t pad[16];
};
#include "api_records.h"

/* An activity record of CUPTI's, as it lay in the buffer: 1 unit and as many as the bytes need, the rest zero.
 * The thread that writes it is the plugin's own, ticks are when it did. Pointers in the bytes mean nothing here. */
struct ncclotf2_cupti {
  struct ncclotf2_record head; /* aux: string id of the name that the record points to, else 0; handle: how many
                                  bytes; arg: cuptiGetVersion, which decides what they mean */
  /* the bytes follow */
};
#define NCCLOTF2_CUPTI_MOST 512u /* bytes of a record; longer ones are cut */

/* What CUPTI's clock said between two readings of ours: ticks are the middle of them. */
struct ncclotf2_cupti_clock {   /* 2 units */
  struct ncclotf2_record head;  /* handle: cuptiGetTimestamp; arg: ticks between the two readings */
  uint64_t real;                /* CLOCK_REALTIME, read with it, ns */
  uint8_t pad[24];
};

/* ---- spool files ----------------------------------------------------------------------------
 * <directory>/shards/<hostname as a file's name>-<pid>-<tag in hex>.spool: frames, each 8-aligned, written by the
 * plugin's own thread where no collector could be started. A file cut off anywhere is readable up
 * to its last whole frame. Without an END it is unknown what is missing, unless it begins with FAILED. */
enum ncclotf2_frame_kind {
  NCCLOTF2_FRAME_HEADER = 1,  /* struct ncclotf2_header: first frame, and again at each flush */
  NCCLOTF2_FRAME_COMM = 2,    /* index, then struct ncclotf2_comm: again whenever it changed */
  NCCLOTF2_FRAME_STRINGS = 3, /* index: offset in the heap; the bytes from there */
  NCCLOTF2_FRAME_RING = 4,    /* index: ring; position: sequence of the chunk << 32 | bytes of records in it before these */
  NCCLOTF2_FRAME_CLOCK = 5,   /* struct ncclotf2_clock_tuple */
  NCCLOTF2_FRAME_END = 6,     /* the process ended in order */
  NCCLOTF2_FRAME_FAILED = 7   /* in place of the first header frame, as long as the file has `position` bytes and no more: what follows
                                 could not be written (index: errno). The header counts that, too, as NCCLOTF2_LOSS_DISK */
};
struct ncclotf2_frame {
  uint32_t magic;  /* NCCLOTF2_FRAME_MAGIC */
  uint32_t kind;
  uint64_t index;
  uint64_t position;
  uint64_t length; /* of the body that follows, without its padding to 8 */
};
#define NCCLOTF2_FRAME_MAGIC 0x4c4f5053u /* "SPOL" */

/* ---- the host's clock, for tests -------------------------------------------------------------
 * With NCCL_OTF2_CLOCK=host the plugin takes its ticks from the program itself, which exports this
 * object under the name `ncclotf2_host_clock`. */
struct ncclotf2_host_clock {
  uint64_t (*now)(void);              /* of the calling thread: ns, the recorded clock */
  struct ncclotf2_clock_tuple anchor; /* the same instant on the recorded clocks */
};

#endif
