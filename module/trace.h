/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the policies decide and how long they take, as trace events.
 *
 * The names of events and fields are an interface. Every event begins with the
 * policy in force at its point, as an index into what debugfs lists there; the number
 * of the set of policies in force; the cgroup that pages are taken from, for
 * throttle_* that of the task, 0 if there is none; the node, -1 if there is none; and the
 * cgroup whose settings hold there, 0 if these are the machine's.
 * The begin and the end of something share an id. It is 0 in an end whose begin was
 * not traced.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM vmscan_policy

#if !defined(_VMP_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _VMP_TRACE_H

#include <linux/tracepoint.h>

#include "internal.h"

#define WHERE_FIELDS \
	__field(u32, policy) \
	__field(u32, set) \
	__field(u64, cgroup) \
	__field(s32, nid) \
	__field(u64, settings)

#define WHERE_ASSIGN(where) \
	do { \
		__entry->policy = (where)->policy; \
		__entry->set = (where)->set; \
		__entry->cgroup = (where)->cgroup; \
		__entry->nid = (where)->nid; \
		__entry->settings = (where)->settings; \
	} while (0)

#define WHERE_FORMAT "policy=%s set=%u cgroup=%llu nid=%d settings=%llu "
#define WHERE_ARGS(names) \
	__print_symbolic(__entry->policy, names), __entry->set, \
	__entry->cgroup, __entry->nid, __entry->settings

/* In the order of the points' tables. */
#define FLUSH_POLICIES { 0, "stock" }, { 1, "batch" }
#define SCAN_POLICIES { 0, "stock" }, { 1, "budget" }, { 2, "v6.12" }
#define AGING_POLICIES { 0, "stop" }, { 1, "continue" }
#define WRITEBACK_POLICIES { 0, "stock" }, { 1, "feedback" }
#define THROTTLE_POLICIES { 0, "stock" }, { 1, "memcg" }, { 2, "all" }
#define RMAP_POLICIES { 0, "stock" }, { 1, "batch" }

/* A point, shifted by 8, and its policy. */
#define POINT_POLICIES \
	{ 0x000, "stock" }, { 0x001, "batch" }, \
	{ 0x100, "stock" }, { 0x101, "budget" }, { 0x102, "v6.12" }, \
	{ 0x200, "stop" }, { 0x201, "continue" }, \
	{ 0x300, "stock" }, { 0x301, "feedback" }, \
	{ 0x400, "stock" }, { 0x401, "memcg" }, { 0x402, "all" }, \
	{ 0x500, "stock" }, { 0x501, "batch" }, \
	{ 0x600, "stock" }, { 0x601, "batch" }

#define POINTS \
	{ VMP_POINT_FLUSH, "flush" }, \
	{ VMP_POINT_SCAN, "scan" }, \
	{ VMP_POINT_AGING, "aging" }, \
	{ VMP_POINT_WRITEBACK, "writeback" }, \
	{ VMP_POINT_THROTTLE, "throttle" }, \
	{ VMP_POINT_UNMAP, "unmap" }, \
	{ VMP_POINT_YOUNG, "young" }

#define CAUSES \
	{ VMP_CAUSE_OOM, "oom" }, \
	{ VMP_CAUSE_STALL, "stall" }, \
	{ VMP_CAUSE_WAIT, "wait" }, \
	{ VMP_CAUSE_CALLBACK, "callback" }, \
	{ VMP_CAUSE_CLAMPS, "clamps" }

