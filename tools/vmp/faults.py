"""Faulty builds of the module that tests need."""

from vmp.kernel import Edit

FLUSH, SCAN, AGING, CONTROL = (f"module/{name}.c" for name in "flush scan aging control".split())

# The writes that the flush is there for are lost.
NO_FLUSH = Edit(
    "no-flush",
    FLUSH,
    "bool flushed = vmscan_flush_dirty(ctx);",
    "bool flushed = current->tlb_ubc.writable = false;",
)
# A policy that never takes anything.
IDLE = Edit(
    "idle",
    SCAN,
    "\tpass.budget = vmp_scan_budget(",
    "\treturn false;\n\tpass.budget = vmp_scan_budget(",
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
