/*
 * iocp.c - the completion backend of Windows: one completion port for each proc.
 *
 * An operation is started with a record (struct flight) that has the system's part of it, and is then in flight. Its end comes as a
 * packet to the port that the socket is bound to. That is the port of the proc on which the first operation of the socket
 * started: Windows binds a handle once, for ever. So op->poll is the poll of that proc, wherever a later operation starts.
 *
 * Any thread may start an operation. The end of that thread does not end the operation, since the socket belongs to a port.
 *
 * A cancel is CancelIoEx, and the operation ends when its packet has come: until then the system has the buffers. If the operation
 * was complete by then, its result counts. A send is tried first without waiting, so it is rarely in flight. If a send in
 * flight is cancelled, the system does not say how much of it was sent: the connection is then of no use.
 *
 * A proc opens its port with its first operation. Before that its machine sleeps on the word, and is roused then. A kick is a packet
 * of its own. It is meant for a particular thread, and two threads may sleep at one port. So a thread that takes a kick
 * while others are inside kicks again.
 *
 * A connect is begun by a non-blocking call (net/connect.c), and its end is waited for as readiness, which the port tells as well.
 *
 * Several datagrams in one call are not there yet: -EOPNOTSUPP.
 *
 * I1  poll->attached counts the operations in flight at its port.
 * I2  An operation in flight is in its file's list, and its file is in use. op->result is its record.
 * I3  file->kept is the poll whose port the socket is bound to; 0: none yet. Written once, under the file's lock.
 *
 * [K] kick: roused, fence, port load -> wait: port load, fence, roused load   a kick that found no port is seen by
 *     a sleeper that found one
 * [H] kick: roused, has_kick exchange -> take: has_kick = 0, inside load   a kick that finds another in the port leaves it to
 *     that one. The thread that takes it clears the flag first, and kicks again if a thread is inside. Each thread that is to be
 *     roused has counted itself before it looked at `roused`
 * [P] open: port release -> port acquire   the port exists
 */
#include <errno.h>
#include <string.h>

#include "io/winsock.h"

#include "base/check.h"
#include "io/iocp.h"

enum { PIECES_MAX = 64, NAME_ROOM = sizeof(struct sockaddr_storage) + 16, PACKETS_MAX = 32 };
enum { KEY_OPERATION = 0, KEY_KICK = 1, KEY_DONE = 2 };

struct iocp {
    struct bz_lock lock; /* of the opening */
    bz_atomic(void *) port;
    HANDLE afd;                   /* of the driver of sockets; constant once there is a port */
    bz_atomic(uint32_t) inside;   /* threads that sleep at the port */
    bz_atomic(uint32_t) has_kick; /* a kick is in the port */
};

/* A question to the driver of sockets, and its answer: the system's layout. */
struct afd_poll {
    LARGE_INTEGER timeout;
    ULONG count, is_exclusive;
    HANDLE handle;
    ULONG events;
    NTSTATUS status;
};

/* An operation in flight. */
struct flight {
    OVERLAPPED overlapped; /* first: a packet has its address */
    struct bz_op *op;
    SOCKET accepted; /* ACCEPT: the new socket */
    int64_t result;  /* KEY_DONE */
    bool is_done;
    DWORD flags;
    struct afd_poll poll;      /* POLL */
    char names[2 * NAME_ROOM]; /* ACCEPT */
};

_Static_assert(sizeof(OVERLAPPED_ENTRY) * PACKETS_MAX <= sizeof((struct bz_reaped *)0)->room,
               "the packets fit");

static struct iocp *iocp_of(struct bz_poll *poll)
{
    return bz_load_relaxed(&poll->own); /* relaxed: constant since init */
}

static HANDLE port_of(struct bz_poll *poll)
{
    return bz_load_acquire(&iocp_of(poll)->port); /* [P] */
}

/* ---- opening ---- */

