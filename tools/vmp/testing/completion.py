# SPDX-License-Identifier: GPL-2.0
"""Making the completion of vmscanctl for bash from its parsers."""

import shtab
from vmp.common import REPO
from vmp.control.points import known_points
from vmp.vmscanctl import COMMANDS, make_parser

FILE = REPO / "tools" / "debian" / "bash-completion" / "vmscanctl"
HEAD = """\
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2004,SC2015,SC2086,SC2199,SC2219
# Made by: cd tools && python3 -m vmp.testing.completion
"""
# What depends on the module that is loaded is asked for. Of flush=b bash wants what may be behind
# the =, and of a cgroup what may be behind its last @, = or :.
OURS = r"""
_vmscanctl_words() {
  local before="" one
  [[ $2 == *=* && $COMP_WORDBREAKS == *=* ]] && before=${2%=*}=
  compgen -W "$1" -- "$2" | while read -r one; do echo "${one#"$before"}"; done
}
_vmscanctl_list() {
  local -a who=()
  [[ ${COMP_WORDS[1]} != --cgroup=* ]] || who=("${COMP_WORDS[1]}")
  [[ ${COMP_WORDS[1]} != --cgroup ]] || who=("${COMP_WORDS[@]:1:2}")
  "${COMP_WORDS[0]}" "${who[@]}" list --settings 2>/dev/null
}
_vmscanctl_settings() { _vmscanctl_words "$(_vmscanctl_list)" "$1"; }
_vmscanctl_profiles() { compgen -W "$(_vmscanctl_list | sed -n s/^profile=//p)" -- "$1"; }
_vmscanctl_cgroups() {
  local before=${1%"${1##*[@=:]}"} one
  find "$(findmnt -fnt cgroup2 -o TARGET)" -mindepth 1 -type d -printf '/%P\n' 2>/dev/null |
    while read -r one; do
      printf -v one %q "$one"
      [[ $1 == /* ]] || one=${one#/}
      [[ $one != "$1"* ]] || echo "${one#"$before"}"
    done
}
_vmscanctl_known() { _vmscanctl_words "KNOWN" "$1"; }
"""
# bash takes flush=b for three words. Behind a name that ends in = the value is still to come.
TAIL = """
_vmscanctl() {
  local -a COMP_WORDS
  local COMP_CWORD
  read -ra COMP_WORDS <<<"${COMP_LINE:0:COMP_POINT}"
  [[ ${COMP_LINE:COMP_POINT-1:1} != " " ]] || COMP_WORDS+=("")
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _shtab_vmscanctl
  [[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null || :
}
complete -o bashdefault -F _vmscanctl vmscanctl
"""


def script() -> str:
    """Return the script, with the commands that an installed vmscanctl has."""
    known = " ".join(
        name
        for point, what in known_points().items()
        for name in (point, *(f"{point}={policy}" for policy in what.policies))
    )
    ours = OURS.replace("KNOWN", known)
    made: str = shtab.complete(make_parser(COMMANDS.values()), shell="bash", preamble=ours)
    lines = [line.rstrip() for line in made.splitlines()]
    return HEAD + "\n".join(lines[lines.index("") :]) + "\n" + TAIL


if __name__ == "__main__":
    FILE.write_text(script())
