// SPDX-License-Identifier: GPL-2.0
#include <linux/module.h>

#include "internal.h"

static int __init vmp_init(void)
{
	int err = vmp_throttle_init();

	if (err)
		goto end_probes;

	err = vmp_control_init();
	if (err)
		goto end_throttle;
	vmp_bpf_init();

	return 0;

end_throttle:
	vmp_throttle_exit();
end_probes:
	vmp_probes_exit();
	return err;
}

static void __exit vmp_exit(void)
{
	vmp_control_exit();
	vmp_throttle_exit();
	vmp_observe_set(0);
	vmp_probes_exit();
}

module_init(vmp_init);
module_exit(vmp_exit);

MODULE_DESCRIPTION("Page reclaim policies that can be switched while the system runs");
MODULE_LICENSE("GPL");
MODULE_VERSION(VMP_VERSION);
VMP_IMPORT_NS(VMSCAN_POLICY);
