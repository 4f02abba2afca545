/*
 * control.c - control messages, read.
 *
 * A control message is a tuple: a number, and parts that the number decides. The table below says which, by a letter for each part. So
 * each message is checked in one place: the number of parts and the kind of each. A message that is not in the table closes its
 * connection. A peer sends only what its flags and ours allow, and we offer nothing that is missing here.
 */
#include "node/control.h"

#include <errno.h>
#include <string.h>

/* The letters of parts:
 *   f  the pid of the sender       F  the same, or its name
 *   t  the pid of the receiver     n  its name                T  either
 *   r  a reference                 i  the id of an unlink
 *   e  a reason                    _  any term
 *   m  a function                  o  options */
static const struct {
    uint8_t op;
    bool has_payload;
    char parts[7];
} forms[] = {
    {BZ_CONTROL_LINK, false, "ft"},
    {BZ_CONTROL_SEND, true, "_t"},
    {BZ_CONTROL_EXIT, false, "fte"},
    {BZ_CONTROL_UNLINK, false, "ft"},
    {BZ_CONTROL_NODE_LINK, false, ""},
    {BZ_CONTROL_REG_SEND, true, "f_n"},
    {BZ_CONTROL_GROUP_LEADER, false, "ft"},
    {BZ_CONTROL_EXIT2, false, "fte"},
    {BZ_CONTROL_SEND_TT, true, "_t_"},
    {BZ_CONTROL_EXIT_TT, false, "ft_e"},
    {BZ_CONTROL_REG_SEND_TT, true, "f_n_"},
    {BZ_CONTROL_EXIT2_TT, false, "ft_e"},
    {BZ_CONTROL_MONITOR, false, "fTr"},
    {BZ_CONTROL_DEMONITOR, false, "fTr"},
    {BZ_CONTROL_MONITOR_EXIT, false, "Ftre"},
    {BZ_CONTROL_SEND_SENDER, true, "ft"},
    {BZ_CONTROL_SEND_SENDER_TT, true, "ft_"},
    {BZ_CONTROL_UNLINK_ID, false, "ift"},
    {BZ_CONTROL_UNLINK_ID_ACK, false, "ift"},
    {BZ_CONTROL_ALIAS_SEND, true, "fr"},
    {BZ_CONTROL_ALIAS_SEND_TT, true, "fr_"},
    {BZ_CONTROL_SPAWN_REQUEST, true, "rf_mo"},
    {BZ_CONTROL_SPAWN_REQUEST_TT, true, "rf_mo_"},
    {BZ_CONTROL_SPAWN_REPLY, false, "rtie"},
    {BZ_CONTROL_SPAWN_REPLY_TT, false, "rtie_"},
};

/* A pid, or the name of a process. */
static int get_either(blitz_term_in *in, bool *is_name, blitz_term_pid *pid, blitz_term_atom *name)
{
    *is_name = blitz_term_get_atom(in, name) == 0;
    return *is_name ? 0 : blitz_term_get_pid(in, pid);
}

static int get_part(blitz_term_in *in, char kind, struct bz_control *out)
{
    switch (kind) {
    case 'f':
        return blitz_term_get_pid(in, &out->from);
    case 'F':
        return get_either(in, &out->from_is_name, &out->from, &out->from_name);
    case 't':
        return blitz_term_get_pid(in, &out->to);
    case 'n':
        out->to_is_name = true;
        return blitz_term_get_atom(in, &out->to_name);
    case 'T':
        return get_either(in, &out->to_is_name, &out->to, &out->to_name);
    case 'r':
        return blitz_term_get_ref(in, &out->ref);
    case 'i':
        return blitz_term_get_uint(in, &out->id);
    case 'm':
        return blitz_term_take(in, &out->function);
    case 'o':
        return blitz_term_take(in, &out->options);
    case 'e':
        return blitz_term_take(in, &out->reason);
    default:
        return blitz_term_skip(in);
    }
}

int bz_control_get(blitz_term term, struct bz_control *out)
{
    blitz_term_in in = blitz_term_in_of(term);
    uint32_t arity;
    int64_t op;
    if (blitz_term_get_tuple(&in, &arity) != 0 || arity == 0 || blitz_term_get_int(&in, &op) != 0)
        return -EPROTO;
    size_t i = 0;
    while (i < BZ_ARRAY_LEN(forms) && forms[i].op != op)
        i++;
    if (i == BZ_ARRAY_LEN(forms) || strlen(forms[i].parts) != arity - 1)
        return -EPROTO;
    *out = (struct bz_control){.op = (enum bz_control_op)op, .has_payload = forms[i].has_payload};
    for (const char *part = forms[i].parts; *part != '\0'; part++)
        if (get_part(&in, *part, out) != 0)
            return -EPROTO;
    return 0;
}
