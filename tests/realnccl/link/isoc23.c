/* SPDX-License-Identifier: Apache-2.0
 *
 * The C23 spellings that the headers of a newer C library bring into an archive, for machines whose C library is older than
 * the one the archive was built with. Empty where they are there.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#if !__GLIBC_PREREQ(2, 38)
long __isoc23_strtol(const char *text, char **end, int base) { return strtol(text, end, base); }

long long __isoc23_strtoll(const char *text, char **end, int base) { return strtoll(text, end, base); }

unsigned long __isoc23_strtoul(const char *text, char **end, int base) { return strtoul(text, end, base); }

unsigned long long __isoc23_strtoull(const char *text, char **end, int base) { return strtoull(text, end, base); }

int __isoc23_sscanf(const char *text, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  int got = vsscanf(text, format, list);
  va_end(list);
  return got;
}

int __isoc23_fscanf(FILE *file, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  int got = vfscanf(file, format, list);
  va_end(list);
  return got;
}
#endif
