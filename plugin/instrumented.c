/* SPDX-License-Identifier: Apache-2.0 */
#include "instrumented.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

/* Functions that instrumented code calls on entry to each function: with GCC, Clang and most other compilers; with Score-P's plugin for
 * GCC; with the compilers of Intel, IBM and Cray. */
static const char *const entries[] = {"__cyg_profile_func_enter", "scorep_plugin_enter_region", "__VT_IntelEntry", "__func_trace_enter",
                                      "__pat_tp_func_entry"};
enum { ENTRIES = sizeof entries / sizeof *entries };

/* Tables that an image's dynamic section refers to. */
struct tables {
  const Elf64_Sym *symbols;
  const char *strings;
  const Elf64_Rela *calls, *data;
  size_t call_bytes, data_bytes, relative; /* relative: number of relocations at the start of `data`, which name no symbol */
};

/* Some C libraries do not relocate the addresses in the dynamic section. */
static const void *address_at(const struct dl_phdr_info *image, Elf64_Addr address) {
  return (const void *)(address < image->dlpi_addr ? image->dlpi_addr + address : address);
}

static struct tables tables_of(const struct dl_phdr_info *image, const Elf64_Dyn *entry) {
  struct tables tables = {0};
  bool rela = false;
  for (; entry->d_tag != DT_NULL; entry++) {
    switch (entry->d_tag) {
      case DT_SYMTAB: tables.symbols = address_at(image, entry->d_un.d_ptr); break;
      case DT_STRTAB: tables.strings = address_at(image, entry->d_un.d_ptr); break;
      case DT_JMPREL: tables.calls = address_at(image, entry->d_un.d_ptr); break;
      case DT_RELA: tables.data = address_at(image, entry->d_un.d_ptr); break;
      case DT_PLTRELSZ: tables.call_bytes = entry->d_un.d_val; break;
      case DT_RELASZ: tables.data_bytes = entry->d_un.d_val; break;
      case DT_RELACOUNT: tables.relative = entry->d_un.d_val; break;
      case DT_PLTREL: rela = entry->d_un.d_val == DT_RELA; break;
    }
  }
  if (!rela || !tables.calls) tables.call_bytes = 0;
  if (!tables.data) tables.data_bytes = 0;
  if (!tables.symbols || !tables.strings) tables.call_bytes = tables.data_bytes = 0;
  return tables;
}

static bool names_entry(const struct tables *tables, const Elf64_Rela *relocations, size_t first, size_t bytes) {
  for (size_t i = first; i < bytes / sizeof *relocations; i++) {
    const size_t symbol = relocations[i].r_info >> 32;
    if (!symbol) continue;
    for (unsigned k = 0; k < ENTRIES; k++)
      if (strcmp(tables->strings + tables->symbols[symbol].st_name, entries[k]) == 0) return true;
  }
  return false;
}

struct search {
  uintptr_t address;
  bool found;
};

static int look(struct dl_phdr_info *image, size_t size, void *closure) {
  (void)size;
  struct search *search = closure;
  const Elf64_Dyn *dynamic = NULL;
  bool here = false;
  for (unsigned i = 0; i < image->dlpi_phnum; i++) {
    const Elf64_Phdr *part = &image->dlpi_phdr[i];
    const uintptr_t begin = image->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_LOAD && search->address - begin < part->p_memsz) here = true;
    if (part->p_type == PT_DYNAMIC) dynamic = (const void *)begin;
  }
  if (!here) return 0;
  if (dynamic) {
    const struct tables tables = tables_of(image, dynamic);
    search->found = names_entry(&tables, tables.calls, 0, tables.call_bytes) ||
                    names_entry(&tables, tables.data, tables.relative, tables.data_bytes);
  }
  return 1;
}

bool ncclotf2_is_instrumented(const void *address) {
  struct search search = {.address = (uintptr_t)address};
  dl_iterate_phdr(look, &search);
  /* A program that is statically linked with the instrumentation library calls it without a relocation. */
  Dl_info own, tool;
  for (unsigned k = 0; k < ENTRIES && !search.found; k++) {
    const void *entry = dlsym(RTLD_DEFAULT, entries[k]);
    search.found = entry && dladdr(address, &own) && dladdr(entry, &tool) && own.dli_fbase == tool.dli_fbase;
  }
  return search.found;
}
