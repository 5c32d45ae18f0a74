# SPDX-License-Identifier: GPL-2.0
# The pages of the commands, as pages of `vmscanctl COMMAND`.
s/^\.TH (AB|RECORD|REPORT|SHARK) /.TH VMSCANCTL-\1 /
s/^(ab|record|report|shark) \\-/vmscanctl-\1 \\-/
s/^\.BR (ab|record|report|shark) \(1\)/.BR vmscanctl-\1 (1)/
s/^\.B (ab|record|report|shark)$/.B vmscanctl \1/
