# SPDX-License-Identifier: GPL-2.0
"""What has to be there for policies to be switched: the hooks, the module, debugfs."""

import re

from vmp.common import VERSION
from vmp.control.debugfs import DEBUGFS_DIR, parse_choices, parse_stats
from vmp.doctor.machine import MISSING, NONE, OK, UNSEEN, WARN, Check, Finding, Machine, build_with

HOOK_ABI = 12  # the module's
MODULE = "vmscan_policy"
PUBLISH = "vmscan_policy_publish"  # the function that the hooks export
SOURCES = ("build", "source", "build/source")  # where a kernel's own headers may be
DEFINED = re.compile(r"^#define VMSCAN_POLICY_ABI\s+(\d+)", re.MULTILINE)
SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
BPF = ("BPF_SYSCALL", "BPF_JIT", "DEBUG_INFO_BTF_MODULES")
INSTALL = "in the checkout: make dkms-install"


def loaded(machine: Machine) -> bool:
    """Tell if the module is loaded."""
    return machine.has(f"/sys/module/{MODULE}")


def keeps(machine: Machine) -> str:
    """Return how bad the lack of something is that is needed until the module is loaded."""
    return WARN if loaded(machine) else MISSING


def hooks(machine: Machine) -> Finding:
    """Look for the function that the module publishes its policies by."""
    if not machine.symbols:
        return Finding(UNSEEN, "this kernel lists no symbols", build_with("CONFIG_KALLSYMS"))
    if PUBLISH not in machine.symbols:
        build = "make kernel-deb, install and boot it; or use tools/vm"
        if machine.config.get("CONFIG_LIVEPATCH") == "y":
            build = f"tools/vmscanctl install, for a kernel of Debian's; or {build}"
        return Finding(MISSING, f"Linux {machine.release} has none", build)
    patch = machine.symbols[PUBLISH]
    if not patch:
        return Finding(OK, "built in")
    switch = f"/sys/kernel/livepatch/{patch}/enabled"
    if machine.text(switch) == "0":
        return Finding(MISSING, f"in the livepatch {patch}, which is off", f"echo 1 >{switch}")
    return Finding(OK, f"{'livepatched' if machine.has(switch) else 'brought'} by {patch}")


def hook_abi(machine: Machine) -> Finding:
    """Compare the hooks' ABI with the module's: what is loaded tells it, or the headers."""
    modules = f"/lib/modules/{machine.release}"
    headers = (f"{modules}/{place}/include/linux/{MODULE}.h" for place in SOURCES)
    defined = (DEFINED.search(machine.text(header)) for header in headers)
    found = next((int(number[1]) for number in defined if number), None)
    if loaded(machine):
        for mount in machine.mounted("debugfs"):
            found = parse_stats(machine.text(mount / DEBUGFS_DIR / "abi")).get("abi", found)
    if found is None:
        return Finding(NONE, "told by the module when it is loaded, or by the kernel's headers")
    if found == HOOK_ABI:
        return Finding(OK, str(found))
    return Finding(
        keeps(machine),
        f"{found}, while vmscan-policy {VERSION} has {HOOK_ABI}",
        f"build kernel and module with the patches of vmscan-policy {VERSION}",
    )


def module_info(machine: Machine) -> dict[str, str]:
    """Return what modinfo tells of the module that modprobe would load; nothing without one."""
    said = machine.said("modinfo", "-b", str(machine.root), "-k", machine.release, MODULE)
    return dict(re.findall(r"^(\w+):\s*(.*)$", said.replace("//", "/"), re.MULTILINE))


def module_file(machine: Machine) -> Finding:
    """Look at the module that modprobe would load."""
    info = module_info(machine)
    if not info:
        seen = f"none for Linux {machine.release}"
        return Finding(keeps(machine), seen, INSTALL)
    built = info.get("vermagic", "?").split()[0]
    if built != machine.release:
        seen = f"{info['filename']} is for Linux {built}, not {machine.release}"
        return Finding(keeps(machine), seen, INSTALL)
    if info.get("version") != VERSION:
        seen = f"version {info.get('version', '?')}, while these tools are {VERSION}"
        return Finding(WARN, seen, INSTALL)
    return Finding(OK, info["filename"])


def lock(machine: Machine) -> str | None:
    """Return what lockdown is set to, None if the kernel does not tell."""
    return parse_choices(machine.text("/sys/kernel/security/lockdown"))[0]


