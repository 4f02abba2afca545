/*
 * reference.c - the reference in a message, for its receiver.
 *
 * A blitz_msg has no field for it: every message of every actor would clear it. It is in the letter. The letter of a message that is
 * being handled is the first in the mailbox, and a task that receives knows its last one. The payload tells whether the message
 * is that letter's: a message about the end of an actor has none.
 */
#include "actor/actors.h"
#include "actor/cargo.h"
#include "blitz/reference.h"

blitz_reference *blitz_msg_reference(const blitz_msg *m)
{
    struct bz_actor *me = bz_actor_self();
    if (me != NULL)
        return bz_handled_reference(me, m);
    const struct bz_letter *l = bz_receiver_current();
    return l != NULL && m->data == l->data ? bz_letter_reference(l) : NULL;
}
