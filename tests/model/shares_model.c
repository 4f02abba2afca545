/*
 * shares_model.c - holders of a counted thing: the last one frees it, a single one may write to it.
 *
 *   covers: src/actor/shares.h
 */
#include "model.h"

#include "actor/shares.h"

struct thing {
    struct bz_shares shares;
    bz_shared(int) bytes;
};

static struct thing *thing;
static int freed, wrote;

static void given(size_t holders)
{
    thing = m_alloc(sizeof *thing);
    bz_shares_init(&thing->shares, holders);
    bz_set(&thing->bytes, 7);
    freed = wrote = 0;
}

static void leaves(void)
{
    if (bz_shares_drop(&thing->shares)) {
        freed++;
        m_free(thing);
    }
}

static void reads(void)
{
    m_assert(bz_get(&thing->bytes) == 7);
    leaves();
}

/* shares.h [S]: no holder reads memory that is freed. */
MODEL(shares, the_last_holder_frees_when_the_others_have_read)
{
    given(3);
    m_threads(reads, reads, reads);
    m_assert(freed == 1);
}

static void writes_if_single(void)
{
    if (bz_shares_is_single(&thing->shares)) {
        bz_set(&thing->bytes, 8); /* a race, if another still reads */
        wrote++;
    }
    leaves();
}

/* shares.h [S] */
MODEL(shares, a_single_holder_writes_after_all_reads)
{
    given(2);
    m_threads(reads, writes_if_single);
    m_assert(freed == 1);
    m_sometimes(wrote == 1);
    m_sometimes(wrote == 0);
}

/* A share for a message, which is dropped as well. */
static void shares_with_another(void)
{
    bz_shares_add(&thing->shares);
    reads();
    leaves();
}

MODEL(shares, one_that_is_added_keeps_it_alive)
{
    given(2);
    m_threads(shares_with_another, reads);
    m_assert(freed == 1);
}
