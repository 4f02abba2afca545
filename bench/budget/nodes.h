/*
 * nodes.h - messages between actors of one process, beside a connected node: they must cost what they cost without one.
 */
#ifndef BENCH_BUDGET_NODES_H
#define BENCH_BUDGET_NODES_H

#include "blitz/node.h"
#include "budget/actors.h"

/* Two nodes of this process that are connected. Nothing is sent between them. */
static void beside_nodes(void (*run)(uint64_t rounds), uint64_t rounds)
{
    blitz_node *node[2];
    blitz_node_info info;
    blitz_node_opts opts = {.no_epmd = true};
    must(blitz_node_start("a@localhost", "cookie", &opts, &node[0]), "node");
    blitz_node_info_get(node[0], &info);
    blitz_node_place place = {"a@localhost", blitz_addr_loopback_v4(info.port)};
    opts.places = &place;
    opts.place_count = 1;
    must(blitz_node_start("b@localhost", "cookie", &opts, &node[1]), "node");
    must(blitz_node_connect(node[1], "a@localhost", BLITZ_FOREVER), "connect");
    run(rounds);
    blitz_node_stop(node[1]);
    blitz_node_stop(node[0]);
}

static void hops_beside_nodes(uint64_t rounds)
{
    beside_nodes(actor_hops, rounds);
}

static void sends_beside_nodes(uint64_t rounds)
{
    beside_nodes(actor_sends, rounds);
}

/* The same hops while a task waits at a socket: the share of the backend. */
static int wait_at_socket(void *listener)
{
    blitz_tcp *t;
    if (blitz_tcp_accept(listener, &t, NULL, BLITZ_FOREVER) == 0)
        blitz_tcp_close(t);
    return 0;
}

static void hops_beside_socket(uint64_t rounds)
{
    blitz_addr at = blitz_addr_loopback_v4(0);
    blitz_tcp_listener *l;
    blitz_task *t;
    must(blitz_tcp_listen(&at, NULL, &l), "listen");
    must(blitz_spawn(wait_at_socket, l, NULL, &t), "spawn");
    blitz_yield();
    actor_hops(rounds);
    blitz_task_cancel(t);
    must(blitz_task_join(t, NULL, BLITZ_FOREVER), "join");
    blitz_tcp_listener_close(l);
}

#define BUDGET_NODES                                               \
    {"actor hop beside a socket", hops_beside_socket},             \
        {"actor hop beside a node", hops_beside_nodes},            \
    {                                                              \
        "actor send beside a node, 100 a turn", sends_beside_nodes \
    }

#endif
