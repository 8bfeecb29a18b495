/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * ears.c -- keeps what an ear was told until its actor takes it.
 *
 * Threads   As ears.h says.
 */
#include "stores/ears.h"

#include <sys/epoll.h>

#include "engine/check.h"
#include "runtime/atomic.h"
#include "runtime/memory.h"

struct store_ear {
	struct list place; /* among all */
	struct ears *ears;
	struct watch watch;
	struct wake wake;
	struct store_nudges came; /* under the lock of all */
};

void ears_open(struct ears *ears, struct gale_allocator *allocator)
{
	ears->allocator = allocator;
	lock_init(&ears->lock);
	lock_take(&ears->lock);
	list_init(&ears->locked.all);
	lock_drop(&ears->lock);
}

void ears_close(struct ears *ears)
{
	lock_take(&ears->lock);
	gale_assert(list_is_empty(&ears->locked.all));
	lock_drop(&ears->lock);
	lock_destroy(&ears->lock);
}

void ears_tell(struct ears *ears, const struct store_nudge *nudge)
{
	lock_take(&ears->lock);
	for (struct list *at = ears->locked.all.next; at != &ears->locked.all;
	     at = at->next) {
		struct store_ear *ear = list_item(at, struct store_ear, place);

		store_put_nudge(&ear->came, nudge);
		wake_raise(&ear->wake);
	}
	lock_drop(&ears->lock);
}

static bool watch_it(struct store_ear *ear)
{
	struct epoll_event readable = { .events = EPOLLIN };

	return ear->watch.epoll_fd < 0 || epoll_ctl(ear->watch.epoll_fd, EPOLL_CTL_ADD,
	                                            ear->wake.fd, &readable) == 0;
}

struct store_ear *ear_open(struct ears *ears, struct watch watch)
{
	struct store_ear *ear = memory_take(ears->allocator, sizeof(*ear));

	if (!ear)
		return NULL;
	ear->ears = ears;
	ear->watch = watch;
	if (wake_open(&ear->wake)) {
		if (watch_it(ear)) {
			lock_take(&ears->lock);
			list_append(&ears->locked.all, &ear->place);
			lock_drop(&ears->lock);
			return ear;
		}
		wake_close(&ear->wake);
	}
	memory_give(ears->allocator, ear, sizeof(*ear));
	return NULL;
}

void ear_hear(struct store_ear *ear, struct store_nudges *nudges)
{
	struct store_nudge nudge;

	if (!load_relaxed(&ear->wake.raised))
		return;
	wake_clear(&ear->wake);
	lock_take(&ear->ears->lock);
	while (store_take_nudge(&ear->came, &nudge))
		store_put_nudge(nudges, &nudge);
	lock_drop(&ear->ears->lock);
}

void ear_close(struct store_ear *ear)
{
	struct gale_allocator *allocator = ear->ears->allocator;

	lock_take(&ear->ears->lock);
	list_remove(&ear->place);
	lock_drop(&ear->ears->lock);
	if (ear->watch.epoll_fd >= 0)
		(void)epoll_ctl(ear->watch.epoll_fd, EPOLL_CTL_DEL, ear->wake.fd, NULL);
	wake_close(&ear->wake);
	memory_give(allocator, ear, sizeof(*ear));
}
