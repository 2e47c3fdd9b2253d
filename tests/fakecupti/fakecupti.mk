# SPDX-License-Identifier: Apache-2.0
#
# A libcupti for tests. Included by the Makefile, or used alone from the repository's root:
#
#	make -f tests/fakecupti/fakecupti.mk fakecupti [BUILD=dir] [SANITIZE=thread|address,undefined]
#
# libcupti.so.12 is whole; lacking/libcupti.so.12 has none of the functions that a client can do without, and
# broken/libcupti.so.12 lacks one that it needs.
BUILD ?= build

FAKECUPTI_DIR := tests/fakecupti
FAKECUPTI_SOURCES := $(addprefix $(FAKECUPTI_DIR)/,fakecupti.c buffers.c records.c truth.c)
FAKECUPTI_HEADERS := $(wildcard $(FAKECUPTI_DIR)/*.h) internal/replay/host/gpu.h plugin/shm.h
FAKECUPTI_CFLAGS := -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wshadow -Wstrict-prototypes -Werror -fvisibility=hidden -fPIC \
	$(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer)
FAKECUPTI := $(addprefix $(BUILD)/fakecupti/,libcupti.so.12 lacking/libcupti.so.12 broken/libcupti.so.12)

.PHONY: fakecupti
fakecupti: $(FAKECUPTI)

$(FAKECUPTI): FAKE := -DFAKECUPTI_WHOLE
$(BUILD)/fakecupti/lacking/libcupti.so.12: FAKE :=
$(BUILD)/fakecupti/broken/libcupti.so.12: FAKE := -DFAKECUPTI_WHOLE -DcuptiActivityFlushAll=cuptiActivityFlushNothing
$(FAKECUPTI): $(FAKECUPTI_SOURCES) $(FAKECUPTI_HEADERS) $(FAKECUPTI_DIR)/fakecupti.mk
	@mkdir -p $(@D)
	$(CC) $(FAKECUPTI_CFLAGS) $(CFLAGS) $(FAKE) -shared -Wl,-soname,$(@F) -o $@ $(FAKECUPTI_SOURCES) $(LDFLAGS) -pthread -ldl
