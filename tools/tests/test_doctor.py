# SPDX-License-Identifier: GPL-2.0
"""Tests of what the doctor finds on machines that are trees of files."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from vmp.common import REPO, VERSION, Words
from vmp.control.counters import VMSTAT as VMSTAT_NAMES
from vmp.doctor import command, figures, policies, programs
from vmp.doctor.machine import MISSING, NONE, OK, UNSEEN, WARN, Check, Finding, Machine

RELEASE = "6.12.117"
MODULES = f"lib/modules/{RELEASE}"
KALLSYMS = """\
ffffffff81000000 T _stext
ffffffff81200000 T vmscan_policy_publish
ffffffff81200010 T arch_tlbbatch_flush
ffffffff81200020 T register_kprobe
ffffffffc0000000 t helper\t[zram]
"""
MOUNTS = """\
debugfs /sys/kernel/debug debugfs rw 0 0
tracefs /sys/kernel/tracing tracefs rw 0 0
securityfs /sys/kernel/security securityfs rw 0 0
cgroup2 /sys/fs/cgroup cgroup2 rw 0 0
"""
VMSTAT = "".join(f"{name} 0\n" for name in VMSTAT_NAMES)
INTERRUPTS = "      CPU0  CPU1\nCAL:  1  2  Function call interrupts\nTLB:  1  2  TLB shootdowns\n"
CPUS = "processor\t: 0\nvendor_id\t: {0}\n\nprocessor\t: 1\nvendor_id\t: {0}\n"
# A machine that lacks nothing, but for the module's file and the programs.
FILES = {
    "proc/kallsyms": KALLSYMS,
    "proc/self/mounts": MOUNTS,
    "proc/filesystems": "nodev\tdebugfs\nnodev\ttracefs\nnodev\tsecurityfs\nnodev\tcgroup2\n",
    "proc/modules": "vmscan_policy 61440 0 - Live 0x0\n",
    "proc/swaps": "Filename\tType\tSize\n/dev/zram0 partition 1048572\n",
    "proc/vmstat": VMSTAT,
    "proc/interrupts": INTERRUPTS,
    "proc/cpuinfo": CPUS.format("GenuineIntel"),
    "proc/version": f"Linux version {RELEASE} (a@b) (gcc-12 (Debian 12.2.0-14) 12.2.0, GNU ld)",
    "sys/module/vmscan_policy/version": f"{VERSION}\n",
    "sys/kernel/debug/vmscan_policy/abi": f"abi {policies.HOOK_ABI}\nmodule {VERSION}\n",
    "sys/kernel/security/lockdown": "[none] integrity confidentiality\n",
    "sys/kernel/mm/lru_gen/enabled": "0x0007\n",
    "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
    f"boot/config-{RELEASE}": "".join(f"{f.option}=y\n" for f in figures.FEATURES.values()),
    f"{MODULES}/build/Makefile": "",
}
Make = Callable[..., Machine]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return what makes a machine of FILES, with some changed; None takes a file away."""

    def machine(
        changes: dict[str, str | None] | None = None, release: str = RELEASE, arch: str = "x86_64"
    ) -> Machine:
        for name, text in (FILES | (changes or {})).items():
            if text is not None:
                (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / name).write_text(text)
        return Machine(tmp_path, release, arch)

    return machine


def unloaded(**files: str | None) -> dict[str, str | None]:
    """Return the changes of a machine without the module loaded."""
    gone = ("sys/module/vmscan_policy/version", "sys/kernel/debug/vmscan_policy/abi")
    return dict.fromkeys(gone) | files


def states(checks: dict[str, Check], machine: Machine) -> dict[str, str]:
    return {name: command.look(check, machine).state for name, check in checks.items()}


def test_nothing_is_missing(make: Make) -> None:
    machine = make()
    special = {"module file": WARN, "signature": NONE, "Secure Boot": NONE, "BPF": NONE}
    assert states(policies.CHECKS, machine) == dict.fromkeys(policies.CHECKS, OK) | special
    assert states(figures.CHECKS, machine) == dict.fromkeys(figures.CHECKS, OK)
    findings = command.examine(machine)
    assert command.ready(findings)
    assert command.verdict(findings) == "Policies can be switched."


