/* SPDX-License-Identifier: GPL-2.0 */
/* UFFDIO_MOVE, for the test programs. */
#ifndef _UFFD_H
#define _UFFD_H

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include "guest.h"

/* Since Linux 6.8: newer than the headers may be. */
#ifndef UFFDIO_MOVE
#define UFFD_FEATURE_MOVE	(1 << 16)
struct uffdio_move {
	__u64 dst;
	__u64 src;
	__u64 len;
	__u64 mode;
	__s64 move;
};
#define UFFDIO_MOVE		_IOWR(UFFDIO, 0x05, struct uffdio_move)
#endif

/* Returns a descriptor, below 0 where pages can't be moved. */
static inline int uffd_open(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_MOVE };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

	if (fd < 0 || !ioctl(fd, UFFDIO_API, &api))
		return fd;
	close(fd);
	return -1;
}

/* What is missing there is waited for from now on. */
static inline void uffd_register(int fd, char *mem, size_t nr_pages)
{
	struct uffdio_register reg = {
		.range = { .start = (uintptr_t)mem, .len = nr_pages * PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	if (ioctl(fd, UFFDIO_REGISTER, &reg))
		die("UFFDIO_REGISTER");
}

#endif /* _UFFD_H */
