/*
 * valve.h - a proxy between two nodes whose two directions may pass, drop their bytes, or stand still.
 *
 * A direction that stands is a peer that does not read. A direction that drops is a network that loses all: the sender sees its bytes go. A
 * valve that is severed tells no side of the close of the other, as a pulled cable. Each connection that is accepted has two tasks.
 */
#ifndef T_VALVE_H
#define T_VALVE_H

#include "base/bz_atomic.h"
#include "support/net.h"

enum t_valve_way { T_PASS, T_DROP, T_STAND };

enum { T_VALVE_CONNS = 64 };

struct t_valve_conn {
    struct t_valve *valve;
    blitz_tcp *end[2]; /* of the node that has connected, and of the other */
    blitz_task *pump[2];
};

struct t_valve {
    blitz_addr at, there; /* where it listens, and to where it leads */
    blitz_tcp_listener *listener;
    bz_atomic(int) way[2]; /* from the node that connects, and back */
    bz_atomic(bool) is_severed;
    blitz_task *keeper;
    struct t_valve_conn conn[T_VALVE_CONNS];
    unsigned count;
};

struct t_valve_pump {
    struct t_valve_conn *c;
    int way;
};

/* seq_cst, here and below: switches of a test */
static inline void t_valve_set(struct t_valve *v, enum t_valve_way forth, enum t_valve_way back)
{
    bz_store_seqcst(&v->way[0], (int)forth);
    bz_store_seqcst(&v->way[1], (int)back);
}

static inline void t_valve_sever(struct t_valve *v, bool severs)
{
    bz_store_seqcst(&v->is_severed, severs);
}

/* The way of a direction, when it does not stand, and when no cut cable hides the end. False: the valve ends. */
static inline bool t_valve_waits(struct t_valve *v, int way, int *now)
{
    while ((*now = bz_load_seqcst(&v->way[way])) == T_STAND)
        if (blitz_sleep(BLITZ_MS) != 0)
            return false;
    return true;
}

static inline int t_valve_pump(struct t_valve_conn *c, int way)
{
    char buf[4096];
    int now;
    for (int64_t n; t_valve_waits(c->valve, way, &now) &&
                    (n = blitz_tcp_read(c->end[way], buf, sizeof buf, BLITZ_FOREVER)) > 0;) {
        if (!t_valve_waits(c->valve, way, &now))
            break;
        if (now == T_PASS &&
            blitz_tcp_write_all(c->end[!way], buf, (size_t)n, NULL, BLITZ_FOREVER) != 0)
            break;
    }
    while (bz_load_seqcst(&c->valve->is_severed) && blitz_sleep(BLITZ_MS) == 0)
        ;
    for (int i = 0; i < 2; i++)
        blitz_tcp_close(blitz_tcp_ref(c->end[i]));
    return 0;
}

static int t_valve_forth(void *conn)
{
    return t_valve_pump(conn, 0);
}

static int t_valve_back(void *conn)
{
    return t_valve_pump(conn, 1);
}

static int t_valve_keep(void *valve)
{
    struct t_valve *v = valve;
    blitz_tcp *t;
    while (blitz_tcp_accept(v->listener, &t, NULL, BLITZ_FOREVER) == 0) {
        struct t_valve_conn *c = &v->conn[v->count];
        CHECK_LT(v->count, T_VALVE_CONNS);
        c->valve = v;
        c->end[0] = t;
        if (blitz_tcp_connect(&v->there, &c->end[1], blitz_after(10 * BLITZ_S)) != 0) {
            blitz_tcp_close(t);
            continue;
        }
        v->count++;
        c->pump[0] = t_spawn(t_valve_forth, c);
        c->pump[1] = t_spawn(t_valve_back, c);
    }
    return 0;
}

static inline void t_valve_start(struct t_valve *v, blitz_addr there)
{
    memset(v, 0, sizeof *v);
    v->there = there;
    v->listener = t_listen(&v->at);
    v->keeper = t_spawn(t_valve_keep, v);
}

static inline void t_valve_stop(struct t_valve *v)
{
    t_valve_sever(v, false);
    t_valve_set(v, T_PASS, T_PASS);
    blitz_task_cancel(v->keeper);
    t_join(v->keeper);
    for (unsigned i = 0; i < v->count; i++)
        for (int way = 0; way < 2; way++) {
            blitz_task_cancel(v->conn[i].pump[way]);
            t_join(v->conn[i].pump[way]);
        }
    for (unsigned i = 0; i < v->count; i++) {
        blitz_tcp_close(v->conn[i].end[0]);
        blitz_tcp_close(v->conn[i].end[1]);
    }
    blitz_tcp_listener_close(v->listener);
}

#endif