/* A handle of the driver of sockets, bound to the port. */
static HANDLE open_afd(HANDLE port)
{
    static wchar_t path[] = L"\\Device\\Afd\\blitz";
    UNICODE_STRING name = {sizeof path - sizeof *path, sizeof path, path};
    OBJECT_ATTRIBUTES what = {.Length = sizeof what, .ObjectName = &name};
    IO_STATUS_BLOCK status;
    HANDLE afd = NULL;
    if (!NT_SUCCESS(NtCreateFile(&afd, SYNCHRONIZE, &what, &status, NULL, 0,
                                 FILE_SHARE_READ | FILE_SHARE_WRITE, FILE_OPEN, 0, NULL, 0)))
        return NULL;
    if (CreateIoCompletionPort(afd, port, KEY_OPERATION, 0) != NULL)
        return afd;
    CloseHandle(afd);
    return NULL;
}

static int iocp_open(struct bz_poll *poll)
{
    struct iocp *own = iocp_of(poll);
    int err = 0;
    if (port_of(poll) != NULL)
        return 0;
    bz_lock_take(&own->lock, poll->os);
    if (port_of(poll) == NULL) {
        HANDLE port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
        own->afd = port != NULL ? open_afd(port) : NULL;
        if (own->afd == NULL) {
            err = port == NULL ? -ENOMEM : -ENOSYS;
            if (port != NULL)
                CloseHandle(port);
            port = NULL;
        }
        bz_store_release(&own->port, port); /* [P] */
    }
    bz_lock_drop(&own->lock, poll->os);
    if (err == 0)
        bz_poll_rouse(poll); /* its machine may sleep on the word */
    return err;
}

/* Bind the socket to this poll's port, unless it is bound. Under the file's lock. */
static int bind_to(struct bz_poll *poll, struct bz_file *f)
{
    if (f->kept != 0)
        return 0;
    int err = iocp_open(poll);
    if (err != 0)
        return err;
    if (CreateIoCompletionPort((HANDLE)f->fd, port_of(poll), KEY_OPERATION, 0) == NULL)
        return -EBUSY;         /* the program has bound it to a port of its own */
    f->kept = (uintptr_t)poll; /* I3 */
    return 0;
}

/* ---- starting ---- */

static const GUID accept_ex = WSAID_ACCEPTEX;

/* Find a function of the socket's provider. */
static void *function_of(SOCKET s, const GUID *which)
{
    void *found = NULL;
    DWORD bytes;
    return WSAIoctl(s, SIO_GET_EXTENSION_FUNCTION_POINTER, (void *)which, sizeof *which, &found,
                    sizeof found, &bytes, NULL, NULL) == 0
               ? found
               : NULL;
}

/* 0: it is in flight, and a packet will come. */
static int outcome(bool is_ok)
{
    int err = is_ok ? 0 : WSAGetLastError();
    return err == 0 || err == WSA_IO_PENDING ? 0 : -bz_winsock_error(err);
}

static int start_accept(struct flight *r, SOCKET listener)
{
    struct sockaddr_storage at;
    int bytes = sizeof at;
    DWORD got;
    LPFN_ACCEPTEX call = (LPFN_ACCEPTEX)(uintptr_t)function_of(listener, &accept_ex);
    if (getsockname(listener, (struct sockaddr *)&at, &bytes) != 0 || call == NULL)
        return bz_winsock_failed();
    r->accepted = WSASocketW(at.ss_family, SOCK_STREAM, 0, NULL, 0,
                             WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT);
    if (r->accepted == INVALID_SOCKET)
        return bz_winsock_failed();
    int err = outcome(
        call(listener, r->accepted, r->names, 0, NAME_ROOM, NAME_ROOM, &got, &r->overlapped));
    if (err != 0)
        closesocket(r->accepted);
    return err;
}

/*
 * Readiness, asked of the driver of sockets through a handle of our own. It binds no socket, so foreign sockets can be waited for, and
 * a connect. The interface is not documented. Event loops have used it for many years, and select is made of it.
 */
