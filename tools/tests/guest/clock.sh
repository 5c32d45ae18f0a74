# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # the scripts that source this use the variables
# How guest tests wait, and their clock, for deadlines. Its seconds are as long as an emulated guest
# needs for a second's work, with an idle host: a busy one, which leaves the guest little of its
# CPUs, makes them longer, up to some five real ones: what hangs has to end some time. On a fast
# machine they are real ones.

# Nobody writes into it.
exec {nothing}<> <(:)

# pause SECONDS: without a process, which takes long to start on a busy machine; so do these
# that a test calls again and again until something has happened.
pause() { read -rt "$1" -u "$nothing" || true; }

# gone PID: has the child ended? A shell that is busy with its own commands may leave it a zombie
# for minutes.
gone() {
	local stat=''

	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
	[[ ${stat##*) } == Z* ]]
}

# log_since MARK: what the kernel's log has from the last line with it on. All of it is read: who
# stops reading ends a pipe's writer, and a script that has pipefail.
log_since() {
	dmesg | awk -v mark="$1" '
		index($0, mark) { n = 0 }
		{ line[n++] = $0 }
		END { for (i = 0; i < n; i++) print line[i] }'
}

# Sets clock. For a script that runs by itself it is the real one.
read_clock() {
	clock=$SECONDS
	[[ ${VMP_TEST_WORK:-} ]] || return 0
	# The file is empty while it is written.
	until read -r clock <"$VMP_TEST_WORK/clock"; do :; done
}

# overdue SECOND: is that later than the file "due" has? It is empty while it is written.
overdue() {
	local due=''

	{ read -r due <"$VMP_TEST_WORK/due"; } 2>/dev/null || true
	[[ $due ]] && (($1 > due))
}

# The second has a fixed piece of work, which is a twentieth of it. Says each minute that it goes,
# until what runs the tests is overdue: then it says where that hangs. Who hears nothing more ends
# the guest.
run_clock() {
	local seconds i began took idle

	# Neither the tests' load nor their OOM kills are to stop it.
	renice -n -20 "$BASHPID" >/dev/null
	echo -1000 >"/proc/$BASHPID/oom_score_adj"
	for ((seconds = 1; ; seconds++)); do
		echo "$seconds" >"$VMP_TEST_WORK/clock"
		if ! ((seconds % 60)); then
			! overdue "$seconds" || break
			echo "... $seconds s"
		fi
		began=${EPOCHREALTIME/./}
		for ((i = 0; i < 2000; i++)); do :; done
		took=$((${EPOCHREALTIME/./} - began))
		idle=$((took > 50000 ? took * 19 : 1000000 - took))
		idle=$((idle < 4000000 ? idle : 4000000))
		printf -v idle "%d.%06d" $((idle / 1000000)) $((idle % 1000000))
		pause "$idle"
	done
	echo "# it hangs before its test, or after it:"
	in_session 0 | sed 's/^/# /'
}
