// SPDX-License-Identifier: GPL-2.0
/*
 * Requests to age an lruvec, done by workers. Reclaim adds them, so adding takes
 * no memory: there is a fixed number of slots, and one request per lruvec.
 */
#include <linux/memcontrol.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <kunit/visibility.h>

#include "internal.h"

static void slot_workfn(struct work_struct *work)
{
	struct vmp_aging_slot *slot;
	struct vmp_aging_queue *queue;
	struct mem_cgroup *memcg;

	slot = container_of(work, struct vmp_aging_slot, work);
	queue = slot->queue;
	memcg = slot->request.memcg;

	queue->age(&slot->request);

	spin_lock(&queue->lock);
	slot->busy = false;
	spin_unlock(&queue->lock);

	mem_cgroup_put(memcg);
}

/**
 * vmp_aging_queue_init() - make an empty queue
 * @queue: the queue
 * @age: does one request, in process context
 *
 * Return: 0 or -ENOMEM.
 */
int
vmp_aging_queue_init(struct vmp_aging_queue *queue,
		     void (*age)(const struct vmp_aging_request *request))
{
	unsigned int i;

	spin_lock_init(&queue->lock);
	queue->age = age;
	for (i = 0; i < VMP_AGING_SLOTS; i++) {
		queue->slots[i].queue = queue;
		queue->slots[i].busy = false;
		INIT_WORK(&queue->slots[i].work, slot_workfn);
	}
	queue->wq = alloc_workqueue("vmp_aging", WQ_UNBOUND | WQ_MEM_RECLAIM,
				    VMP_AGING_WORKERS);

	return queue->wq ? 0 : -ENOMEM;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_aging_queue_init);

/* The slot with a request for the same lruvec, else a free one, else NULL. */
static struct vmp_aging_slot *
find_slot(struct vmp_aging_queue *queue,
	  const struct vmp_aging_request *request)
{
	struct vmp_aging_slot *free = NULL;
	unsigned int i;

	lockdep_assert_held(&queue->lock);
	for (i = 0; i < VMP_AGING_SLOTS; i++) {
		struct vmp_aging_slot *slot = &queue->slots[i];

		if (!slot->busy)
			free = slot;
		else if (slot->request.memcg == request->memcg &&
			 slot->request.nid == request->nid)
			return slot;
	}

	return free;
}

/**
 * vmp_aging_queue_add() - ask for an lruvec to be aged
 * @queue: the queue
 * @request: which one; its memcg is alive, but may be about to be removed
 *
 * The memcg's css is held until the request is done.
 *
 * Context: process context; takes the queue's lock, does not sleep.
 * Return: what became of the request.
 */
enum vmp_queued
vmp_aging_queue_add(struct vmp_aging_queue *queue,
		    const struct vmp_aging_request *request)
{
	enum vmp_queued queued = VMP_QUEUED;
	struct vmp_aging_slot *slot;

	spin_lock(&queue->lock);
	slot = find_slot(queue, request);
	if (!slot)
		queued = VMP_FULL;
	else if (slot->busy)
		queued = VMP_MERGED;
	else if (!mem_cgroup_tryget(request->memcg))
		queued = VMP_GONE;
	if (queued == VMP_QUEUED) {
		slot->request = *request;
		slot->busy = true;
	}
	spin_unlock(&queue->lock);

	if (queued == VMP_QUEUED)
		queue_work(queue->wq, &slot->work);

	return queued;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_aging_queue_add);

/**
 * vmp_aging_queue_drain() - wait until all requests are done
 * @queue: the queue; nobody adds to it any more
 */
void vmp_aging_queue_drain(struct vmp_aging_queue *queue)
{
	flush_workqueue(queue->wq);
}
EXPORT_SYMBOL_IF_KUNIT(vmp_aging_queue_drain);

/**
 * vmp_aging_queue_destroy() - do what is left, and end the workers
 * @queue: the queue; nobody adds to it any more
 */
void vmp_aging_queue_destroy(struct vmp_aging_queue *queue)
{
	destroy_workqueue(queue->wq);
}
EXPORT_SYMBOL_IF_KUNIT(vmp_aging_queue_destroy);
