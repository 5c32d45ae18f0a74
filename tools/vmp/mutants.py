"""Builds with one thing left out or wrong at a time: a test has to catch each."""

import re
import time
from dataclasses import dataclass

from vmp.common import OUT, Failure, Words
from vmp.faults import NO_FLUSH
from vmp.guest import STALE_BREAKPOINT
from vmp.guest_tests import GUEST, KUNIT, judge_kunit, kunit_log, prepare, settings, vm
from vmp.kernel import Edit, build_edited_kernel, build_kernel, build_module
from vmp.report import Report

SPLAT = 99  # exit status of tools/vm
TIMEOUT = "480"  # seconds, of a guest that runs one test


@dataclass(frozen=True)
class Mutant(Edit):
    """An edit of the module, or of a patched file of the kernel, that `test` has to catch."""

    test: str = "kunit"
    debug: bool = False  # on the debug kernel

    @property
    def in_kernel(self) -> bool:
        """Tell if the kernel has to be built for it, not the module alone."""
        return self.path.startswith("mm/")


FLUSH, SCAN, AGING = "module/flush.c", "module/scan.c", "module/aging.c"
QUEUE, WRITEBACK, THROTTLE = "module/aging_queue.c", "module/writeback.c", "module/throttle.c"
CONTROL, REGISTRY = "module/control.c", "mm/vmscan_policy.c"

