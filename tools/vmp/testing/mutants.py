# SPDX-License-Identifier: GPL-2.0
"""Builds with one thing left out or wrong at a time: a test has to catch each."""

import re
import time
from dataclasses import dataclass

from vmp.common import OUT, Failure, Words
from vmp.guest.kernel import Edit, build_edited_kernel, build_kernel, build_module
from vmp.guest.log import STALE_BREAKPOINT
from vmp.guest.offered import policies
from vmp.guest.sources import find_version
from vmp.testing.guest_tests import (
    GUEST,
    KUNIT,
    PATIENCE,
    judge_kunit,
    kunit_log,
    names,
    prepare,
    settings,
    vm,
)
from vmp.testing.results import Report

SPLAT = 99  # exit status of tools/vm
LIMIT = 400  # seconds of the guest tests' clock: a faulty build may hang its test


@dataclass(frozen=True)
class Mutant(Edit):
    """An edit of the module, or of a patched file of the kernel, that `test` has to catch."""

    test: str = "kunit"
    debug: bool = False  # on the debug kernel
    series: str = ""  # the only one on which it has an effect

    @property
    def in_kernel(self) -> bool:
        """Tell if the kernel has to be built for it, not the module alone."""
        return self.path.startswith("mm/")


FLUSH, SCAN, AGING = "module/flush.c", "module/scan.c", "module/aging.c"
SCAN_6_12 = "module/scan_6_12.c"
QUEUE, WRITEBACK, THROTTLE = "module/aging_queue.c", "module/writeback.c", "module/throttle.c"
CONTROL, TRACE = "module/control.c", "module/trace.h"
VMSCAN, REGISTRY, PASS = "mm/vmscan.c", "mm/vmscan_policy.c", "mm/vmscan_pass.c"
RMAP, EVICT = "mm/vmscan_rmap.c", "mm/vmscan_evict.c"

# Files whose code runs only where a kernel has the point.
OF_POINT = {RMAP: "unmap", "mm/swapfile.c": "unmap", WRITEBACK: "writeback", EVICT: "writeback"}

