/*
 * token.c - a tree of tokens: cancel one and you have cancelled all below.
 *
 * One lock guards a whole tree, kept with its root. Trees are small and change seldom. With a lock for each token, a
 * cancel would take the locks hand over hand from above, while an unused token must be removed from its parent from
 * below.
 *
 * A child holds a reference to its parent. So a token without handles stays as long as
 * there is a token below it: a cancel reaches the lower tokens through it.
 *
 * A wait is a request (park/request.h), made by a blocking call or by a future. Cancelling marks the subtree and moves all
 * its waiters to one list, under the lock. Then it grants them, as many as fit into a wake list at a time. A waiter that
 * leaves meanwhile removes itself from that list, as it would have from its token's.
 *
 * I1  If a token is cancelled, so is everything below it.
 * I2  A waiter is on its token's list, or on the tree's list of those to be woken, or on none.
 * I3  refs of a token: its handles and its children. tokens of a tree: those not freed.
 */
#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/list.h"
#include "blitz/scope.h"
#include "os/lock.h"
#include "park/request.h"
#include "proc/ask.h"
#include "proc/state.h"
#include "wait/waker.h"

struct tree {
    const struct bz_os *os; /* constant */
    struct bz_lock lock;
    size_t tokens;          /* guarded by lock, as is the rest, and the tokens */
    struct bz_list ringing; /* waiters that must be woken */
};

struct token {
    struct tree *tree;    /* constant, as is parent */
    struct token *parent; /* NULL: the root */
    unsigned refs;
    bool is_cancelled;
    struct bz_list in; /* the parent's children */
    struct bz_list children;
    struct bz_list waiting;
};

struct token_wait {
    struct bz_request request;
    struct token *of;
};

static_assert(sizeof(struct token_wait) <= sizeof(((blitz_token_future *)NULL)->inside),
              "it has room");

static void lock(struct tree *tree)
{
    bz_lock_take(&tree->lock, tree->os);
}

static void unlock(struct tree *tree)
{
    bz_lock_drop(&tree->lock, tree->os);
}

/* ---- making and giving up ---- */

static struct tree *tree_new(void)
{
    struct tree *tree = bz_alloc(&bz_allocator_libc, sizeof *tree, _Alignof(struct tree));
    if (tree == NULL)
        return NULL;
    tree->os = bz_os_here();
    bz_lock_init_ranked(&tree->lock, BZ_RANK_WAIT);
    tree->tokens = 0;
    bz_list_init(&tree->ringing);
    return tree;
}

static void tree_free(struct tree *tree)
{
    bz_free(&bz_allocator_libc, tree, sizeof *tree);
}

static struct token *token_new(struct tree *tree, struct token *parent)
{
    struct token *t = bz_alloc(&bz_allocator_libc, sizeof *t, _Alignof(struct token));
    if (t == NULL)
        return NULL;
    *t = (struct token){.tree = tree, .parent = parent, .refs = 1};
    bz_list_init(&t->in);
    bz_list_init(&t->children);
    bz_list_init(&t->waiting);
    lock(tree);
    tree->tokens++;
    if (parent != NULL) {
        parent->refs++;
        t->is_cancelled = parent->is_cancelled; /* I1 */
        bz_list_push_back(&parent->children, &t->in);
    }
    unlock(tree);
    return t;
}

int blitz_token_new(blitz_token *parent, blitz_token **out)
{
    struct token *above = (struct token *)parent;
    if (out == NULL)
        return -EINVAL;
    struct tree *tree = above != NULL ? above->tree : tree_new();
    if (tree == NULL)
        return -ENOMEM;
    struct token *t = token_new(tree, above);
    if (t == NULL && above == NULL)
        tree_free(tree);
    if (t == NULL)
        return -ENOMEM;
    *out = (blitz_token *)t;
    return 0;
}

blitz_token *blitz_token_ref(blitz_token *token)
{
    struct token *t = (struct token *)token;
    lock(t->tree);
    t->refs++;
    unlock(t->tree);
    return token;
}

/* Drop one reference, under the lock. Free the token if it was the last, and so on up the tree. */
static void drop(struct token *t)
{
    while (t != NULL && --t->refs == 0) {
        struct token *parent = t->parent;
        BZ_CHECK(bz_list_is_empty(&t->waiting), "token %p: given up while somebody waits for it",
                 (void *)t);
        bz_list_remove(&t->in);
        t->tree->tokens--; /* I3 */
        bz_free(&bz_allocator_libc, t, sizeof *t);
        t = parent;
    }
}

void blitz_token_unref(blitz_token *token)
{
    struct token *t = (struct token *)token;
    if (t == NULL)
        return;
    struct tree *tree = t->tree;
    lock(tree);
    drop(t);
    bool is_empty = tree->tokens == 0;
    unlock(tree);
    if (is_empty)
        tree_free(tree);
}

/* ---- cancelling ---- */

/* Return the next token in a walk of everything below `top`, or NULL at the end. Skip the children of a cancelled
 * token, unless we have just cancelled it. */
