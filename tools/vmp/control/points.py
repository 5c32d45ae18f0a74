# SPDX-License-Identifier: GPL-2.0
"""What is known of the points, their policies and parameters, from points.toml."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from vmp.common import read_data


@dataclass(frozen=True)
class Parameter:
    """A parameter: the values that it takes and its default, as `set` takes it."""

    values: str
    default: str
    does: str


@dataclass(frozen=True)
class Policy:
    """A policy, and what was measured of it; `sources` are files below docs/."""

    does: str
    more: str = ""
    costs: tuple[str, ...] = ()
    helps: tuple[str, ...] = ()
    not_shown: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class Point:
    """A point, with its policies and parameters by name."""

    decides: str
    lru: str
    policies: dict[str, Policy]
    parameters: dict[str, Parameter] = field(default_factory=dict)


def make_point(table: dict[str, Any]) -> Point:
    """Return the point that a table of the file describes."""
    policies = {name: Policy(**text) for name, text in table.pop("policies").items()}
    numbers = {name: Parameter(**text) for name, text in table.pop("parameters", {}).items()}
    return Point(policies=policies, parameters=numbers, **table)


@cache
def known_points() -> dict[str, Point]:
    """Return the points that are known, by name; a loaded module may have fewer, or others."""
    return {name: make_point(table) for name, table in read_data(__file__)["points"].items()}


@cache
def known_parameters() -> dict[str, Parameter]:
    """Return the parameters of all points by the names that `set` takes."""
    own = read_data(__file__)["parameters"]
    found = {name: Parameter(**table) for name, table in own.items()}
    for point, known in known_points().items():
        found |= {f"{point}.{name}": parameter for name, parameter in known.parameters.items()}
    return found