MUTANTS = (
    # flush
    Mutant(
        "no-flush",
        REGISTRY,
        "\ttry_to_unmap_flush();\n",
        "\tcurrent->tlb_ubc.writable = false;\n",
        "lostwrite-anon",
    ),
    Mutant(
        "moved-without-flush",
        "mm/userfaultfd.c",
        "\tflush_tlb_batched_pending(mm);\n",
        "",
        "uffd-move",
    ),
    # That is stock's, too.
    Mutant(
        "moved-without-flush-noio",
        "mm/userfaultfd.c",
        "\tflush_tlb_batched_pending(mm);\n",
        "",
        "uffd-move-noio",
    ),
    Mutant(
        "group-doubled",
        REGISTRY,
        "group->nr_folios >= flush->size ||",
        "group->nr_folios >= 2 * flush->size ||",
        "reclaim-exact",
    ),
    Mutant(
        "shmem-waits",
        REGISTRY,
        "flush->second || !folio_test_anon(folio)",
        "flush->second",
        "reclaim-exact",
    ),
    Mutant("mapped-again-paged-out", REGISTRY, "(!mapped && !gone)", "!gone || mapped", "pin"),
    Mutant(
        "more-than-its-share",
        VMSCAN,
        "\t\t\t\tnr[lru] -= nr_to_scan;\n",
        "\t\t\t\tnr[lru] -= nr_to_scan;\n"
        "\t\t\t\tif (lru == LRU_INACTIVE_ANON && vmscan_policy_enabled(flush))\n"
        "\t\t\t\t\tnr_to_scan += 126;\n",
        "shares",
    ),
    Mutant(
        "counter-not-per-cpu",
        FLUSH,
        "\tthis_cpu_add(flush_stats.count[stat], value);\n",
        "\tu64 count = READ_ONCE(per_cpu(flush_stats, 0).count[stat]);\n\n"
        "\tfor (int i = 0; i < 1000; i++)\n\t\tcpu_relax();\n"
        "\tWRITE_ONCE(per_cpu(flush_stats, 0).count[stat], count + value);\n",
        "trace",
    ),
    Mutant("span-left-behind", VMSCAN, "\tvmscan_before_sleep(sc);\n\tlast_pgdat", "\tlast_pgdat",
           "span"),
    Mutant("span-not-counted", "mm/vmscan_span.c", "PGSTEAL_ANON, nr_reclaimed", "PGSTEAL_ANON, 0",
           "span", series="6.12"),
    Mutant("span-stays-isolated", REGISTRY, "NR_ISOLATED_ANON, -(long)span->nr_pages);",
           "NR_ISOLATED_ANON, 0);", "span"),
    Mutant("span-ends-with-call", REGISTRY, "\tif (flush->size && (answer & VMSCAN_FLUSH_SPAN)",
           "\tif (false", "span"),
    Mutant("span-of-too-many", REGISTRY, "\t       group->nr_pages < flush->span->goal;",
           "\t       true;", "reclaim-exact"),
    Mutant("interrupts-of-others", "module/observe.c", "csd->info == ", "csd->info != ", "threads"),
    # scan
    Mutant(
        "batch-doubled",
        SCAN,
        "pass_floor(note), batch), batch);",
        "pass_floor(note), batch), 2 * batch);",
        "reclaim-exact",
    ),
    Mutant("never-enough", SCAN, "if (pass->enough &&", "if (false &&", "reclaim-exact"),
    Mutant("batch-cut-short", SCAN, "max(budget - moved, whole)", "budget - moved"),
    Mutant("floor-if-not-enough", SCAN, "pass->nr_moved >= floor ||", "true ||"),
    Mutant(
        "enough-of-all-nodes",
        PASS,
        "sc->batch.nr_before + pass->nr_reclaimed >=",
        "sc->nr_reclaimed >=",
        "numa",
    ),
    Mutant(
        "protection-ignored",
        SCAN,
        "pass->unprotected, pass->priority,",
        "pass->begin_size, pass->priority,",
        "protection",
    ),
    Mutant("priority-ignored", SCAN, "max(unprotected >> priority,", "max(unprotected,"),
    Mutant(
        "floor-on-protected",
        SCAN,
        "min(floor, unprotected)",
        "min(floor, evictable)",
    ),
    Mutant(
        "end-order",
        SCAN,
        "\tif (pass->enough && (pass->nr_moved >= floor || !vmp_aging_cold(pass)))\n"
        "\t\treturn VMP_END_ENOUGH;\n"
        "\tif (note->aged && aging == VMP_AGING_STOP)\n\t\treturn VMP_END_AGED;\n",
        "\tif (note->aged && aging == VMP_AGING_STOP)\n\t\treturn VMP_END_AGED;\n"
        "\tif (pass->enough && (pass->nr_moved >= floor || !vmp_aging_cold(pass)))\n"
        "\t\treturn VMP_END_ENOUGH;\n",
    ),
    Mutant(
        "unfair",
        SCAN,
        "\treturn note->aged;",
        "\treturn pass->memcg->css.id % 8;",
        "fairness",
    ),
    Mutant(
        "idle-not-followed",
        REGISTRY,
        "\tif (pass->priority > VMSCAN_LIVE_PRIORITY ||",
        "\tif (true ||",
        "idle",
    ),
    Mutant(
        "rotation-is-work",
        REGISTRY,
        "action == VMSCAN_STOCK || idled(pass);",
        "action == VMSCAN_STOCK || (action != VMSCAN_END_ROTATE && idled(pass));",
        "idle-rotate",
    ),
    Mutant("a-page-is-enough", REGISTRY, "return pass->nr_moved < share;",
           "return !pass->nr_moved;", "idle-one"),
    Mutant("moved-is-reclaimed", REGISTRY, "\tif (pass->nr_reclaimed)\n\t\tshare", "\tshare",
           "idle-32"),
    Mutant("deaf", PASS, "if (sc->proactive && signal_pending(current))", "if (false)", "signal"),
    # Later kernels go on with file folios where all anonymous ones were passed over.
    Mutant("in-the-way-unnoticed", PASS, "vmscan_usable(sc, swappiness),",
           "swappiness,", "noio", series="6.12"),
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
        debug=True,
    ),
    Mutant(
        "aging-as-if-swapping",
        PASS,
        "return try_to_inc_max_seq(lruvec, seq, swappiness, false);",
        "return try_to_inc_max_seq(lruvec, seq, 60, false);",
        "aging-swappiness",
    ),
    Mutant("async-never", AGING, "return old_left ? VMP_AGE_NO : VMP_AGE_LATER;",
           "return VMP_AGE_NO;"),
    Mutant("not-retired", CONTROL, "\tretire(&old, choice);\n", "", "slow-aging"),
    Mutant(
        "retired-always",
        CONTROL,
        "return before && (!new || before != in_effect(new, point, traits));",
        "return true;",
    ),
    Mutant("retired-by-choice", CONTROL, "!points[point]->in_effect(choice->policy[i], traits))",
           "false)"),
    # writeback
    Mutant(
        "wake-and-wait-swapped",
        WRITEBACK,
        "(writers_throttled ? 0 : VMSCAN_WAIT_WRITEBACK)",
        "(writers_throttled ? VMSCAN_WAIT_WRITEBACK : 0)",
    ),
    Mutant(
        "reclaim-flag-stale",
        VMSCAN,
        "\t\t\tbool again = vmscan_told(sc, VMSCAN_ASK) && folio_test_writeback(folio) &&\n"
        "\t\t\t\t     folio_test_reclaim(folio);\n",
        "\t\t\tstatic bool again;\n\n\t\t\tif (folio_evictable(folio))\n"
        "\t\t\t\tagain = vmscan_told(sc, VMSCAN_ASK) && folio_test_writeback(folio) &&\n"
        "\t\t\t\t\tfolio_test_reclaim(folio);\n",
        "reclaim-flag",
        series="6.12",
    ),
    Mutant("batches-not-counted", WRITEBACK, "\t\tflags |= VMSCAN_COUNT;\n", "\t\t{}\n",
           "slow-disk"),  # fmt: skip
    Mutant("waits-anyway", EVICT, "if (vmscan_may_wait(sc->gfp_mask))", "if (true)",
           "nofs-flushers"),
    # throttle
    Mutant("no-sleep", PASS, "if (flags & VMSCAN_SLEEP_WRITEBACK)", "if (false)", "slow-disk"),
    Mutant("sleeps-without-io", REGISTRY, "return (gfp_mask & __GFP_IO) && ", "return "),
    Mutant("sleeps-in-transaction", REGISTRY, " && !current->journal_info &&", " &&"),
    Mutant("sleeps-anyway", PASS, "vmscan_may_wait(sc->gfp_mask) &&", "true &&", "nofs"),
    Mutant(
        "sleeps-for-each-node",
        PASS,
        "(round.kswapd || sc->batch.slept",
        "(true || sc->batch.slept",
        "nofs",
    ),
    Mutant(
        "kswapd-impatient",
        THROTTLE,
        "!round->nr_reclaimed && fruitless->pending &&\n"
        "\t    fruitless->taken >= fruitless->pending)",
        "!round->nr_reclaimed)",
    ),
    Mutant(
        "pending-of-now",
        THROTTLE,
        "max(fruitless->pending, round->nr_write_pending)",
        "round->nr_write_pending",
    ),
    Mutant(
        "sums-of-another-set",
        THROTTLE,
        "round->nr_reclaimed || fruitless->set != set",
        "round->nr_reclaimed",
    ),
    Mutant(
        "probe-left-behind",
        THROTTLE,
        "\ttracepoint_probe_unregister(throttled_tracepoint, throttled, NULL);\n"
        "\ttracepoint_synchronize_unregister();\n",
        "",
        "slow-disk",
    ),
    # the loop of 6.12
    Mutant("removed-by-priority", SCAN_6_12, "online ? total >> pass->priority : total;",
           "total >> pass->priority;"),  # fmt: skip
    Mutant("settled-once", SCAN_6_12, "\tnote->budget = min(budget, U32_MAX);\n",
           "\tif (!pass->nr_batches)\n\t\tnote->budget = min(budget, U32_MAX);\n"),  # fmt: skip
    Mutant("goes-on-after-aging", SCAN_6_12, "\tif (note->aged)\n\t\treturn VMP_END_AGED;\n", ""),
    # what a kernel has
    Mutant("points-not-hidden", CONTROL, "return !(point->not_with & traits);", "return true;"),
    Mutant("policies-not-hidden", CONTROL, "if (point->policies[i].only_with & ~traits)",
           "if (false)"),  # fmt: skip
    Mutant("shown-by-place", CONTROL, "shown.policy[shown.nr++] = i;", "shown.nr++;"),
    Mutant("profile-unfit", CONTROL, "return fit(profiles[i].choice, traits);",
           "return profiles[i].choice;"),  # fmt: skip
    Mutant("nobody-stands-in", SCAN, "aging != VMP_AGING_CONTINUE);", "false);"),
    # which policy is in force
    Mutant(
        "control-unlocked",
        CONTROL,
        "\tmutex_lock(&control_lock);\n\tchoice = current_choice;\n"
        "\tchoice.policy[point] = shown.policy[i];\n\terr = publish(&choice);\n"
        "\tmutex_unlock(&control_lock);\n",
        "\tchoice = current_choice;\n\tchoice.policy[point] = shown.policy[i];\n"
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
    Mutant("not-unregistered", CONTROL, "\t\tvmscan_policy_publish(&published->ops, NULL);\n", "",
           "modules"),  # fmt: skip
    Mutant("files-left-behind", CONTROL, "\tdebugfs_remove(root);\n", "", "modules"),
    Mutant(
        "profile-without-throttle",
        CONTROL,
        "\t\t\t[VMP_POINT_THROTTLE] = VMP_THROTTLE_ALL,\n",
        "",
        "debugfs",
    ),
    Mutant(
        "recommended-throttles-all",
        CONTROL,
        "[VMP_POINT_THROTTLE] = VMP_THROTTLE_MEMCG,",
        "[VMP_POINT_THROTTLE] = VMP_THROTTLE_ALL,",
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
        "\tif (trace_aging_end_enabled())\n\t\ttrace_aging_end(&where, vmp_end_id",
        "\tif (false)\n\t\ttrace_aging_end(&where, vmp_end_id",
        "trace",
    ),
    Mutant("wrong-field-traced", TRACE, "__entry->mapped = group->nr_mapped;",
           "__entry->mapped = group->nr_gone;", "trace"),  # fmt: skip
    # the registry
    Mutant("readers-not-waited-for", REGISTRY, "\tsynchronize_rcu();\n", ""),
    Mutant(
        "bypass-not-read",
        REGISTRY,
        "ops = vmscan_policy_bypassed() ? NULL : rcu_dereference",
        "ops = rcu_dereference",
    ),
    Mutant(
        "bypass-lifted-early",
        REGISTRY,
        "\trcu_assign_pointer(vmscan_policy_ops, new);\n\tsynchronize_rcu();\n"
        "\tif (!new)\n\t\tWRITE_ONCE(bypass, false);\n",
        "\tif (!new)\n\t\tWRITE_ONCE(bypass, false);\n"
        "\trcu_assign_pointer(vmscan_policy_ops, new);\n\tsynchronize_rcu();\n",
    ),
    Mutant("number-kept", REGISTRY, "++last_number);", "last_number);"),
    Mutant("note-never-void", REGISTRY, "\tif (ops && kept &&", "\tif (false && ops && kept &&"),
    Mutant("module-may-go", REGISTRY, "\tif (left) {", "\tif (false) {", "left-behind"),
    Mutant("branches-late", REGISTRY, "\tset_branches(false);\n\tmod_delayed_work",
           "\tmod_delayed_work", "kunit-slow"),  # fmt: skip
    # With time to postpone it in.
    Mutant(
        "one-work-for-both",
        REGISTRY,
        "\tset_branches(false);\n"
        "\tmod_delayed_work(system_long_wq, &off_work, BRANCH_OFF_DELAY);\n\n\treturn 0;\n}\n"
        "EXPORT_SYMBOL_NS_GPL(vmscan_policy_publish, VMSCAN_NAMESPACE);\n\n"
        "void vmscan_policy_set_bypass(bool on)\n{\n\tWRITE_ONCE(bypass, on);\n\tif (on)\n"
        "\t\tmod_delayed_work(system_long_wq, &off_work, BRANCH_OFF_DELAY);\n\telse\n"
        "\t\tqueue_work(system_long_wq, &on_work);\n",
        "\tset_branches(false);\n\tschedule_timeout_uninterruptible(1);\n"
        "\tmod_delayed_work(system_long_wq, &off_work, BRANCH_OFF_DELAY);\n\n\treturn 0;\n}\n"
        "EXPORT_SYMBOL_NS_GPL(vmscan_policy_publish, VMSCAN_NAMESPACE);\n\n"
        "void vmscan_policy_set_bypass(bool on)\n{\n\tWRITE_ONCE(bypass, on);\n"
        "\tmod_delayed_work(system_long_wq, &off_work, on ? BRANCH_OFF_DELAY : 2);\n",
    ),
    # unmap
    Mutant(
        "unmap-no-flush",
        RMAP,
        "\t\tvmscan_flush_pending(mm, cleared, start);\n",
        "",
        "lostwrite-large",
    ),
    Mutant(
        "unmap-soft-dirty",
        RMAP,
        "\tif (!pte_soft_dirty(pte))\n\t\tcleared = pte_clear_soft_dirty(cleared);\n",
        "",
        "large",
    ),
    Mutant(
        "unmap-no-soft-dirty",
        RMAP,
        "if (pte_soft_dirty(pte))\n\t\tswp_pte",
        "if (0)\n\t\tswp_pte",
        "large",
    ),
    Mutant(
        "unmap-past-the-end",
        RMAP,
        "return min_t(unsigned long, nr, max);",
        "return nr ? max : 0;",
        "large",
    ),
    Mutant(
        "unmap-clean",
        RMAP,
        "\tif (pte_dirty(cleared))\n\t\tfolio_mark_dirty(folio);\n",
        "",
        "large",
    ),
    Mutant(
        "unmap-drop-dirty",
        RMAP,
        "(!folio_test_dirty(folio) || (vma->vm_flags & VM_DROPPABLE))",
        "true",
        "large",
    ),
    Mutant(
        "unmap-drop-held",
        RMAP,
        "return refs == 1 + maps && ",
        "return refs && maps && ",
        "large",
    ),
    Mutant(
        "unmap-uffd",
        RMAP,
        "if (pte_uffd_wp(pte))\n\t\tswp_pte",
        "if (0)\n\t\tswp_pte",
        "large",
    ),
    Mutant(
        "unmap-no-marker",
        RMAP,
        " || (userfaultfd_wp(vma) && !vma_is_anonymous(vma)))",
        ")",
        "large",
    ),
    Mutant(
        "unmap-mixed-exclusive",
        RMAP,
        "PageAnonExclusive(page + i) != exclusive ||\n\t\t    ",
        "",
        "large",
    ),
    Mutant(
        "unmap-all-exclusive",
        RMAP,
        "if (exclusive)\n\t\tswp_pte",
        "if (1)\n\t\tswp_pte",
        "large",
    ),
    Mutant(
        "unmap-mlocked",
        RMAP,
        "(vma->vm_flags & VM_LOCKED) || (userfaultfd",
        "(userfaultfd",
        "large",
    ),
    # As before the lock of the page table.
    Mutant(
        "unmap-looks-early",
        RMAP,
        "\tDEFINE_FOLIO_VMA_WALK(pvmw, folio, vma, address, unmap->flags",
        "\tstruct vm_area_struct before = *vma;\n"
        "\tDEFINE_FOLIO_VMA_WALK(pvmw, folio, &before, address, unmap->flags",
        "large-meanwhile",
    ),
    Mutant(
        "unmap-pinned",
        RMAP,
        "keep = exclusive && !share(folio, page, nr);",
        "share(folio, page, nr);",
        "large",
    ),
    Mutant(
        "unmap-keep-count",
        RMAP,
        "\t\t\t\tswap_free_nr(entry, nr);\n",
        "\t\t\t\t;\n",
        "large",
    ),
    Mutant(
        "unmap-half-notified",
        RMAP,
        "0, vma->vm_mm, address, end);",
        "0, vma->vm_mm, address, address + PAGE_SIZE);",
        "large",
    ),
    Mutant(
        "unmap-overcount",
        "mm/swapfile.c",
        "swap_count(map[i]) >= SWAP_MAP_MAX",
        "0",
        "large",
    ),
    Mutant(
        "unmap-one-by-one",
        RMAP,
        "\treturn i;\n}\n\n/* Clears",
        "\treturn i > 1;\n}\n\n/* Clears",
        "large-counts",
    ),
    # young
    Mutant(
        "young-one-by-one",
        RMAP,
        "\t\t\treferenced += clear_young(&pvmw, nr);\n",
        "\t\t\tnr = 1;\n\t\t\treferenced += clear_young(&pvmw, nr);\n",
        "large-counts",
    ),
    Mutant(
        "young-primary-alone",
        RMAP,
        "others = lru_gen_enabled() && mm_has_notifiers(pvmw->vma->vm_mm)",
        "others = false",
        "large-meanwhile",
    ),
    Mutant(
        "young-mlocked",
        RMAP,
        "vma->vm_flags & ~VM_LOCKED;",
        "vma->vm_flags;",
        "large-meanwhile",
    ),
)  # fmt: skip


