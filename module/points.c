// SPDX-License-Identifier: GPL-2.0
/* The policy points and the profiles: what there is to choose from, and what that amounts to. */
#include <linux/array_size.h>
#include <linux/pgtable.h>
#include <linux/string.h>
#include <kunit/visibility.h>

#include "internal.h"

const struct vmp_point *const vmp_points[VMP_NR_POINTS] = {
	[VMP_POINT_FLUSH] = &vmp_flush_point,
	[VMP_POINT_SCAN] = &vmp_scan_point,
	[VMP_POINT_AGING] = &vmp_aging_point,
	[VMP_POINT_WRITEBACK] = &vmp_writeback_point,
	[VMP_POINT_THROTTLE] = &vmp_throttle_point,
	[VMP_POINT_UNMAP] = &vmp_unmap_point,
	[VMP_POINT_YOUNG] = &vmp_young_point,
};

enum vmp_profile {
	PROFILE_STOCK,
	PROFILE_RECOMMENDED,
	PROFILE_MAX,
	NR_PROFILES,
};

const char *const vmp_profile_names[] = {
	[PROFILE_STOCK] = "stock",
	[PROFILE_RECOMMENDED] = "recommended",
	[PROFILE_MAX] = "max",
};
EXPORT_SYMBOL_IF_KUNIT(vmp_profile_names);

const unsigned int vmp_nr_profiles = NR_PROFILES;
EXPORT_SYMBOL_IF_KUNIT(vmp_nr_profiles);

static const unsigned int profiles[NR_PROFILES][VMP_NR_POINTS] = {
	[PROFILE_STOCK] = {
		[VMP_POINT_AGING] = VMP_AGING_CONTINUE,
	},
	/*
	 * With the multi-gen LRU better than stock under some loads of
	 * docs/results/recommended.md, and worse under none. "feedback" was not
	 * shown to add to "memcg". With "budget" a typical wait is shorter, and all
	 * together take longer.
	 */
	[PROFILE_RECOMMENDED] = {
		[VMP_POINT_FLUSH] = VMP_FLUSH_BATCH,
		[VMP_POINT_AGING] = VMP_AGING_CONTINUE,
		[VMP_POINT_THROTTLE] = VMP_THROTTLE_MEMCG,
		[VMP_POINT_UNMAP] = VMP_RMAP_BATCH,
		[VMP_POINT_YOUNG] = VMP_RMAP_BATCH,
	},
	[PROFILE_MAX] = {
		[VMP_POINT_FLUSH] = VMP_FLUSH_BATCH,
		[VMP_POINT_SCAN] = VMP_SCAN_BUDGET,
		[VMP_POINT_AGING] = VMP_AGING_CONTINUE,
		[VMP_POINT_WRITEBACK] = VMP_WRITEBACK_FEEDBACK,
		[VMP_POINT_THROTTLE] = VMP_THROTTLE_ALL,
		[VMP_POINT_UNMAP] = VMP_RMAP_BATCH,
		[VMP_POINT_YOUNG] = VMP_RMAP_BATCH,
	},
};

/*
 * max_folios: a reclaim call of either LRU takes 64 folios at most, so a larger number only
 * matters to MADV_PAGEOUT and to groups that span calls; see docs/history/results.md for how
 * sizes compare. batch: MIN_LRU_BATCH, as in the stock loop.
 * floor: by measurement, see docs/results/scan-floor-sweep.md. Those of the guard: far beyond
 * what any policy here does, on a busy host, too.
 */
static const struct vmp_settings defaults = {
	.max_folios = 64,
	.span = 1,
	.batch = 64,
	.floor = 32,
	.dirty_gen = VMP_SECOND_YOUNGEST,
	.kinds = BIT(VMSCAN_LAZYFREE) | BIT(VMSCAN_ANON) | BIT(VMSCAN_FILE),
	.unmap_ptes = PTRS_PER_PTE,
	.young_ptes = PTRS_PER_PTE,
	.window = 60,
	.stall = 10000,
	.wait = 5000,
	.callback = 100,
	.clamps = 16,
};

/**
 * vmp_point_exists() - is there such a decision to take?
 * @point: the point
 * @traits: the kernel's
 *
 * Return: false where stock does by itself what the point's policies are for.
 */
bool vmp_point_exists(const struct vmp_point *point, unsigned long traits)
{
	return !(point->not_with & traits);
}
EXPORT_SYMBOL_IF_KUNIT(vmp_point_exists);

/**
 * vmp_shown_policies() - what is there to choose from?
 * @point: the point
 * @traits: the kernel's
 *
 * Return: the policies of the point that mean something there.
 */
struct vmp_shown vmp_shown_policies(const struct vmp_point *point, unsigned long traits)
{
	struct vmp_shown shown = {};
	unsigned int i;

	for (i = 0; i < point->nr_policies; i++) {
		if (point->policies[i].only_with & ~traits)
			continue;
		shown.names[shown.nr] = point->policies[i].name;
		shown.policy[shown.nr++] = i;
	}

	return shown;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_shown_policies);

/**
 * vmp_set_profile() - choose the policies of a profile
 * @settings: gets them, and 0 for each point that doesn't exist
 * @profile: its index among the names
 * @traits: the kernel's
 */
void vmp_set_profile(struct vmp_settings *settings, unsigned int profile, unsigned long traits)
{
	unsigned int i;

	for (i = 0; i < VMP_NR_POINTS; i++)
		settings->policy[i] = vmp_point_exists(vmp_points[i], traits) ?
				      profiles[profile][i] : 0;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_set_profile);

/**
 * vmp_find_profile() - which profile has these policies?
 * @settings: the policies
 * @traits: the kernel's
 *
 * Return: its index among the names, their number if none has.
 */
unsigned int vmp_find_profile(const struct vmp_settings *settings, unsigned long traits)
{
	struct vmp_settings profile;
	unsigned int i;

	for (i = 0; i < NR_PROFILES; i++) {
		vmp_set_profile(&profile, i, traits);
		if (!memcmp(profile.policy, settings->policy, sizeof(profile.policy)))
			break;
	}

	return i;
}

/* Choose stock at all points. */
void vmp_set_stock(struct vmp_settings *settings, unsigned long traits)
{
	vmp_set_profile(settings, PROFILE_STOCK, traits);
}

/**
 * vmp_is_stock() - does no policy decide anything?
 * @settings: the policies
 * @traits: the kernel's
 *
 * Return: true if so: an aging policy without a loop that asks it may be another than stock's.
 */
bool vmp_is_stock(const struct vmp_settings *settings, unsigned long traits)
{
	unsigned int i;

	for (i = 0; i < VMP_NR_POINTS; i++)
		if (i != VMP_POINT_AGING && settings->policy[i])
			return false;

	return !vmp_scan_walks(VMP_SCAN_STOCK, settings->policy[VMP_POINT_AGING], traits);
}
EXPORT_SYMBOL_IF_KUNIT(vmp_is_stock);

/* What the machine begins with. */
struct vmp_settings vmp_default_settings(unsigned long traits)
{
	struct vmp_settings settings = defaults;

	vmp_set_stock(&settings, traits);

	return settings;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_default_settings);

/**
 * vmp_in_effect() - is the policy of a point in effect?
 * @settings: the policies
 * @point: the point
 * @traits: the kernel's
 *
 * Return: false where the policy of another point rules it out.
 */
bool vmp_in_effect(const struct vmp_settings *settings, enum vmp_point_id point,
		   unsigned long traits)
{
	const struct vmp_point *p = vmp_points[point];

	return !p->in_effect || p->in_effect(settings->policy[p->needs], traits);
}
