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
 * Cancelling marks the subtree and moves all its waiters to one list, under the lock. Then
 * it wakes them one at a time with the lock dropped, because wakers are user code. A waiter that is
 * cancelled meanwhile removes itself from that list, as it would have from its token's.
 *
 * I1  If a token is cancelled, so is everything below it.
 * I2  A future is on its token's list, or on the tree's list of those to be woken, or on none.
 * I3  refs of a token: its handles and its children. tokens of a tree: those not freed.
 */
#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/list.h"
#include "blitz/scope.h"
#include "os/lock.h"
#include "proc/state.h"
#include "wait/waker.h"

struct tree {
    const struct bz_os *os; /* constant */
    struct bz_lock lock;
    size_t tokens;          /* guarded by lock, as is the rest, and the tokens */
    struct bz_list ringing; /* futures that must be woken */
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

struct waiter {
    struct token *token;
    struct bz_list in;
    blitz_waker waker;
};

static_assert(sizeof(struct waiter) <= sizeof(((blitz_token_future *)NULL)->inside), "it has room");

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
    bz_lock_init(&tree->lock);
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

/* Remove one waiter and take its waker. Return false if there is none. */
static bool take_ringing(struct tree *tree, blitz_waker *out)
{
    struct bz_list *first = bz_list_take_front(&tree->ringing);
    if (first == NULL)
        return false;
    struct waiter *w = BZ_CONTAINER_OF(first, struct waiter, in);
    *out = w->waker;
    w->waker = (blitz_waker){NULL, NULL};
    return true;
}

void blitz_token_cancel(blitz_token *token)
{
    struct token *t = (struct token *)token;
    struct tree *tree = t->tree;
    blitz_waker waker;
    lock(tree);
    mark(t);
    while (take_ringing(tree, &waker)) {
        unlock(tree);
        blitz_waker_wake(&waker);
        lock(tree);
    }
    unlock(tree);
}

bool blitz_token_is_cancelled(blitz_token *token)
{
    struct token *t = (struct token *)token;
    lock(t->tree);
    bool is_cancelled = t->is_cancelled;
    unlock(t->tree);
    return is_cancelled;
}

/* ---- waiting ---- */

static struct waiter *waiter_of(blitz_future *f)
{
    return (struct waiter *)BZ_CONTAINER_OF(f, blitz_token_future, future)->inside;
}

static blitz_poll token_poll(blitz_future *f, const blitz_waker *waker)
{
    struct waiter *w = waiter_of(f);
    struct token *t = w->token;
    blitz_waker fresh = blitz_waker_clone(waker); /* not under the lock: it is user code */
    lock(t->tree);
    bool is_cancelled = t->is_cancelled;
    blitz_waker old = w->waker;
    w->waker = is_cancelled ? (blitz_waker){NULL, NULL} : fresh;
    if (is_cancelled)
        bz_list_remove(&w->in); /* I2 */
    else if (!bz_list_is_linked(&w->in))
        bz_list_push_back(&t->waiting, &w->in);
    unlock(t->tree);
    blitz_waker_drop(&old);
    if (is_cancelled)
        blitz_waker_drop(&fresh);
    return is_cancelled ? BLITZ_READY : BLITZ_PENDING;
}

static void token_forget(blitz_future *f)
{
    struct waiter *w = waiter_of(f);
    struct tree *tree = w->token->tree;
    lock(tree);
    bz_list_remove(&w->in); /* I2 */
    blitz_waker old = w->waker;
    w->waker = (blitz_waker){NULL, NULL};
    unlock(tree);
    blitz_waker_drop(&old);
}

int blitz_token_wait(blitz_token *t, blitz_deadline until)
{
    blitz_token_future f;
    blitz_token_wait_future_init(&f, t);
    return blitz_await(&f.future, until);
}

void blitz_token_wait_future_init(blitz_token_future *f, blitz_token *t)
{
    static const blitz_future_ops ops = {"token", BLITZ_REVOCABLE, token_poll, token_forget, NULL};
    f->future.ops = &ops;
    struct waiter *w = waiter_of(&f->future);
    w->token = (struct token *)t;
    bz_list_init(&w->in);
    w->waker = (blitz_waker){NULL, NULL};
}
