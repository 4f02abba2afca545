/*
 * actor_heap.c - the private heap of an actor.
 *
 * A behaviour with a state_type has a heap (src/heap), whose root is the state. A pointer to it is before the state, in 16 bytes
 * that other actors do not have. It is made by the first allocation, so an actor that never allocates has none. The owner of the
 * mailbox is the owner of the heap, and no other thread touches it.
 *
 * After a message has been handled no frame of the actor exists: then the heap is collected, if enough was allocated. A handler
 * that waits keeps its frames, and nothing is collected until it returns.
 *
 * A handler that has allocated eight times as much as lies between two collections, and has not returned, is logged once. Its info
 * (blitz_actor_info) says so until a collection: such a handler computes for long, or waits.
 *
 * Jobs of the actor that other workers run must not use the heap. Debug builds abort there. A forked job that no worker has taken is called
 * by the join, on the actor's stack.
 *
 * An allocation that fails marks the actor, which then ends behind its handler. The handler may have stored the NULL, so it cannot go
 * on with the next message.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "actor/reaching.h"
#include "base/log.h"
#include "blitz/actor_heap.h"
#include "heap/heap.h"
#include "life/job.h"

static_assert(sizeof(blitz_heap_info) <= BLITZ_MSG_BYTES_MAX, "an actor can answer with it");

static blitz_heap **heap_at(struct bz_actor *a)
{
    return bz_actor_room_of(a);
}

#if defined(BZ_DEBUG)
/* Abort in a job of an actor with a heap. */
static void check_no_job(void)
{
    struct bz_task *t = bz_task_self();
    while (t != NULL && bz_job_forker(t) != NULL)
        t = bz_job_forker(t);
    bool is_foreign = t != NULL && t != bz_task_self() && t->ops->kind == bz_actor_kind &&
                      (bz_actor_of(t)->task.slot.flags & BZ_ACTOR_HEAP);
    BZ_CHECK(!is_foreign, "a job of the actor \"%s\" uses its heap on another worker",
             bz_task_name(t));
}
#else
static void check_no_job(void) {}
#endif

#if defined(BZ_DEBUG)
void bz_actor_check_payload(const void *data, size_t size)
{
    struct bz_actor *a = bz_actor_self();
    blitz_heap *heap = a != NULL && (a->task.slot.flags & BZ_ACTOR_HEAP) ? *heap_at(a) : NULL;
    if (heap == NULL || !heap->verify)
        return;
    for (size_t at = 0; at + sizeof(void *) <= size; at += sizeof(void *)) {
        void *word;
        memcpy(&word, (const char *)data + at, sizeof word);
        const char *type = bz_heap_type_at(heap, word);
        BZ_CHECK(type == NULL,
                 "the actor \"%s\" sends at offset %zu a pointer to an object of its heap, of the "
                 "type %s. "
                 "Send a copy",
                 bz_task_name(&a->task), at, type);
    }
}
#endif

/* The calling actor, if it has a heap or may have one. */
static struct bz_actor *owner(void)
{
    check_no_job();
    struct bz_actor *a = bz_actor_self();
    return a != NULL && (a->task.slot.flags & BZ_ACTOR_HEAP) ? a : NULL;
}

bool bz_actor_tidy(struct bz_actor *a)
{
    if (a->task.slot.flags & BZ_ACTOR_STARVED)
        return false;
    blitz_heap *heap = *heap_at(a);
    if (heap == NULL)
        return true;
    bool was_late = heap->is_late;
    (void)blitz_heap_tidy(heap, NULL, 0); /* without memory: later */
    if (BZ_UNLIKELY(was_late) && !heap->is_late)
        bz_mailbox_set_heap_late(&a->box, false);
    return true;
}

blitz_heap *bz_actor_heap_between(struct bz_actor *a, bool collects, bool *has_failed)
{
    blitz_heap *heap = *heap_at(a);
    *has_failed = false;
    if (heap != NULL && collects) {
        *has_failed = blitz_heap_collect(heap, NULL, 0) != 0;
        if (!*has_failed)
            bz_mailbox_set_heap_late(&a->box, false);
    }
    return heap;
}

void bz_actor_heap_follow(struct bz_actor *a)
{
    const blitz_behaviour *b = bz_actor_behaviour(a);
    blitz_heap *heap = *heap_at(a);
    if (heap == NULL)
        return;
    heap->root = bz_actor_state(a);
    heap->root_type = bz_type_get(b->state_type);
    heap->bytes_max = b->heap_max != 0 ? b->heap_max : SIZE_MAX;
    heap->verify = b->heap_verify;
}

void bz_actor_heap_end(struct bz_actor *a)
{
    blitz_heap_unref(*heap_at(a));
    *heap_at(a) = NULL;
}

static void tell_late(struct blitz_heap *h)
{
    struct bz_actor *a = bz_actor_of(h->owner);
    const char *name = bz_actor_behaviour(a)->name;
    bz_mailbox_set_heap_late(&a->box, true);
    bz_log(BLITZ_LOG_WARN,
           "actor %u.%u (%s): %zu bytes allocated in one handler. Nothing is collected until it "
           "returns",
           a->task.slot.index, bz_actor_generation(a), name != NULL ? name : "no name",
           bz_heap_young(h));
}

static BZ_NOINLINE blitz_heap *make(struct bz_actor *a)
{
    const blitz_behaviour *b = bz_actor_behaviour(a);
    blitz_heap_opts opts = {.allocator = &a->task.rt->alloc,
                            .bytes_max = b->heap_max,
                            .root = bz_actor_state(a),
                            .root_type = b->state_type,
                            .verify = b->heap_verify};
    if (blitz_heap_new(&opts, heap_at(a)) != 0) {
        a->task.slot.flags |= BZ_ACTOR_STARVED;
        return NULL;
    }
    (*heap_at(a))->owner = &a->task;
    (*heap_at(a))->tell_late = tell_late;
    return *heap_at(a);
}

blitz_heap *blitz_actor_heap(void)
{
    struct bz_actor *a = owner();
    if (BZ_UNLIKELY(a == NULL))
        return NULL;
    return BZ_LIKELY(*heap_at(a) != NULL) ? *heap_at(a) : make(a);
}

void bz_actor_starve(void)
{
    owner()->task.slot.flags |= BZ_ACTOR_STARVED;
}

/* An allocation in the heap of the calling actor has returned that. */
static BZ_ALWAYS_INLINE void *checked(void *object)
{
    if (BZ_UNLIKELY(object == NULL))
        bz_actor_starve();
    return object;
}

void *blitz_actor_alloc(blitz_type *type)
{
    blitz_heap *heap = blitz_actor_heap();
    return heap != NULL ? checked(blitz_heap_alloc(heap, type)) : NULL;
}

void *blitz_actor_alloc_tail(blitz_type *type, size_t count)
{
    blitz_heap *heap = blitz_actor_heap();
    return heap != NULL ? checked(blitz_heap_alloc_tail(heap, type, count)) : NULL;
}

void *blitz_actor_copy(blitz_type *type, size_t count, const void *from)
{
    blitz_heap *heap = blitz_actor_heap();
    return heap != NULL ? checked(blitz_heap_copy(heap, type, count, from)) : NULL;
}

char *blitz_actor_string(const char *text)
{
    blitz_heap *heap = blitz_actor_heap();
    return heap != NULL ? checked(blitz_heap_string(heap, text)) : NULL;
}
