// SPDX-License-Identifier: GPL-2.0
/* The decisions of the batch policy: when a batch ends, what is rechecked. */
#include <kunit/test.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pagemap.h>
#include <linux/shmem_fs.h>
#include <linux/uaccess.h>

#include "../module/internal.h"

struct decide_case {
	unsigned int nr_folios;
	unsigned int nr_pages;
	unsigned int limit;
	bool ends;
};

static const struct decide_case decide_cases[] = {
	/* single pages: the limit in folios */
	{ 1, 1, 1, true },
	{ 1, 1, 2, false },
	{ 2, 2, 2, true },
	{ 30, 30, 31, false },
	{ 31, 31, 31, true },
	{ 4095, 4095, 4096, false },
	{ 4096, 4096, 4096, true },
	/* past the limit, because it was lowered meanwhile */
	{ 64, 64, 31, true },
	/* large folios: the limit in pages, 512 at least */
	{ 1, 511, 31, false },
	{ 1, 512, 31, true },
	{ 31, 496, 31, true },
	{ 30, 480, 31, false },
	{ 7, 512, 64, true },
	{ 2, 1024, 1024, true },
	{ 2, 1023, 1024, false },
	{ 8, 4096, 4096, true },
	{ 7, 3584, 4096, false },
};

static void decide_desc(const struct decide_case *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u folios, %u pages, limit %u",
		 c->nr_folios, c->nr_pages, c->limit);
}

KUNIT_ARRAY_PARAM(decide, decide_cases, decide_desc);

static void decide_test(struct kunit *test)
{
	const struct decide_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test,
			vmp_flush_decide(c->nr_folios, c->nr_pages, c->limit),
			c->ends ? VMSCAN_DEFER_DRAIN : VMSCAN_DEFER);
}

/* A dirty shmem folio in the page cache, and its file mapped in the test. */
struct recheck_context {
	struct file *file;
	struct folio *folio;
	unsigned long addr;
};

static int recheck_init(struct kunit *test)
{
	struct recheck_context *ctx;

	ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx);
	test->priv = ctx;

	ctx->file = shmem_file_setup("vmscan_policy_kunit", PAGE_SIZE, 0);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ctx->file);
	ctx->folio = shmem_read_folio_gfp(ctx->file->f_mapping, 0, GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ctx->folio);
	folio_lock(ctx->folio);
	folio_mark_dirty(ctx->folio);
	folio_unlock(ctx->folio);

	ctx->addr = kunit_vm_mmap(test, ctx->file, 0, PAGE_SIZE,
				  PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	KUNIT_ASSERT_NE(test, ctx->addr, 0);

	return 0;
}

static void recheck_exit(struct kunit *test)
{
	struct recheck_context *ctx = test->priv;

	if (!ctx)
		return;
	if (!IS_ERR_OR_NULL(ctx->folio))
		folio_put(ctx->folio);
	if (!IS_ERR_OR_NULL(ctx->file))
		fput(ctx->file);
}

static void expect_recheck(struct kunit *test, enum vmp_recheck want)
{
	struct recheck_context *ctx = test->priv;
	enum vmp_recheck got = vmp_flush_recheck(ctx->folio);

	KUNIT_EXPECT_EQ(test, got, want);
	if (got != VMP_LOCKED)
		folio_unlock(ctx->folio);
}

static void touch(struct kunit *test)
{
	struct recheck_context *ctx = test->priv;

	KUNIT_ASSERT_EQ(test, put_user(1, (char __user *)ctx->addr), 0);
}

static void recheck_dirty(struct kunit *test)
{
	expect_recheck(test, VMP_DIRTY);
}

static void recheck_clean(struct kunit *test)
{
	struct recheck_context *ctx = test->priv;

	folio_lock(ctx->folio);
	KUNIT_EXPECT_TRUE(test, folio_clear_dirty_for_io(ctx->folio));
	folio_unlock(ctx->folio);
	expect_recheck(test, VMP_CLEAN);
}

static void recheck_locked(struct kunit *test)
{
	struct recheck_context *ctx = test->priv;

	folio_lock(ctx->folio);
	expect_recheck(test, VMP_LOCKED);
	KUNIT_EXPECT_TRUE(test, folio_test_locked(ctx->folio));
	folio_unlock(ctx->folio);
}

static void recheck_mapped(struct kunit *test)
{
	touch(test);
	expect_recheck(test, VMP_MAPPED);
}

