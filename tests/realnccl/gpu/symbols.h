/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of a loaded library that the dynamic linker does not know: its symbol table, read from its file.
 */
#ifndef REALNCCL_SYMBOLS_H
#define REALNCCL_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

struct symbols {
  const char *path;  /* of the library */
  uintptr_t base;    /* where it is loaded */
  const char *image; /* its file, mapped */
  size_t size;
  const void *table; /* .symtab; NULL: stripped */
  size_t count;
  const char *names;
};

/* The library that holds an address. False: errno says why. */
int symbols_open(struct symbols *library, const void *address);
void symbols_close(struct symbols *library);

/* Where a name is in memory, and its size; NULL where the table lacks it. */
const void *symbols_find(const struct symbols *library, const char *name, size_t *size);

/* Where a section of its file is in memory, and its size; NULL: there is none. */
const void *symbols_section(const struct symbols *library, const char *name, size_t *size);

#endif
