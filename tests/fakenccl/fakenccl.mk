# SPDX-License-Identifier: Apache-2.0
#
# The host program that plays recordings to a plugin, and a plugin that writes down what it is
# called with. Included by the Makefile, or used alone from the repository's root:
#
#	make -f tests/fakenccl/fakenccl.mk fakenccl [BUILD=dir] [SANITIZE=thread|address,undefined]
#
# Objects built with and without SANITIZE do not mix: give each its own BUILD.
BUILD ?= build

FAKENCCL_DIR := tests/fakenccl
FAKENCCL_SOURCES := $(addprefix $(FAKENCCL_DIR)/,main.c program.c api.c adapt.c clock.c cuda.c \
	kernels.c ledger.c loader.c library_open.c tally.c meeting.c publish.c play.c)
FAKENCCL_HEADERS := $(wildcard $(FAKENCCL_DIR)/*.h) plugin/shm.h tests/fakecupti/fakecupti.h
FAKENCCL_CFLAGS := -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wshadow -Wstrict-prototypes -Werror -fvisibility=hidden \
	$(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer)


# The recording plugin with all versions, and with only one each: librecorder-v5.so.
FAKENCCL_RECORDER := $(addprefix $(FAKENCCL_DIR)/,recorder_plugin.c api.c)
FAKENCCL_RECORDERS := $(BUILD)/librecorder.so $(patsubst %,$(BUILD)/librecorder-v%.so,1 2 3 4 5 6 7)
FAKENCCL_LIBRARIES := $(BUILD)/callers/libnccl.so.2 $(BUILD)/callers/librccl.so.1

.PHONY: fakenccl
fakenccl: $(BUILD)/fakenccl $(FAKENCCL_RECORDERS)

$(BUILD)/fakenccl: $(FAKENCCL_SOURCES) $(FAKENCCL_HEADERS) $(FAKENCCL_DIR)/fakenccl.mk | $(FAKENCCL_LIBRARIES)
	@mkdir -p $(@D)
	$(CC) $(FAKENCCL_CFLAGS) $(CFLAGS) -rdynamic -o $@ $(FAKENCCL_SOURCES) $(LDFLAGS) -pthread -ldl

# Who calls, as far as the plugin can see (--library).
$(FAKENCCL_LIBRARIES): $(FAKENCCL_DIR)/library.c $(FAKENCCL_HEADERS) $(FAKENCCL_DIR)/fakenccl.mk
	@mkdir -p $(@D)
	$(CC) $(FAKENCCL_CFLAGS) $(CFLAGS) -fPIC -shared -Wl,-soname,$(@F) -o $@ $(FAKENCCL_DIR)/library.c $(LDFLAGS)

$(FAKENCCL_RECORDERS): $(FAKENCCL_RECORDER) $(FAKENCCL_HEADERS) $(FAKENCCL_DIR)/fakenccl.mk
	@mkdir -p $(@D)
	$(CC) $(FAKENCCL_CFLAGS) $(CFLAGS) $(if $(findstring -v,$(@F)),-DRECORDER_ONLY=$(patsubst librecorder-v%.so,%,$(@F))) \
		-fPIC -shared -o $@ $(FAKENCCL_RECORDER) $(LDFLAGS) -pthread
