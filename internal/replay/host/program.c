/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *const call_names[CALL_KINDS] = { "init", "start", "stop", "state", "finalize" };

struct reader {
  struct program *program;
  char *text, *next; /* next: start of the line after the present one */
  char *token;       /* rest of the present line, NULL at its end */
  unsigned line;
  bool *started;     /* [event] */
  bool *inited;      /* [context] */
  size_t value_room, value_used, after_room, after_used, blob_room;
};

static void __attribute__((noreturn, format(printf, 2, 3))) broken(const struct reader *r, const char *fmt, ...)
{
  va_list ap;
  fprintf(stderr, "replay-host: %s:%u: ", r->program->path, r->line);
  va_start(ap, fmt);
  vfprintf(stderr, fmt, ap);
  va_end(ap);
  fputc('\n', stderr);
  exit(1);
}

static void __attribute__((noreturn)) unreadable(const char *path, const char *why)
{
  fprintf(stderr, "replay-host: %s: %s\n", path, why);
  exit(1);
}

static void *room(size_t count, size_t size)
{
  void *p = calloc(count ? count : 1, size);
  if (!p) {
    fprintf(stderr, "replay-host: out of memory for %zu entries\n", count);
    exit(1);
  }
  return p;
}

static char *slurp(const char *path, size_t *length)
{
  FILE *f = fopen(path, "rb");
  if (!f) unreadable(path, strerror(errno));
  size_t used = 0, size = 1 << 16;
  char *text = malloc(size);
  while (text) {
    size_t n = fread(text + used, 1, size - used - 1, f);
    used += n;
    if (n == 0) break;
    if (used + 1 == size) {
      char *more = realloc(text, size *= 2);
      if (!more) free(text);
      text = more;
    }
  }
  if (!text) unreadable(path, "out of memory");
  if (ferror(f)) unreadable(path, strerror(errno));
  fclose(f);
  text[used] = 0;
  *length = used;
  return text;
}

/* The last line vouches for everything before it, so a program that was cut off or damaged is
 * refused before any of it is believed. */
static void check_end(const char *path, char *text, size_t length)
{
  char *end = length && text[length - 1] == '\n' ? text + length - 1 : NULL;
  char *last = end;
  while (last && last > text && last[-1] != '\n') last--;
  uint64_t want;
  char extra;
  if (!last || sscanf(last, "end %" SCNx64 "%c", &want, &extra) < 1 || strncmp(last, "end ", 4) != 0)
    unreadable(path, "the program is cut off: its last line is not 'end'");
  uint64_t sum = 0xcbf29ce484222325u;
  for (char *p = text; p < last; p++) sum = (sum ^ (uint8_t)*p) * 0x100000001b3u;
  if (sum != want) unreadable(path, "the program is damaged: its checksum does not fit");
  *last = 0;
}

static bool next_line(struct reader *r)
{
  if (!*r->next) return false;
  char *end = strchr(r->next, '\n');
  r->token = r->next;
  r->line++;
  if (end) {
    *end = 0;
    r->next = end + 1;
  } else {
    r->next += strlen(r->next);
  }
  return true;
}

static char *next_token(struct reader *r)
{
  char *t = r->token;
  if (!t) broken(r, "the line ends too early");
  char *end = strchr(t, ' ');
  if (end) *end = 0;
  r->token = end ? end + 1 : NULL;
  return t;
}

static void end_of_line(struct reader *r)
{
  if (r->token) broken(r, "there is more in the line than expected: '%s'", r->token);
}

static uint64_t number_in(struct reader *r, const char *text, int base)
{
  char *end;
  errno = 0;
  uint64_t v = *text == '-' ? (uint64_t)strtoll(text, &end, base) : strtoull(text, &end, base);
  if (errno || *end || !*text) broken(r, "'%s' is not a number", text);
  return v;
}

static uint64_t next_number(struct reader *r) { return number_in(r, next_token(r), 10); }

