/*
 * rows.c - the messages of a behaviour as terms.
 *
 * The table has a row for each message that may come from elsewhere. A message without a row never does.
 */
#include "blitz/term_struct.h"

#include "term/out.h"
#include "term/table.h"

static int put_row(blitz_term_out *out, const blitz_term_message *table, size_t count,
                   uint32_t what, const void *payload, size_t size, blitz_term_env *env)
{
    for (size_t i = 0; i < count; i++)
        if (table[i].what == what)
            return size != table[i].payload->size
                       ? -EINVAL
                       : blitz_term_put_struct(out, table[i].payload, payload, env);
    return -ENOENT;
}

int blitz_term_put_message(blitz_term_out *out, const blitz_term_message *table, size_t count,
                           uint32_t what, const void *payload, size_t size, blitz_term_env *env)
{
    int rc = put_row(out, table, count, what, payload, size, env);
    if (rc != 0)
        bz_term_out_fail(out, rc);
    return rc;
}

int blitz_term_get_message(blitz_term_in *in, const blitz_term_message *table, size_t count,
                           const blitz_term_message **row, void *payload, size_t cap,
                           blitz_term_env *env)
{
    struct bz_term_first first;
    int rc = bz_term_first_get(*in, &first);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < count; i++) {
        if (!bz_term_table_fits(&first, table[i].payload))
            continue;
        if (table[i].payload->size > cap)
            return -ERANGE;
        rc = blitz_term_get_struct(in, table[i].payload, payload, env);
        if (rc == 0)
            *row = &table[i];
        return rc;
    }
    return -ENOENT;
}