TRACE_DEFINE_ENUM(VMP_CAUSE_OOM);
TRACE_DEFINE_ENUM(VMP_CAUSE_STALL);
TRACE_DEFINE_ENUM(VMP_CAUSE_WAIT);
TRACE_DEFINE_ENUM(VMP_CAUSE_CALLBACK);
TRACE_DEFINE_ENUM(VMP_CAUSE_CLAMPS);
TRACE_DEFINE_ENUM(VMP_POINT_FLUSH);
TRACE_DEFINE_ENUM(VMP_POINT_SCAN);
TRACE_DEFINE_ENUM(VMP_POINT_AGING);
TRACE_DEFINE_ENUM(VMP_POINT_WRITEBACK);
TRACE_DEFINE_ENUM(VMP_POINT_THROTTLE);
TRACE_DEFINE_ENUM(VMP_POINT_UNMAP);
TRACE_DEFINE_ENUM(VMP_POINT_YOUNG);
TRACE_DEFINE_ENUM(VMP_NR_POINTS);
TRACE_DEFINE_ENUM(VMP_END_BUDGET);
TRACE_DEFINE_ENUM(VMP_END_NOTHING);
TRACE_DEFINE_ENUM(VMP_END_BELOW_MIN);
TRACE_DEFINE_ENUM(VMP_END_ENOUGH);
TRACE_DEFINE_ENUM(VMP_END_AGED);
TRACE_DEFINE_ENUM(VMSCAN_LAZYFREE);
TRACE_DEFINE_ENUM(VMSCAN_ANON);
TRACE_DEFINE_ENUM(VMSCAN_FILE);
TRACE_DEFINE_ENUM(VMSCAN_THROTTLE_WRITEBACK);
TRACE_DEFINE_ENUM(VMSCAN_THROTTLE_ISOLATED);
TRACE_DEFINE_ENUM(VMSCAN_THROTTLE_NOPROGRESS);
TRACE_DEFINE_ENUM(VMSCAN_THROTTLE_CONGESTED);

#define END_REASONS \
	{ VMP_END_BUDGET, "budget" }, \
	{ VMP_END_NOTHING, "nothing" }, \
	{ VMP_END_BELOW_MIN, "below_min" }, \
	{ VMP_END_ENOUGH, "enough" }, \
	{ VMP_END_AGED, "aged" }

#define FOLIO_KINDS \
	{ VMSCAN_ANON, "anon" }, \
	{ VMSCAN_LAZYFREE, "lazyfree" }, \
	{ VMSCAN_FILE, "file" }

#define THROTTLE_REASONS \
	{ VMSCAN_THROTTLE_WRITEBACK, "writeback" }, \
	{ VMSCAN_THROTTLE_ISOLATED, "isolated" }, \
	{ VMSCAN_THROTTLE_NOPROGRESS, "noprogress" }, \
	{ VMSCAN_THROTTLE_CONGESTED, "congested" }

/* A batch of deferred folios is about to be drained; in base pages, too. */
TRACE_EVENT(flush_batch_begin,
	TP_PROTO(const struct vmp_where *where, u64 id, u32 folios, u32 pages),
	TP_ARGS(where, id, folios, pages),

	TP_STRUCT__entry(
		WHERE_FIELDS
		__field(u64, id)
		__field(u32, folios)
		__field(u32, pages)
	),

	TP_fast_assign(
		WHERE_ASSIGN(where);
		__entry->id = id;
		__entry->folios = folios;
		__entry->pages = pages;
	),

	TP_printk(WHERE_FORMAT
		  "id=%llu folios=%u pages=%u",
		  WHERE_ARGS(FLUSH_POLICIES),
		  __entry->id, __entry->folios, __entry->pages)
);

/* It is: folios found mapped again or gone; @flushed: a TLB flush. */
TRACE_EVENT(flush_batch_end,
	TP_PROTO(const struct vmp_where *where, u64 id, const struct vmscan_group *group),
	TP_ARGS(where, id, group),

	TP_STRUCT__entry(
		WHERE_FIELDS
		__field(u64, id)
		__field(u32, folios)
		__field(u32, pages)
		__field(u32, mapped)
		__field(u32, gone)
		__field(u32, flushed)
	),

	TP_fast_assign(
		WHERE_ASSIGN(where);
		__entry->id = id;
		__entry->folios = group->nr_folios;
		__entry->pages = group->nr_pages;
		__entry->mapped = group->nr_mapped;
		__entry->gone = group->nr_gone;
		__entry->flushed = group->flushed;
	),

	TP_printk(WHERE_FORMAT
		  "id=%llu folios=%u pages=%u mapped=%u gone=%u flushed=%u",
		  WHERE_ARGS(FLUSH_POLICIES),
		  __entry->id, __entry->folios, __entry->pages,
		  __entry->mapped, __entry->gone, __entry->flushed)
);

