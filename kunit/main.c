// SPDX-License-Identifier: GPL-2.0
#include <linux/module.h>

#include "../module/compat.h"

MODULE_DESCRIPTION("KUnit tests of vmscan_policy and of the hooks it uses");
MODULE_LICENSE("GPL");
VMP_IMPORT_NS(VMSCAN_POLICY);
VMP_IMPORT_NS(EXPORTED_FOR_KUNIT_TESTING);
