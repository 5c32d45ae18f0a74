# SPDX-License-Identifier: GPL-2.0
"""Showing what there is, what it does and what it is set to; and setting all back."""

import argparse
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from textwrap import fill
from typing import Any

from vmp.common import Command, Failure, Parser, Usage
from vmp.control.cgroups import (
    MACHINE,
    Cgroup,
    all_values,
    chosen,
    differing,
    parent_of,
    request,
    shown,
    those_of,
    with_settings,
)
from vmp.control.debugfs import (
    NONE,
    PROFILE,
    TRACE,
    Assignment,
    Control,
    locate,
    parse_choices,
    value_of,
)
from vmp.control.plugins import Plugin, plugins
from vmp.control.points import Parameter, Policy, known_parameters, known_points

WIDTH = 100  # columns of text, at most
NORMAL = "\x1b[m"  # of a terminal's colors
MEASURED = {"Costs": "costs", "Helps": "helps", "Not shown": "not_shown"}


def status_arguments(parser: Parser) -> None:
    """Take the form."""
    parser.add_argument("--json", action="store_true", help="as one JSON object")


def value(control: Control, name: str) -> int | str:
    """Return a setting: a number as such, another one in the form that `set` takes."""
    return typed(value_of(control.text(name)))


def typed(text: str) -> int | str:
    """Return a number as such."""
    return int(text) if text.isdecimal() else text


def as_object(control: Control) -> dict[str, Any]:
    """Return the settings of all points together, and each point."""
    points = {}
    for point in control.points():
        points[point] = {
            "policy": value(control, point),
            "policies": parse_choices(control.text(point))[1],
            "in_effect": not control.idle(point),
            "parameters": {
                name: value(control, f"{point}.{name}") for name in control.parameters(point)
            },
        }
    own = {name: value(control, name) for name in control.names() if is_own(control, name)}
    guard = {name.partition(".")[2]: value(control, name) for name in control.guard()}
    return own | {"guard": guard | {"reason": control.tripped()}, "points": points}


def red(text: str) -> str:
    """Return a text in red where a terminal shows it."""
    return f"\x1b[31m{text}{NORMAL}" if sys.stdout.isatty() else text


def is_own(control: Control, name: str) -> bool:
    """Tell if a name concerns all points."""
    return "." not in name and name not in control.points()


def cgroups_object(machine: Control) -> dict[str, Any]:
    """Return of each cgroup with settings what it would inherit, what is set, and what differs."""
    values = all_values(machine)
    found = {}
    for path, own in list(values.items())[1:]:
        parent = parent_of(path, values)
        differs = [name for name, text in own.items() if text != values[parent].get(name)]
        numbers = {name: typed(text) for name, text in own.items()}
        found[path] = {"inherits": parent, "settings": numbers, "differs": differs}
    return found


def tree(machine: Control) -> Iterator[str]:
    """Return a line for each cgroup with settings: its path, and what it would not inherit."""
    values = all_values(machine)
    depth = {MACHINE: 0}
    for path, own in list(values.items())[1:]:
        parent = parent_of(path, values)
        depth[path] = depth[parent] + 1
        below = path if parent == MACHINE else path.removeprefix(parent)
        found = ", ".join(map(str, differing(own, values[parent]))) or "as it would inherit"
        name = "  " * depth[path] + shown(below)
        yield f"{name:<42} {found}"


def status_object(machine: Control, cgroup: Cgroup | None) -> dict[str, Any]:
    """Return what status says of the machine, or of a cgroup."""
    if not cgroup:
        return machine.abi() | as_object(machine) | {"cgroups": cgroups_object(machine)}
    path, control = cgroup.holding()
    return {"cgroup": cgroup.path, "settings_of": path, **as_object(control)}


def status_lines(machine: Control, cgroup: Cgroup | None) -> Iterator[str]:
    """Return the same as text."""
    control = cgroup.holding()[1] if cgroup else machine
    if cgroup:
        yield cgroup.whose()
    for name, text in ({} if cgroup else machine.abi()).items():
        yield f"{name:<24} {text}"
    for name in control.names():
        yield f"{'  ' * name.count('.') + name:<24} {control.text(name)}{control.idle(name)}"
    if reason := control.tripped():
        yield red(f"the guard has tripped: {reason}")
    if lines := [] if cgroup else list(tree(machine)):
        yield "cgroups with settings of their own, and what they would not inherit:"
        yield from lines


def status(args: argparse.Namespace) -> int:
    """Print the versions, the profile and every point with its policies and parameters.

    For the machine the cgroups with settings follow; of a cgroup, whose settings hold comes first.
    """
    if args.json:
        print(json.dumps(status_object(*chosen(args)), indent=2))
    else:
        print(*status_lines(*chosen(args)), sep="\n")
    return 0


