# SPDX-License-Identifier: Apache-2.0
#
# The real NCCL on a machine without a GPU. Included by the Makefile, or used alone from the repository's root:
#
#	make -f tests/realnccl/realnccl.mk real-nccl-bed [BUILD=dir] [REALNCCL=DIR[:DIR…]] [RCCL=1]
#
# A bed is a folder with everything a program needs: build/realnccl/2.29.7 for the published library, one for every DIR
# (a libnccl.so.2 that takes the CUDA runtime as a shared library, with nccl.h beside it or in include/), and with RCCL=1 one for
# the published RCCL (370 MB).
BUILD ?= build
REALNCCL ?=
RCCL ?=

REALNCCL_DIR := tests/realnccl
REALNCCL_OUT := $(BUILD)/realnccl
# Most functions have the parameters that another's interface gives them.
REALNCCL_CFLAGS := -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wshadow -Wstrict-prototypes -Wno-unused-parameter -Werror
REALNCCL_HEADERS := $(wildcard $(REALNCCL_DIR)/*/*.h) $(REALNCCL_DIR)/realnccl.mk
REALNCCL_GPU := $(wildcard $(REALNCCL_DIR)/cudart/*.c $(REALNCCL_DIR)/gpu/*.c)
REALNCCL_STANDINS := $(addprefix $(REALNCCL_OUT)/common/,libcudart.so.12 libnvidia-ml.so.1 libyield.so libshape.so isoc23.o \
	$(if $(RCCL),libamdhip64.so.7 librocm_smi64.so.7))

# Two makes may be at it at a time: what they make appears whole.
.PHONY: real-nccl-bed
real-nccl-bed: $(REALNCCL_STANDINS) ## the real NCCL without a GPU, in build/realnccl (REALNCCL=DIR: another library)
	@CC='$(CC)' CFLAGS='$(REALNCCL_CFLAGS)' REALNCCL='$(REALNCCL)' RCCL='$(RCCL)' $(REALNCCL_DIR)/bed.sh $(REALNCCL_OUT)

$(REALNCCL_OUT)/common/libcudart.so.12: $(REALNCCL_GPU) $(REALNCCL_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(REALNCCL_CFLAGS) -fPIC -shared -fvisibility=hidden -Wl,-soname,$(@F) -Wl,--no-undefined -o $@.$$$$ $(REALNCCL_GPU) -pthread -ldl && mv $@.$$$$ $@

$(REALNCCL_OUT)/common/libnvidia-ml.so.1: $(REALNCCL_DIR)/nvml/nvml.c $(REALNCCL_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(REALNCCL_CFLAGS) -fPIC -shared -fvisibility=hidden -Wl,-soname,$(@F) -o $@.$$$$ $< && mv $@.$$$$ $@

# HIP's is CUDA's with other names.
$(REALNCCL_OUT)/common/libamdhip64.so.7: $(REALNCCL_GPU) $(wildcard $(REALNCCL_DIR)/hip/*) $(REALNCCL_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(REALNCCL_CFLAGS) -fPIC -shared -fvisibility=hidden -Wl,-soname,$(@F) -Wl,--no-undefined \
		-Wl,--version-script=$(REALNCCL_DIR)/hip/hip.map -o $@.$$$$ $(REALNCCL_GPU) $(REALNCCL_DIR)/hip/hip.c -pthread -ldl && mv $@.$$$$ $@

$(REALNCCL_OUT)/common/librocm_smi64.so.7: $(REALNCCL_DIR)/rocm_smi/rocm_smi.c $(REALNCCL_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(REALNCCL_CFLAGS) -fPIC -shared -fvisibility=hidden -Wl,-soname,$(@F) -o $@.$$$$ $< && mv $@.$$$$ $@

$(REALNCCL_OUT)/common/lib%.so: $(REALNCCL_DIR)/preload/%.c $(REALNCCL_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(REALNCCL_CFLAGS) -fPIC -shared -o $@.$$$$ $< -pthread -ldl && mv $@.$$$$ $@

$(REALNCCL_OUT)/common/isoc23.o: $(REALNCCL_DIR)/link/isoc23.c $(REALNCCL_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(REALNCCL_CFLAGS) -fPIC -c -o $@.$$$$ $< && mv $@.$$$$ $@
