#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A new user's first hour on a stock Debian: what README says, one command after the other.
set -euo pipefail
# shellcheck source=load.sh
. vmscan-policy/tools/tests/debian/load.sh
mapfile -t commands <commands

booted=$(</proc/sys/kernel/random/boot_id)
[[ ! -e /usr/bin/gcc && ! -d /usr/src/linux-headers-$(uname -r) ]] || fail "this is no stock installation"
git -C vmscan-policy init -q
git -C vmscan-policy add -A
git -C vmscan-policy -c user.name=x -c user.email=x commit -q -m x
begin=$SECONDS
git clone -q vmscan-policy clone
apt-get update -q
cd clone
[[ ${#commands[@]} -eq 3 ]] || fail "README has other commands than this knows: ${commands[*]}"
for command in "${commands[@]}"; do
	if [[ $command == *" set "* ]]; then
		load_start
		measure "stock kernel's decisions"
		stock=$rate
	fi
	# The kernel waits for its tasks to leave what they are in, in an emulator for minutes; under
	# load livepatch.sh does it.
	[[ $command != *" uninstall" ]] || kill %1
	echo "# $command"
	started=$SECONDS
	bash -ec "$command"
	echo "took $((SECONDS - started)) s: $command"
	if [[ $command == *" set "* ]]; then
		echo "took $((SECONDS - begin)) s from git clone to this, 25 of them to measure"
		measure "$command"
		((rate * 5 <= stock)) || fail "that is not 80 % less than $stock"
	fi
done
[[ ! -d /sys/module/vmscan_policy ]] || fail "the module is still there"
[[ $(</proc/sys/kernel/random/boot_id) == "$booted" ]] || fail "there was a reboot"
check_log
cd ..
clone/tools/livepatch describe result