enum {
    AFD_RECEIVE = 1,
    AFD_SEND = 4,
    AFD_DISCONNECT = 8,
    AFD_ABORT = 0x10,
    AFD_ACCEPT = 0x80,
    AFD_CONNECT_FAIL = 0x100,
    IOCTL_POLL = 0x12024
};

static int start_poll(struct bz_poll *bound, struct flight *r, SOCKET s, short events)
{
    SOCKET base = s;
    DWORD got;
    ULONG wanted = AFD_ABORT;
    (void)WSAIoctl(s, SIO_BASE_HANDLE, NULL, 0, &base, sizeof base, &got, NULL, NULL);
    if (events & POLLIN)
        wanted |= AFD_RECEIVE | AFD_ACCEPT | AFD_DISCONNECT;
    if (events & POLLOUT)
        wanted |= AFD_SEND | AFD_CONNECT_FAIL;
    r->poll = (struct afd_poll){.timeout.QuadPart = INT64_MAX, .count = 1};
    r->poll.handle = (HANDLE)base;
    r->poll.events = wanted;
    NTSTATUS status = NtDeviceIoControlFile(iocp_of(bound)->afd, NULL, NULL, &r->overlapped,
                                            (IO_STATUS_BLOCK *)(void *)&r->overlapped, IOCTL_POLL,
                                            &r->poll, sizeof r->poll, &r->poll, sizeof r->poll);
    return NT_SUCCESS(status) ? 0 : -bz_winsock_error((int)RtlNtStatusToDosError(status));
}

/* Events of poll(2). */
static int64_t polled(const struct flight *r)
{
    ULONG events = r->poll.count > 0 ? r->poll.events : 0;
    int64_t result = 0;
    if (events & (AFD_RECEIVE | AFD_ACCEPT | AFD_DISCONNECT | AFD_ABORT))
        result |= POLLIN & r->op->events;
    if (events & (AFD_SEND | AFD_CONNECT_FAIL | AFD_ABORT))
        result |= POLLOUT & r->op->events;
    if (events & AFD_ABORT)
        result |= POLLHUP;
    if (events & AFD_CONNECT_FAIL)
        result |= POLLERR;
    return result;
}

/* The pieces as the system's. Returns their number: more than the room are left for the next call. */
static DWORD pieces_of(const blitz_piece *from, size_t count, WSABUF to[PIECES_MAX])
{
    DWORD used = 0;
    for (size_t i = 0; i < count && used < PIECES_MAX; i++) {
        size_t bytes = from[i].bytes < 1u << 30 ? from[i].bytes : 1u << 30;
        to[used++] = (WSABUF){.len = (ULONG)bytes, .buf = from[i].data};
        if (bytes < from[i].bytes)
            break;
    }
    return used;
}

static int start_recv(struct flight *r, SOCKET s, const blitz_piece *pieces, size_t count,
                      struct bz_msg *msg, int flags)
{
    WSABUF buffers[PIECES_MAX];
    DWORD used = pieces_of(pieces, count, buffers);
    r->flags = flags & BZ_MSG_PEEK ? MSG_PEEK : 0;
    if (msg == NULL || msg->name == NULL)
        return outcome(WSARecv(s, buffers, used, NULL, &r->flags, &r->overlapped, NULL) == 0);
    return outcome(WSARecvFrom(s, buffers, used, NULL, &r->flags, (struct sockaddr *)msg->name,
                               (int *)&msg->name_bytes, &r->overlapped, NULL) == 0);
}

static void done_already(struct bz_poll *bound, struct flight *r, int64_t result)
{
    r->is_done = true;
    r->result = result;
    BZ_CHECK(PostQueuedCompletionStatus(port_of(bound), 0, KEY_DONE, &r->overlapped),
             "a packet cannot be sent to a port of our own: error %lu", GetLastError());
}

