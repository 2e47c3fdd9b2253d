/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and runs a program: words, groups ( … ), repetitions N*[ … ], and parts for some ranks only: 0,2?[ … ], !0?[ … ].
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

size_t number_of(const char *text)
{
  char *end;
  double n = strtod(text, &end);
  if (*end == 'k' || *end == 'K') n *= 1 << 10;
  if (*end == 'm' || *end == 'M') n *= 1 << 20;
  return n > 0 ? (size_t)n : 0;
}

static struct word word_of(const char *begin, size_t length)
{
  struct word w = {.after = begin + length};
  char text[512], *rest = text, *part;
  snprintf(text, sizeof text, "%.*s", (int)length, begin);
  part = strsep(&rest, ":");
  if (strlen(part) >= sizeof w.name) give_up(BAD_USAGE, "no word %s", part);
  memcpy(w.name, part, strlen(part) + 1);
  for (int i = 0; i < ARGUMENTS_MOST && (part = strsep(&rest, ":")); i++)
    snprintf(w.argument[i], sizeof w.argument[i], "%s", part);
  w.number = number_of(w.argument[0]);
  return w;
}

static const struct word_action *action(const char *name)
{
  static const struct word_action *const tables[] = {communicator_words, graph_words, life_words};
  for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
    for (const struct word_action *w = tables[t]; w->name; w++)
      if (strcmp(w->name, name) == 0) return w;
  return NULL;
}

static void verify_pending(struct actor *a)
{
  for (int i = 0; i < a->pending_count; i++) {
    struct rank *r = a->pending[i].rank;
    for (int s = 0; s < STREAMS; s++) CUDA(cudaStreamSynchronize(r->streams[s]));
  }
  for (int i = 0; i < a->pending_count; i++) verify(a->pending[i].rank, &a->pending[i].word, a->pending[i].slot);
  a->pending_count = 0;
}

static void verify_later(struct actor *a, struct rank *r, const struct word *w)
{
  if (a->slot >= SLOTS) give_up(BAD_USAGE, "more than %d operations in a group with a checked one", SLOTS);
  a->pending[a->pending_count].word = *w;
  a->pending[a->pending_count].rank = r;
  a->pending[a->pending_count++].slot = a->slot;
}

/* In a group every operation has buffers of its own, as far as they reach. */
static void operate(struct actor *a, const struct word *w, int checked)
{
  if (checked)
    EACH_RANK (a, r) {
      CUDA(cudaStreamSynchronize(r->streams[r->stream]));
      fill(r, w, a->slot % SLOTS);
      verify_later(a, r, w);
    }
  group_begin(a);
  EACH_RANK (a, r) issue(r, w, a->slot % SLOTS);
  group_end(a);
  settle(a);
  if (a->depth) a->slot++;
  else verify_pending(a);
}

static void do_word(struct actor *a, const char *begin, size_t length)
{
  const int checks_only = *begin == '=', checked = *begin == '!';
  const struct word w = word_of(begin + (checks_only | checked), length - (size_t)(checks_only | checked));
  const struct word_action *act = action(w.name);
  EACH_RANK (a, r) snprintf(shared->ranks[r->rank].word, sizeof shared->ranks[0].word, "%.*s", (int)length, begin);
  if (checks_only)
    EACH_RANK (a, r) verify(r, &w, a->slot % SLOTS);
  else if (is_operation(w.name)) operate(a, &w, checked);
  else if (strcmp(w.name, "fill") == 0)
    EACH_RANK (a, r) fill_all(r);
  else if (strcmp(w.name, "slot") == 0) a->slot = (int)(w.number % SLOTS);
  else if (act) act->act(a, &w);
  else give_up(BAD_USAGE, "no word %s", w.name);
}

static const char *end_of_block(const char *p)
{
  int depth = 1;
  for (; *p && depth; p++) depth += *p == '[' ? 1 : *p == ']' ? -1 : 0;
  return p;
}

static int is_among(int rank, const char *list, const char *end)
{
  for (const char *p = list; p < end; p++) {
    if (atoi(p) == rank) return 1;
    while (p < end && *p != ',') p++;
  }
  return 0;
}

static void for_some(struct actor *a, const char *list, const char *end, const char *block, const char *block_end)
{
  struct rank *all[RANKS_MOST];
  const int count = a->count, but = *list == '!';
  memcpy(all, a->ranks, sizeof all);
  a->count = 0;
  for (int i = 0; i < count; i++)
    if (is_among(all[i]->rank, list + but, end) != but) a->ranks[a->count++] = all[i];
  if (a->count) run_program(a, block, block_end);
  memcpy(a->ranks, all, sizeof all);
  a->count = count;
}

static void close_group(struct actor *a)
{
  NCCL(ncclGroupEnd());
  if (--a->depth) return;
  settle(a);
  a->slot = 0;
  verify_pending(a);
}

void run_program(struct actor *a, const char *p, const char *end)
{
  while (p < end) {
    if (isspace((unsigned char)*p) || *p == ';') {
      p++;
    } else if (*p == '#') {
      p += strcspn(p, "\n");
    } else if (*p == '(') {
      NCCL(ncclGroupStart());
      a->depth++;
      p++;
    } else if (*p == ')') {
      close_group(a);
      p++;
    } else {
      const size_t length = strcspn(p, " ;()[]\n\t");
      const char *next = p + length;
      if (*next != '[') {
        if (!length) give_up(BAD_USAGE, "the program at: %s", p);
        do_word(a, p, length);
        p = next;
        continue;
      }
      const char *after = end_of_block(next + 1);
      if (!length || !strchr("*?", next[-1])) give_up(BAD_USAGE, "N*[ or RANKS?[ is wanted at: %s", p);
      if (next[-1] == '?') for_some(a, p, next, next + 1, after - 1);
      else
        for (long n = atol(p); n > 0; n--) run_program(a, next + 1, after - 1);
      p = after;
    }
  }
}