static uint32_t next_below(struct reader *r, const char *what, uint32_t limit)
{
  uint64_t v = next_number(r);
  if (v >= limit) broken(r, "%s %" PRIu64 " does not exist", what, v);
  return (uint32_t)v;
}

static void expect(struct reader *r, const char *word)
{
  if (!next_line(r)) broken(r, "the program ends before '%s'", word);
  char *t = next_token(r);
  if (strcmp(t, word) != 0) broken(r, "'%s' where '%s' was expected", t, word);
}

static uint32_t index_in(struct reader *r, const char *text, const char *what, uint32_t low, uint32_t high)
{
  uint64_t v = number_in(r, text, 10);
  if (v < low || v >= high) broken(r, "%s %" PRIu64 " does not exist", what, v);
  return (uint32_t)v;
}

static uint32_t published_in(struct reader *r, const char *text)
{
  uint32_t n = index_in(r, text, "publication", 0, 1u << 20);
  if (n >= r->program->published_count) r->program->published_count = n + 1;
  return n;
}

static struct value next_blob(struct reader *r, const char *t)
{
  struct program *p = r->program;
  union blob b;
  memset(&b, 0, sizeof b);
  struct value v = { VALUE_NULL, p->blob_count };
  unsigned type = 0, flags = 0;
  int x = 0, y = 0, z = 0, read = -1;
  uint64_t m = 0, n = 0;
  switch (*t) {
  case 'k':
    v.how = VALUE_SOCKET;
    sscanf(t, "k%u:%d:%d:%" SCNu64 "%n", &type, &x, &y, &m, &read);
    b.socket = (struct net_socket){ .type = (uint8_t)type, .fd = x, .op = y, .length = m };
    break;
  case 'q':
    v.how = VALUE_IB;
    sscanf(t, "q%u:%d:%" SCNu64 ":%d:%d:%" SCNu64 "%n", &type, &x, &m, &y, &z, &n, &read);
    b.ib = (struct net_ib){ .type = (uint8_t)type, .device = x, .wr_id = m, .opcode = y, .qp = z, .length = n };
    break;
  case 'o':
    v.how = VALUE_PROXY_OP;
    sscanf(t, "o%" SCNu64 ":%d%n", &m, &x, &read);
    b.proxy_op.proxy_op.trans_size = m;
    b.proxy_op.proxy_op.steps = x;
    break;
  default:
    v.how = VALUE_PROXY_DIAG;
    sscanf(t, "d%u:%u:%" SCNd64 ":%" SCNd64 "%n", &type, &flags, (int64_t *)&m, (int64_t *)&n, &read);
    b.proxy_diag.proxy_diag.kind = (uint8_t)type;
    b.proxy_diag.proxy_diag.flags = (uint16_t)flags;
    b.proxy_diag.proxy_diag.value = (int64_t)m;
    b.proxy_diag.proxy_diag.value2 = (int64_t)n;
  }
  if (read < 0 || t[read]) broken(r, "'%s' is not a value", t);
  if (p->blob_count == r->blob_room) {
    size_t more = r->blob_room ? 2 * r->blob_room : 256;
    union blob *all = realloc(p->blobs, more * sizeof *all);
    if (!all) unreadable(p->path, "out of memory");
    p->blobs = all;
    r->blob_room = more;
  }
  p->blobs[p->blob_count++] = b;
  return v;
}