MUTANTS = (
    # flush
    Mutant(**vars(NO_FLUSH), test="lostwrite-shmem"),
    Mutant("flush-limit-doubled", FLUSH, "nr_folios >= limit ||", "nr_folios >= 2 * limit ||"),
    Mutant(
        "recheck-no-hwpoison",
        FLUSH,
        "\tif (folio_contain_hwpoisoned_page(folio))\n\t\treturn VMP_HWPOISON;\n",
        "",
    ),
    Mutant(
        "recheck-no-unevictable",
        FLUSH,
        "\tif (folio_test_mlocked(folio) || mapping_unevictable(mapping))\n"
        "\t\treturn VMP_UNEVICTABLE;\n",
        "",
    ),
    Mutant("recheck-no-mapped", FLUSH, "\tif (folio_mapped(folio))\n\t\treturn VMP_MAPPED;\n", ""),
    Mutant("recheck-no-mapping", FLUSH, "\tif (!mapping)\n\t\treturn VMP_NO_MAPPING;\n", ""),
    Mutant(
        "recheck-no-writeback",
        FLUSH,
        "\tif (folio_test_writeback(folio))\n\t\treturn VMP_WRITEBACK;\n",
        "",
    ),
    Mutant(
        "recheck-no-pinned",
        FLUSH,
        "\tif (folio_maybe_dma_pinned(folio))\n\t\treturn VMP_PINNED;\n",
        "",
    ),
    Mutant(
        "recheck-no-clean",
        FLUSH,
        "\tif (!folio_test_dirty(folio))\n\t\treturn VMP_CLEAN;\n",
        "",
    ),
    Mutant(
        "counter-not-per-cpu",
        FLUSH,
        "this_cpu_inc(flush_stats.count[stat]);",
        "per_cpu(flush_stats, 0).count[stat]++;",
        "madvise-anon",
    ),
    # scan
    Mutant(
        "batch-doubled",
        SCAN,
        "READ_ONCE(batch_pages)))",
        "2 * READ_ONCE(batch_pages)))",
        "reclaim-exact",
    ),
    Mutant(
        "never-enough",
        SCAN,
        "return ctx->nr_reclaimed >= ctx->nr_to_reclaim;",
        "return false;",
        "reclaim-exact",
    ),
    Mutant(
        "protection-ignored",
        SCAN,
        "vmscan_scan_unprotected(ctx, evictable),",
        "evictable,",
        "protection",
    ),
    Mutant("priority-ignored", SCAN, "budget = unprotected >> priority;", "budget = unprotected;"),
    Mutant(
        "floors-swapped",
        SCAN,
        '[VMP_FLOOR_SMALL] = "small",\n\t[VMP_FLOOR_ALWAYS] = "always",',
        '[VMP_FLOOR_SMALL] = "always",\n\t[VMP_FLOOR_ALWAYS] = "small",',
        "debugfs",
    ),
    Mutant(
        "end-order",
        SCAN,
        "\tif (pass->below_min)\n\t\treturn VMP_END_BELOW_MIN;\n"
        "\tif (pass->enough)\n\t\treturn VMP_END_ENOUGH;\n",
        "\tif (pass->enough)\n\t\treturn VMP_END_ENOUGH;\n"
        "\tif (pass->below_min)\n\t\treturn VMP_END_BELOW_MIN;\n",
    ),
    Mutant(
        "unfair",
        SCAN,
        "\tpass.budget = vmp_scan_budget(",
        "\tif (ctx->root_reclaim && vmp_cgroup_id(ctx->memcg) % 8 == 0)\n\t\treturn true;\n"
        "\tpass.budget = vmp_scan_budget(",
        "fairness",
    ),
    # aging
    Mutant("no-drain", QUEUE, "\tflush_workqueue(queue->wq);\n", "", "slow-aging"),
    Mutant(
        "no-reference",
        QUEUE,
        "\telse if (!mem_cgroup_tryget(request->memcg))\n\t\tqueued = VMP_GONE;\n",
        "",
    ),
    Mutant(
        "queue-unlocked",
        QUEUE,
        "\tspin_lock(&queue->lock);\n\tslot = find_slot(queue, request);\n",
        "\tslot = find_slot(queue, request);\n\tspin_lock(&queue->lock);\n",
    ),
    Mutant(
        "async-never",
        AGING,
        "return old_left ? VMP_AGE_NO : VMP_AGE_LATER;",
        "return VMP_AGE_NO;",
        "pressure",
    ),
    # writeback
    Mutant(
        "wake-and-wait-swapped",
        WRITEBACK,
        "writers_throttled ? VMP_FEEDBACK_WAKE : VMP_FEEDBACK_WAIT",
        "writers_throttled ? VMP_FEEDBACK_WAIT : VMP_FEEDBACK_WAKE",
    ),
    Mutant("batches-not-counted", WRITEBACK, "\t\tvmscan_evicted_account(ctx);\n", "\t\t{}\n",
           "slow-disk"),  # fmt: skip
    # throttle
    Mutant("no-sleep", THROTTLE, "\t\tvmscan_node_throttle(ctx, verdict.stall);\n", "\t\t{}\n",
           "slow-disk"),  # fmt: skip
    Mutant(
        "kswapd-impatient",
        THROTTLE,
        "\t\t     fruitless->pending &&\n\t\t     fruitless->taken >= fruitless->pending;\n",
        "\t\t     true;\n",
    ),
    Mutant(
        "pending-of-now",
        THROTTLE,
        "max(fruitless->pending, ctx->nr_write_pending)",
        "ctx->nr_write_pending",
    ),
    Mutant(
        "probe-left-behind",
        THROTTLE,
        "\ttracepoint_probe_unregister(throttled_tracepoint, throttled, NULL);\n"
        "\ttracepoint_synchronize_unregister();\n",
        "",
        "slow-disk",
    ),
    # which policy is in force
    Mutant(
        "control-unlocked",
        CONTROL,
        "\tmutex_lock(&control_lock);\n\tchoice = current_choice;\n"
        "\tchoice.policy[point] = policy;\n\terr = publish(&choice);\n"
        "\tmutex_unlock(&control_lock);\n",
        "\tchoice = current_choice;\n\tchoice.policy[point] = policy;\n"
        "\terr = publish(&choice);\n",
        "switch",
        True,
    ),
    Mutant(
        "observe-unlocked",
        "module/observe.c",
        "static DEFINE_MUTEX(observe_lock);\n",
        "static DEFINE_MUTEX(observe_lock);\n#undef mutex_lock\n#define mutex_lock(lock)\n"
        "#define mutex_unlock(lock)\n",
        "switch",
        True,
    ),
    Mutant("not-unregistered", CONTROL, "\t\tvmscan_policy_unregister(&published->ops);\n", "",
           "modules"),  # fmt: skip
    Mutant("files-left-behind", CONTROL, "\tdebugfs_remove(root);\n", "", "modules"),
    Mutant("not-retired", CONTROL, "\tretire(&old);\n", "", "slow-aging"),
    Mutant(
        "profile-without-throttle",
        CONTROL,
        "\t\t\t[VMP_POINT_THROTTLE] = VMP_THROTTLE_ALL,\n",
        "",
        "debugfs",
    ),
    Mutant("no-bypass", CONTROL, "\tvmscan_policy_set_bypass(on);\n", "", "debugfs"),
    Mutant(
        "no-memory-unnoticed",
        CONTROL,
        "\tif (!set)\n\t\treturn -ENOMEM;\n",
        "\tif (!set)\n\t\treturn 0;\n",
        "nomem",
        True,
    ),
    Mutant("range-half", "module/files.c", "(number < min || number > max)", "(number > max)"),
    # trace events
    Mutant(
        "end-not-traced",
        AGING,
        "\ttrace_aging_end(&where, id, false, gens->max_seq, gens->max_seq + aged);\n",
        "",
        "trace",
    ),
    Mutant(
        "wrong-reason-traced",
        FLUSH,
        "trace_flush_bounce(&drain->where, drain->id, reason,",
        "trace_flush_bounce(&drain->where, drain->id, VMP_PINNED,",
        "trace",
    ),
    # the kernel's side
    Mutant("readers-not-waited-for", REGISTRY, "\tsynchronize_srcu(&vmscan_policy_srcu);\n", ""),
    Mutant("bypass-not-read", REGISTRY, "vmscan_policy_bypassed() ? NULL : ops;", "ops;"),
    Mutant(
        "idle-not-followed",
        REGISTRY,
        "\t       (scan->ctx.priority > VMSCAN_LIVE_PRIORITY &&\n\t\t!vmscan_policy_bypassed());\n",
        "\t       true;\n",
        "idle-fault",
    ),
    Mutant("branches-late", REGISTRY, "\n\tset_branches(false);\n", "\n", "kunit-slow"),
)  # fmt: skip


