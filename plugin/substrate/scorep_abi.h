/* SPDX-License-Identifier: Apache-2.0
 *
 * Score-P's interface for substrate plugins, as far as ours uses it: what Score-P passes and expects, member by member. It
 * has been the same since version 1 (Score-P 3): members were only added behind these, in room that was kept for them.
 * Checked with Score-P 8.4 (version 3).
 */
#ifndef NCCLOTF2_SCOREP_ABI_H
#define NCCLOTF2_SCOREP_ABI_H

#include <stddef.h>
#include <stdint.h>

enum { SCOREP_SUBSTRATE_VERSION = 1 };

struct SCOREP_Location; /* where events are recorded; for CPU threads one each */

typedef void (*scorep_function)(void); /* one that we neither offer nor call */

/* What Score-P offers us. */
struct scorep_callbacks {
  scorep_function experiment_directory;
  int (*processes)(void);
  int (*rank)(void); /* both from init_mpp on; 1 and 0 without MPI and its like */
  scorep_function communication[11];
  scorep_function location_type, location_name;
  uint32_t (*location_id)(const struct SCOREP_Location *); /* in traces << 32 | rank */
};

/* What we offer, NULL if not. */
struct scorep_substrate {
  uint32_t version;
  int (*init)(void); /* 0: go on */
  scorep_function assign_id;
  void (*init_mpp)(void);
  void (*finalize)(void);
  scorep_function create_location;
  /* On the thread that is to record there. */
  void (*activate_cpu_location)(const struct SCOREP_Location *location, const struct SCOREP_Location *parent, uint32_t forks);
  void (*deactivate_cpu_location)(const struct SCOREP_Location *location, const struct SCOREP_Location *parent);
  scorep_function delete_location;
  void (*pre_unify)(void); /* the measurement is over, what it has is about to be written */
  scorep_function write_data, task_create, task_complete, new_definition;
  /* *functions: by number of the event, as many as are returned. Read once for each of two modes: while recording is on (0),
   * and off. */
  uint32_t (*get_event_functions)(int mode, const scorep_function **functions);
  void (*set_callbacks)(const struct scorep_callbacks *callbacks, size_t size);
  scorep_function later[101];
};

/* Numbers of events, and what their functions get; both come while recording is on. */
enum { SCOREP_EVENT_ENABLE_RECORDING = 0, SCOREP_EVENT_DISABLE_RECORDING = 1, SCOREP_EVENTS_WANTED = 2 };
typedef void (*scorep_recording_event)(struct SCOREP_Location *location, uint64_t ticks, uint32_t region, const uint64_t *metrics);

/* SCOREP_SubstratePlugin_<name>_get_info of libscorep_substrate_<name>.so, where <name> is in SCOREP_SUBSTRATE_PLUGINS. */
struct scorep_substrate SCOREP_SubstratePlugin_nccl_otf2_get_info(void);

#endif
