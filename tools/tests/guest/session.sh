# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# A guest test as a session of processes, all of which end with it.

# in_session ID: its processes, and where in the kernel they are.
in_session() {
	local pid

	for pid in $(pgrep -s "$1"); do
		echo "$pid $(tr '\0' ' ' <"/proc/$pid/cmdline"):"
		head -n 8 "/proc/$pid/stack" || true # it may have ended
	done 2>/dev/null
}

# run_test LIMIT SCRIPT [ARGUMENT...]: returns its status; what it says is in "# " lines. When it
# takes longer it is ended, and so is what it leaves behind: that may have its output open for ever.
run_test() {
	local limit=$1 clock end said pid line part='' over='' status=0

	shift
	read_clock
	end=$((clock + limit))
	exec {said}< <(exec setsid bash "$@" </dev/null 2>&1)
	pid=$!
	while read_clock && ((clock < end)); do
		! gone "$pid" || over=1
		[[ ! $over ]] || pkill -KILL -s "$pid" || true
		if IFS='' read -rt 1 -u "$said" line; then
			echo "# $part$line"
			part=
			line=
		elif (($? <= 128)) || [[ $over ]]; then
			over=1
			break
		else
			part+=$line
			line=
		fi
	done
	[[ ! $part$line ]] || echo "# $part$line"
	if [[ ! $over ]]; then
		echo "# it takes longer than $limit s, and is ended:"
		in_session "$pid" | sed 's/^/# /'
		status=1
	fi
	pkill -KILL -s "$pid" || true
	exec {said}<&-
	((status)) || wait "$pid" || status=$?
	return "$status"
}