def test_a_machine_without_any_file_is_told_all() -> None:
    machine = Machine(Path("/nowhere"), RELEASE, "x86_64")
    findings = command.examine(machine)
    assert not command.ready(findings)
    for section in findings.values():
        for name, finding in section.items():
            assert finding.state in (OK, NONE) or finding.mend or finding.state == UNSEEN, name


def test_each_line_fits_and_is_followed_by_what_mends_it() -> None:
    findings = command.examine(Machine(Path("/nowhere"), RELEASE, "x86_64"))
    lines = command.render(findings).splitlines()
    mends = [item.mend for section in findings.values() for item in section.values() if item.mend]
    assert [line.partition("-> ")[2] for line in lines if "-> " in line] == mends
    assert max(map(len, lines)) <= 100


def test_the_abi_is_the_modules() -> None:
    text = (REPO / "module" / "compat.h").read_text()
    assert f"VMSCAN_POLICY_ABI != {policies.HOOK_ABI}" in text
    header = REPO / "kernel-hooks" / "common" / "include" / "linux" / "vmscan_policy.h"
    number = policies.DEFINED.search(header.read_text())
    assert number
    assert number[1] == str(policies.HOOK_ABI)
    assert (
        f"EXPORT_SYMBOL_NS_GPL({policies.PUBLISH}, "
        in (REPO / "kernel-hooks" / "common" / "mm" / "vmscan_policy.c").read_text()
    )


def test_no_hooks(make: Make) -> None:
    symbols = {"proc/kallsyms": "ffffffff81000000 T _stext\n"}
    found = policies.hooks(make(symbols))
    assert found.state == MISSING
    assert found.mend.startswith("make kernel-deb")
    machine = make(symbols)
    machine.config = {"CONFIG_LIVEPATCH": "y"}
    assert policies.hooks(machine).mend.startswith("tools/vmscanctl install")


@pytest.mark.parametrize(
    ("enabled", "state", "seen"),
    [
        ("1\n", OK, "livepatched by vmscan_hooks"),
        ("0\n", MISSING, "in the livepatch vmscan_hooks, which is off"),
    ],
)
def test_livepatched_hooks(make: Make, enabled: str, state: str, seen: str) -> None:
    patch = "ffffffffc0300000 T vmscan_policy_publish\t[vmscan_hooks]\n"
    switch = "sys/kernel/livepatch/vmscan_hooks/enabled"
    found = policies.hooks(make({"proc/kallsyms": patch, switch: enabled}))
    assert found[:2] == (state, seen)
    assert (found.mend == f"echo 1 >/{switch}") == (state == MISSING)


@pytest.mark.parametrize("place", ["build", "source", "build/source"])
def test_headers_tell_the_abi(make: Make, place: str) -> None:
    header = f"{MODULES}/{place}/include/linux/vmscan_policy.h"
    found = policies.hook_abi(make(unloaded(**{header: "#define VMSCAN_POLICY_ABI\t5\n"})))
    assert found[:2] == (MISSING, f"5, while vmscan-policy {VERSION} has {policies.HOOK_ABI}")


def test_a_loaded_module_tells_the_abi(make: Make) -> None:
    header = f"{MODULES}/build/include/linux/vmscan_policy.h"
    assert policies.hook_abi(make({header: "#define VMSCAN_POLICY_ABI\t5\n"})).state == OK
    abi = {"sys/kernel/debug/vmscan_policy/abi": "abi 4\n"}
    assert policies.hook_abi(make(abi)).state == WARN


def test_a_module_that_is_not_loaded(make: Make) -> None:
    found = policies.module_loaded(make(unloaded()))
    assert found == Finding(MISSING, "not loaded", "modprobe vmscan_policy")
    findings = command.examine(make(unloaded()))
    assert not command.ready(findings)
    assert command.verdict(findings).endswith("Mend from the top: module file, module.")


