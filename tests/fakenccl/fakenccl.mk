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
FAKENCCL_SOURCES := $(addprefix $(FAKENCCL_DIR)/,main.c program.c events.c clock.c cuda.c loader.c tally.c meeting.c play.c)
FAKENCCL_HEADERS := $(wildcard $(FAKENCCL_DIR)/*.h) plugin/shm.h
FAKENCCL_CFLAGS := -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wshadow -Wstrict-prototypes -Werror -fvisibility=hidden \
	$(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer)

.PHONY: fakenccl
fakenccl: $(BUILD)/fakenccl $(BUILD)/librecorder.so $(BUILD)/librecorder-v5.so $(BUILD)/librecorder-v4.so

$(BUILD)/fakenccl: $(FAKENCCL_SOURCES) $(FAKENCCL_HEADERS) $(FAKENCCL_DIR)/fakenccl.mk
	@mkdir -p $(@D)
	$(CC) $(FAKENCCL_CFLAGS) $(CFLAGS) -rdynamic -o $@ $(FAKENCCL_SOURCES) $(LDFLAGS) -pthread -ldl

FAKENCCL_RECORDER := $(FAKENCCL_DIR)/recorder_plugin.c $(FAKENCCL_DIR)/events.c

# The same plugin with all versions, and with only one: librecorder-v5.so, librecorder-v4.so.
$(BUILD)/librecorder.so $(BUILD)/librecorder-v5.so $(BUILD)/librecorder-v4.so: \
		$(FAKENCCL_RECORDER) $(FAKENCCL_HEADERS) $(FAKENCCL_DIR)/fakenccl.mk
	@mkdir -p $(@D)
	$(CC) $(FAKENCCL_CFLAGS) $(CFLAGS) $(if $(findstring -v,$(@F)),-DRECORDER_V$(patsubst librecorder-v%.so,%,$(@F))_ONLY) \
		-fPIC -shared -o $@ $(FAKENCCL_RECORDER) $(LDFLAGS) -pthread