static struct value next_value(struct reader *r)
{
  struct program *p = r->program;
  char *t = next_token(r);
  struct value v = { VALUE_NULL, 0 };
  if (strcmp(t, "-") == 0) return v;
  if (strcmp(t, "self") == 0) {
    v.how = VALUE_PID;
    return v;
  }
  if (strcmp(t, "wild") == 0) {
    v.how = VALUE_WILD;
    return v;
  }
  switch (*t) {
  case '.':
    v.how = VALUE_EMPTY;
    if (t[1]) broken(r, "'%s' is not a value", t);
    return v;
  case '=':
    v.how = VALUE_BITS;
    v.bits = number_in(r, t + 1, 10);
    return v;
  case 'x':
    v.how = VALUE_BITS;
    v.bits = number_in(r, t + 1, 16);
    return v;
  case 's':
    v.how = VALUE_STRING;
    v.bits = index_in(r, t + 1, "string", 0, p->string_count);
    return v;
  case 'c':
    v.how = VALUE_CONTEXT;
    v.bits = index_in(r, t + 1, "context", 1, p->context_count + 1);
    if (!r->inited[v.bits]) broken(r, "context %s is used before its init", t + 1);
    return v;
  case 'e':
    v.how = VALUE_EVENT;
    v.bits = index_in(r, t + 1, "event", 1, p->event_count + 1);
    if (!r->started[v.bits]) broken(r, "event %s is used before its start", t + 1);
    return v;
  case 'i':
    v.how = VALUE_INT;
    v.bits = number_in(r, t + 1, 10);
    return v;
  case 'p':
  case 'a':
    v.how = *t == 'p' ? VALUE_PUBLISHED : VALUE_AUTHOR;
    v.bits = published_in(r, t + 1);
    return v;
  case 'k':
  case 'q':
  case 'o':
  case 'd':
    return next_blob(r, t);
  }
  broken(r, "'%s' is not a value", t);
}

static char *next_string(struct reader *r)
{
  char *t = r->token ? r->token : "";
  r->token = NULL;
  char *copy = room(strlen(t) + 1, 1), *to = copy;
  for (; *t; t++) {
    unsigned byte = (uint8_t)*t;
    if (*t == '%') {
      if (sscanf(t, "%%%2x", &byte) != 1) broken(r, "bad escape in a string");
      t += 2;
    }
    *to++ = (char)byte;
  }
  return copy;
}

static void read_head(struct reader *r)
{
  struct program *p = r->program;
  expect(r, "replay-program");
  if (next_number(r) != 2) broken(r, "the program's version is not 2");
  expect(r, "nccl");
  p->api = (int)next_number(r);
  p->release = (int)next_number(r);
  p->pid = (int)next_number(r);
  p->base = next_number(r);
  end_of_line(r);
  expect(r, "anchor");
  p->anchor_raw = next_number(r);
  p->anchor_mono = next_number(r);
  p->anchor_real = next_number(r);
  end_of_line(r);
  expect(r, "counts");
  p->string_count = next_below(r, "a string count of", 1u << 24);
  p->thread_count = next_below(r, "a thread count of", 1u << 16);
  p->context_count = next_below(r, "a context count of", 1u << 20);
  p->event_count = next_below(r, "an event count of", 1u << 28);
  p->call_count = next_below(r, "a call count of", 1u << 30);
  end_of_line(r);
  p->strings = room(p->string_count, sizeof *p->strings);
  p->threads = room(p->thread_count, sizeof *p->threads);
  p->contexts = room(p->context_count + 1, sizeof *p->contexts);
  p->event_types = room(p->event_count + 1, sizeof *p->event_types);
  p->calls = room(p->call_count, sizeof *p->calls);
  r->started = room(p->event_count + 1, sizeof *r->started);
  r->inited = room(p->context_count + 1, sizeof *r->inited);
}

static void read_tables(struct reader *r)
{
  struct program *p = r->program;
  for (uint32_t i = 0; i < p->string_count; i++) {
    expect(r, "string");
    p->strings[i] = next_string(r);
  }
  uint32_t mains = 0;
  for (uint32_t i = 0; i < p->thread_count; i++) {
    struct thread *t = &p->threads[i];
    expect(r, "thread");
    t->name = p->strings[next_below(r, "string", p->string_count)];
    t->main = next_below(r, "main flag", 2);
    mains += t->main;
    char *spawn = next_token(r);
    t->spawn = strcmp(spawn, "-") == 0 ? -1 : (int64_t)index_in(r, spawn, "call", 0, p->call_count);
    end_of_line(r);
  }
  if (mains > 1) broken(r, "%u main threads", mains);
  for (uint32_t i = 1; i <= p->context_count; i++) {
    struct context *c = &p->contexts[i];
    expect(r, "context");
    c->comm_id = number_in(r, next_token(r), 16);
    struct value name = next_value(r);
    if (name.how != VALUE_NULL && name.how != VALUE_STRING) broken(r, "a context's name is a string");
    c->name = name.how == VALUE_STRING ? p->strings[name.bits] : NULL;
    c->nnodes = (int)next_number(r);
    c->nranks = (int)next_number(r);
    c->rank = (int)next_number(r);
    c->device = (int)next_number(r);
    c->meeting = next_below(r, "meeting", 1u << 20);
    c->members = next_below(r, "member count", 1u << 20);
    end_of_line(r);
  }
}

