/* SPDX-License-Identifier: Apache-2.0 */
#include "substrates.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../plugin/substrate/scorep_abi.h"
#include "fakescorep.h"

enum { PLUGINS_MOST = 4, EVENTS = 80 };

static struct {
  struct scorep_substrate offers;
  scorep_function events[2][EVENTS]; /* by mode */
} plugins[PLUGINS_MOST];
static unsigned count;

static bool communication; /* whether the number of the process is known */

static int get_rank(void)
{
  if (!communication) fakescorep_die("the rank is not known before init_mpp");
  const char *rank = getenv("FAKESCOREP_RANK");
  return rank ? atoi(rank) : 0;
}

static uint32_t get_id(const struct SCOREP_Location *location) { return location->id; }

static void nobody_calls_this(void) { fakescorep_die("a function that is not for the plugin"); }

static void load(const char *name)
{
  char text[256];
  snprintf(text, sizeof text, "libscorep_substrate_%s.so", name);
  void *library = dlopen(text, RTLD_NOW);
  if (!library) {
    fprintf(stderr, "fakescorep: Could not open substrate plugin %s: %s\n", name, dlerror());
    return;
  }
  snprintf(text, sizeof text, "SCOREP_SubstratePlugin_%s_get_info", name);
  struct scorep_substrate (*get_info)(void) = (struct scorep_substrate(*)(void))dlsym(library, text);
  if (!get_info || count == PLUGINS_MOST) fakescorep_die("a substrate plugin without its function, or one too many");
  plugins[count].offers = get_info();
  const struct scorep_substrate *offers = &plugins[count].offers;
  if (offers->version < 1 || offers->version > 3) fakescorep_die("a substrate plugin of another version");
  for (unsigned i = 0; i < sizeof offers->later / sizeof *offers->later; i++)
    if (offers->later[i]) fakescorep_die("a substrate plugin with functions that do not exist");
  if (offers->init && offers->init() != 0) {
    dlclose(library);
    return;
  }
  count++;
}

void substrates_begin(struct SCOREP_Location *location)
{
  static struct {
    struct scorep_callbacks known;
    scorep_function others[36];
  } callbacks = {.known = {.rank = get_rank, .location_id = get_id}};
  for (scorep_function *f = (scorep_function *)&callbacks; f < (scorep_function *)(&callbacks + 1); f++)
    if (!*f) *f = nobody_calls_this;
  const char *names = getenv("SCOREP_SUBSTRATE_PLUGINS");
  if (!names) return;
  char list[256];
  snprintf(list, sizeof list, "%s", names);
  for (char *rest = list, *name; (name = strsep(&rest, ",")) != NULL;)
    if (*name) load(name);
  for (unsigned i = 0; i < count; i++) {
    const struct scorep_substrate *offers = &plugins[i].offers;
    if (offers->set_callbacks) offers->set_callbacks(&callbacks.known, sizeof callbacks);
    for (int mode = 0; offers->get_event_functions && mode < 2; mode++) {
      const scorep_function *functions = NULL;
      const uint32_t n = offers->get_event_functions(mode, &functions);
      if (n > EVENTS) fakescorep_die("functions for events that do not exist");
      memcpy(plugins[i].events[mode], functions, n * sizeof *functions);
    }
  }
  substrates_activate(location);
  communication = true;
  for (unsigned i = 0; i < count; i++)
    if (plugins[i].offers.init_mpp) plugins[i].offers.init_mpp();
}

void substrates_activate(struct SCOREP_Location *location)
{
  for (unsigned i = 0; i < count; i++)
    if (plugins[i].offers.activate_cpu_location) plugins[i].offers.activate_cpu_location(location, NULL, 0);
}

void substrates_deactivate(struct SCOREP_Location *location)
{
  for (unsigned i = 0; i < count; i++)
    if (plugins[i].offers.deactivate_cpu_location) plugins[i].offers.deactivate_cpu_location(location, NULL);
}

void substrates_switch(struct SCOREP_Location *location, bool on)
{
  for (unsigned i = 0; i < count; i++) {
    scorep_function event = plugins[i].events[0][on ? SCOREP_EVENT_ENABLE_RECORDING : SCOREP_EVENT_DISABLE_RECORDING];
    if (event) ((scorep_recording_event)event)(location, 0, 0, NULL);
  }
}

void substrates_end(void)
{
  for (unsigned i = 0; i < count; i++)
    if (plugins[i].offers.pre_unify) plugins[i].offers.pre_unify();
  for (unsigned i = 0; i < count; i++)
    if (plugins[i].offers.finalize) plugins[i].offers.finalize();
}