def settings(control: Control) -> Iterator[str]:
    """Return what `set` takes: names with each of their values, a number's with none."""
    for name in control.names():
        current, choices = parse_choices(control.text(name))
        named = current or len(choices) > 1
        yield from (f"{name}={choice}" for choice in (choices if named else [""]))


def listed(control: Control) -> Iterator[str]:
    """Return a line for each point, policy and parameter; * marks the policies that are set."""
    there = others()
    for point in control.points():
        known = known_points().get(point)
        yield line(" ", point, known.decides if known else "")
        current, policies = parse_choices(control.text(point))
        for name in policies:
            policy = known.policies.get(name) if known else None
            other = there.get((point, name))
            mark = "*" if name == current else " "
            does = policy.does if policy else ""
            does = f"{other.about} By {other.offered_by}." if other else does
            yield line(mark, f"  {point}={name}", does)
        for name in control.parameters(point):
            yield parameter_line(control, f"{point}.{name}", "  ")
    for name in control.parameters():
        yield parameter_line(control, name, "")
    for name in control.guard():
        yield parameter_line(control, name, "")
    if TRACE in control.names():
        yield line(" ", f"{TRACE}={value(control, TRACE)}", "the trace events of all points")


def parameter_line(control: Control, name: str, indent: str) -> str:
    """Return the line of a parameter and its value."""
    known = known_parameters().get(name)
    now = value(control, name)
    return line(" ", f"{indent}{name}={now}", known.does if known else "")


def line(mark: str, name: str, text: str) -> str:
    """Return a line of the list."""
    return f"{mark} {name:<22}  {text}".rstrip()


def list_arguments(parser: Parser) -> None:
    """Take the form."""
    parser.add_argument(
        "--settings", action="store_true", help="only what `set` takes, for a shell to complete"
    )


def show_list(args: argparse.Namespace) -> int:
    """Print what there is, one line each."""
    machine, cgroup = chosen(args)
    path, control = cgroup.holding() if cgroup else (MACHINE, machine)
    if cgroup and path != cgroup.path and not args.settings:
        print(cgroup.whose())
    print(*(settings(control) if args.settings else listed(control)), sep="\n")
    return 0


def info_arguments(parser: Parser) -> None:
    """Take a name."""
    taken = parser.add_argument(
        "name", metavar="POINT[=POLICY]", help="a point, or one of its policies"
    )
    taken.complete = {"bash": "_vmscanctl_known"}  # type: ignore[attr-defined]


def present() -> dict[str, str]:
    """Return what this machine has: names and texts; nothing where they can't be had."""
    try:
        control = Control(locate())
    except Failure:
        return {}
    return {name: control.text(name) for name in control.names()}


def others() -> dict[tuple[str, str], Plugin]:
    """Return the policies that others offer; none where they can't be had."""
    try:
        return plugins(locate())
    except Failure:
        return {}


def paragraph(head: str, text: str, width: int, item: str = "") -> str:
    """Return a text beside a head of up to 11 characters, as an item of a list if it is one."""
    below = " " * (14 + len(item))
    return fill(text, width, initial_indent=f"  {head:<12}{item}", subsequent_indent=below)


def policy_page(name: str, policy: Policy, state: str, width: int) -> Iterator[str]:
    """Return what is known of a policy."""
    yield ""
    yield f"{name}{state}"
    yield paragraph("Does", f"{policy.does} {policy.more}", width)
    for head, key in MEASURED.items():
        for number, text in enumerate(getattr(policy, key)):
            yield paragraph("" if number else head, text, width, "- ")
    if policy.sources:
        yield paragraph("Read more", ", ".join(f"docs/{name}" for name in policy.sources), width)


def plugin_page(name: str, plugin: Plugin, state: str, width: int) -> Iterator[str]:
    """Return what a policy that others offer says of itself, and what it has done."""
    yield ""
    yield f"{name}{state}, of {plugin.offered_by}"
    yield paragraph("Does", plugin.about, width)
    yield paragraph("Has done", plugin.done, width)


def page(point: str, chosen: str, now: dict[str, str], width: int) -> Iterator[str]:
    """Return what is known of a point, with one of its policies or (chosen: '') all of them.

    `now` has what is set, as present() returns it, or nothing.
    """
    known = known_points()[point]
    yield fill(f"{point} decides {known.decides}. It is for {known.lru}.", width)
    if now and point not in now:
        yield "This kernel has no such point: its stock does by itself what the policies are for."
    current, offered = parse_choices(now.get(point, ""))
    for name, policy in known.policies.items():
        if chosen in ("", name):
            lacks = ", not on this kernel" if now and name not in offered else ""
            state = ", in force" if name == current else lacks
            yield from policy_page(f"{point}={name}", policy, state, width)
    for (place, name), plugin in others().items():
        if place == point and chosen in ("", name):
            state = ", in force" if name == current else ""
            yield from plugin_page(f"{point}={name}", plugin, state, width)
    if known.parameters:
        yield "\nParameters"
    for name, parameter in known.parameters.items():
        text = f"{parameter.does}: {parameter.values}; default {parameter.default}"
        set_to = parse_choices(now.get(f"{point}.{name}", ""))
        here = set_to[0] or (set_to[1] if len(set_to[1]) == 1 else [NONE])[0]
        yield paragraph(name, text + (f", now {here}" if f"{point}.{name}" in now else ""), width)
    yield "\n" + fill(
        "Figures are of an emulated guest, stock -> policy, with 95 % intervals of the change: "
        "counts, not speed.",
        width,
    )


