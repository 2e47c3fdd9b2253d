/* SPDX-License-Identifier: Apache-2.0
 *
 * Settings of the stand-ins, from the environment.
 */
#ifndef REALNCCL_SETTINGS_H
#define REALNCCL_SETTINGS_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline const char *setting(const char *name)
{
  const char *value = getenv(name);
  return value && *value ? value : NULL;
}

static inline long setting_number(const char *name, long otherwise)
{
  const char *value = setting(name);
  return value ? atol(value) : otherwise;
}

/* Opens this process's file of what really happened, in the folder REALNCCL_TRUTH; NULL without that. */
static inline FILE *truth_open(const char *kind)
{
  const char *folder = setting("REALNCCL_TRUTH");
  char path[512];
  if (!folder) return NULL;
  snprintf(path, sizeof path, "%s/%s.%d.jsonl", folder, kind, (int)getpid());
  FILE *file = fopen(path, "ae");
  if (file) setvbuf(file, NULL, _IOLBF, 0);
  return file;
}

#endif
