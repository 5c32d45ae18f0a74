// SPDX-License-Identifier: GPL-2.0
/* Built instead of the module where the kernel can't use it. */
#error "This kernel has no CONFIG_VMSCAN_POLICY=y: kernel-hooks/ has the patches that it needs."
