#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Who writes to memory.reclaim and gets a signal is told so soon, not when all is reclaimed that one
# call of the kernel's was to reclaim.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

# MiB. The kernel asks for a quarter of what is left each time.
file=600

memcg_new
fs_new
truncate -s "${file}M" "$FS/data"
set_scan budget continue
# Where the machine is busy a signal may come late: the least of some counts.
python3 - "$VMP_MEMCG" "$FS/data" $((file - 50)) <<'EOF' || fail "it goes on and on"
import os, signal, sys

memcg, data, size = sys.argv[1:]


def stolen():
    with open(f"{memcg}/memory.stat") as file:
        return dict(line.split() for line in file)["pgsteal"]


def reclaim():
    """Returns how many pages were stolen after a signal; None if it came too late."""
    before = int(stolen())
    pid = os.fork()
    if not pid:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        with open(f"{memcg}/memory.reclaim", "w") as file:
            file.write(f"{size}M")
            file.flush()
        os._exit(0)
    while int(stolen()) < before + 1000 and not os.waitid(
        os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT
    ):
        pass
    told = int(stolen())
    os.kill(pid, signal.SIGINT)
    if not os.WIFSIGNALED(os.waitpid(pid, 0)[1]):
        return None
    return int(stolen()) - told


after = []
for _ in range(8):
    if not os.fork():
        with open(f"{memcg}/cgroup.procs", "w") as file:
            file.write("0")
        with open(data, "rb", 0) as file:
            while file.read(1 << 20):
                pass
        os._exit(0)
    os.wait()
    after.append(reclaim())
counts = [count for count in after if count is not None]
print(f"stolen after the signal: {' '.join(map(str, after))}")
sys.exit(not counts or min(counts) > 4000)
EOF
