# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# The settings that a guest test may change: kept when it begins, and put back when it has ended.

setting_places=(
	/sys/kernel/debug/vmscan_policy
	/sys/kernel/mm/lru_gen
	/sys/kernel/mm/transparent_hugepage
	/proc/sys/vm
)
# The points' policies make the profile, and reading the other one starts something.
no_settings=(! -name profile ! -name stat_refresh)
declare -A kept # by file
guard=${setting_places[0]}/guard

# read_setting FILE: sets setting to what to write for what it has: of choices those in brackets.
read_setting() {
	local word chosen=''

	setting=gone
	[[ -e $1 ]] || return 0
	IFS='' read -rd '' setting <"$1" || true
	setting=${setting%$'\n'}
	if [[ $setting == *[[:alpha:]]*[[:space:]]* || $setting == '['* ]]; then
		for word in $setting; do
			[[ $word != '['*']' ]] || chosen+=,${word:1:-1}
		done
		setting=${chosen:1}
		setting=${setting:-none}
	fi
}

keep_settings() {
	local file setting

	kept=()
	while read -r file; do
		read_setting "$file"
		kept["$file"]=$setting
	done < <(find "${setting_places[@]}" -type f -perm -u+rw "${no_settings[@]}")
}

# Puts back what differs; says what can't be, and fails. Twice, as a file may be refused, or change,
# while another is not as it was.
restore_settings() {
	local file setting failed=0

	for failed in 0 0; do
		for file in "${!kept[@]}"; do
			read_setting "$file"
			[[ $setting != "${kept[$file]}" ]] || continue
			[[ ! -e $file ]] || echo "${kept[$file]}" 2>/dev/null >"$file" || true
			read_setting "$file"
			[[ $setting == "${kept[$file]}" ]] || failed="$file was ${kept[$file]}, and now is $setting"
		done
	done
	[[ $failed == 0 ]] || echo "$failed"
	# A guard that has tripped in a test has no reason to be in the next one.
	if [[ -e $guard/clear ]]; then
		[[ $(<"$guard/reason") == none ]] || cat "$guard/reason"
		echo 1 >"$guard/clear"
	fi
	[[ $failed == 0 ]]
}