def signature(machine: Machine) -> Finding:
    """Compare the signature of the module with what the kernel asks for."""
    info = module_info(machine)
    if not info:
        return Finding(NONE, "there is no module file")
    if "signer" in info:
        return Finding(OK, f"by {info['signer'] or 'a key without a name'}")
    enforced = machine.text("/sys/module/module/parameters/sig_enforce") == "Y"
    if not enforced and lock(machine) in (None, "none"):
        return Finding(OK, "none, and this kernel asks for none")
    return Finding(
        keeps(machine),
        "none, and this kernel loads no module without",
        "mokutil --import /var/lib/dkms/mok.pub && reboot, then dkms build it anew",
    )


def module_loaded(machine: Machine) -> Finding:
    """Look at the module that is loaded."""
    if not loaded(machine):
        if not machine.has("/proc/modules"):
            return Finding(MISSING, "this kernel loads no modules", build_with("CONFIG_MODULES"))
        return Finding(MISSING, "not loaded", f"modprobe {MODULE}")
    version = machine.text(f"/sys/module/{MODULE}/version")
    if version != VERSION:
        seen = f"version {version or '?'}, while these tools are {VERSION}"
        return Finding(WARN, seen, f"rmmod {MODULE} && modprobe {MODULE}")
    return Finding(OK, f"version {version}")


def debugfs(machine: Machine) -> Finding:
    """Look for the module's files."""
    if not machine.mounted("debugfs"):
        if not machine.knows("debugfs"):
            return Finding(MISSING, "not in this kernel", build_with("CONFIG_DEBUG_FS"))
        return Finding(MISSING, "not mounted", "mount -t debugfs none /sys/kernel/debug")
    if not loaded(machine):
        return Finding(OK, f"mounted on {machine.mounted('debugfs')[0]}")
    roots = [mount / DEBUGFS_DIR for mount in machine.mounted("debugfs")]
    for root in roots:
        if machine.has(root):
            return Finding(OK, str(root))
    return Finding(MISSING, f"there is no {roots[0]}", "boot without debugfs= on the command line")


def lockdown(machine: Machine) -> Finding:
    """Look if the kernel keeps root from writing to debugfs."""
    found = lock(machine)
    if found in ("integrity", "confidentiality"):
        return Finding(
            MISSING,
            f"{found}: nobody can write to debugfs",
            "boot without Secure Boot, and without lockdown= on the command line",
        )
    if found or not machine.knows("securityfs"):
        return Finding(OK, found or "not in this kernel")
    if not machine.mounted("securityfs"):
        mend = "mount -t securityfs none /sys/kernel/security"
        return Finding(UNSEEN, "securityfs is not mounted", mend)
    return Finding(OK, "not in this kernel")


def secure_boot(machine: Machine) -> Finding:
    """Look if the firmware checks what it boots, for which many kernels lock down."""
    if not machine.has("/sys/firmware/efi"):
        return Finding(NONE, "not booted by EFI")
    value = machine.data(SECURE_BOOT)
    if not value and not machine.mounted("efivarfs"):
        mend = "mount -t efivarfs none /sys/firmware/efi/efivars"
        return Finding(UNSEEN, "efivarfs is not mounted", mend)
    if value[-1:] != b"\1":
        return Finding(OK, "off")
    return Finding(
        WARN,
        "on: most kernels then ask for signed modules and lock debugfs",
        "mokutil --disable-validation && reboot, or switch it off in the firmware",
    )


def bpf(machine: Machine) -> Finding:
    """Look if policies can be BPF programs."""
    missing = [f"CONFIG_{name}" for name in BPF if machine.config.get(f"CONFIG_{name}") != "y"]
    if machine.config and missing:
        seen = "this kernel takes no policies that are BPF programs"
        return Finding(NONE, seen, build_with(", ".join(missing)))
    if not loaded(machine):
        return Finding(NONE, "told when the module is loaded")
    if not machine.has(f"/sys/kernel/btf/{MODULE}"):
        return Finding(NONE, "the module was built without its types (BTF)",
                       "apt install pahole, and build it again, against headers with vmlinux: "
                       "with a livepatch by `vmscanctl uninstall` and `install`")  # fmt: skip
    if not machine.program("bpftool"):
        return Finding(NONE, "bpftool is not installed", "apt install bpftool")
    return Finding(OK, "policies can be BPF programs")


CHECKS: dict[str, Check] = {
    "hooks": hooks,
    "hook ABI": hook_abi,
    "module file": module_file,
    "signature": signature,
    "module": module_loaded,
    "debugfs": debugfs,
    "lockdown": lockdown,
    "Secure Boot": secure_boot,
    "BPF": bpf,
}