static int start_send(struct bz_poll *bound, struct flight *r, SOCKET s, const blitz_piece *pieces,
                      size_t count, struct bz_msg *msg)
{
    WSABUF buffers[PIECES_MAX];
    DWORD used = pieces_of(pieces, count, buffers), sent = 0;
    bool has_name = msg != NULL && msg->name != NULL;
    struct sockaddr *to = has_name ? (struct sockaddr *)msg->name : NULL;
    int bytes = has_name ? (int)msg->name_bytes : 0;
    if (WSASendTo(s, buffers, used, &sent, 0, to, bytes, NULL, NULL) == 0) {
        done_already(bound, r, sent);
        return 0;
    }
    if (WSAGetLastError() != WSAEWOULDBLOCK)
        return bz_winsock_failed();
    return outcome(WSASendTo(s, buffers, used, NULL, 0, to, bytes, &r->overlapped, NULL) == 0);
}

static int start(struct bz_poll *bound, struct flight *r, struct bz_op *op)
{
    SOCKET s = (SOCKET)op->file->fd;
    blitz_piece one = {op->buffer.data, op->buffer.bytes};
    struct bz_msg *msg = op->msg.header;
    memset(&r->overlapped, 0, sizeof r->overlapped);
    switch (op->code) {
    case BZ_OP_ACCEPT:
        return start_accept(r, s);
    case BZ_OP_POLL:
        return start_poll(bound, r, s, op->events);
    case BZ_OP_RECV:
        return start_recv(r, s, &one, 1, NULL, op->flags);
    case BZ_OP_RECVMSG:
        return start_recv(r, s, msg->pieces, msg->piece_count, msg, op->flags);
    case BZ_OP_SEND:
        return start_send(bound, r, s, &one, 1, NULL);
    case BZ_OP_SENDMSG:
        return start_send(bound, r, s, msg->pieces, msg->piece_count, msg);
    default:
        return -EOPNOTSUPP;
    }
}

static int iocp_submit(struct bz_poll *poll, struct bz_op *op)
{
    struct bz_file *f = op->file;
    bool is_poll = op->code == BZ_OP_POLL;
    int err = is_poll ? iocp_open(poll) : bind_to(poll, f);
    if (err != 0)
        return err;
    struct bz_poll *bound = is_poll ? poll : (struct bz_poll *)f->kept; /* I3 */
    struct flight *r = bz_alloc(poll->files->alloc, sizeof *r, _Alignof(struct flight));
    if (r == NULL)
        return -ENOMEM;
    r->op = op;
    r->is_done = false;
    op->poll = bound;
    op->is_cancelled = 0;
    op->result = (int64_t)(uintptr_t)r; /* I2 */
    op->state = BZ_OP_IN_FLIGHT;
    bz_list_push_back(&f->flying, &op->request.waiter.in);
    bz_fetch_add_relaxed(&bound->attached, 1); /* I1; relaxed: its machine sleeps at the port */
    err = start(bound, r, op);
    if (err == 0)
        return 0;
    bz_fetch_sub_relaxed(&bound->attached, 1); /* relaxed: likewise */
    bz_list_remove(&op->request.waiter.in);
    op->state = BZ_OP_NEW;
    bz_free(poll->files->alloc, r, sizeof *r);
    return err;
}

static void iocp_cancel(struct bz_poll *poll, struct bz_op *op)
{
    struct flight *r = (struct flight *)(uintptr_t)op->result; /* I2 */
    HANDLE of = op->code == BZ_OP_POLL ? iocp_of(poll)->afd : (HANDLE)op->file->fd;
    op->is_cancelled = 1;
    (void)CancelIoEx(of, &r->overlapped); /* not found: its packet has been sent */
}

/* ---- gathering packets ---- */

static void kick_port(struct bz_poll *poll, HANDLE port)
{
    if (bz_xchg_seqcst(&iocp_of(poll)->has_kick, 1) == 0) /* [H] */
        (void)PostQueuedCompletionStatus(port, 0, KEY_KICK, NULL);
}