/* A pass over an lruvec may scan @budget pages. */
TRACE_EVENT(scan_begin,
	TP_PROTO(const struct vmp_where *where, u64 id, u64 budget,
		 s32 priority),
	TP_ARGS(where, id, budget, priority),

	TP_STRUCT__entry(
		WHERE_FIELDS
		__field(u64, id)
		__field(u64, budget)
		__field(s32, priority)
	),

	TP_fast_assign(
		WHERE_ASSIGN(where);
		__entry->id = id;
		__entry->budget = budget;
		__entry->priority = priority;
	),

	TP_printk(WHERE_FORMAT
		  "id=%llu budget=%llu priority=%d",
		  WHERE_ARGS(SCAN_POLICIES),
		  __entry->id, __entry->budget, __entry->priority)
);

/* It has scanned and reclaimed so many, and ended for a reason. */
TRACE_EVENT(scan_end,
	TP_PROTO(const struct vmp_where *where, u64 id, const struct vmscan_pass *pass,
		 u64 budget, u32 reason),
	TP_ARGS(where, id, pass, budget, reason),

	TP_STRUCT__entry(
		WHERE_FIELDS
		__field(u64, id)
		__field(u64, budget)
		__field(u64, scanned)
		__field(u64, reclaimed)
		__field(s32, priority)
		__field(u32, reason)
	),

	TP_fast_assign(
		WHERE_ASSIGN(where);
		__entry->id = id;
		__entry->budget = budget;
		__entry->scanned = pass->nr_moved;
		__entry->reclaimed = pass->nr_reclaimed;
		__entry->priority = pass->priority;
		__entry->reason = reason;
	),

	TP_printk(WHERE_FORMAT
		  "id=%llu budget=%llu scanned=%llu reclaimed=%llu priority=%d reason=%s",
		  WHERE_ARGS(SCAN_POLICIES),
		  __entry->id, __entry->budget, __entry->scanned,
		  __entry->reclaimed, __entry->priority,
		  __print_symbolic(__entry->reason, END_REASONS))
);

/* A generation is about to be made after the youngest, @before. */
TRACE_EVENT(aging_begin,
	TP_PROTO(const struct vmp_where *where, u64 id, u64 before),
	TP_ARGS(where, id, before),

	TP_STRUCT__entry(
		WHERE_FIELDS
		__field(u64, id)
		__field(u64, before)
	),

	TP_fast_assign(
		WHERE_ASSIGN(where);
		__entry->id = id;
		__entry->before = before;
	),

	TP_printk(WHERE_FORMAT
		  "id=%llu before=%llu",
		  WHERE_ARGS(AGING_POLICIES),
		  __entry->id, __entry->before)
);

/* @after is the youngest; the same as @before if another task was at it. */
TRACE_EVENT(aging_end,
	TP_PROTO(const struct vmp_where *where, u64 id, u64 before, u64 after),
	TP_ARGS(where, id, before, after),

	TP_STRUCT__entry(
		WHERE_FIELDS
		__field(u64, id)
		__field(u64, before)
		__field(u64, after)
	),

	TP_fast_assign(
		WHERE_ASSIGN(where);
		__entry->id = id;
		__entry->before = before;
		__entry->after = after;
	),

	TP_printk(WHERE_FORMAT
		  "id=%llu before=%llu after=%llu",
		  WHERE_ARGS(AGING_POLICIES),
		  __entry->id, __entry->before, __entry->after)
);

