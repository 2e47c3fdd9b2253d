# SPDX-License-Identifier: Apache-2.0
#
# What lets system calls of a program fail, for tests/ and tests/faults. Included by the Makefile.
INJECT := $(BUILD)/inject

$(INJECT): tests/faults/inject/inject.c plugin/shm.h
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wshadow -Wstrict-prototypes -Werror -I. $(CFLAGS) -o $@ $< $(LDFLAGS)