/* Returns false if the time was up. A thread that sleeps has counted itself: it is no longer inside when it looks at what it got. */
static bool gather(struct bz_poll *poll, HANDLE port, bool sleeps, DWORD ms,
                   struct bz_reaped *reaped)
{
    OVERLAPPED_ENTRY *packets = (void *)reaped->room;
    struct iocp *own = iocp_of(poll);
    ULONG count = 0;
    bool is_kicked = false;
    BOOL is_any = GetQueuedCompletionStatusEx(port, packets, PACKETS_MAX, &count, ms, FALSE);
    if (sleeps)
        (void)bz_fetch_sub_seqcst(&own->inside, 1); /* [H] */
    if (!is_any)
        return false;
    for (ULONG i = 0; i < count; i++) {
        if (packets[i].lpCompletionKey == KEY_KICK) {
            is_kicked = true;
            continue;
        }
        struct bz_reaped_entry *e = &reaped->entry[reaped->count++];
        e->key = (uint64_t)(uintptr_t)packets[i].lpOverlapped;
        e->what = 0;
        e->more = 0;
    }
    if (is_kicked) {
        bz_store_seqcst(&own->has_kick, 0); /* [H] */
        if (bz_load_seqcst(&own->inside) >
            0) /* [H] it may be meant for a thread that is still inside */
            kick_port(poll, port);
    }
    return true;
}

/* Milliseconds until then, rounded up. */
static DWORD ms_until(const struct bz_os *os, uint64_t until_ns)
{
    const uint64_t day_ms = 86400000;
    uint64_t now = until_ns != BZ_OS_FOREVER ? bz_os_now(os) : 0;
    if (until_ns == BZ_OS_FOREVER)
        return INFINITE;
    uint64_t ms = until_ns > now ? (until_ns - now - 1) / 1000000 + 1 : 0;
    return (DWORD)(ms < day_ms ? ms : day_ms);
}

static int iocp_wait(struct bz_poll *poll, uint64_t until_ns, struct bz_reaped *reaped)
{
    struct iocp *own = iocp_of(poll);
    HANDLE port = port_of(poll);
    if (port == NULL) {
        int err = bz_os_wait(poll->os, &poll->roused, 0, until_ns);
        return err == -ETIMEDOUT ? err : 0;
    }
    (void)bz_fetch_add_seqcst(&own->inside, 1); /* [K] [H] */
    bool is_roused = bz_poll_was_roused(poll);
    DWORD ms = is_roused ? 0 : ms_until(poll->os, until_ns);
    bool is_any = gather(poll, port, true, ms, reaped);
    if (is_any || is_roused || until_ns == BZ_OS_FOREVER)
        return 0;
    return bz_os_now(poll->os) >= until_ns ? -ETIMEDOUT : 0;
}

static void iocp_reap(struct bz_poll *poll, struct bz_reaped *reaped)
{
    HANDLE port = port_of(poll);
    if (port != NULL)
        (void)gather(poll, port, false, 0, reaped);
}

static void iocp_kick(struct bz_poll *poll)
{
    bz_os_wake(poll->os, &poll->roused, UINT32_MAX); /* rouse a machine that sleeps on the word */
    bz_fence_seqcst();                               /* [K] */
    HANDLE port = port_of(poll);
    if (port != NULL)
        kick_port(poll, port);
}

/* ---- results ---- */

/* The new socket behaves as the listener's, and is non-blocking for calls that do not wait. */
static int64_t take_accepted(struct flight *r, SOCKET listener)
{
    struct bz_op *op = r->op;
    int bytes = sizeof *op->name.address;
    (void)setsockopt(r->accepted, SOL_SOCKET, SO_UPDATE_ACCEPT_CONTEXT, (const char *)&listener,
                     sizeof listener);
    if (op->name.address != NULL &&
        getpeername(r->accepted, (struct sockaddr *)op->name.address, &bytes) != 0)
        bytes = 0;
    op->name.bytes = (uint32_t)bytes;
    u_long is_on = 1;
    (void)ioctlsocket(r->accepted, (long)FIONBIO, &is_on);
    return (int64_t)r->accepted;
}