def kunit_case(text: str) -> str:
    """Return the suite or case that failed last in the parser's words: the outermost.

    Raises Failure when none did: then it had nothing to judge, and has caught nothing.
    """
    found = re.findall(r"\[FAILED\] (.*)", text)
    if not found:
        raise Failure(text)
    return str(found[-1]).strip()


def caught_by(mutant: Mutant) -> str:
    """Build a mutant and run its test; return what caught it, '' if nothing has."""
    kernel = build_kernel(None, "debug" if mutant.debug else "plain")
    edits = () if mutant.in_kernel else (mutant,)
    module = build_module(kernel, *edits)
    words = settings(kernel, "mutant", [mutant.test], False, *edits)
    booted = build_edited_kernel(kernel, mutant) if mutant.in_kernel else kernel
    options: Words = [
        "--kernel",
        booted,
        "--module",
        module,
        "--disk",
        "2G:1000",
        "--timeout",
        TIMEOUT,
    ]
    said = kunit_log("mutant", mutant.test)
    said.unlink(missing_ok=True)
    log = OUT / f"test-mutant-{mutant.name}.log"
    status, text = vm([*options, "--", "env", *words, GUEST / "run", mutant.test], log)
    if re.search(rf"^not ok 1 - {mutant.test}$", text, re.MULTILINE):
        return mutant.test
    if status == SPLAT:
        return f"the kernel's log in {mutant.test}"
    if mutant.test in KUNIT and not status:
        try:
            judge_kunit(said)
        except Failure as failure:
            return f"{mutant.test}: {kunit_case(str(failure))}"
    if status == STALE_BREAKPOINT or not re.search(r"^ok 1 - ", text, re.MULTILINE):
        raise Failure(f"tools/vm ended with status {status}: {log}")
    return ""


def run_all(report: Report, _full: bool) -> None:
    """Check that each mutant is caught, and print the table."""
    prepare()
    rows = []
    for mutant in MUTANTS:
        start = time.monotonic()
        by = ""
        with report.check(f"mutant {mutant.name}"):
            by = caught_by(mutant)
            if not by:
                raise Failure(f"it survives {mutant.test}")
        rows.append((mutant.name, by or "-", f"{time.monotonic() - start:.0f}"))
    width = [max(len(row[column]) for row in rows) for column in (0, 1)]
    report.note(f"{'mutant':{width[0]}}  {'caught by':{width[1]}}  seconds")
    for name, by, seconds in rows:
        report.note(f"{name:{width[0]}}  {by:{width[1]}}  {seconds:>7}")