static void push_field(struct reader *r, struct value v)
{
  if (r->value_used == r->value_room) broken(r, "too many descriptor fields");
  r->program->values[r->value_used++] = v;
}

/* What a start has beside its context. */
static void read_start(struct reader *r, struct call *c)
{
  struct program *p = r->program;
  uint32_t e = index_in(r, next_token(r), "event", 1, p->event_count + 1);
  if (r->started[e]) broken(r, "event %u starts twice", e);
  c->event = (struct value){ VALUE_EVENT, e };
  c->type = next_below(r, "event type", TYPE_COUNT);
  p->event_types[e] = c->type;
  c->root = next_below(r, "event", p->event_count + 1);
  if (c->root && (!r->started[c->root] || (p->event_types[c->root] != TYPE_GROUP_API && p->event_types[c->root] != TYPE_GROUP)))
    broken(r, "event %u carries no mask", c->root);
  c->parent = next_value(r);
  c->before = next_value(r);
  c->rank = (int)next_number(r);
  c->fields = p->values + r->value_used;
  for (const struct field *f = event_info[c->type].fields; f->name; f++) {
    struct value v = next_value(r);
    bool text = f->kind >= FIELD_STRING && f->kind <= FIELD_PROTO;
    if (text ? v.how != VALUE_STRING && v.how != VALUE_NULL : v.how == VALUE_STRING) broken(r, "%s is or is not a string", f->name);
    push_field(r, v);
  }
  r->started[e] = true;
}

/* The rest of call n's line: what is published of it, and which calls it comes after. */
static void read_order(struct reader *r, struct call *c, uint32_t n)
{
  struct program *p = r->program;
  c->after = p->afters + r->after_used;
  c->publish = NOT_PUBLISHED;
  while (r->token) {
    char *t = next_token(r);
    if (*t == '!' && (c->kind == CALL_INIT || c->kind == CALL_START)) {
      c->publish = published_in(r, t + 1);
      continue;
    }
    if (*t != '@') broken(r, "there is more in the line than expected: '%s'", t);
    if (r->after_used == r->after_room) broken(r, "too many @");
    /* Only what came earlier: so the calls can always be made, whatever the threads do. */
    p->afters[r->after_used++] = index_in(r, t + 1, "earlier call", 0, n);
    c->after_count++;
  }
}

static void read_call(struct reader *r, uint32_t n)
{
  struct program *p = r->program;
  struct call *c = &p->calls[n];
  if (!next_line(r)) broken(r, "the program ends after %u of %u calls", n, p->call_count);
  char *word = next_token(r);
  for (c->kind = 0; c->kind < CALL_KINDS; c->kind++)
    if (strcmp(word, call_names[c->kind]) == 0) break;
  if (c->kind == CALL_KINDS) broken(r, "'%s' is not a call", word);
  c->thread = next_below(r, "thread", p->thread_count);
  c->position = p->threads[c->thread].calls++;
  if (c->position == 0 && p->threads[c->thread].spawn >= (int64_t)n) broken(r, "thread %u begins before it is created", c->thread);
  c->time = next_number(r);

  if (c->kind == CALL_INIT) {
    uint32_t i = index_in(r, next_token(r), "context", 1, p->context_count + 1);
    if (r->inited[i]) broken(r, "context %u is initialized twice", i);
    r->inited[i] = true;
    c->context = (struct value){ VALUE_CONTEXT, i };
  } else {
    c->context = next_value(r);
    if (c->kind == CALL_FINALIZE && c->context.how == VALUE_NULL) broken(r, "finalize of no context");
  }
  switch (c->kind) {
  case CALL_START:
    read_start(r, c);
    break;
  case CALL_STOP:
    c->event = next_value(r);
    break;
  case CALL_STATE:
    c->event = next_value(r);
    c->state = (int)next_number(r);
    c->args = next_value(r);
    break;
  default:
    break;
  }
  read_order(r, c, n);
}

