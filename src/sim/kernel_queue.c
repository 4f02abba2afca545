/*
 * kernel_queue.c - the simulated network: queues of kevents, as macOS and the BSDs have them.
 *
 * The rules are those of io/sys_queues.h, which differ from epoll's:
 *
 *   - A registration (a *note*) belongs to a descriptor and a filter, not to a file. A second one for the same two replaces
 *     the key of the first. The close of the descriptor removes it, though the file may live on.
 *   - A change of a file activates the notes of the side that has changed, once their filter is true. So a change of one
 *     side says nothing of the other.
 *   - Active notes are returned in the order in which they became active. A wait asks the filter again: an edge whose cause
 *     is gone returns nothing. With BZ_EV_CLEAR the note is then inactive until the next change; one caller has it.
 *   - An end is a flag of the event, perhaps beside bytes, and stays until it is read. There are no spurious events.
 *
 * The seed decides how many events are returned at once, interrupted waits, and the delay of an edge.
 *
 * I1  A queue has at most one note for each descriptor (or name of a user event) and filter.
 */
#include <errno.h>

#include "base/check.h"
#include "sim/kernel.h"

static void note_drop(struct sim_note *n)
{
    bz_list_remove(&n->of_queue);
    bz_list_remove(&n->of_file);
    bz_list_remove(&n->active);
    n->queue = NULL;
}

void bz_sim_queue_end(struct sim_file *f)
{
    while (!bz_list_is_empty(&f->queue.notes))
        note_drop(BZ_CONTAINER_OF(f->queue.notes.next, struct sim_note, of_queue));
}

void bz_sim_queues_forget(int fd)
{
    struct sim_note *n = bz_sim_kernel->note;
    for (; n < bz_sim_kernel->note + SIM_NOTES; n++)
        if (n->queue != NULL && n->is.filter != BZ_FILTER_USER && n->is.fd == fd)
            note_drop(n);
}

/* ---- filters ---- */

static bool is_read_true(struct sim_file *f, struct bz_kevent *out)
{
    const struct sim_socket *s = &f->socket;
    unsigned mask = bz_sim_mask(f);
    if (f->kind != SIM_SOCKET)
        return mask & EPOLLIN;
    out->data = s->state == SIM_LISTENS ? s->line_count : s->in.here - s->in.got;
    if (s->state == SIM_FRESH ? s->error == 0 : s->state == SIM_CONNECTS)
        return false;
    if (s->state == SIM_FRESH || mask & EPOLLRDHUP) {
        out->flags |= BZ_EV_EOF;
        out->error = s->error;
    }
    return mask & (EPOLLIN | EPOLLRDHUP);
}

static bool is_write_true(struct sim_file *f, struct bz_kevent *out)
{
    const struct sim_socket *s = &f->socket;
    unsigned mask = bz_sim_mask(f);
    if (f->kind != SIM_SOCKET)
        return mask & EPOLLOUT;
    if (s->state == SIM_FRESH ? s->error == 0 : s->state != SIM_CONNECTED)
        return false;
    if (s->state == SIM_FRESH || s->is_dead || s->is_ended) {
        out->flags |= BZ_EV_EOF;
        out->error = s->error;
    }
    return mask & EPOLLOUT;
}

/* Ask the filter; *out is the event. */
static bool is_true(struct sim_note *n, struct bz_kevent *out)
{
    *out = (struct bz_kevent){.key = n->is.key, .fd = n->is.fd, .filter = n->is.filter};
    if (n->file == NULL)
        return n->is_triggered; /* a user event */
    return n->is.filter == BZ_FILTER_READ ? is_read_true(n->file, out)
                                          : is_write_true(n->file, out);
}

static bool activate(struct sim_note *n)
{
    struct bz_kevent event;
    bool is_new = !bz_list_is_linked(&n->active) && is_true(n, &event);
    if (is_new)
        bz_list_push_back(&n->queue->queue.active, &n->active);
    return is_new;
}

void bz_sim_queues_edge(struct sim_file *f, unsigned sides)
{
    BZ_LIST_FOR_EACH (node, &f->notes) {
        struct sim_note *n = BZ_CONTAINER_OF(node, struct sim_note, of_file);
        if (sides & (n->is.filter == BZ_FILTER_READ ? SIM_EDGE_IN : SIM_EDGE_OUT))
            (void)activate(n);
    }
}

/* ---- changes ---- */

static struct sim_note *note_of(struct sim_file *queue, const struct bz_kevent *c)
{
    BZ_LIST_FOR_EACH (node, &queue->queue.notes) {
        struct sim_note *n = BZ_CONTAINER_OF(node, struct sim_note, of_queue);
        if (n->is.fd == c->fd && n->is.filter == c->filter)
            return n;
    }
    return NULL;
}

