"""KUnit and the guest tests, on a plain and on a debug kernel."""

import re
import subprocess
import time
from pathlib import Path

from vmp.common import CACHE, OUT, REPO, Failure, run
from vmp.guest import STALE_BREAKPOINT, find_splat
from vmp.kernel import build_kernel, build_module, find_version, hooked_source, versions
from vmp.report import Report

VM = REPO / "tools" / "vm"
GUEST = REPO / "tools" / "tests" / "guest"
PROGRAMS = CACHE / "tests"
KTAP = re.compile(r"^(not )?ok \d+ - (.*)$")
FAULTS = ("VMP_FAULT_NO_FLUSH", "VMP_FAULT_IDLE", "VMP_FAULT_SLOW_AGING")  # test builds
DEBUG_SCALE = 10  # percent of the plain kernel's sizes
GUESTS = 6  # so many may be needed: QEMU has lost two in one run


def vm(arguments: list[str | Path], log: Path) -> tuple[int, str]:
    """Run tools/vm, again if QEMU lost the guest, with both streams in `log`.

    Returns its exit status and the log's text.
    """
    for _ in range(GUESTS):
        status, text = vm_once(arguments, log)
        if status != STALE_BREAKPOINT:
            break
        print(f"# QEMU lost the guest: {log}", flush=True)
    return status, text