void program_read(struct program *program, const char *path)
{
  memset(program, 0, sizeof *program);
  program->path = path;
  size_t length;
  struct reader r = { .program = program, .text = slurp(path, &length) };
  check_end(path, r.text, length);
  r.next = r.text;
  /* Each field and each @ follows a space. */
  for (char *p = r.text; *p; p++) r.value_room += *p == ' ', r.after_room += *p == '@';
  program->values = room(r.value_room, sizeof *program->values);
  program->afters = room(r.after_room, sizeof *program->afters);
  read_head(&r);
  read_tables(&r);
  for (uint32_t n = 0; n < program->call_count; n++) read_call(&r, n);
  if (next_line(&r)) broken(&r, "there is more than %u calls", program->call_count);
  free(r.text);
  free(r.started);
  free(r.inited);
}

/* ---- dump ----------------------------------------------------------------------------------- */

static void dump_string(FILE *to, const char *s)
{
  fputc('"', to);
  for (; *s; s++) {
    if (*s == '"' || *s == '\\') fprintf(to, "\\%c", *s);
    else if ((uint8_t)*s < 0x20) fprintf(to, "\\u%04x", (uint8_t)*s);
    else fputc(*s, to);
  }
  fputc('"', to);
}

static void dump_value(const struct program *p, FILE *to, const char *name, struct value v, bool is_signed)
{
  fprintf(to, ",\"%s\":", name);
  switch (v.how) {
  case VALUE_NULL: fputs("null", to); break;
  case VALUE_BITS: is_signed ? fprintf(to, "%" PRId64, (int64_t)v.bits) : fprintf(to, "%" PRIu64, v.bits); break;
  case VALUE_CONTEXT: fprintf(to, "\"context %" PRIu64 "\"", v.bits); break;
  case VALUE_EVENT: fprintf(to, "\"event %" PRIu64 "\"", v.bits); break;
  case VALUE_STRING: dump_string(to, p->strings[v.bits]); break;
  case VALUE_PID: fputs("\"self\"", to); break;
  case VALUE_INT: fprintf(to, "%d", (int)v.bits); break;
  case VALUE_PUBLISHED: fprintf(to, "\"published %" PRIu64 "\"", v.bits); break;
  case VALUE_AUTHOR: fprintf(to, "\"author of %" PRIu64 "\"", v.bits); break;
  case VALUE_WILD: fputs("\"wild\"", to); break;
  case VALUE_SOCKET: {
    const struct net_socket *s = &p->blobs[v.bits].socket;
    fprintf(to, "{\"type\":%u,\"fd\":%d,\"op\":%d,\"length\":%zu}", s->type, s->fd, s->op, s->length);
    break;
  }
  case VALUE_IB: {
    const struct net_ib *b = &p->blobs[v.bits].ib;
    fprintf(to, "{\"type\":%u,\"device\":%d,\"wrId\":%" PRIu64 ",\"opcode\":%d,\"qpNum\":%d,\"length\":%zu}", b->type, b->device,
            b->wr_id, b->opcode, b->qp, b->length);
    break;
  }
  case VALUE_PROXY_OP:
    fprintf(to, "{\"transSize\":%zu,\"steps\":%d}", p->blobs[v.bits].proxy_op.proxy_op.trans_size, p->blobs[v.bits].proxy_op.proxy_op.steps);
    break;
  case VALUE_PROXY_DIAG: {
    const union args_rccl_v6 *a = &p->blobs[v.bits].proxy_diag;
    fprintf(to, "{\"counterKind\":%u,\"flags\":%u,\"value\":%" PRId64 ",\"value2\":%" PRId64 "}", a->proxy_diag.kind, a->proxy_diag.flags,
            a->proxy_diag.value, a->proxy_diag.value2);
    break;
  }
  case VALUE_EMPTY: fputs("{}", to); break;
  }
}