/* What an eviction batch met, in pages, and whether flushers were woken for it. */
TRACE_EVENT(writeback_feedback,
	TP_PROTO(const struct vmp_where *where, const struct vmscan_evicted *evicted,
		 u32 flags),
	TP_ARGS(where, evicted, flags),

	TP_STRUCT__entry(
		WHERE_FIELDS
		__field(u32, taken)
		__field(u32, dirty)
		__field(u32, unqueued)
		__field(u32, congested)
		__field(u32, writeback)
		__field(u32, immediate)
		__field(u32, woken)
		__field(u32, waited)
	),

	TP_fast_assign(
		WHERE_ASSIGN(where);
		__entry->taken = evicted->nr_taken;
		__entry->dirty = evicted->stat->nr_dirty;
		__entry->unqueued = evicted->stat->nr_unqueued_dirty;
		__entry->congested = evicted->stat->nr_congested;
		__entry->writeback = evicted->stat->nr_writeback;
		__entry->immediate = evicted->stat->nr_immediate;
		__entry->woken = !!(flags & VMSCAN_WAKE_FLUSHERS);
		__entry->waited = !!(flags & VMSCAN_WAIT_WRITEBACK);
	),

	TP_printk(WHERE_FORMAT
		  "taken=%u dirty=%u unqueued=%u congested=%u writeback=%u immediate=%u woken=%u waited=%u",
		  WHERE_ARGS(WRITEBACK_POLICIES),
		  __entry->taken, __entry->dirty, __entry->unqueued,
		  __entry->congested, __entry->writeback, __entry->immediate,
		  __entry->woken, __entry->waited)
);

/* A reclaimer may be about to sleep; without an end, it did not. */
TRACE_EVENT_FN(throttle_begin,
	TP_PROTO(const struct vmp_where *where, u64 id, u32 reason),
	TP_ARGS(where, id, reason),

	TP_STRUCT__entry(
		WHERE_FIELDS
		__field(u64, id)
		__field(u32, reason)
	),

	TP_fast_assign(
		WHERE_ASSIGN(where);
		__entry->id = id;
		__entry->reason = reason;
	),

	TP_printk(WHERE_FORMAT
		  "id=%llu reason=%s",
		  WHERE_ARGS(THROTTLE_POLICIES),
		  __entry->id,
		  __print_symbolic(__entry->reason, THROTTLE_REASONS)),

	vmp_sleeps_event_on, vmp_sleeps_event_off
);

/* It slept, for @us, which the kernel counts in ticks. */
TRACE_EVENT(throttle_end,
	TP_PROTO(const struct vmp_where *where, u64 id, u32 reason, u32 us),
	TP_ARGS(where, id, reason, us),

	TP_STRUCT__entry(
		WHERE_FIELDS
		__field(u64, id)
		__field(u32, reason)
		__field(u32, us)
	),

	TP_fast_assign(
		WHERE_ASSIGN(where);
		__entry->id = id;
		__entry->reason = reason;
		__entry->us = us;
	),

	TP_printk(WHERE_FORMAT
		  "id=%llu reason=%s us=%u",
		  WHERE_ARGS(THROTTLE_POLICIES),
		  __entry->id,
		  __print_symbolic(__entry->reason, THROTTLE_REASONS),
		  __entry->us)
);

/* Of a large folio: so many entries were handled in batches, others left to stock, batches kept. */
DECLARE_EVENT_CLASS(folio_walk,
	TP_PROTO(const struct vmp_where *where, const struct vmscan_walk *walk),
	TP_ARGS(where, walk),

	TP_STRUCT__entry(
		WHERE_FIELDS
		__field(u32, kind)
		__field(u32, pages)
		__field(u32, ptes)
		__field(u32, batches)
		__field(u32, left)
		__field(u32, kept)
	),

	TP_fast_assign(
		WHERE_ASSIGN(where);
		__entry->kind = walk->kind;
		__entry->pages = walk->nr_pages;
		__entry->ptes = walk->nr_ptes;
		__entry->batches = walk->nr_batches;
		__entry->left = walk->nr_left;
		__entry->kept = walk->nr_kept;
	),

	TP_printk(WHERE_FORMAT
		  "kind=%s pages=%u ptes=%u batches=%u left=%u kept=%u",
		  WHERE_ARGS(RMAP_POLICIES),
		  __print_symbolic(__entry->kind, FOLIO_KINDS),
		  __entry->pages, __entry->ptes, __entry->batches,
		  __entry->left, __entry->kept)
);

