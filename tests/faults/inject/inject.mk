# SPDX-License-Identifier: Apache-2.0
#
# What lets system calls of a program fail, for tests/faults. Included by the Makefile.
INJECT := $(BUILD)/inject

$(INJECT): tests/faults/inject/inject.c
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wshadow -Wstrict-prototypes -Werror $(CFLAGS) -o $@ $< $(LDFLAGS)