static struct token *walk(struct token *t, struct token *top, bool goes_down)
{
    struct bz_list *child = goes_down ? bz_list_first(&t->children) : NULL;
    if (child != NULL)
        return BZ_CONTAINER_OF(child, struct token, in);
    while (t != top) {
        struct bz_list *next = t->in.next;
        if (next != &t->parent->children)
            return BZ_CONTAINER_OF(next, struct token, in);
        t = t->parent;
    }
    return NULL;
}

/* Mark the subtree as cancelled, and collect its waiters: I1. Under the lock. */
static void mark(struct token *top)
{
    bool is_news = false;
    for (struct token *t = top; t != NULL; t = walk(t, top, is_news)) {
        is_news = !t->is_cancelled;
        t->is_cancelled = true;
        bz_list_splice(&t->tree->ringing, &t->waiting); /* I2 */
    }
}

/* Grant waiters. Returns whether some are left, because the list is full. Under the lock. */
static bool serve(struct tree *tree, struct bz_wakelist *wakes)
{
    struct bz_waiter *w;
    while ((w = bz_waiter_first(&tree->ringing)) != NULL) {
        if (bz_wakelist_is_full(wakes))
            return true;
        (void)!bz_request_grant(BZ_CONTAINER_OF(w, struct bz_request, waiter), wakes);
    }
    return false;
}

void blitz_token_cancel(blitz_token *token)
{
    struct token *t = (struct token *)token;
    struct tree *tree = t->tree;
    struct bz_wakelist wakes;
    bool has_more = true;
    lock(tree);
    mark(t);
    while (has_more) {
        bz_wakelist_init(&wakes);
        has_more = serve(tree, &wakes);
        unlock(tree);
        bz_wakelist_deliver(&wakes);
        if (has_more)
            lock(tree);
    }
}

bool blitz_token_is_cancelled(blitz_token *token)
{
    struct token *t = (struct token *)token;
    lock(t->tree);
    bool is_cancelled = t->is_cancelled;
    unlock(t->tree);
    return is_cancelled;
}

/* ---- waiting: the request, under the lock ---- */

static struct token *token_of(struct bz_request *r)
{
    return BZ_CONTAINER_OF(r, struct token_wait, request)->of;
}

static void wait_lock(struct bz_request *r)
{
    lock(token_of(r)->tree);
}

static void wait_unlock(struct bz_request *r, struct bz_wakelist *wakes)
{
    unlock(token_of(r)->tree);
    bz_wakelist_deliver(wakes);
}

static bool wait_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct token *t = token_of(r);
    (void)wakes;
    if (t->is_cancelled)
        return true; /* the result of a new waiter is 0 */
    bz_waiter_queue(&r->waiter, &t->waiting);
    return false;
}

/* False: the token was cancelled, and the grant was on its way. */
static bool wait_leave(struct bz_request *r, struct bz_wakelist *wakes)
{
    (void)wakes;
    bz_waiter_leave(&r->waiter); /* I2 */
    if (!token_of(r)->is_cancelled)
        return true;
    r->waiter.state = BZ_WAITER_GRANTED;
    return false;
}

/* A future that is polled before its grant has come is ready, too. */
static bool wait_check(struct bz_request *r, struct bz_wakelist *wakes)
{
    (void)wakes;
    if (!token_of(r)->is_cancelled)
        return false;
    bz_waiter_leave(&r->waiter); /* I2 */
    return true;
}

static const struct bz_request_ops wait_ops = {.what = "token",
                                               .lock = wait_lock,
                                               .unlock = wait_unlock,
                                               .enter = wait_enter,
                                               .leave = wait_leave,
                                               .check = wait_check};

/* ---- the blocking call, and the future ---- */

int blitz_token_wait(blitz_token *t, blitz_deadline until)
{
    struct token_wait w = {.request.ops = &wait_ops, .of = (struct token *)t};
    bz_look_up(); /* ask.h */
    bz_waiter_init(&w.request.waiter, NULL, BZ_WAIT_WOKEN);
    return bz_request_wait(&w.request, bz_os_here(), until);
}

static struct token_wait *inside(blitz_future *f)
{
    return (struct token_wait *)(void *)BZ_CONTAINER_OF(f, blitz_token_future, future)->inside;
}

static blitz_poll token_poll(blitz_future *f, const blitz_waker *waker)
{
    return bz_request_poll(&inside(f)->request, waker) ? BLITZ_READY : BLITZ_PENDING;
}

static void token_forget(blitz_future *f)
{
    (void)bz_request_cancel(&inside(f)->request);
}

void blitz_token_wait_future_init(blitz_token_future *f, blitz_token *t)
{
    static const blitz_future_ops ops = {"token", BLITZ_REVOCABLE, token_poll, token_forget, NULL};
    struct token_wait *w = inside(&f->future);
    f->future.ops = &ops;
    *w = (struct token_wait){.request.ops = &wait_ops, .of = (struct token *)t};
    bz_waiter_init_polled(&w->request.waiter);
}
