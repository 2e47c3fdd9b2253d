/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "shm.h"

enum kind { PATH, SWITCH, SIZE, CHOICE, EVENTS, SECONDS, WINDOW, ACTIVITIES };

static const struct row {
  const char *variable;
  enum kind kind;
  const char *usual;
  uint64_t least, most;
  const char *choices; /* separated by blanks */
  const char *wrong;
} rows[NCCLOTF2_SETTINGS] = {
#define X(key, kind, usual, least, most, choices, wrong) [NCCLOTF2_SETTING_##key] = {"NCCL_OTF2_" #key, kind, usual, least, most, choices, wrong},
    NCCLOTF2_SETTING_ROWS(X)
#undef X
};

struct word {
  const char *name;
  uint64_t value;
};
#define X(name, value) {name, value},
static const struct word switches[] = {NCCLOTF2_SWITCH_WORDS(X) {0}};
static const struct word units[] = {NCCLOTF2_SIZE_UNITS(X) {0}};
static const struct word events[] = {NCCLOTF2_EVENT_WORDS(X) {0}};
static const struct word activities[] = {NCCLOTF2_ACTIVITY_WORDS(X) {0}};
#undef X

/* A part of a text. */
struct part {
  const char *at, *end;
};

static const char blanks[] = " \t\n\v\f\r", separators[] = ", \t\n\v\f\r";

static bool contains(const char *set, char c) { return c && strchr(set, c); }

static struct part trimmed(struct part p) {
  while (p.at < p.end && contains(blanks, *p.at)) p.at++;
  while (p.at < p.end && contains(blanks, p.end[-1])) p.end--;
  return p;
}

static struct part part_of(const char *text) { return trimmed((struct part){text, text + strlen(text)}); }

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static bool is(struct part p, const char *word) {
  while (p.at < p.end && *word && lower(*p.at) == lower(*word)) p.at++, word++;
  return p.at == p.end && !*word;
}

static const struct word *find(const struct word *words, struct part p) {
  while (words->name && !is(p, words->name)) words++;
  return words->name ? words : NULL;
}

/* The next of words that commas and blanks separate. */
static bool next(struct part *list, struct part *word) {
  while (list->at < list->end && contains(separators, *list->at)) list->at++;
  word->at = list->at;
  while (list->at < list->end && !contains(separators, *list->at)) list->at++;
  word->end = list->at;
  return word->at < word->end;
}

static unsigned digit(char c) {
  const char l = lower(c);
  return c >= '0' && c <= '9' ? (unsigned)(c - '0') : l >= 'a' && l <= 'f' ? (unsigned)(l - 'a') + 10 : 16;
}

/* A number of at most `most` at the beginning, which is taken off. */
static bool number_at(struct part *p, unsigned base, uint64_t most, uint64_t *number) {
  const char *begin = p->at;
  for (*number = 0; p->at < p->end && digit(*p->at) < base; p->at++) {
    const unsigned d = digit(*p->at);
    if (*number > (most - d) / base) return false;
    *number = *number * base + d;
  }
  return p->at > begin;
}

static bool number_is(struct part p, unsigned base, uint64_t most, uint64_t *number) {
  return number_at(&p, base, most, number) && p.at == p.end;
}

static bool read_switch(struct part p, uint64_t *on) {
  const struct word *word = find(switches, p);
  if (word) *on = word->value;
  return word;
}

static bool read_size(struct part p, uint64_t *bytes) {
  if (!number_at(&p, 10, INT64_MAX, bytes)) return false;
  const struct word *unit = find(units, trimmed(p));
  if (!unit || *bytes > (uint64_t)INT64_MAX >> unit->value) return false;
  *bytes <<= unit->value;
  return true;
}

static bool read_choice(struct part p, const char *choices, uint64_t *index) {
  struct part list = part_of(choices), choice;
  for (*index = 0; next(&list, &choice); (*index)++) {
    char word[32];
    snprintf(word, sizeof word, "%.*s", (int)(choice.end - choice.at), choice.at);
    if (is(p, word)) return true;
  }
  return false;
}

static bool read_words(const struct word *words, struct part list, uint64_t *bits) {
  struct part name;
  for (*bits = 0; next(&list, &name);) {
    const struct word *word = find(words, name);
    if (!word) return false;
    *bits |= word->value;
  }
  return true;
}

