// SPDX-License-Identifier: GPL-2.0
/* What is too much for the guard: the arithmetic of kills, stalls and slow reclaims. */
#include <linux/bitops.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>
#include <kunit/visibility.h>

#include "internal.h"

/* A positive number, as @mantissa << @exponent. */
struct real {
	u64 mantissa;
	int exponent;
};

/* Multiply by a fraction. The mantissa keeps 32 bits. */
static void scale(struct real *x, u32 numerator, u32 denominator)
{
	u64 product = x->mantissa * numerator;
	int shift;

	if (!product) {
		x->mantissa = 0;
		return;
	}
	shift = 64 - fls64(product);
	product = div_u64(product << shift, denominator);
	x->exponent -= shift;
	shift = fls64(product) - 32;
	x->mantissa = shift > 0 ? product >> shift : product << -shift;
	x->exponent += shift;
}

/* In units of 2^-62; 0 if it is less than that. @x is at most 1. */
static u64 fixed(const struct real *x)
{
	int shift = x->exponent + 62;

	if (shift >= 0)
		return x->mantissa << shift;

	return shift > -64 ? x->mantissa >> -shift : 0;
}

/* More kills don't tell more than these do. */
#define MOST_KILLS	1000
/* Once in so many times it may be chance, however many kills there are to be looked at. */
#define CHANCE		1000

/*
 * How improbable a number of kills has to be, in units of 2^-62. It is looked at after each kill,
 * and each look may be wrong. So each doubling of their number has a part of what may be wrong in
 * all: of n doublings, 1 / (n * (n + 1)), which add up to one.
 */
static u64 too_improbable(u64 nr)
{
	const unsigned int doublings = fls64(nr);

	return BIT_ULL(62) / (CHANCE * doublings * (doublings + 1));
}

/**
 * vmp_guard_beyond_chance() - are tasks killed more often than before?
 * @now: the kills under the policies
 * @before: those before
 *
 * If kills come as often as before, each of all falls into the time of the policies with the
 * same probability, that time's share. So their number there has a binomial distribution, and
 * what is asked is how probable so many or more are: the exact comparison of two Poisson rates,
 * of Przyborowski and Wilenski, "Homogeneity of results in testing samples from Poisson series",
 * Biometrika 31 (1940), 313-323.
 *
 * Return: true if that is less than 1 in 1,000 times the part that looks after so many kills have.
 */
bool vmp_guard_beyond_chance(const struct vmp_kills *now, const struct vmp_kills *before)
{
	u64 ms = max(now->ms, 1), ms_before = before->ms, sum = 0;
	const u64 limit = too_improbable(now->nr);
	u64 nr = now->nr, nr_before = before->nr;
	struct real term = { .mantissa = 1 };
	u32 n, i;

	/* The rates are the same, and are known less well. */
	while (nr > MOST_KILLS) {
		nr /= 2;
		ms = max(ms / 2, 1);
	}
	while (nr_before > MOST_KILLS) {
		nr_before /= 2;
		ms_before /= 2;
	}
	while (ms + ms_before > U32_MAX) {
		ms = max(ms / 2, 1);
		ms_before /= 2;
	}
	n = nr + nr_before;

	/* So many: C(n, nr) * p^nr * (1 - p)^nr_before */
	for (i = 1; i <= nr; i++) {
		scale(&term, nr_before + i, i);
		scale(&term, ms, ms + ms_before);
	}
	for (i = 0; i < nr_before; i++)
		scale(&term, ms_before, ms + ms_before);
	/* ... or more. */
	for (i = nr; i <= n; i++) {
		sum += fixed(&term);
		if (sum >= limit)
			return false;
		if (i < n) {
			scale(&term, n - i, i + 1);
			scale(&term, ms, max(ms_before, 1));
		}
	}

	return true;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_guard_beyond_chance);

/**
 * vmp_guard_kills() - is it the policies that tasks are killed for?
 * @now: the kills under them, one at least
 * @before: those before
 * @settings: the limits
 *
 * Return: true if it is, or if too little is known of the time before to tell.
 */
bool vmp_guard_kills(const struct vmp_kills *now, const struct vmp_kills *before,
		     const struct vmp_settings *settings)
{
	return settings->strict || before->ms < settings->window * MSEC_PER_SEC ||
	       vmp_guard_beyond_chance(now, before);
}
EXPORT_SYMBOL_IF_KUNIT(vmp_guard_kills);

/**
 * vmp_guard_stalls() - add a fruitless pass: since when have there been such alone?
 * @stall: those before
 * @now: in jiffies, not 0
 *
 * Return: how long they have gone on, in jiffies.
 */
unsigned long vmp_guard_stalls(struct vmp_stall *stall, unsigned long now)
{
	unsigned long began = READ_ONCE(stall->began);

	/* Not without need: by then, another pass may have reclaimed something. */
	if (!began || now - stall->last > VMP_GUARD_PAUSE) {
		began = now;
		WRITE_ONCE(stall->began, began);
	}
	stall->last = now;

	return now - began;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_guard_stalls);

/**
 * vmp_guard_window() - begin the next window, if the present one is over
 * @window: the present one
 * @now: in ms
 * @seconds: its length
 */
void vmp_guard_window(struct vmp_window *window, u64 now, unsigned int seconds)
{
	if (now - window->began >= seconds * MSEC_PER_SEC)
		*window = (struct vmp_window) { .began = now };
}
EXPORT_SYMBOL_IF_KUNIT(vmp_guard_window);

/**
 * vmp_guard_waits() - are too many direct reclaims slow?
 * @window: with them
 *
 * Return: true if it is more than a quarter of a number that tells.
 */
bool vmp_guard_waits(const struct vmp_window *window)
{
	return window->waits >= VMP_GUARD_WAITS && 4 * window->slow > window->waits;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_guard_waits);

/* A busy host may not have given a virtual CPU back so often. */
#define MANY_TIMES	8
#define FAR_BEYOND	10	/* times the limit */

/**
 * vmp_guard_slow() - do callbacks take too much CPU time?
 * @ns: what they took in a second
 * @times: how often they took some; in the seconds before, too, while each was beyond the limit
 * @limit: in ms
 *
 * Where a host takes a CPU away for many ticks, these are charged to a callback, if one was under
 * way. So a few times tell nothing but of what is far beyond the limit.
 *
 * Return: true if they do.
 */
bool vmp_guard_slow(u64 ns, unsigned int times, unsigned int limit)
{
	return ns > limit * (u64)NSEC_PER_MSEC * (times < MANY_TIMES ? FAR_BEYOND : 1);
}
EXPORT_SYMBOL_IF_KUNIT(vmp_guard_slow);