static int64_t result_of(struct flight *r)
{
    struct bz_op *op = r->op;
    SOCKET s = (SOCKET)op->file->fd;
    DWORD bytes = 0, flags = 0;
    if (r->is_done)
        return r->result;
    if (op->code == BZ_OP_POLL)
        return r->overlapped.Internal == 0 ? polled(r)
                                           : -bz_winsock_error((int)RtlNtStatusToDosError(
                                                 (NTSTATUS)r->overlapped.Internal));
    bool is_ok = WSAGetOverlappedResult(s, &r->overlapped, &bytes, FALSE, &flags);
    int err = is_ok ? 0 : WSAGetLastError();
    if (op->code == BZ_OP_ACCEPT && is_ok)
        return take_accepted(r, s);
    if (op->code == BZ_OP_ACCEPT)
        closesocket(r->accepted);
    return is_ok ? (int64_t)bytes : -bz_winsock_error(err);
}

static void iocp_deliver(struct bz_poll *poll, struct bz_reaped *reaped,
                         struct bz_wake wakes[BZ_SIDES])
{
    struct flight *r = (struct flight *)(uintptr_t)reaped->entry[reaped->at].key;
    struct bz_op *op = r->op;
    struct bz_file *f = op->file; /* I2 */
    bz_file_lock(f);
    int64_t result = result_of(r);
    if (result == -ECANCELED && !op->is_cancelled && !bz_file_is_closing(f) &&
        start(poll, r, op) == 0) {
        bz_file_unlock(f); /* ended by the system, without a request of ours: once more */
        return;
    }
    bz_list_remove(&op->request.waiter.in);
    bz_fetch_sub_relaxed(&poll->attached, 1); /* I1; relaxed: a wait without events is harmless */
    if (result == -ECANCELED && bz_file_is_closing(f))
        result = -EBADF;
    op->result = result;
    op->state = BZ_OP_DONE;
    unsigned is_in = op->is_in;
    op->is_in = 0;
    bz_free(poll->files->alloc, r, sizeof *r);
    (void)!bz_waiter_claim(&op->request.waiter, 0,
                           &wakes[0]); /* from here on the owner owns the operation */
    bz_file_leave_unlock(f, &(struct bz_op){.is_in = (uint8_t)is_in});
}

/* ---- the backend ---- */

static int iocp_attach(struct bz_poll *poll, struct bz_file *f)
{
    (void)poll;
    (void)f;
    return 0;
}

static void iocp_fini(struct bz_poll *poll)
{
    struct iocp *own = iocp_of(poll);
    HANDLE port = port_of(poll);
    if (port != NULL) {
        CloseHandle(own->afd);
        CloseHandle(port);
    }
    bz_free(poll->files->alloc, own, sizeof *own);
    poll->ops = NULL;
}

static const struct bz_poll_ops iocp_ops = {
    .name = "iocp",
    .completes = true,
    .wait = iocp_wait,
    .reap = iocp_reap,
    .deliver = iocp_deliver,
    .attach = iocp_attach,
    .submit = iocp_submit,
    .cancel = iocp_cancel,
    .kick = iocp_kick,
    .fini = iocp_fini,
};

bool bz_poll_iocp_is_there(void)
{
    return true;
}

int bz_poll_iocp_init(struct bz_poll *poll, const struct bz_os *os, struct bz_files *files)
{
    struct iocp *own = bz_alloc(files->alloc, sizeof *own, _Alignof(struct iocp));
    if (own == NULL)
        return -ENOMEM;
    bz_lock_init(&own->lock);
    bz_atomic_init(&own->port, NULL);
    own->afd = NULL;
    bz_atomic_init(&own->inside, 0);
    bz_atomic_init(&own->has_kick, 0);
    poll->ops = &iocp_ops;
    poll->os = os;
    poll->files = files;
    bz_atomic_init(&poll->own, own);
    bz_atomic_init(&poll->attached, 0);
    bz_atomic_init(&poll->heir, NULL);
    bz_atomic_init(&poll->roused, 0);
    return 0;
}
