/*
 * ids.c - from an id to a pid, and back.
 *
 * An actor of ours is the pid with its index as the number and its generation as the serial, with our name and creation. So a pid is made and
 * read without a table. The id of a pid of another node keeps all of it: index and generation are number and serial + 1, and the name is a
 * number of peers.c. The generation is never 0, which would mean no actor. A pid whose serial is the largest of 32 bits has no id; Erlang
 * does not count so far.
 */
#include <errno.h>
#include <string.h>

#include "node/node.h"

int blitz_node_pid_of(blitz_node *n, blitz_actor_id id, blitz_term_pid *pid)
{
    if (id.generation == 0)
        return -EINVAL;
    if (id.node == 0) {
        if (id.creation != n->rt->creation)
            return -EINVAL;
        *pid = (blitz_term_pid){{n->name, n->bytes, false}, id.index, id.generation, n->creation};
        return 0;
    }
    struct bz_peer *p = bz_peer_find(id.node);
    if (p == NULL)
        return -ESRCH;
    *pid = (blitz_term_pid){{p->name, p->bytes, false}, id.index, id.generation - 1, id.creation};
    bz_peer_unref(p); /* the node keeps it */
    return 0;
}

static bool is_ours(const blitz_node *n, blitz_term_atom name)
{
    return name.bytes == n->bytes && memcmp(name.text, n->name, n->bytes) == 0;
}

int bz_node_id_of(blitz_node *n, const blitz_term_pid *pid, bool makes, blitz_actor_id *id)
{
    char name[BLITZ_NODE_NAME_MAX];
    struct bz_peer *p;
    if (is_ours(n, pid->node)) {
        if (pid->creation != n->creation || pid->serial == 0)
            return -ESRCH;
        *id = bz_actor_id_make(n->rt, pid->id, pid->serial);
        return 0;
    }
    int bytes = blitz_term_atom_copy(pid->node, name, sizeof name);
    if (bytes < 0 || pid->serial == UINT32_MAX || !bz_node_name_is_good(name, (size_t)bytes))
        return -EINVAL;
    int rc = bz_peer_get(n, name, (size_t)bytes, makes, &p);
    if (rc != 0)
        return rc;
    *id = (blitz_actor_id){pid->id, pid->serial + 1, p->number, pid->creation};
    bz_peer_unref(p);
    return 0;
}

int blitz_node_id_of(blitz_node *n, const blitz_term_pid *pid, blitz_actor_id *id)
{
    return bz_node_id_of(n, pid, true, id);
}

static int env_pid_of(void *ctx, blitz_actor_id id, blitz_term_pid *pid)
{
    return blitz_node_pid_of(ctx, id, pid);
}

static int env_id_of(void *ctx, const blitz_term_pid *pid, blitz_actor_id *id)
{
    return bz_node_id_of(ctx, pid, true, id);
}

static int env_id_of_known(void *ctx, const blitz_term_pid *pid, blitz_actor_id *id)
{
    return bz_node_id_of(ctx, pid, false, id);
}

blitz_term_env blitz_node_env(blitz_node *n)
{
    return (blitz_term_env){.pid_of = env_pid_of, .id_of = env_id_of, .ctx = n};
}

blitz_term_env bz_node_env_known(blitz_node *n)
{
    return (blitz_term_env){.pid_of = env_pid_of, .id_of = env_id_of_known, .ctx = n};
}

int blitz_node_name_of(uint32_t number, char *name, size_t room)
{
    struct bz_peer *p = bz_peer_find(number);
    if (p == NULL)
        return -ESRCH;
    int rc = p->bytes < room ? 0 : -ERANGE;
    if (rc == 0)
        memcpy(name, p->name, (size_t)p->bytes + 1);
    bz_peer_unref(p);
    return rc;
}