def vm_once(arguments: list[str | Path], log: Path) -> tuple[int, str]:
    """Run tools/vm with both streams in `log`; return its exit status and the log's text."""
    log.parent.mkdir(exist_ok=True)
    with log.open("w") as output:
        done = subprocess.run(
            [str(VM), *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=REPO,
            check=False,
        )
    return done.returncode, log.read_text(errors="replace")


def vm_succeeds(arguments: list[str | Path], log: Path) -> None:
    """Run tools/vm; raise Failure when it fails."""
    status, text = vm(arguments, log)
    if status:
        raise Failure(f"tools/vm ended with status {status}: {log}\n{tail(text)}")


def kunit(kernel: Path, log: Path) -> None:
    """Run the KUnit suites in a guest; the kernel's own parser judges the result."""
    script = 'modprobe kunit enable=1 && insmod "$VMP_MODULE_DIR/vmscan_policy_kunit.ko" && dmesg'
    vm_succeeds(["--kernel", kernel, "--", "sh", "-c", script], log)
    parser = hooked_source(find_version(None)) / "tools" / "testing" / "kunit" / "kunit.py"
    done = subprocess.run(
        ["python3", str(parser), "parse", str(log)], capture_output=True, text=True, check=False
    )
    counts = re.search(r"Testing complete\. (.*)", done.stdout)
    if done.returncode or not counts or "passed: 0" in counts[1]:
        failed = re.findall(r".*\[FAILED\].*|.*\[ERROR\].*", done.stdout)
        raise Failure("\n".join([f"kunit.py parse {log}", *failed[:20]]))


def tail(text: str) -> str:
    """Return the kernel's report of trouble or the last lines of a log, for a reason of failure."""
    lines = text.splitlines()
    return "\n".join(find_splat(lines)[:15] or lines[-15:])


def report_results(report: Report, label: str, text: str) -> tuple[int, int]:
    """Report each test that a guest ended; return how many these are, and how many failed."""
    comments: list[str] = []
    ended = failed = 0
    for line in text.splitlines():
        result = KTAP.match(line)
        if result and result[2].endswith("# SKIP"):
            report.note(f"{label}: {result[2]}: {'; '.join(comments)}")
        elif result:
            failed += bool(result[1])
            report.add(f"{label}: {result[2]}", "\n".join(comments) if result[1] else None)
        elif line.startswith("# "):
            comments.append(line[2:])
        if result:
            ended += 1
            comments = []
    return ended, failed


def guest_suite(
    report: Report, label: str, kernel: Path, scale: int, log: Path, *tests: str
) -> None:
    """Run the guest tests named, or all of them, in one guest and report each.

    When QEMU loses the guest, another runs the tests that had not ended.
    """
    left = list(tests) or run([GUEST / "run", "--list"], "listing the guest tests").split()
    settings = [f"VMP_TEST_BIN={PROGRAMS}", f"VMP_SCALE={scale}"]
    if not tests:
        settings += [f"{fault}={build_module(kernel, [fault])}" for fault in FAULTS]
    options = ["--kernel", kernel, "--cpus", "4", "--disk", "2G:1000", "--timeout", "4500"]
    start = time.monotonic()
    failed = 0
    for number in range(1, GUESTS + 1):
        guest_log = log.with_stem(f"{log.stem}-{number}")
        status, text = vm_once([*options, "--", "env", *settings, GUEST / "run", *left], guest_log)
        ended, failed_here = report_results(report, label, text)
        failed += failed_here
        if status != STALE_BREAKPOINT or number == GUESTS:
            break
        left = left[ended:] or left[-1:]
        report.note(f"{label}: QEMU lost the guest ({guest_log}): another goes on at {left[0]}")
    reason = f"tools/vm ended with status {status}: {guest_log}\n{tail(text)}"
    clean = not status or (failed and status == 1)
    report.add(
        f"{label}: the guest ran to its end with a clean kernel log",
        None if clean else reason,
        time.monotonic() - start,
    )


def refused(kernel: Path, module: Path, message: str, log: Path) -> None:
    """Check that a module does not load into a kernel, and that the kernel's log says why."""
    script = f'insmod "{module}/vmscan_policy.ko" && echo loaded; dmesg'
    status, text = vm(["--kernel", kernel, "--no-load", "--", "sh", "-c", script], log)
    if status or message not in text or re.search(r"^loaded$", text, re.MULTILINE):
        raise Failure(f"expected a refusal with '{message}' (status {status}): {log}\n{tail(text)}")


def build_refused(kernel: Path) -> None:
    """Check that a build against a kernel without the hooks stops with one #error."""
    try:
        build_module(kernel, [])
    except Failure as failure:
        errors = re.findall(r"error: #error .*", str(failure))
        if len(errors) == 1 and "CONFIG_VMSCAN_POLICY" in errors[0]:
            return
        raise Failure(f"expected one #error that names the option, got:\n{failure}") from None
    raise Failure("the module was built for a kernel without the hooks")


def prepare() -> None:
    """Compile the programs of the guest tests."""
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    source = hooked_source(find_version(None))
    run(["make", "-C", GUEST, f"OUT={PROGRAMS}", f"SOURCE={source}"], "compiling the guest tests")


def run_plain(report: Report) -> None:
    """Run KUnit, the guest tests, and the kernel without hooks."""
    prepare()
    kernel, off = build_kernel(None, "plain"), build_kernel(None, "off")
    with report.check("plain: KUnit"):
        kunit(kernel, OUT / "test-kunit-plain.log")
    guest_suite(report, "plain", kernel, 100, OUT / "test-guest-plain.log")
    oldest = versions()[0].point
    guest_suite(
        report,
        oldest,
        build_kernel(oldest, "plain"),
        100,
        OUT / "test-guest-oldest.log",
        "reclaim",
        "slow-disk",
    )
    with report.check("insmod into a kernel without the hooks says so"):
        module = build_module(kernel, [])
        refused(off, module, "this kernel has no reclaim policy hooks", OUT / "test-off.log")
    with report.check("a build against a kernel without the hooks says so"):
        build_refused(off)
    with report.check("insmod of a module for another hook ABI says so"):
        module = build_module(kernel, ["VMP_FAULT_ABI"])
        refused(kernel, module, "was built for hook ABI", OUT / "test-abi.log")


def run_debug(report: Report) -> None:
    """Run KUnit and the guest tests on the kernel with sanitizers and lock checking."""
    prepare()
    kernel = build_kernel(None, "debug")
    with report.check("debug: KUnit"):
        kunit(kernel, OUT / "test-kunit-debug.log")
    guest_suite(report, "debug", kernel, DEBUG_SCALE, OUT / "test-guest-debug.log")