static void recheck_truncated(struct kunit *test)
{
	struct recheck_context *ctx = test->priv;

	shmem_truncate_range(file_inode(ctx->file), 0, PAGE_SIZE - 1);
	expect_recheck(test, VMP_NO_MAPPING);
}

/* An anonymous folio has no mapping once it has left the swap cache. */
static void recheck_no_swapcache(struct kunit *test)
{
	struct recheck_context *ctx = test->priv;
	struct folio *shmem = ctx->folio, *anon;
	unsigned long mapping = PAGE_MAPPING_ANON;

	anon = folio_alloc(GFP_KERNEL, 0);
	KUNIT_ASSERT_NOT_NULL(test, anon);
	anon->mapping = (void *)mapping;
	folio_set_swapbacked(anon);
	folio_set_dirty(anon);

	ctx->folio = anon;
	expect_recheck(test, VMP_NO_MAPPING);
	ctx->folio = shmem;

	anon->mapping = NULL;
	folio_clear_dirty(anon);
	folio_clear_swapbacked(anon);
	folio_put(anon);
}

static void recheck_mlocked(struct kunit *test)
{
	struct recheck_context *ctx = test->priv;

	folio_set_mlocked(ctx->folio);
	expect_recheck(test, VMP_UNEVICTABLE);
	folio_clear_mlocked(ctx->folio);
	expect_recheck(test, VMP_DIRTY);
}

static void recheck_shm_lock(struct kunit *test)
{
	struct recheck_context *ctx = test->priv;

	mapping_set_unevictable(ctx->file->f_mapping);
	expect_recheck(test, VMP_UNEVICTABLE);
	mapping_clear_unevictable(ctx->file->f_mapping);
	expect_recheck(test, VMP_DIRTY);
}

static void recheck_hwpoison(struct kunit *test)
{
	struct recheck_context *ctx = test->priv;

	if (!IS_ENABLED(CONFIG_MEMORY_FAILURE))
		kunit_skip(test, "no CONFIG_MEMORY_FAILURE");

	SetPageHWPoison(folio_page(ctx->folio, 0));
	expect_recheck(test, VMP_HWPOISON);
	ClearPageHWPoison(folio_page(ctx->folio, 0));
	expect_recheck(test, VMP_DIRTY);
}

static void recheck_writeback(struct kunit *test)
{
	struct recheck_context *ctx = test->priv;

	folio_lock(ctx->folio);
	folio_start_writeback(ctx->folio);
	folio_unlock(ctx->folio);
	expect_recheck(test, VMP_WRITEBACK);
	folio_end_writeback(ctx->folio);
	expect_recheck(test, VMP_DIRTY);
}

/* Pinned for DMA by a mapping that is gone when the folio is rechecked. */
static void recheck_pinned(struct kunit *test)
{
	struct recheck_context *ctx = test->priv;
	struct page *page;

	touch(test);
	KUNIT_ASSERT_EQ(test, pin_user_pages_fast(ctx->addr, 1, FOLL_WRITE,
						  &page), 1);
	KUNIT_EXPECT_PTR_EQ(test, page_folio(page), ctx->folio);
	KUNIT_EXPECT_EQ(test, vm_munmap(ctx->addr, PAGE_SIZE), 0);
	expect_recheck(test, VMP_PINNED);
	unpin_user_page(page);
	expect_recheck(test, VMP_DIRTY);
}

static struct kunit_case flush_cases[] = {
	KUNIT_CASE_PARAM(decide_test, decide_gen_params),
	{}
};

static struct kunit_suite flush_suite = {
	.name = "vmscan_policy_flush_decide",
	.test_cases = flush_cases,
};

static struct kunit_case recheck_cases[] = {
	KUNIT_CASE(recheck_dirty),
	KUNIT_CASE(recheck_clean),
	KUNIT_CASE(recheck_locked),
	KUNIT_CASE(recheck_mapped),
	KUNIT_CASE(recheck_truncated),
	KUNIT_CASE(recheck_no_swapcache),
	KUNIT_CASE(recheck_mlocked),
	KUNIT_CASE(recheck_shm_lock),
	KUNIT_CASE(recheck_hwpoison),
	KUNIT_CASE(recheck_writeback),
	KUNIT_CASE(recheck_pinned),
	{}
};

static struct kunit_suite recheck_suite = {
	.name = "vmscan_policy_flush_recheck",
	.init = recheck_init,
	.exit = recheck_exit,
	.test_cases = recheck_cases,
};

kunit_test_suites(&flush_suite, &recheck_suite);
