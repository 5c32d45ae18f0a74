// SPDX-License-Identifier: GPL-2.0
/*
 * Proves that pages which get locked, by mlock() or SHM_LOCK, while they are
 * paged out are in memory afterwards, stay there, and keep their contents.
 */
#include <sys/shm.h>
#include "guest.h"

#define NR_PAGES	(PMD_PAGES / 2)

static int shm;
/*
 * SHM_LOCK comes between two pageouts, not into one: between the kernel's check
 * of the lock and its write it would trip a warning in shmem_writepage(), with
 * no policy in force just as well. mlock() has no such restriction.
 */
static pthread_rwlock_t *pageout_lock;

static void check_resident(char *mem, const char *how)
{
	unsigned char resident[NR_PAGES];
	size_t i;

	if (mincore(mem, NR_PAGES * PAGE, resident))
		die("mincore");
	for (i = 0; i < NR_PAGES; i++)
		if (!(resident[i] & 1))
			quit(EXIT_DATA, "page %zu is not in memory after %s",
			     i, how);
}

static void check_contents(char *mem)
{
	size_t i;

	for (i = 0; i < NR_PAGES; i++)
		check_page(mem + i * PAGE, i, 0);
}

static void fill(char *mem)
{
	size_t i;

	for (i = 0; i < NR_PAGES; i++)
		fill_page(mem + i * PAGE, i, 0);
}

static char *attach(void)
{
	char *mem = shmat(shm, NULL, 0);

	if (mem == (char *)-1)
		die("shmat");
	return mem;
}

static void lock_by_mlock(char *mem)
{
	if (mlock(mem, NR_PAGES * PAGE))
		die("mlock");
	check_resident(mem, "mlock()");
	check_contents(mem);
	usleep(3000);
	check_resident(mem, "mlock() and a while");
	if (munlock(mem, NR_PAGES * PAGE))
		die("munlock");
}

/* It brings nothing into memory, but keeps there what is touched. */
static void lock_by_shm_lock(char *mem)
{
	pthread_rwlock_wrlock(pageout_lock);
	if (shmctl(shm, SHM_LOCK, NULL))
		die("SHM_LOCK");
	pthread_rwlock_unlock(pageout_lock);
	check_contents(mem);
	check_resident(mem, "SHM_LOCK");
	usleep(3000);
	check_resident(mem, "SHM_LOCK and a while");
	if (shmctl(shm, SHM_UNLOCK, NULL))
		die("SHM_UNLOCK");
}

static void lock_shared(void)
{
	unsigned int round;

	for (round = 0; time_left(); round++) {
		char *mem = attach();

		if (round % 2)
			lock_by_mlock(mem);
		else
			lock_by_shm_lock(mem);
		/* The pager passes over pages that are mapped here too. */
		if (shmdt(mem))
			die("shmdt");
		usleep(round % 8 * 1000);
	}
	_exit(0);
}

static void lock_anon(void)
{
	char *mem = map_pages(NR_PAGES, -1);

	while (time_left()) {
		fill(mem);
		usleep(10000);
		lock_by_mlock(mem);
	}
	_exit(0);
}

static void *reclaim(void *arg)
{
	(void)arg;
	while (time_left()) {
		pthread_rwlock_rdlock(pageout_lock);
		memcg_reclaim(NR_PAGES);
		pthread_rwlock_unlock(pageout_lock);
	}
	return NULL;
}

static void init_pageout_lock(void)
{
	pthread_rwlockattr_t attr;

	pageout_lock = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pageout_lock == MAP_FAILED)
		die("mmap");
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_rwlockattr_setkind_np(&attr,
				      PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(pageout_lock, &attr);
}

int main(int argc, char **argv)
{
	pid_t shared_locker, anon_locker;
	pthread_t reclaimer;
	char *mem;

	set_deadline(argc > 1 ? argv[1] : NULL);
	init_pageout_lock();
	shm = shmget(IPC_PRIVATE, NR_PAGES * PAGE, 0600);
	if (shm < 0)
		die("shmget");
	mem = attach();
	fill(mem);
	shared_locker = start_child();
	if (!shared_locker)
		lock_shared();
	if (shmctl(shm, IPC_RMID, NULL))
		die("shmctl");
	anon_locker = start_child();
	if (!anon_locker)
		lock_anon();
	reclaimer = start_thread(reclaim, NULL);
	while (time_left()) {
		check_contents(mem);
		pthread_rwlock_rdlock(pageout_lock);
		page_out(mem, NR_PAGES);
		pthread_rwlock_unlock(pageout_lock);
	}
	wait_child(shared_locker);
	wait_child(anon_locker);
	pthread_join(reclaimer, NULL);

	return 0;
}
