# SPDX-License-Identifier: Apache-2.0
#
# A Score-P for tests. Included by the Makefile, or used alone from the repository's root:
#
#	make -f tests/fakescorep/fakescorep.mk fakescorep [BUILD=dir] [SANITIZE=thread|address,undefined]
BUILD ?= build

FAKESCOREP_DIR := tests/fakescorep
FAKESCOREP_CFLAGS := -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wshadow -Wstrict-prototypes -Werror -fvisibility=hidden -fPIC \
	$(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer)
FAKESCOREP_MEASUREMENTS := $(patsubst %,$(BUILD)/fakescorep/%/libscorep_measurement.so,none omp pthread no-user old lean)
FAKESCOREP_EVENTS := $(patsubst %,$(BUILD)/fakescorep/%/libscorep_adapter_user_event.so.11,none omp pthread old lean)
FAKESCOREP := $(FAKESCOREP_MEASUREMENTS) $(FAKESCOREP_EVENTS) $(BUILD)/fakescorep/pauses

.PHONY: fakescorep
fakescorep: $(FAKESCOREP)

$(FAKESCOREP_MEASUREMENTS): FAKE :=
$(BUILD)/fakescorep/omp/libscorep_measurement.so: FAKE := -DFAKESCOREP_MODEL=1
$(BUILD)/fakescorep/pthread/libscorep_measurement.so: FAKE := -DFAKESCOREP_MODEL=2
$(BUILD)/fakescorep/no-user/libscorep_measurement.so: FAKE := -DFAKESCOREP_NO_USER
$(BUILD)/fakescorep/old/libscorep_measurement.so: FAKE := -DFAKESCOREP_OLD
$(BUILD)/fakescorep/lean/libscorep_measurement.so: FAKE := -DFAKESCOREP_MODEL=2 -DFAKESCOREP_LEAN
$(FAKESCOREP_MEASUREMENTS): $(FAKESCOREP_DIR)/measurement.c $(FAKESCOREP_DIR)/substrates.c $(wildcard $(FAKESCOREP_DIR)/*.h) \
		plugin/substrate/scorep_abi.h $(FAKESCOREP_DIR)/fakescorep.mk
	@mkdir -p $(@D)
	$(CC) $(FAKESCOREP_CFLAGS) $(CFLAGS) $(FAKE) -shared -Wl,-soname,$(@F) -o $@ $(filter %.c,$^) $(LDFLAGS) -pthread -ldl

# It finds the measurement beside itself.
$(FAKESCOREP_EVENTS): $(BUILD)/fakescorep/%/libscorep_adapter_user_event.so.11: $(FAKESCOREP_DIR)/user_event.c \
		$(BUILD)/fakescorep/%/libscorep_measurement.so $(FAKESCOREP_DIR)/fakescorep.h
	$(CC) $(FAKESCOREP_CFLAGS) $(CFLAGS) -shared -Wl,-soname,$(@F) -o $@ $< $(@D)/libscorep_measurement.so '-Wl,-rpath,$$ORIGIN' $(LDFLAGS) -pthread

$(BUILD)/fakescorep/pauses: $(FAKESCOREP_DIR)/pauses.c $(wildcard plugin/abi*.h) $(FAKESCOREP_DIR)/fakescorep.mk
	@mkdir -p $(@D)
	$(CC) $(FAKESCOREP_CFLAGS) $(CFLAGS) -I. -o $@ $< $(LDFLAGS) -pthread -ldl
