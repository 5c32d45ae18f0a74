# SPDX-License-Identifier: GPL-2.0
"""Saying what a machine lacks to switch policies and to measure them, and how to fix it."""

import argparse
import json
from textwrap import wrap

from vmp.common import Command, Parser
from vmp.doctor import figures, policies, programs
from vmp.doctor.machine import MISSING, STATES, UNSEEN, Check, Finding, Machine, UnseenError

# What has to be there for policies to be switched comes first.
SECTIONS = {
    "To switch policies": policies.CHECKS,
    "To measure what they do": figures.CHECKS,
    "Programs": programs.CHECKS,
}
WIDTH = 100
Findings = dict[str, dict[str, Finding]]


def look(check: Check, machine: Machine) -> Finding:
    """Return what a check finds."""
    try:
        return check(machine)
    except UnseenError as name:
        return Finding(UNSEEN, f"only root can see {name}", "run this as root or with sudo")


def examine(machine: Machine) -> Findings:
    """Return the findings by section and by what was looked at."""
    return {
        title: {name: look(check, machine) for name, check in checks.items()}
        for title, checks in SECTIONS.items()
    }


def ready(findings: Findings) -> bool:
    """Tell if nothing that was seen keeps policies from being switched."""
    needed = findings[next(iter(SECTIONS))].values()
    return all(finding.state != MISSING for finding in needed)


def render(findings: Findings) -> str:
    """Return the page: a line for each finding, and below it how to fix it, to be copied."""
    named = [name for section in findings.values() for name in section]
    wide, state_wide = max(map(len, named)), max(map(len, STATES))
    lines = []
    for title, section in findings.items():
        lines.append(f"{title}:")
        for name, (state, seen, mend) in section.items():
            head = f"  {state:<{state_wide}}  {name:<{wide}}  "
            lines += wrap(seen, WIDTH, initial_indent=head, subsequent_indent=" " * len(head))
            lines += [f"  {'':<{state_wide}}  -> {mend}"] if mend else []
    return "\n".join(lines)


def verdict(findings: Findings) -> str:
    """Say whether policies can be switched."""
    first = findings[next(iter(SECTIONS))]
    lacking = [name for name, finding in first.items() if finding.state == MISSING]
    unseen = [name for name, finding in first.items() if finding.state == UNSEEN]
    if lacking:
        return f"Policies can't be switched. Mend from the top: {', '.join(lacking)}."
    if unseen:
        return f"Nothing is missing to switch policies, but not all was seen: {', '.join(unseen)}."
    return "Policies can be switched."


def arguments(parser: Parser) -> None:
    """Take the form."""
    parser.add_argument("--json", action="store_true", help="as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the page; the status is 1 if policies can't be switched."""
    machine = Machine()
    findings = examine(machine)
    if args.json:
        sections = {
            title: {name: finding._asdict() for name, finding in section.items()}
            for title, section in findings.items()
        }
        whole = {"kernel": machine.release, "ready": ready(findings), "sections": sections}
        print(json.dumps(whole, indent=2))
    else:
        print(f"{render(findings)}\n\n{verdict(findings)}")
    return 0 if ready(findings) else 1


COMMAND = Command(
    "doctor",
    "Say what this machine lacks to switch and to measure policies, and how to fix it.",
    arguments,
    run,
)
