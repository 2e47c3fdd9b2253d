# SPDX-License-Identifier: Apache-2.0
#
# A plugin that writes down what it is called with, with all versions of the interface and with only one each
# (librecorder-v5.so), and the host that calls it. From the repository's root:
#
#	make -f tests/recorder/recorder.mk recorder [BUILD=dir] [SANITIZE=thread|address,undefined]
include internal/replay/host/host.mk

RECORDER_SOURCES := tests/recorder/recorder_plugin.c $(HOST_DIR)/api.c
RECORDERS := $(BUILD)/librecorder.so $(patsubst %,$(BUILD)/librecorder-v%.so,1 2 3 4 5 6 7)

.PHONY: recorder
recorder: $(HOST) $(RECORDERS)

$(RECORDERS): $(RECORDER_SOURCES) $(HOST_HEADERS) tests/recorder/recorder.mk
	@mkdir -p $(@D)
	$(CC) $(HOST_CFLAGS) $(CFLAGS) $(if $(findstring -v,$(@F)),-DRECORDER_ONLY=$(patsubst librecorder-v%.so,%,$(@F))) \
		-fPIC -shared -o $@ $(RECORDER_SOURCES) $(LDFLAGS) -pthread
