# SPDX-License-Identifier: GPL-2.0
"""The parts of a guest run that need no guest: limits, the guest's script and its kernel log."""

import re
import shlex
from pathlib import Path

MAX_CPUS = 16  # CONFIG_NR_CPUS of the guest's kernel
SPLAT_LINES = 60  # an excerpt is cut after that many lines
# What a log line of a sick kernel looks like, after its time stamp. Data races are for those who
# look for them: stock has some.
SPLAT = re.compile(
    r"WARNING: |BUG: (?!KCSAN: )|BUG [\w-]+ \(|kernel BUG at |watchdog: BUG: |Oops: "
    r"|general protection fault|Unable to handle kernel |Internal error: "
    r"|\S+.*: [0-9a-f]{4} \[#\d+\]|Kernel panic|UBSAN: |INFO: task .* blocked for more than"
    r"|INFO: trying to register non-static key|rcu: INFO: |INFO: rcu_|refcount_t: "
    r"|kmemleak: \d+ new suspected|.*(unreferenced object 0x|Bad swap file entry)"
)
SPLAT_END = re.compile(r"---\[ end |kmemleak: end of report")
TIME_STAMP = re.compile(r"^\[ *\d+\.\d+\] ?")
INT3_OOPS = re.compile(r"int3: 0000 \[#\d+\]")
CODE_BEFORE_IP = re.compile(r"^Code: .*([0-9a-f]{2}) <[0-9a-f]{2}>")
INT3 = "cc"
STALE_BREAKPOINT = 98  # exit status of tools/vm
STARTED = "vmp: command starts"
NO_PORTS = "no ports for the command's output"

# Where the guest's udev was too slow, output would go to the console and not come out.
PORTS = f"""\
[ ! -t 1 ] || {{ echo "<5>vmp: {NO_PORTS}" >/dev/kmsg; exit 125; }}
"""
SCRIPT = """\
say() { echo "<5>vmp: $*" >/dev/kmsg; }
fail() { say "$*"; echo "vm: $*" >&2; exit 125; }
ensure() { grep -q " $3 $1 " /proc/mounts || mount -t "$1" "$2" "$3" || fail "no $1 on $3"; }
ensure debugfs debugfs /sys/kernel/debug
ensure tracefs tracefs /sys/kernel/tracing
ensure cgroup2 cgroup2 /sys/fs/cgroup
for cpu in /sys/devices/system/cpu/cpu[1-9]*/online; do
	[ ! -e "$cpu" ] || echo 1 >"$cpu" || fail "$cpu doesn't come up"
done
"""
LOAD = """\
error=$(insmod "$VMP_MODULE_DIR/vmscan_policy.ko" 2>&1) || fail "the module doesn't load: $error"
"""
LEAKS_BEFORE = """\
echo clear >/sys/kernel/debug/kmemleak
"""
# An object is reported once a second scan finds it unreferenced too.
LEAKS_AFTER = """\
for _ in 1 2; do sleep 3; echo scan >/sys/kernel/debug/kmemleak; done
cat /sys/kernel/debug/kmemleak >"$VMP_RUN/leaks"
if [ -s "$VMP_RUN/leaks" ]; then
	while IFS= read -r line; do echo "<4>$line" >/dev/kmsg; done <"$VMP_RUN/leaks"
	say "kmemleak: end of report"
fi
"""


def guest_script(
    command: list[str], environment: dict[str, str], directory: Path, load: bool, leaks: bool
) -> str:
    """Return the shell script that runs `command` in the guest and exits with its status."""
    exports = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    return "\n".join(
        [
            *exports,
            SCRIPT,
            LOAD if load else "",
            LEAKS_BEFORE if leaks else "",
            f"cd {shlex.quote(str(directory))} || fail 'no such directory in the guest'",
            f'echo "<5>{STARTED}" >/dev/kmsg',
            shlex.join(command),
            "status=$?",
            'say "command ended: $status"',
            LEAKS_AFTER if leaks else "",
            "exit $status",
            "",
        ]
    )


def read_log(path: Path) -> list[str]:
    """Return the lines of a guest's kernel log without time stamps."""
    text = path.read_text(errors="replace").replace("\r", "")
    return [TIME_STAMP.sub("", line) for line in text.splitlines()]


def find_splat(lines: list[str]) -> list[str]:
    """Return the first report of trouble in a kernel log, or an empty list."""
    for first, line in enumerate(lines):
        if SPLAT.match(line):
            excerpt = lines[first : first + SPLAT_LINES]
            ends = [index for index, text in enumerate(excerpt) if SPLAT_END.search(text)]
            return excerpt[: ends[0] + 1] if ends else excerpt
    return []


def stale_breakpoint(splat: list[str]) -> bool:
    """Tell if a report of trouble is a breakpoint that is no longer in the guest's memory.

    The kernel puts one where it patches its code, until that is done. QEMU's emulation with
    a thread for each CPU (7.2 and 10.0 were seen to) can run it later still. An Oops shows
    the bytes in memory around the instruction pointer, which is just behind the breakpoint.
    """
    codes = [match[1] for match in map(CODE_BEFORE_IP.match, splat) if match]
    return bool(codes) and bool(INT3_OOPS.search(splat[0])) and codes[0] != INT3
