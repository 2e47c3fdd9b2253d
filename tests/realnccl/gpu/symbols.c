/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void find_table(struct symbols *l)
{
  const Elf64_Ehdr *head = (const void *)l->image;
  const Elf64_Shdr *sections = (const void *)(l->image + head->e_shoff);
  for (unsigned i = 0; i < head->e_shnum; i++) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    l->table = l->image + sections[i].sh_offset;
    l->count = sections[i].sh_size / sizeof(Elf64_Sym);
    l->names = l->image + sections[sections[i].sh_link].sh_offset;
  }
}

int symbols_open(struct symbols *l, const void *address)
{
  Dl_info info;
  struct stat st;
  memset(l, 0, sizeof *l);
  errno = ENOENT;
  if (!dladdr(address, &info) || !info.dli_fname) return 0;
  l->path = info.dli_fname;
  l->base = (uintptr_t)info.dli_fbase;
  int fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  void *image = fstat(fd, &st) == 0 ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  close(fd);
  if (image == MAP_FAILED) return 0;
  l->image = image;
  l->size = (size_t)st.st_size;
  find_table(l);
  return 1;
}

void symbols_close(struct symbols *l)
{
  munmap((void *)l->image, l->size);
  l->image = NULL;
}

const void *symbols_find(const struct symbols *l, const char *name, size_t *size)
{
  const Elf64_Sym *table = l->table;
  for (size_t i = 0; table && i < l->count; i++) {
    if (strcmp(l->names + table[i].st_name, name) != 0 || table[i].st_shndx == SHN_UNDEF) continue;
    *size = table[i].st_size;
    return (const void *)(l->base + table[i].st_value);
  }
  return NULL;
}

const void *symbols_section(const struct symbols *l, const char *name, size_t *size)
{
  const Elf64_Ehdr *head = (const void *)l->image;
  const Elf64_Shdr *sections = (const void *)(l->image + head->e_shoff);
  const char *names = l->image + sections[head->e_shstrndx].sh_offset;
  for (unsigned i = 0; i < head->e_shnum; i++) {
    if (strcmp(names + sections[i].sh_name, name) != 0) continue;
    *size = sections[i].sh_size;
    return (const void *)(l->base + sections[i].sh_addr);
  }
  return NULL;
}
