# SPDX-License-Identifier: GPL-2.0
"""Faulty builds of the module that tests need."""

from vmp.guest.kernel import Edit

FLUSH, SCAN, AGING, CONTROL = (f"module/{name}.c" for name in "flush scan aging control".split())

# Policies that get nothing done: one that ends each pass at once, one that says that the memcg
# has had its turn, and one that moves a page before it says so.
ENDS = (
    "if (pass_end(pass, note, budget) != VMP_GO_ON)\n"
    "\t\treturn (struct vmscan_step) { .action = VMSCAN_END };"
)
ROTATE = "return (struct vmscan_step) { .action = VMSCAN_END_ROTATE };"
ONE = "return (struct vmscan_step) { VMSCAN_EVICT, 1, 1 };"
IDLE = (
    Edit("idle", SCAN, "if (pass_end(pass, note, budget) != VMP_GO_ON)", "if (true)"),
    Edit("idle-rotate", SCAN, ENDS, ROTATE),
    Edit("idle-one", SCAN, ENDS, f"if (!pass->nr_batches)\n\t\t{ONE}\n\t{ROTATE}"),
)
# There is time for what may happen to a request.
SLOW_AGING = Edit(
    "slow-aging",
    AGING,
    "\tif (!mem_cgroup_online(request->memcg)) {\n",
    "\tschedule_timeout_uninterruptible(HZ);\n\tif (!mem_cgroup_online(request->memcg)) {\n",
)
# A module that was built for another kernel's hooks.
OTHER_ABI = Edit(
    "other-abi", CONTROL, "= VMSCAN_POLICY_ABI;\n\tset", "= VMSCAN_POLICY_ABI + 1;\n\tset"
)
