#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""text.py ABOUT: print a checksum of the running kernel's functions that a livepatch changes.

Of their first bytes, where a call to the livepatch would be.
"""

import hashlib
import json
import struct
import sys
from pathlib import Path

BYTES = 64
HEADER, SEGMENT = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQQQ")

names = set(json.loads(Path(sys.argv[1]).read_text())["functions"])
digest = hashlib.sha256()
with open("/proc/kcore", "rb") as core:
    header = HEADER.unpack(core.read(HEADER.size))
    core.seek(header[5])
    segments = [SEGMENT.unpack(core.read(SEGMENT.size)) for _ in range(header[10])]
    for line in Path("/proc/kallsyms").read_text().splitlines():
        words = line.split()
        if len(words) == 3 and words[2] in names:
            at = int(words[0], 16)
            for _, _, offset, begin, _, size, _, _ in segments:
                if begin <= at < begin + size:
                    core.seek(offset + at - begin)
                    digest.update(core.read(BYTES))
print(digest.hexdigest())
