# SPDX-License-Identifier: GPL-2.0
# Without a target, the module for the running kernel, or for KDIR's.
KDIR ?= /lib/modules/$(shell uname -r)/build

# As in KERNEL=7.3: a series or a point release that the demo and the tests are to use.
export VMP_KERNEL = $(KERNEL)

modules modules_install clean:
	$(MAKE) -C $(KDIR) M=$(CURDIR) $@

demo: setup
	tools/demo

# What a change can break. test-full: every release, patch and setting, and the mutants.
test: setup
	tools/test

test-full: setup
	tools/test --full

setup:
	tools/setup

# The plugin for KernelShark, which tools/shark uses.
kernelshark:
	$(MAKE) -C tools/kernelshark OUT=$(CURDIR)/out/kernelshark

.PHONY: modules modules_install clean demo test test-full setup kernelshark
