# SPDX-License-Identifier: GPL-2.0
"""Faulty builds of the module that tests need."""

from vmp.common import REPO
from vmp.guest.kernel import Edit

FLUSH, SCAN, AGING, CONTROL = (f"module/{name}.c" for name in "flush scan aging control".split())

# Policies that get nothing done: one that ends each pass at once, one that says that the memcg
# has had its turn, and two that move a page, or 32, before they say so.
ENDS = "if (pass_end(pass, note, budget) != VMP_GO_ON)\n\t\treturn VMSCAN_STEP(VMSCAN_END, 0, 0);"
ROTATE = "return VMSCAN_STEP(VMSCAN_END_ROTATE, 0, 0);"
SOME = "if (!pass->nr_batches)\n\t\treturn VMSCAN_STEP(VMSCAN_EVICT, {0}, {0});\n\t" + ROTATE
IDLE = (
    Edit("idle", SCAN, "if (pass_end(pass, note, budget) != VMP_GO_ON)", "if (true)"),
    Edit("idle-rotate", SCAN, ENDS, ROTATE),
    Edit("idle-one", SCAN, ENDS, SOME.format(1)),
    Edit("idle-32", SCAN, ENDS, SOME.format(32)),
)
# Who writes in a memcg of version 2 is waited for as in one of version 1.
WAITS = Edit(
    "waits",
    "module/writeback.c",
    "VMSCAN_WAKE_FLUSHERS | (writers_throttled ? 0 : VMSCAN_WAIT_WRITEBACK)",
    "VMSCAN_WAKE_FLUSHERS | VMSCAN_WAIT_WRITEBACK",
)
# There is time for what may happen to a request.
SLOW_AGING = Edit(
    "slow-aging",
    AGING,
    "\tif (!mem_cgroup_online(request->memcg)) {\n",
    "\tschedule_timeout_uninterruptible(HZ);\n\tif (!mem_cgroup_online(request->memcg)) {\n",
)
# A module that goes, and leaves its set in force.
LEFT_BEHIND = Edit(
    "left-behind",
    CONTROL,
    "\t\tvmscan_policy_publish(&published->ops, NULL);\n\t\tkfree(published);\n",
    "",
)
# Another MMU, which can hold reclaim up.
FLUSH_FILES = "static void flush_create_files(struct dentry *dir)\n{\n\tunsigned int i;\n\n"
MIRROR = Edit(
    "mirror",
    FLUSH,
    FLUSH_FILES,
    (REPO / "tools/tests/guest/mirror.h").read_text()
    + FLUSH_FILES
    + '\tdebugfs_create_file("mirror", 0600, dir, NULL, &mirror_fops);\n',
)
# A module that was built for another kernel's hooks.
OTHER_ABI = Edit(
    "other-abi", CONTROL, "= VMSCAN_POLICY_ABI;\n\tset", "= VMSCAN_POLICY_ABI + 1;\n\tset"
)
