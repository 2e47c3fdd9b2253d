/* SPDX-License-Identifier: Apache-2.0
 *
 * Substrate plugins: loaded where SCOREP_SUBSTRATE_PLUGINS names them, and told what becomes of the measurement, in Score-P's order.
 */
#ifndef FAKESCOREP_SUBSTRATES_H
#define FAKESCOREP_SUBSTRATES_H

#include <stdbool.h>
#include <stdint.h>

/* What plugins see of a location. */
struct SCOREP_Location {
  uint32_t id;
};

/* The measurement begins, on the thread of its first location. */
void substrates_begin(struct SCOREP_Location *location);

/* The calling thread begins to record at a location, new or not; ends to. */
void substrates_activate(struct SCOREP_Location *location);
void substrates_deactivate(struct SCOREP_Location *location);

/* Recording is switched on or off: to be told while it is on. */
void substrates_switch(struct SCOREP_Location *location, bool on);

/* The measurement is over. */
void substrates_end(void);

#endif