def test_another_version_of_the_module(make: Make) -> None:
    assert policies.module_loaded(make({"sys/module/vmscan_policy/version": "0.0\n"})).state == WARN


def install(root: Path, release: str, info: dict[str, str]) -> None:
    """Make an object that has a module's information, where modprobe looks for it."""
    directory = root / MODULES / "updates" / "dkms"
    directory.mkdir(parents=True)
    words = "".join(f'"{name}={value}\\0"' for name, value in info.items())
    source = f'const char info[] __attribute__((section(".modinfo"), used)) = {words};'
    gcc: Words = ["gcc", "-x", "c", "-c", "-", "-o", directory / "vmscan_policy.ko"]
    subprocess.run(gcc, input=source, text=True, check=True)
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    depmod: Words = ["depmod", "-b", root, release]
    subprocess.run(depmod, check=True, capture_output=True, env={"PATH": path})


@pytest.mark.parametrize(
    ("info", "state", "seen"),
    [
        ({"vermagic": f"{RELEASE} SMP ", "version": VERSION}, OK, "/updates/dkms/vmscan_policy.ko"),
        ({"vermagic": "6.12.1 SMP ", "version": VERSION}, MISSING, f"6.12.1, not {RELEASE}"),
        ({"vermagic": f"{RELEASE} SMP ", "version": "0.0"}, WARN, "version 0.0"),
    ],
)
def test_the_module_that_modprobe_would_load(
    make: Make, info: dict[str, str], state: str, seen: str
) -> None:
    machine = make(unloaded())
    assert policies.module_file(machine).state == MISSING
    install(machine.root, RELEASE, info)
    found = policies.module_file(machine)
    assert found.state == state
    assert seen in found.seen


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, OK),
        ({"sys/module/module/parameters/sig_enforce": "Y\n"}, MISSING),
        ({"sys/module/module/parameters/sig_enforce": "N\n"}, OK),
        ({"sys/kernel/security/lockdown": "none [integrity] confidentiality\n"}, MISSING),
    ],
)
def test_a_module_without_a_signature(make: Make, changes: dict[str, str], state: str) -> None:
    machine = make(unloaded() | changes)
    assert policies.signature(machine).state == NONE
    install(machine.root, RELEASE, {"vermagic": RELEASE})
    assert policies.signature(machine).state == state


def test_a_machine_that_is_locked_down_sets_nothing(make: Make) -> None:
    machine = make({"sys/kernel/security/lockdown": "none [integrity] confidentiality\n"})
    assert policies.lockdown(machine).state == MISSING
    assert not command.ready(command.examine(machine))


def test_a_kernel_without_lockdown(make: Make) -> None:
    assert policies.lockdown(make({"sys/kernel/security/lockdown": None})).state == OK


def test_what_is_not_mounted_can_be(make: Make) -> None:
    machine = make({"proc/self/mounts": "", "sys/kernel/security/lockdown": None})
    mends = [
        check(machine).mend
        for check in (policies.debugfs, policies.lockdown, figures.tracefs, figures.cgroup2)
    ]
    assert mends == [
        "mount -t debugfs none /sys/kernel/debug",
        "mount -t securityfs none /sys/kernel/security",
        "mount -t tracefs none /sys/kernel/tracing",
        "mount -t cgroup2 none /sys/fs/cgroup",
    ]


def test_what_the_kernel_lacks_cannot_be_mounted(make: Make) -> None:
    machine = make({"proc/self/mounts": "", "proc/filesystems": ""})
    for check in (policies.debugfs, figures.tracefs, figures.cgroup2):
        found = check(machine)
        assert found.state == MISSING
        assert "CONFIG_" in found.mend