static void dump_counts(FILE *to, const char *name, const char *const *names, const uint64_t *counts, int n)
{
  fprintf(to, ",\"%s\":{", name);
  const char *comma = "";
  for (int i = 0; i < n; i++)
    if (counts[i]) fprintf(to, "%s\"%s\":%" PRIu64, comma, names[i], counts[i]), comma = ",";
  fputc('}', to);
}

void program_dump(const struct program *p, FILE *to)
{
  uint64_t calls[CALL_KINDS] = { 0 }, starts[TYPE_COUNT] = { 0 }, states[STATE_COUNT + 1] = { 0 };
  const char *types[TYPE_COUNT];
  for (int i = 0; i < TYPE_COUNT; i++) types[i] = event_info[i].name;
  for (uint32_t n = 0; n < p->call_count; n++) {
    const struct call *c = &p->calls[n];
    calls[c->kind]++;
    fprintf(to, "{\"call\":%u,\"f\":\"%s\",\"thread\":%u,\"t\":%" PRIu64, n, call_names[c->kind], c->thread, c->time);
    dump_value(p, to, "context", c->context, false);
    if (c->kind == CALL_INIT) {
      const struct context *x = &p->contexts[c->context.bits];
      fprintf(to, ",\"commId\":\"0x%" PRIx64 "\",\"commName\":", x->comm_id);
      if (x->name) dump_string(to, x->name);
      else fputs("null", to);
      fprintf(to, ",\"nNodes\":%d,\"nranks\":%d,\"rank\":%d,\"device\":%d", x->nnodes, x->nranks, x->rank, x->device);
    }
    if (c->kind == CALL_START || c->kind == CALL_STOP || c->kind == CALL_STATE) dump_value(p, to, "event", c->event, false);
    if (c->kind == CALL_START) {
      starts[c->type]++;
      fprintf(to, ",\"type\":\"%s\",\"root\":%u,\"rank\":%d", event_info[c->type].name, c->root, c->rank);
      dump_value(p, to, "parent", c->parent, false);
      dump_value(p, to, "before", c->before, false);
      const struct value *v = c->fields;
      for (const struct field *f = event_info[c->type].fields; f->name; f++)
        dump_value(p, to, f->name, *v++, f->kind == FIELD_I32 || f->kind == FIELD_I64);
    }
    if (c->kind == CALL_STATE) {
      int known = c->state >= 0 && c->state < STATE_COUNT ? c->state : STATE_COUNT;
      states[known]++;
      if (known < STATE_COUNT) fprintf(to, ",\"state\":\"%s\"", state_names[known]);
      else fprintf(to, ",\"state\":\"state %d\"", c->state);
      dump_value(p, to, "args", c->args, false);
    }
    if (c->publish != NOT_PUBLISHED) fprintf(to, ",\"publish\":%u", c->publish);
    if (c->after_count) {
      fputs(",\"after\":[", to);
      for (uint32_t i = 0; i < c->after_count; i++) fprintf(to, "%s%u", i ? "," : "", c->after[i]);
      fputc(']', to);
    }
    fputs("}\n", to);
  }
  fprintf(to, "{\"api\":%d,\"release\":%d,\"threads\":[", p->api, p->release);
  for (uint32_t i = 0; i < p->thread_count; i++) {
    fputs(i ? "," : "", to);
    dump_string(to, p->threads[i].name);
  }
  fputc(']', to);
  dump_counts(to, "calls", call_names, calls, CALL_KINDS);
  dump_counts(to, "starts", types, starts, TYPE_COUNT);
  dump_counts(to, "states", state_names, states, STATE_COUNT + 1);
  fputs("}\n", to);
}