def info(args: argparse.Namespace) -> int:
    """Print what a point or a policy does, costs and was shown to be good for."""
    points = known_points()
    point, equals, policy = (text.strip() for text in args.name.partition("="))
    if point not in points:
        raise Usage(f"there is no point '{point}': allowed are {', '.join(points)}")
    names = [*points[point].policies, *(name for place, name in others() if place == point)]
    if equals and policy not in names:
        allowed = ", ".join(names)
        raise Usage(f"{point} has no policy '{policy}': allowed are {allowed}")
    width = min(shutil.get_terminal_size().columns, WIDTH)
    print(*page(point, policy, present(), width), sep="\n")
    return 0


def reset_arguments(parser: Parser) -> None:
    """Take if cgroups are meant, too."""
    parser.add_argument("--all", action="store_true", help="remove the settings of cgroups, too")


def reset_cgroup(cgroup: Cgroup) -> None:
    """Remove the settings that a cgroup has of its own; say what holds for it now."""
    if cgroup.holding()[0] == cgroup.path:
        cgroup.remove()
        print(f"removed: {those_of(cgroup.holding()[0])} hold for {shown(cgroup.path)} now")
    else:
        print(f"removed: nothing. {cgroup.whose()}")


def default_of(control: Control, name: str, parameter: Parameter) -> str:
    """Return a parameter's default: of several names those that this kernel has."""
    words = parameter.default.split("+")
    there = parse_choices(control.text(name))[1]
    return "+".join(word for word in words if word in there) if len(words) > 1 else words[0]


def reset(args: argparse.Namespace) -> int:
    """Set all policies to stock and all parameters to their defaults; leave trace events.

    Of a cgroup, remove its settings.
    """
    control, cgroup = chosen(args)
    if cgroup and args.all:
        raise Usage("--all is for the machine: leave out --cgroup")
    if cgroup:
        reset_cgroup(cgroup)
        return 0
    known = known_parameters()
    own = [name for name in control.names() if name != TRACE and name not in control.points()]
    control.clear()
    first = sorted((name for name in own if name in known), key=lambda name: name != PROFILE)
    wanted = [Assignment(name, default_of(control, name, known[name])) for name in first]
    changed = [item for item in wanted if control.get(item.name) != item.value]
    control.check(changed)
    control.write(changed)
    print(f"set: {', '.join(map(str, changed)) or 'nothing, all is as it was at first'}")
    reset_cgroups(control, args.all)
    left = [name for name in own if name not in known]
    if left:
        print(f"vmscanctl: not reset, for their defaults are not known: {', '.join(left)}",
              file=sys.stderr)  # fmt: skip
    return 0


def reset_cgroups(machine: Control, remove: bool) -> None:
    """Remove the settings of all cgroups, or say how many keep them."""
    found = with_settings(machine)
    number = f"{len(found):,} cgroup{'' if len(found) == 1 else 's'}"
    if not found:
        return
    if not remove:
        print(f"{number} with settings of their own: left as they are, reset --all removes these")
        return
    for control in found.values():
        with suppress(FileNotFoundError):  # its cgroup is gone, and that went with it
            request(machine, "remove", int(control.root.name))
    print(f"removed: the settings of {number}")


def no_arguments(parser: Parser) -> None:
    """Take none."""


def clear(args: argparse.Namespace) -> int:
    """Arm a guard that has tripped, and say why it had."""
    machine, cgroup = chosen(args)
    control = cgroup.own() if cgroup else machine
    reason = control.clear()
    print(f"cleared: {reason}" if reason else "cleared: nothing, the guard has not tripped")
    return 0


CLEAR = Command(
    "clear", "Arm a guard that has tripped again, so that policies can be set.",
    no_arguments, clear,
)  # fmt: skip
COMMANDS = (
    Command("list", "Show the points, policies and parameters that are there, one line each.",
            list_arguments, show_list),
    Command("info", "Show what a point or policy does, costs and was shown to help with.",
            info_arguments, info),
    Command("status", "Show versions, and each point's policies and parameters.",
            status_arguments, status),
)  # fmt: skip
RESET = Command(
    "reset",
    "Set all policies to stock and all parameters to their defaults.",
    reset_arguments,
    reset,
)
