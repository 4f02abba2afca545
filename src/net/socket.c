/*
 * socket.c - handles of sockets.
 *
 * A file of the driver (io/file.h) is a slot in a table: after a close and the end of the last
 * operation, another socket reuses the slot. A handle may outlive that, because each holder has a
 * reference and only one of them closes. So a handle stores the generation of its file, and every
 * operation carries it. After a close on any thread, the file itself refuses the operation under
 * its lock, with -EBADF. The operation never reaches the socket that now uses the slot, or the
 * descriptor that now has the number (bug class 14). Rejected: a count of calls in the handle that
 * delays the close; it would cost two more atomic operations a call, and the file counts its users
 * already.
 *
 * Only the first close has an effect; later ones only drop their reference. A half (bz_socket_half)
 * is a handle on the same file that refuses one direction; when the last reference to the writing
 * half is dropped, it shuts down that direction of the stream.
 *
 * I1  The file is open, in this generation, until is_ended is set or the last reference is dropped.
 *
 * [R] unref: refs release -> the last unref: refs acquire
 *     the accesses of all holders happen before the end
 */
#include "net/socket.h"

#include <errno.h>

#include "base/check.h"

static struct bz_socket *handle_for(const blitz_allocator *alloc)
{
    struct bz_socket *s = bz_alloc(alloc, sizeof *s, _Alignof(struct bz_socket));
    if (s == NULL)
        return NULL;
    bz_atomic_init(&s->refs, 1);
    bz_atomic_init(&s->is_ended, 0);
    s->may = BZ_SOCKET_BOTH;
    s->whole = NULL;
    return s;
}

static void handle_free(struct bz_socket *s)
{
    bz_free(s->file->files->alloc, s, sizeof *s);
}

int bz_socket_new(int fd, unsigned flags, struct bz_socket **out)
{
    struct bz_machine *m = bz_machine_self();
    if (m == NULL)
        return bz_io_refuse();
    struct bz_socket *s = handle_for(&m->rt->alloc);
    if (s == NULL)
        return -ENOMEM;
    bool passes_fds = (flags & BZ_FILE_STREAM) && bz_sock_is_unix(fd);
    int err = bz_io_open(fd, flags | (passes_fds ? BZ_FILE_PASSES_FDS : 0), &s->file);
    if (err != 0) {
        bz_free(&m->rt->alloc, s, sizeof *s);
        return err;
    }
    s->generation = s->file->generation;
    *out = s;
    return 0;
}

int bz_socket_take(int fd, unsigned flags, struct bz_socket **out)
{
    int err = bz_socket_new(fd, flags, out);
    if (err != 0)
        bz_sock_close(fd);
    return err;
}

int bz_socket_half(struct bz_socket *s, unsigned may, struct bz_socket **out)
{
    struct bz_socket *half = handle_for(s->file->files->alloc);
    if (half == NULL)
        return -ENOMEM;
    half->file = s->file;
    half->generation = s->generation;
    half->may = may;
    half->whole = s;
    *out = half;
    return 0;
}

/* ---- holders ---- */

struct bz_socket *bz_socket_ref(struct bz_socket *s)
{
    if (s != NULL)
        bz_fetch_add_relaxed(&s->refs, 1); /* relaxed: the caller holds a reference */
    return s;
}

static void end(struct bz_socket *s)
{
    if (bz_xchg_relaxed(&s->is_ended, 1) == 0) /* relaxed: only the first close matters */
        bz_io_close(s->file);
}

/* The last reference was dropped. */
static void handle_fini(struct bz_socket *s)
{
    struct bz_socket *whole = s->whole;
    struct bz_op op;
    if (whole == NULL) {
        end(s);
        handle_free(s);
        return;
    }
    if (s->may == BZ_SOCKET_WRITES) {
        int fd = bz_socket_enter(s, &op);
        if (fd >= 0) {
            (void)bz_sock_shutdown(fd, false, true); /* the peer may have closed already */
            bz_socket_leave(s, &op);
        }
    }
    handle_free(s);
    bz_socket_unref(whole);
}

void bz_socket_unref(struct bz_socket *s)
{
    if (s != NULL && bz_fetch_sub_acqrel(&s->refs, 1) == 1) /* [R] */
        handle_fini(s);
}

void bz_socket_close(struct bz_socket *s)
{
    if (s != NULL && s->whole == NULL)
        end(s);
    bz_socket_unref(s);
}

/* A caller that holds the only reference to a half keeps it the only one: no other holder can add one. */
int bz_socket_reunite(struct bz_socket *a, struct bz_socket *b, struct bz_socket **out)
{
    if (a == NULL || b == NULL || a->whole == NULL || a->whole != b->whole || a->may == b->may)
        return -EINVAL;
    if (bz_load_acquire(&a->refs) != 1 || bz_load_acquire(&b->refs) != 1) /* [R] */
        return -EBUSY;
    struct bz_socket *whole = a->whole;
    handle_free(a); /* without a shutdown of its direction */
    handle_free(b);
    bz_socket_unref(whole); /* each half had a reference: the other one is the caller's */
    *out = whole;
    return 0;
}

/* ---- its descriptor ---- */

int bz_socket_enter(struct bz_socket *s, struct bz_op *op)
{
    bz_socket_op(s, op, BZ_OP_POLL);
    bz_file_lock(s->file);
    int fd = bz_file_enter(s->file, op) ? s->file->fd : -EBADF;
    bz_file_unlock(s->file);
    return fd;
}

void bz_socket_leave(struct bz_socket *s, struct bz_op *op)
{
    bz_file_lock(s->file);
    bz_file_leave_unlock(s->file, op);
}

static int ask_address(struct bz_socket *s, blitz_addr *out, int (*ask)(int fd, blitz_addr *out))
{
    struct bz_op op;
    if (s == NULL || out == NULL)
        return -EINVAL;
    int fd = bz_socket_enter(s, &op);
    if (fd < 0)
        return fd;
    int err = ask(fd, out);
    bz_socket_leave(s, &op);
    return err;
}

int bz_socket_local(struct bz_socket *s, blitz_addr *out)
{
    return ask_address(s, out, bz_sock_local);
}

int bz_socket_peer(struct bz_socket *s, blitz_addr *out)
{
    return ask_address(s, out, bz_sock_peer);
}

int bz_socket_set(struct bz_socket *s, enum bz_sock_option option, int value)
{
    struct bz_op op;
    if (s == NULL)
        return -EINVAL;
    int fd = bz_socket_enter(s, &op);
    if (fd < 0)
        return fd;
    int err = bz_sock_set(fd, option, value);
    bz_socket_leave(s, &op);
    return err;
}

int bz_socket_get(struct bz_socket *s, enum bz_sock_option option, int *value)
{
    struct bz_op op;
    if (s == NULL)
        return -EINVAL;
    int fd = bz_socket_enter(s, &op);
    if (fd < 0)
        return fd;
    int err = bz_sock_get(fd, option, value);
    bz_socket_leave(s, &op);
    return err;
}

int bz_socket_release(struct bz_socket *s, blitz_fd *out)
{
    struct bz_op op;
    if (s == NULL || out == NULL)
        return -EINVAL;
    int fd = bz_socket_enter(s, &op);
    if (fd < 0)
        return fd;
    int own = bz_sock_dup(fd);
    if (own >= 0)
        (void)bz_sock_unblock(own); /* a backend may have made it blocking */
    bz_socket_leave(s, &op);
    if (own < 0)
        return own;
    bz_socket_close(s);
    *out = own;
    return 0;
}
