# SPDX-License-Identifier: GPL-2.0
# Without a target, the module for the running kernel, or for KDIR's. `make help` lists the others.
RELEASE := $(shell uname -r)
KDIR ?= /lib/modules/$(RELEASE)/build
VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)

# As in KERNEL=7.3 ARCH=arm64: a series or a point release that demo, bench and the tests are to use,
# and the architecture of its guest; not what a shell has for builds of kernels.
GUEST := $(if $(filter command,$(firstword $(origin ARCH))),$(ARCH:%=:%))
ifneq ($(KERNEL)$(GUEST),)
export VMP_KERNEL = $(KERNEL)$(GUEST)
endif

modules modules_install clean: headers
	$(MAKE) -C $(KDIR) M=$(CURDIR) $@

headers:
	$(if $(wildcard $(KDIR)/Makefile),,$(error there are no kernel headers in $(KDIR): \
		install linux-headers-$(RELEASE), or name a build tree with KDIR=DIR))

help:
	@echo 'modules          build the module, for the running kernel or KDIR=DIR (default)'
	@echo 'modules_install  install it'
	@echo 'clean            remove what was built'
	@echo 'dkms-install     build and install the module with dkms, for RELEASE=$(RELEASE)'
	@echo 'dkms-remove      remove it again, for all kernels'
	@echo 'module-deb       make a package of the module, for dkms, in out/'
	@echo 'tools-deb        make a package of vmscanctl, in out/'
	@echo 'kernel-deb       make packages of a kernel with the hooks, in out/;'
	@echo '                 KCONFIG=/boot/config-$(RELEASE)'
	@echo 'demo             show a policy at work, on a kernel of Debian'\''s, in four minutes'
	@echo 'demo-all         measure what all policies save, on a kernel that is built here'
	@echo 'bench            repeat published experiments, in guests; NAME=x runs one'
	@echo 'test             test what a change can break'
	@echo 'torture          do everything at once to module and kernel while data are checked; FOR=10m'
	@echo 'test-full        test every release, patch and setting, and the tests themselves'
	@echo 'setup            install what all but demo need'
	@echo 'kernelshark      build the plugin for KernelShark'
	@echo 'KERNEL=7.3 selects another kernel than 6.12 for demo, bench, test and kernel-deb;'
	@echo 'ARCH=arm64 an emulated guest of another architecture, for demo-all, bench and test.'

demo:
	tools/setup demo
	tools/demo

demo-all: setup
	tools/demo --all

bench: setup
	tools/bench run $(NAME)

# What a change can break. test-full: every release, patch and setting, and the mutants.
test: setup
	tools/test

test-full: setup
	tools/test --full

torture: setup
	tools/torture $(if $(FOR),--for '$(FOR)') $(if $(SEED),--seed '$(SEED)')

setup:
	tools/setup

# The plugin for KernelShark, which tools/shark uses.
kernelshark:
	$(MAKE) -C tools/kernelshark OUT=$(CURDIR)/out/kernelshark

kernel-deb: setup
	tools/kernel deb $(if $(KCONFIG),--config '$(KCONFIG)')

# Built in a copy, which has a changelog for the version, and leaves nothing in the checkout.
module-deb: PACKAGE = vmscan-policy-dkms
tools-deb: PACKAGE = vmscan-policy-tools
module-deb tools-deb: COPY = out/$@/source
module-deb tools-deb:
	rm -rf out/$@
	mkdir -p $(COPY)
	cp -r CHANGELOG.md Kbuild dkms.conf module tools tools/debian $(COPY)
	printf 'vmscan-policy (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' \
		'$(VERSION)' "$$(sed -n 's/^Maintainer: //p' tools/debian/control)" \
		"$$(date -R -r CHANGELOG.md)" >$(COPY)/debian/changelog
	PYTHONPATH=tools python3 -c 'import json; from vmp.checkout import checkout; print(json.dumps(checkout()))' \
		>$(COPY)/tools/commit.json
	cd $(COPY) && PACKAGE=$(PACKAGE) dpkg-buildpackage -b -us -uc
	mv out/$@/*.deb out
	rm -r out/$@

# Without the package of the module: what dkms has of that is the package's.
DKMS_SOURCE = /usr/src/vmscan_policy-$(VERSION)

dkms-install: headers
	@grep -qx CONFIG_VMSCAN_POLICY=y $(KDIR)/include/config/auto.conf || { \
		echo '$@: the kernel of $(KDIR) has no CONFIG_VMSCAN_POLICY=y' >&2; exit 1; }
	$(MAKE) --no-print-directory dkms-remove
	install -d $(DKMS_SOURCE)/module/include
	install -m 644 Kbuild dkms.conf $(DKMS_SOURCE)
	install -m 644 module/*.[ch] $(DKMS_SOURCE)/module
	install -m 644 module/include/*.h $(DKMS_SOURCE)/module/include
	dkms install vmscan_policy/$(VERSION) -k $(RELEASE) --kernelsourcedir $(KDIR)

dkms-remove:
	@if dpkg-query -W -f '$${db:Status-Status}' vmscan-policy-dkms 2>/dev/null | grep -qx installed; \
	then echo '$@: remove the package vmscan-policy-dkms first: dkms has it' >&2; exit 1; fi
	for tree in /var/lib/dkms/vmscan_policy/[0-9]*; do \
		[ ! -d $$tree ] || dkms remove vmscan_policy/$${tree##*/} --all || exit; \
	done
	rm -rf /usr/src/vmscan_policy-*

.PHONY: modules modules_install clean headers help demo demo-all bench test test-full torture setup kernelshark \
	kernel-deb module-deb tools-deb dkms-install dkms-remove