static bool read_activities(struct part p, uint64_t *kinds) {
  uint64_t on;
  if (read_switch(p, &on)) {
    *kinds = on ? NCCLOTF2_KERNEL_KINDS : 0;
    return true;
  }
  if (!is(p, activities->name)) return read_words(activities + 1, p, kinds);
  *kinds = activities->value;
  return true;
}

static bool read_window(struct part p, uint64_t *first, uint64_t *last) {
  const char unit[] = NCCLOTF2_WINDOW_UNIT;
  const ptrdiff_t length = sizeof unit - 1;
  if (p.end - p.at < length || !is((struct part){p.at, p.at + length}, unit)) return false;
  p.at += length;
  const char *dash = memchr(p.at, '-', (size_t)(p.end - p.at));
  if (!dash || p.end - p.at == 1) return false;
  const struct part from = {p.at, dash}, to = {dash + 1, p.end};
  *first = 0;
  *last = UINT64_MAX;
  return (from.at == from.end || number_is(from, 10, INT64_MAX, first)) && (to.at == to.end || number_is(to, 10, INT64_MAX, last)) &&
         *first < *last;
}

static bool read(const struct row *row, const char *text, struct ncclotf2_value *value) {
  const struct part p = part_of(text);
  uint64_t *number = &value->number;
  switch (row->kind) {
    case PATH: return true;
    case SWITCH: return read_switch(p, number);
    case SIZE: return read_size(p, number) && *number >= row->least && *number <= row->most;
    case CHOICE: return read_choice(p, row->choices, number);
    case EVENTS: return read_words(events, p, number);
    case SECONDS: return number_is(p, 10, INT64_MAX, number) && *number >= row->least && *number <= row->most;
    case WINDOW: return read_window(p, number, &value->last);
    case ACTIVITIES: return read_activities(p, number);
  }
  return false;
}

const char *ncclotf2_variable(const char *name) {
  const char *value = getenv(name);
  return value && value[strspn(value, blanks)] ? value : NULL;
}

struct ncclotf2_value ncclotf2_setting(enum ncclotf2_setting setting) {
  const struct row *row = &rows[setting];
  const char *text = ncclotf2_variable(row->variable);
  struct ncclotf2_value value = {.understood = true, .last = UINT64_MAX, .text = text};
  if (text && read(row, text, &value)) return value;
  value = (struct ncclotf2_value){.understood = !text, .last = UINT64_MAX, .text = text};
  if (*row->usual) read(row, row->usual, &value);
  return value;
}

struct ncclotf2_value ncclotf2_event_mask(void) {
  struct ncclotf2_value value = {.understood = true, .text = ncclotf2_variable(NCCLOTF2_MASK_VARIABLE)};
  if (!value.text) return value;
  struct part p = part_of(value.text);
  const bool hex = p.end - p.at > 2 && is((struct part){p.at, p.at + 2}, "0x");
  if (hex) p.at += 2;
  value.understood = number_is(p, hex ? 16 : 10, UINT32_MAX, &value.number);
  return value;
}

bool ncclotf2_setting_problem(enum ncclotf2_setting setting, char *why, size_t why_size) {
  const struct row *row = &rows[setting];
  const struct ncclotf2_value value = ncclotf2_setting(setting);
  if (value.understood) return false;
  snprintf(why, why_size, "%s: \"%.64s\" %s; it is as if it were %s%s", row->variable, value.text, row->wrong,
           *row->usual ? "" : "unset", row->usual);
  return true;
}

bool ncclotf2_nccl_switch(const char *name, bool otherwise) {
  const char *text = ncclotf2_variable(name);
  if (!text) return otherwise;
  struct part p = part_of(text);
  const bool minus = *p.at == '-';
  if (minus || *p.at == '+') p.at++;
  unsigned base = 10;
  if (*p.at == '0') {
    if (lower(p.at[1]) == 'b') return otherwise;
    const bool hex = lower(p.at[1]) == 'x' && digit(p.at[2]) < 16;
    base = hex ? 16 : 8;
    if (hex) p.at += 2;
  }
  if (digit(*p.at) >= base) return false;
  uint64_t number;
  return number_at(&p, base, (uint64_t)INT64_MAX + minus, &number) ? number != 0 : otherwise;
}
