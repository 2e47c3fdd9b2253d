# SPDX-License-Identifier: Apache-2.0
# The plugin and its C tests. Included by the top Makefile; also usable alone: make -f plugin/plugin.mk plugin-test
# SANITIZE: what to hand to -fsanitize (thread, or address,undefined). Objects built with and without do
# not mix: give each its own BUILD.

BUILD ?= build
CC ?= cc
CPPCHECK ?= cppcheck
SANITIZE ?=

# Hardening, as far as the compiler knows it. The sanitizers bring checks of their own, which FORTIFY would hide from them.
supports = $(shell echo 'int main(void){return 0;}' | $(CC) -Werror $(1) -x c -fsyntax-only - 2>/dev/null && echo $(1))
HARDENING := $(foreach flag,-fstack-protector-strong -fstack-clash-protection -fcf-protection=full -mbranch-protection=standard,$(call supports,$(flag))) \
	$(if $(SANITIZE),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)

PLUGIN_OUT := $(BUILD)/plugin
PLUGIN_SRC := $(wildcard plugin/*.c)
PLUGIN_HDR := $(wildcard plugin/*.h plugin/*.inc plugin/substrate/*.h)
PLUGIN_OBJ := $(PLUGIN_SRC:plugin/%.c=$(PLUGIN_OUT)/%.o)
# Sanitizers find no more in code that is optimized further, for which compilers need half as long again. With less they warn of texts that do fit.
PLUGIN_CFLAGS := -std=gnu11 $(if $(SANITIZE),-O1,-O2) -g -fPIC -fvisibility=hidden -ftls-model=initial-exec -Wall -Wextra -Werror \
	-D_GNU_SOURCE -pthread $(HARDENING) $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all -Wno-format-truncation)
PLUGIN_LDFLAGS := -Wl,-z,nodelete -Wl,-z,now -Wl,-z,relro -Wl,--no-undefined \
	-Wl,--version-script=plugin/export.map -pthread
PLUGIN_LIBS := -ldl -lpthread

PLUGIN_TEST_SRC := $(wildcard plugin/tests/*_test.c)
PLUGIN_TESTS := $(PLUGIN_TEST_SRC:plugin/tests/%.c=$(PLUGIN_OUT)/tests/%)

include tests/fakecupti/fakecupti.mk
include tests/fakescorep/fakescorep.mk

.PHONY: plugin plugin-test plugin-test-asan plugin-test-tsan plugin-lint

plugin: $(BUILD)/libnccl-profiler-otf2.so $(BUILD)/librccl-profiler-otf2.so $(BUILD)/libscorep_substrate_nccl_otf2.so

$(BUILD)/libnccl-profiler-otf2.so: $(PLUGIN_OBJ) plugin/export.map
	$(CC) -shared -o $@.new $(PLUGIN_OBJ) $(PLUGIN_LDFLAGS) $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(PLUGIN_LIBS)
	mv $@.new $@

$(BUILD)/librccl-profiler-otf2.so: $(BUILD)/libnccl-profiler-otf2.so
	ln -sf $(<F) $@

$(BUILD)/libscorep_substrate_nccl_otf2.so: $(wildcard plugin/substrate/*) plugin/plugin.mk
	@mkdir -p $(@D)
	$(CC) $(PLUGIN_CFLAGS) -ftls-model=global-dynamic -shared -Wl,-soname,$(@F) -Wl,-z,nodelete -Wl,-z,now -Wl,-z,relro -Wl,--no-undefined -o $@ plugin/substrate/substrate.c

$(PLUGIN_OUT)/%.o: plugin/%.c $(PLUGIN_HDR) plugin/plugin.mk
	@mkdir -p $(@D)
	$(CC) $(PLUGIN_CFLAGS) -c -o $@ $<

$(PLUGIN_OUT)/tests/%.o: plugin/tests/%.c plugin/tests/test.h plugin/tests/host.h plugin/tests/sandbox.h tests/fakecupti/fakecupti.h \
		tests/fakescorep/fakescorep.h $(PLUGIN_HDR) plugin/plugin.mk
	@mkdir -p $(@D)
	$(CC) $(PLUGIN_CFLAGS) -Wno-format-truncation -c -o $@ $<

# The tests see the hidden symbols, so they are linked with the plugin's objects, not with the library.
$(PLUGIN_OUT)/tests/%_test: $(PLUGIN_OUT)/tests/%_test.o $(PLUGIN_OUT)/tests/host.o $(PLUGIN_OBJ)
	$(CC) -o $@ $^ -rdynamic $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(PLUGIN_LIBS)

$(PLUGIN_OUT)/tests/stub_collector: plugin/tests/stub_collector.c $(PLUGIN_HDR) plugin/plugin.mk
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g -Wall -Wextra -Werror -D_GNU_SOURCE -o $@ $<

PLUGIN_FAKE_DEVICES := $(addprefix $(PLUGIN_OUT)/tests/,libcuda.so.1 libamdhip64.so.7 libamdhip64.so.5)
$(filter %/libcuda.so.1,$(PLUGIN_FAKE_DEVICES)): FAKE :=
$(filter-out %/libcuda.so.1,$(PLUGIN_FAKE_DEVICES)): FAKE := -DFAKE_HIP
$(PLUGIN_FAKE_DEVICES): plugin/tests/fake_device.c plugin/plugin.mk
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g -Wall -Wextra -Werror $(FAKE) -fPIC -shared -Wl,-soname,$(@F) -o $@ $<

# The library that calls the plugin, under names that it has in the field.
PLUGIN_FAKE_NCCL := $(addprefix $(PLUGIN_OUT)/tests/,libnccl.so.2 librccl.so.1 libtorch_cuda.so libtorch_hip.so \
	libframework.so libother.so libnccl-failing.so libnccl-instrumented.so libnccl-instrumented-noplt.so libamdhip64.so.6)
$(PLUGIN_FAKE_NCCL): FAKE := -DFAKE_VERSION=22707
$(PLUGIN_OUT)/tests/libnccl.so.2: FAKE := -DFAKE_VERSION=22907
$(PLUGIN_OUT)/tests/libother.so: FAKE :=
$(PLUGIN_OUT)/tests/libnccl-failing.so: FAKE := -DFAKE_VERSION=22907 -DFAKE_VERSION_FAILS
$(PLUGIN_OUT)/tests/libnccl-instrumented.so: FAKE := -DFAKE_VERSION=22907 -finstrument-functions
$(PLUGIN_OUT)/tests/libnccl-instrumented-noplt.so: FAKE := -DFAKE_VERSION=22907 -finstrument-functions -fno-plt
$(PLUGIN_OUT)/tests/libamdhip64.so.6: FAKE := -DFAKE_HIP
$(PLUGIN_FAKE_NCCL): plugin/tests/fake_nccl.c $(PLUGIN_HDR) plugin/plugin.mk
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g -Wall -Wextra -Werror $(FAKE) -fPIC -shared -Wl,-soname,$(@F) -o $@ $<

# All programs run, some at a time (most of them wait), then the failed ones are named.
PLUGIN_TEST_JOBS ?= 4
plugin-test: $(PLUGIN_TESTS) $(PLUGIN_OUT)/tests/stub_collector $(PLUGIN_FAKE_DEVICES) $(PLUGIN_FAKE_NCCL) \
		$(FAKECUPTI) $(FAKESCOREP) $(BUILD)/libnccl-profiler-otf2.so $(BUILD)/libscorep_substrate_nccl_otf2.so
	@rm -f $(PLUGIN_OUT)/failed; \
	printf '%s\n' $(PLUGIN_TESTS) | xargs -P $(PLUGIN_TEST_JOBS) -I{} sh -c '{} || echo {} >>$(PLUGIN_OUT)/failed'; \
	if [ -s $(PLUGIN_OUT)/failed ]; then echo "plugin-test: failed:" $$(cat $(PLUGIN_OUT)/failed) >&2; exit 1; fi

plugin-test-asan:
	$(MAKE) -f plugin/plugin.mk BUILD=$(BUILD)/asan SANITIZE=address,undefined plugin-test

plugin-test-tsan:
	$(MAKE) -f plugin/plugin.mk BUILD=$(BUILD)/tsan SANITIZE=thread plugin-test

plugin-lint:
	$(CPPCHECK) --std=c11 --quiet --error-exitcode=1 --enable=warning,performance,portability --inline-suppr \
		-D_GNU_SOURCE -D__x86_64__ $(PLUGIN_SRC) $(wildcard plugin/substrate/*.c plugin/tests/*.c)

# Not to be deleted as intermediate files.
.SECONDARY: $(PLUGIN_TESTS:%=%.o) $(PLUGIN_OUT)/tests/host.o
