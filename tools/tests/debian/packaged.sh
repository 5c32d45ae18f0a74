#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# On a Debian that has the hooked kernel and our packages: settings at boot, KUnit, an upgrade
# of the module that is loaded, and removal.
set -euo pipefail
checkout=/root/vmscan-policy
left="/usr/src/vmscan_policy* /var/lib/dkms/vmscan_policy* /etc/vmscan-policy* /usr/share/*/vmscan-policy*
	/etc/systemd/system/*/vmscan-policy* /usr/lib/systemd/system/vmscan-policy* /lib/modules/*/updates/dkms/vmscan_policy*"

# shellcheck source=load.sh
. "$checkout/tools/tests/debian/load.sh"

fail() {
	echo "$*"
	systemctl --no-pager status vmscan-policy || true
	exit 1
}

set_at_boot() { [[ $(systemctl show -P ActiveState vmscan-policy) == @(active|failed) ]]; }
is_set() { [[ $(</sys/kernel/debug/vmscan_policy/"$1"/policy) == *"[$2]"* ]]; }

# timed WHAT COMMAND...
timed() {
	local started=$SECONDS

	"${@:2}"
	echo "took $((SECONDS - started)) s: $1"
}

# Set by the unit: the wrong line is named, and the others count.
for ((try = 0; try < 120; try++)); do
	! set_at_boot || break
	sleep 1
done
set_at_boot || fail "the settings are not applied 120 s after the boot"
[[ $(modinfo -F filename vmscan_policy) == "/lib/modules/$(uname -r)/updates/dkms/"* ]] || fail "the module is elsewhere"
is_set flush batch || fail "flush is not as in vmscan-policy.conf"
is_set scan budget || fail "scan is not as in vmscan-policy.conf"
journalctl -b -u vmscan-policy | grep -q "line 2: .*flsh" || fail "the wrong line is not named"
[[ $(systemctl is-active multi-user.target) == active ]] || fail "a wrong line has stopped the boot"

# A service's own settings, by the drop-in: when it starts.
unit=/etc/systemd/system/vmp-service.service
printf '[Service]\nExecStart=/bin/sleep infinity\n' >$unit
install -D -t $unit.d /usr/share/doc/vmscan-policy-tools/service-settings.conf
cp /etc/vmscan-policy.conf conf
printf '[system.slice/vmp-service.service]\nflush=stock\n' >>/etc/vmscan-policy.conf
systemctl daemon-reload
systemctl start vmp-service
own=cgroups/$(stat -c %i /sys/fs/cgroup/system.slice/vmp-service.service)
is_set "$own/flush" stock || fail "the service has no settings of its own"
is_set "$own/scan" budget || fail "the service's settings do not begin with the machine's"
is_set flush batch || fail "a service's settings have changed the machine's"
systemctl stop vmp-service
mv conf /etc/vmscan-policy.conf
rm -r $unit $unit.d
systemctl daemon-reload

modprobe kunit enable=1
insmod "$checkout/vmscan_policy_kunit.ko"
rmmod vmscan_policy_kunit
dmesg | grep -E '# (Totals|vmscan)|not ok' | tail -20
passed=$(dmesg | grep -cE '^\[[^]]*\] +ok [0-9]+ vmscan' || true)
((passed > 0)) || fail "no suite of KUnit has passed"
! dmesg | grep -E '^\[[^]]*\] +not ok' || fail "KUnit fails"

# An experiment, by the packages alone.
timed "one run of an experiment" vmscan-bench run --here --run lazyfree arm64-folios >page
grep "^| time in try_to_unmap() " page || fail "the experiment has no figure: $(<page)"

# The next version takes the loaded one's place, and has the settings of the file again.
sed -i /flsh/d /etc/vmscan-policy.conf
version=$(dpkg-query -W -f '${Version}' vmscan-policy-dkms)
timed "upgrade with dkms" apt-get install -y /root/vmscan-policy-dkms_*+next_all.deb
now=$(dpkg-query -W -f '${Version}' vmscan-policy-dkms)
[[ $now != "$version" ]] || fail "the version is still $version"
[[ $(dkms status -m vmscan_policy) == "vmscan_policy/$now, "*installed ]] || fail "dkms has $(dkms status)"
[[ $(</sys/module/vmscan_policy/version) == "$now" ]] || fail "$(</sys/module/vmscan_policy/version) is loaded"
is_set flush batch || fail "the upgrade has lost the settings"
[[ $(systemctl is-active vmscan-policy) == active ]] || fail "the unit is not active"

# script NAME SAYS WORD...: run the package's script as dpkg would, but let dkms build nothing.
script() {
	local said

	said=$(PATH=$no_dkms:$PATH "/var/lib/dpkg/info/vmscan-policy-dkms.$1" "${@:3}" 2>&1) ||
		fail "the package's $1 fails: $said"
	[[ $said == *"vmscan-policy-dkms: $2"* ]] || fail "the package's $1 says: $said"
}

# What an upgrade and a removal may meet: they end, and say what is left to do.
no_dkms=$(mktemp -d)
ln -s /bin/true "$no_dkms/dkms"
exec {held}</sys/kernel/debug/vmscan_policy/flush/policy
script postinst "the module of before stays loaded" configure "$version"
script prerm "the module stays loaded" remove
exec {held}<&-
is_set flush batch || fail "a module that stays has lost its settings"
echo flsh=batch >>/etc/vmscan-policy.conf
script postinst "not all of vmscan-policy.conf could be set" configure "$version"
is_set flush batch || fail "a wrong line has kept the others from being set"
sed -i /flsh/d /etc/vmscan-policy.conf
echo "install vmscan_policy /bin/false" >/etc/modprobe.d/vmscan-policy-test.conf
script postinst "no module is loaded now" configure "$version"
rm /etc/modprobe.d/vmscan-policy-test.conf
systemctl restart vmscan-policy
is_set flush batch || fail "the unit has not loaded the module"

apt-get purge -y vmscan-policy-dkms vmscan-policy-tools
[[ ! -d /sys/module/vmscan_policy ]] || fail "the module is still loaded"
[[ $(systemctl is-active vmscan-policy) != active ]] || fail "the unit is still active"
# shellcheck disable=SC2086 # patterns
! ls -d $left 2>/dev/null || fail "that was left behind"
check_log
