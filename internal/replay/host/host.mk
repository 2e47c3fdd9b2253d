# SPDX-License-Identifier: Apache-2.0
#
# The host program that plays recordings to a plugin, and the libraries that can seem to call for it. Included by the
# Makefile, or used alone from the repository's root:
#
#	make -f internal/replay/host/host.mk replay-host [BUILD=dir] [SANITIZE=thread|address,undefined]
#
# Built with and without SANITIZE they do not mix: give each its own BUILD.
BUILD ?= build

# Where the tool looks for it, beside itself and in its prefix (replay.HostFile).
HOST_OUT := $(BUILD)/libexec/nccl-otf2
HOST := $(HOST_OUT)/replay-host
HOST_CALLERS := $(HOST_OUT)/callers/libnccl.so.2 $(HOST_OUT)/callers/librccl.so.1

HOST_DIR := internal/replay/host
HOST_SOURCES := $(filter-out $(HOST_DIR)/library.c,$(wildcard $(HOST_DIR)/*.c))
HOST_HEADERS := $(wildcard $(HOST_DIR)/*.h) plugin/shm.h
HOST_CFLAGS := -std=c11 -D_GNU_SOURCE $(if $(SANITIZE),-O1,-O2) -g -Wall -Wextra -Wshadow -Wstrict-prototypes -Werror -fvisibility=hidden \
	$(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer)

.PHONY: replay-host
replay-host: $(HOST)

$(HOST): $(HOST_SOURCES) $(HOST_HEADERS) $(HOST_DIR)/host.mk | $(HOST_CALLERS)
	@mkdir -p $(@D)
	$(CC) $(HOST_CFLAGS) $(CFLAGS) -rdynamic -o $@ $(HOST_SOURCES) $(LDFLAGS) -pthread -ldl

# Who calls, as far as the plugin can see (--library).
$(HOST_CALLERS): $(HOST_DIR)/library.c $(HOST_HEADERS) $(HOST_DIR)/host.mk
	@mkdir -p $(@D)
	$(CC) $(HOST_CFLAGS) $(CFLAGS) -fPIC -shared -Wl,-soname,$(@F) -o $@ $(HOST_DIR)/library.c $(LDFLAGS)
