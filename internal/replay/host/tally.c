/* SPDX-License-Identifier: Apache-2.0 */
#include "tally.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "events.h"

struct tally tally;

static void by_type(FILE *to, const char *name, counter *c)
{
  const char *comma = "";
  fprintf(to, "\"%s\":{", name);
  for (int i = 0; i < TYPE_COUNT; i++) {
    uint64_t n = atomic_load(&c[i]);
    if (n) fprintf(to, "%s\"%s\":%" PRIu64, comma, event_info[i].name, n), comma = ",";
  }
  fputc('}', to);
}

static void by_state(FILE *to, const char *name, counter *c)
{
  const char *comma = "";
  fprintf(to, "\"%s\":{", name);
  for (int i = 0; i <= STATE_COUNT; i++) {
    uint64_t n = atomic_load(&c[i]);
    if (n) fprintf(to, "%s\"%s\":%" PRIu64, comma, state_names[i], n), comma = ",";
  }
  fputc('}', to);
}

static void number(FILE *to, const char *name, counter *c) { fprintf(to, ",\"%s\":%" PRIu64, name, atomic_load(c)); }

void tally_report(const char *plugin, int mask)
{
  char *line = NULL;
  size_t length = 0;
  FILE *to = open_memstream(&line, &length);
  if (!to) {
    perror("replay-host: report");
    return;
  }
  fputs("{\"delivered\":{", to);
  by_type(to, "starts", tally.started);
  fputc(',', to);
  by_type(to, "declined", tally.declined);
  fputc(',', to);
  by_type(to, "stops", tally.stopped);
  fputc(',', to);
  by_state(to, "states", tally.states);
  fputs("},\"suppressed\":{", to);
  by_type(to, "starts", tally.held_starts);
  fputc(',', to);
  by_type(to, "stops", tally.held_stops);
  fputc(',', to);
  by_state(to, "states", tally.held_states);
  number(to, "finalizes", &tally.held_finalizes);
  fputc('}', to);
  number(to, "inits", &tally.inits);
  number(to, "finalizes", &tally.finalizes);
  number(to, "null_handles", &tally.null_handles);
  number(to, "stale_stops", &tally.stale_stops);
  number(to, "raw_handles", &tally.raw_handles);
  number(to, "unwritten", &tally.unwritten);
  number(to, "errors", &tally.errors);
  number(to, "loads", &tally.loads);
  number(to, "warnings", &tally.warnings);
  number(to, "infos", &tally.infos);
  fputs(",\"tids\":[", to);
  for (uint32_t i = 0; i < tally.thread_count; i++) fprintf(to, "%s%" PRId32, i ? "," : "", atomic_load(&tally.tids[i]));
  fprintf(to, "],\"plugin\":\"%s\",\"mask\":%d}\n", plugin, mask);
  fclose(to);
  for (size_t done = 0; done < length;) {
    ssize_t n = write(STDOUT_FILENO, line + done, length - done);
    if (n <= 0) {
      perror("replay-host: report");
      break;
    }
    done += (size_t)n;
  }
  free(line);
}
