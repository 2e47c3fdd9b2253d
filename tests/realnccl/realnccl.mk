# SPDX-License-Identifier: Apache-2.0
#
# The real NCCL on a machine without a GPU. Included by the Makefile, or used alone from the repository's root:
#
#	make -f tests/realnccl/realnccl.mk real-nccl-bed [BUILD=dir] [REALNCCL=DIR[:DIR…]]
#
# A bed is a folder with everything a program needs: build/realnccl/2.29.7 for the published library, and one for every DIR
# (a libnccl.so.2 that takes the CUDA runtime as a shared library, with nccl.h beside it or in include/).
BUILD ?= build
REALNCCL ?=

REALNCCL_DIR := tests/realnccl
REALNCCL_OUT := $(BUILD)/realnccl
# Most functions have the parameters that another's interface gives them.
REALNCCL_CFLAGS := -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wshadow -Wstrict-prototypes -Wno-unused-parameter -Werror
REALNCCL_HEADERS := $(wildcard $(REALNCCL_DIR)/*/*.h) $(REALNCCL_DIR)/realnccl.mk
REALNCCL_GPU := $(wildcard $(REALNCCL_DIR)/cudart/*.c $(REALNCCL_DIR)/gpu/*.c)
REALNCCL_STANDINS := $(addprefix $(REALNCCL_OUT)/common/,libcudart.so.12 libnvidia-ml.so.1 libyield.so libshape.so isoc23.o)

# Two makes may be at it at a time: what they make appears whole.
.PHONY: real-nccl-bed
real-nccl-bed: $(REALNCCL_STANDINS) ## the real NCCL without a GPU, in build/realnccl (REALNCCL=DIR: another library)
	@CC='$(CC)' CFLAGS='$(REALNCCL_CFLAGS)' REALNCCL='$(REALNCCL)' $(REALNCCL_DIR)/bed.sh $(REALNCCL_OUT)

$(REALNCCL_OUT)/common/libcudart.so.12: $(REALNCCL_GPU) $(REALNCCL_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(REALNCCL_CFLAGS) -fPIC -shared -fvisibility=hidden -Wl,-soname,$(@F) -Wl,--no-undefined -o $@.$$$$ $(REALNCCL_GPU) -pthread -ldl && mv $@.$$$$ $@

$(REALNCCL_OUT)/common/libnvidia-ml.so.1: $(REALNCCL_DIR)/nvml/nvml.c $(REALNCCL_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(REALNCCL_CFLAGS) -fPIC -shared -fvisibility=hidden -Wl,-soname,$(@F) -o $@.$$$$ $< && mv $@.$$$$ $@

$(REALNCCL_OUT)/common/lib%.so: $(REALNCCL_DIR)/preload/%.c $(REALNCCL_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(REALNCCL_CFLAGS) -fPIC -shared -o $@.$$$$ $< -pthread -ldl && mv $@.$$$$ $@

$(REALNCCL_OUT)/common/isoc23.o: $(REALNCCL_DIR)/link/isoc23.c $(REALNCCL_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(REALNCCL_CFLAGS) -fPIC -c -o $@.$$$$ $< && mv $@.$$$$ $@