/* To unmap it. */
DEFINE_EVENT_FN(folio_walk, unmap_folio,
	TP_PROTO(const struct vmp_where *where, const struct vmscan_walk *walk),
	TP_ARGS(where, walk),
	vmp_unmap_event_on, vmp_unmap_event_off
);

/* To see whether it was accessed. */
DEFINE_EVENT_FN(folio_walk, young_folio,
	TP_PROTO(const struct vmp_where *where, const struct vmscan_walk *walk),
	TP_ARGS(where, walk),
	vmp_young_event_on, vmp_young_event_off
);

/* A point gets another policy, @policy as well; calls under way end with the old. */
TRACE_EVENT(policy_switch,
	TP_PROTO(const struct vmp_where *where, u32 point, u32 from, u32 to,
		 s32 pid),
	TP_ARGS(where, point, from, to, pid),

	TP_STRUCT__entry(
		WHERE_FIELDS
		__field(u32, point)
		__field(u32, from)
		__field(u32, to)
		__field(s32, pid)
	),

	TP_fast_assign(
		WHERE_ASSIGN(where);
		__entry->point = point;
		__entry->from = from;
		__entry->to = to;
		__entry->pid = pid;
	),

	TP_printk("policy=%s set=%u cgroup=%llu nid=%d settings=%llu point=%s from=%s to=%s pid=%d",
		  __print_symbolic(__entry->point << 8 | __entry->policy,
				   POINT_POLICIES),
		  __entry->set, __entry->cgroup, __entry->nid, __entry->settings,
		  __print_symbolic(__entry->point, POINTS),
		  __print_symbolic(__entry->point << 8 | __entry->from,
				   POINT_POLICIES),
		  __print_symbolic(__entry->point << 8 | __entry->to,
				   POINT_POLICIES),
		  __entry->pid)
);

/* The guard of some settings has tripped: all their points act stock from now on. */
TRACE_EVENT(guard_tripped,
	TP_PROTO(const struct vmp_where *where, u32 cause, u32 point, u64 figure, u64 limit,
		 s32 pid),
	TP_ARGS(where, cause, point, figure, limit, pid),

	TP_STRUCT__entry(
		WHERE_FIELDS
		__field(u32, cause)
		__field(u32, point)
		__field(u64, figure)
		__field(u64, limit)
		__field(s32, pid)
	),

	TP_fast_assign(
		WHERE_ASSIGN(where);
		__entry->cause = cause;
		__entry->point = point;
		__entry->figure = figure;
		__entry->limit = limit;
		__entry->pid = pid;
	),

	TP_printk("policy=%s set=%u cgroup=%llu nid=%d settings=%llu cause=%s point=%s figure=%llu limit=%llu pid=%d",
		  __entry->point == VMP_NR_POINTS ? "any" :
			__print_symbolic(__entry->point << 8 | __entry->policy,
					 POINT_POLICIES),
		  __entry->set, __entry->cgroup, __entry->nid, __entry->settings,
		  __print_symbolic(__entry->cause, CAUSES),
		  __print_symbolic(__entry->point, POINTS, { VMP_NR_POINTS, "any" }),
		  __entry->figure, __entry->limit, __entry->pid)
);

/* All points act stock from now on, or don't any more. */
TRACE_EVENT(bypass,
	TP_PROTO(const struct vmp_where *where, u32 on, s32 pid),
	TP_ARGS(where, on, pid),

	TP_STRUCT__entry(
		WHERE_FIELDS
		__field(u32, on)
		__field(s32, pid)
	),

	TP_fast_assign(
		WHERE_ASSIGN(where);
		__entry->on = on;
		__entry->pid = pid;
	),

	TP_printk("policy=%u set=%u cgroup=%llu nid=%d settings=%llu on=%u pid=%d",
		  __entry->policy, __entry->set, __entry->cgroup, __entry->nid,
		  __entry->settings, __entry->on, __entry->pid)
);

#endif /* _VMP_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