def kunit_case(text: str) -> str:
    """Return the suite or case that failed last in the parser's words: the outermost.

    Raises Failure when none did: then it had nothing to judge, and has caught nothing.
    """
    found = re.findall(r"\[FAILED\] (.*)", text)
    if not found:
        raise Failure(text)
    return str(found[-1]).strip()


def caught_by(mutant: Mutant, name: str) -> str:
    """Build a mutant of a kernel and run its test; return what caught it, '' if nothing has."""
    kernel = build_kernel(name, "debug" if mutant.debug else "plain")
    edits = () if mutant.in_kernel else (mutant,)
    module = build_module(kernel, *edits)
    words = [f"VMP_LIMIT={LIMIT}", *settings(kernel, "mutant", [mutant.test], False, *edits)]
    booted = build_edited_kernel(kernel, mutant) if mutant.in_kernel else kernel
    options: Words = [
        "--kernel",
        booted,
        "--module",
        module,
        "--disk",
        "2G:1000",
        *PATIENCE,
        *(["--numa", "2"] if mutant.test in names("numa") else []),
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
            judge_kunit(kernel, said)
        except Failure as failure:
            return f"{mutant.test}: {kunit_case(str(failure))}"
    if status == STALE_BREAKPOINT or not re.search(r"^ok 1 - ", text, re.MULTILINE):
        raise Failure(f"tools/vm ended with status {status}: {log}")
    return ""


def run_all(report: Report, _full: bool, kernel: str) -> None:
    """Check that each mutant is caught, and print the table."""
    version = find_version(kernel)
    prepare(version)
    offered = policies("--kernel", kernel)
    rows = []
    for mutant in MUTANTS:
        point = OF_POINT.get(mutant.path)
        if point and point not in offered:
            report.skip(f"mutant {mutant.name}", f"this kernel has no {point} point")
            continue
        if mutant.series and mutant.series != version.series:
            report.skip(f"mutant {mutant.name}", f"only {mutant.series} needs what it leaves out")
            continue
        start = time.monotonic()
        by = ""
        with report.check(f"mutant {mutant.name}"):
            by = caught_by(mutant, kernel)
            if not by:
                raise Failure(f"it survives {mutant.test}")
        rows.append((mutant.name, by or "-", f"{time.monotonic() - start:.0f}"))
    width = [max(len(row[column]) for row in rows) for column in (0, 1)]
    report.note(f"{'mutant':{width[0]}}  {'caught by':{width[1]}}  seconds")
    for name, by, seconds in rows:
        report.note(f"{name:{width[0]}}  {by:{width[1]}}  {seconds:>7}")