static struct sim_note *note_new(struct sim_file *queue, const struct bz_kevent *c)
{
    struct sim_note *n = bz_sim_kernel->note;
    while (n < bz_sim_kernel->note + SIM_NOTES && n->queue != NULL)
        n++;
    BZ_CHECK(n < bz_sim_kernel->note + SIM_NOTES, "simulated queues have room for %d notes",
             SIM_NOTES);
    *n = (struct sim_note){.queue = queue};
    bz_list_init(&n->of_queue);
    bz_list_init(&n->of_file);
    bz_list_init(&n->active);
    bz_list_push_back(&queue->queue.notes, &n->of_queue);
    if (c->filter != BZ_FILTER_USER) {
        n->file = bz_sim_file_of(c->fd, SIM_NO_FILE);
        bz_list_push_back(&n->file->notes, &n->of_file);
    }
    return n;
}

/* Make one change. Returns 0 or a negative errno. */
static int make(struct sim_file *queue, const struct bz_kevent *c)
{
    struct sim_note *n = note_of(queue, c);
    if (c->filter != BZ_FILTER_USER && bz_sim_file_at(c->fd) == NULL)
        return -EBADF;
    if (n == NULL && !(c->flags & BZ_EV_ADD))
        return -ENOENT;
    if (c->flags & BZ_EV_DELETE) {
        note_drop(n);
        return 0;
    }
    if (c->flags & BZ_EV_ADD) {
        n = n != NULL ? n : note_new(queue, c);
        n->is = *c; /* I1: the key of an earlier one, too */
    }
    n->is_triggered |= (c->flags & BZ_EV_TRIGGER) != 0;
    if (activate(n))
        bz_sim_has_changed();
    return 0;
}

/* ---- events ---- */

static int gather_notes(struct sim_file *queue, struct bz_kevent *events, int room)
{
    struct bz_list again;
    int count = 0;
    bz_list_init(&again);
    while (!bz_list_is_empty(&queue->queue.active) && count < room) {
        struct sim_note *n = BZ_CONTAINER_OF(queue->queue.active.next, struct sim_note, active);
        if (count > 0 && bz_sim_odd(4))
            break;
        bz_list_remove(&n->active);
        if (!is_true(n, &events[count]))
            continue;
        count++;
        if (n->is.flags & BZ_EV_CLEAR)
            n->is_triggered = false;
        else
            bz_list_push_back(&again, &n->active);
    }
    bz_list_splice(&queue->queue.active, &again);
    bz_sim_kernel->books.told += (uint64_t)count;
    return count;
}

static int64_t wait_in_queue(struct sim_file *queue, struct bz_kevent *events, int room,
                             uint64_t until_ns)
{
    for (;;) {
        uint32_t was = bz_sim_changes();
        int n = gather_notes(queue, events, room);
        if (n > 0 || until_ns == 0 || bz_os_now(bz_sim_kernel->os) >= until_ns)
            return n;
        if (bz_sim_odd(64))
            return -EINTR;
        bz_sim_sleep(was, until_ns);
    }
}

/* ---- calls ---- */

static int sim_kqueue(void)
{
    bz_sim_call();
    struct sim_file *f = bz_sim_file_new(SIM_QUEUE);
    bz_list_init(&f->queue.notes);
    bz_list_init(&f->queue.active);
    return (int)bz_sim_outcome(bz_sim_fd_new(f));
}

static int sim_kevent(int fd, const struct bz_kevent *changes, int change_count,
                      struct bz_kevent *events, int room, const struct timespec *left)
{
    int64_t result = 0;
    uint64_t until = BZ_OS_FOREVER;
    bz_sim_call();
    struct sim_file *queue = bz_sim_file_of(fd, SIM_QUEUE);
    if (left != NULL && left->tv_sec < 1000000000) {
        uint64_t ns = (uint64_t)left->tv_sec * 1000000000 + (uint64_t)left->tv_nsec;
        until = ns == 0 ? 0 : bz_os_now(bz_sim_kernel->os) + ns;
    }
    for (int i = 0; i < change_count && result == 0; i++)
        result = make(queue, &changes[i]);
    if (result == 0 && room > 0) {
        queue->refs++;
        result = wait_in_queue(queue, events, room, until);
        bz_sim_file_unref(queue);
    }
    return (int)bz_sim_outcome(result);
}

const struct bz_sys_queues bz_sim_queues = {.kqueue = sim_kqueue, .kevent = sim_kevent};