@pytest.mark.parametrize(("value", "state"), [(b"\6\0\0\0\1", WARN), (b"\6\0\0\0\0", OK)])
def test_secure_boot(make: Make, value: bytes, state: str) -> None:
    machine = make()
    assert policies.secure_boot(machine).state == NONE
    path = machine.path(policies.SECURE_BOOT)
    path.parent.mkdir(parents=True)
    assert policies.secure_boot(machine).state == UNSEEN
    path.write_bytes(value)
    assert policies.secure_boot(machine).state == state


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Be one that is not root."""
    before = os.geteuid()
    os.seteuid(before or 65534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_what_only_root_can_see(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = make()
    # The directories above it are for this user alone.
    monkeypatch.chdir(machine.root)
    machine.root.chmod(0o755)
    machine.root = Path()
    Path("sys/kernel/debug").chmod(0)
    with ordinary_user():
        findings = command.examine(machine)
    found = findings["To switch policies"]["debugfs"]
    assert found.state == UNSEEN
    assert found.mend == "run this as root or with sudo"
    assert command.ready(findings)
    assert command.verdict(findings).endswith("not all was seen: hook ABI, debugfs.")


@pytest.mark.parametrize(
    ("changes", "state"),
    [({}, OK), ({"sys/kernel/mm/lru_gen/enabled": "0x0000\n"}, WARN),
     ({"sys/kernel/mm/lru_gen/enabled": None}, WARN)],
)  # fmt: skip
def test_mglru(make: Make, changes: dict[str, str | None], state: str) -> None:
    assert figures.mglru(make(changes)).state == state


@pytest.mark.parametrize(
    ("text", "seen"),
    [("Filename\tType\n/dev/vda2 partition\n", "/dev/vda2"), ("Filename\tType\n", "none: "),
     ("", "not in this kernel: ")],
)  # fmt: skip
def test_swap(make: Make, text: str, seen: str) -> None:
    found = figures.swap(make({"proc/swaps": text}))
    assert found.seen.startswith(seen)
    assert found.state == (OK if seen == "/dev/vda2" else WARN)


def test_memory_on_cgroup_v1(make: Make) -> None:
    mounts = "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\ncgroup2 /c cgroup2 rw 0 0\n"
    found = figures.cgroup2(make({"proc/self/mounts": mounts,
                                  "sys/fs/cgroup/memory/memory.stat": ""}))  # fmt: skip
    assert "cgroup v1" in found.seen


def test_each_counter_that_the_kernel_lacks_is_named(make: Make) -> None:
    vmstat = VMSTAT.replace("nr_tlb_remote_flush 0\n", "").replace("pswpin 0\n", "")
    kallsyms = KALLSYMS.replace("register_kprobe", "x")
    machine = make({"proc/vmstat": vmstat, "proc/kallsyms": kallsyms})
    found = {name: check(machine) for name, check in figures.CHECKS.items()}
    named = [finding.seen.partition(":")[0] for finding in found.values() if finding.state == WARN]
    assert named == [
        "no nr_tlb_remote_flush",
        "no observed_dirty_flushes, observed_clean_flushes, observed_remote_flushes, "
        "observed_interrupts",
        "no pswpin",
    ]
    assert "CONFIG_DEBUG_TLBFLUSH" in found["remote TLB flushes"].mend
    assert "TLB shootdowns" in found["remote TLB flushes"].seen


def test_features_are_found_by_option_or_by_file(make: Make) -> None:
    zram = figures.CHECKS["zram"]
    assert zram(make()).state == OK
    config = f"boot/config-{RELEASE}"
    assert zram(make({config: "CONFIG_ZRAM=m\n"})).seen == "there is a module for it"
    found = zram(make({config: "# CONFIG_ZRAM is not set\nCONFIG_X=y\n"}))
    assert found.state == MISSING
    assert found.mend == "build the kernel with CONFIG_ZRAM"
    assert zram(make({config: "", "sys/class/zram-control/hot_add": ""})).state == OK


def test_no_file_tells_the_options(make: Make) -> None:
    assert figures.CHECKS["zram"](make({f"boot/config-{RELEASE}": None})).state == UNSEEN


@pytest.mark.parametrize(
    ("cpus", "release", "arch", "state"),
    [
        (CPUS.format("GenuineIntel"), "7.2.1", "x86_64", OK),
        (CPUS.format("AuthenticAMD"), "6.12.117", "x86_64", OK),
        (CPUS.format("AuthenticAMD"), "7.2.1", "x86_64", UNSEEN),
        (CPUS.format("?"), "7.2.1", "aarch64", WARN),
        (CPUS.format("?"), "7.2.1", "riscv64", NONE),
        (CPUS.format("GenuineIntel").partition("\n\n")[0], "7.2.1", "x86_64", WARN),
    ],
)
def test_cpus_whose_flushes_interrupt(
    make: Make, cpus: str, release: str, arch: str, state: str
) -> None:
    assert figures.remote_flushes(make({"proc/cpuinfo": cpus}, release, arch)).state == state


@pytest.mark.parametrize(("ebx", "state"), [(0b1000, WARN), (0b0111, OK)])
def test_invlpgb(make: Make, ebx: int, state: str) -> None:
    machine = make({"proc/cpuinfo": CPUS.format("AuthenticAMD")}, "7.2.1")
    cpuid = machine.path(figures.CPUID)
    cpuid.parent.mkdir(parents=True)
    with cpuid.open("wb") as registers:
        registers.seek(figures.EXTENDED + 4)
        registers.write(ebx.to_bytes(12, "little"))
    assert figures.remote_flushes(machine).state == state


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only directory in which programs are found."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr("vmp.doctor.machine.SYSTEM_PATH", "/nowhere")
    (tmp_path / "bin").mkdir()
    return tmp_path / "bin"


def program(path: Path, says: str = "") -> None:
    path.write_text(f"#!/bin/sh\necho {says}\n")
    path.chmod(0o755)


def test_programs(make: Make, path: Path) -> None:
    machine = make()
    found = programs.CHECKS["fio"](machine)
    assert found.state == MISSING
    assert found.mend == "apt install fio"
    program(path / "fio")
    assert programs.CHECKS["fio"](machine) == Finding(OK, str(path / "fio"))


@pytest.mark.parametrize(
    ("version", "kind", "major"),
    [
        ("(d@k.org) (x86_64-linux-gnu-gcc-12 (Debian 12.2.0-14+b1) 12.2.0, GNU ld)", "gcc", "12"),
        ("(builder@x) (gcc (GCC) 15.3.0, GNU ld (GNU Binutils) 2.46)", "gcc", "15"),
        ("(d@k.org) (Debian clang version 19.1.7 (3+b1), Debian LLD 19.1.7)", "clang", "19"),
    ],
)
def test_the_compiler_is_the_kernels(
    make: Make, path: Path, version: str, kind: str, major: str
) -> None:
    machine = make({"proc/version": f"Linux version 1.2 {version} #1 SMP"})
    found = programs.compiler(machine)
    assert found.state == MISSING
    assert found.mend == f"apt install {kind}-{major}"
    program(path / kind, "11")
    assert programs.compiler(machine).state == WARN
    program(path / kind, f"{major}.2.0")
    assert programs.compiler(machine).state == OK
    program(path / kind, "11")
    program(path / f"{kind}-{major}")
    assert programs.compiler(machine).state == OK


def test_headers(make: Make) -> None:
    assert programs.headers(make({f"{MODULES}/build/Makefile": None})).state == MISSING
    assert programs.headers(make()).state == OK


def test_what_bpf_programs_lack(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    config = f"boot/config-{RELEASE}"
    options = "".join(f"CONFIG_{name}=y\n" for name in policies.BPF)
    assert "CONFIG_BPF_SYSCALL, CONFIG_BPF_JIT, " in policies.bpf(make()).mend
    assert "without its types" in policies.bpf(make({config: options})).seen
    types = {config: options, "sys/kernel/btf/vmscan_policy": ""}
    machine = make(types)
    monkeypatch.setattr(Machine, "program", lambda *_: None)
    assert policies.bpf(machine).seen == "bpftool is not installed"
    monkeypatch.setattr(Machine, "program", lambda *_: "/usr/sbin/bpftool")
    assert policies.bpf(machine).state == OK
