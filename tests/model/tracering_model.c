/*
 * tracering_model.c - trace/tracering.h: a reader never believes a record that is half another.
 *
 *   covers: src/trace/tracering.h src/trace/tracering.c
 *   defines: BZ_RECORD_WORDS=2
 *
 * A ring of two records of two words. Record n is {n, n * 10}, so a torn one shows.
 */
#include "trace/tracering.h"

#include "model.h"

static struct bz_tracering ring;
static bz_atomic(uint64_t) words[2 * BZ_RECORD_WORDS];

static struct bz_record got[2];
static size_t count;
static uint64_t at, lost;

static void push(uint64_t n)
{
    bz_tracering_push(&ring, &(struct bz_record){{n, n * 10}});
}

static void given(uint64_t written)
{
    for (unsigned i = 0; i < 2 * BZ_RECORD_WORDS; i++)
        bz_atomic_init(&words[i], 0);
    bz_tracering_init(&ring, words, 2);
    for (uint64_t n = 1; n <= written; n++)
        push(n);
    count = 0;
    at = lost = 0;
}

static void reader(void)
{
    count = bz_tracering_read(&ring, &at, got, 2, &lost);
    for (size_t i = 0; i < count; i++) {
        m_assert(got[i].word[1] == got[i].word[0] * 10);
        m_assert(got[i].word[0] == at - count + i + 1); /* in order, none twice, none left out */
    }
    m_assert(count + lost == at);
}

static void writes_one(void)
{
    push(bz_tracering_count(&ring) + 1);
}

static void writes_two(void)
{
    writes_one();
    writes_one();
}

/* [A]: what is below head is there. */
MODEL(tracering, a_record_that_is_counted_is_whole)
{
    given(0);
    m_threads(writes_one, reader);
    m_sometimes(count == 1);
    m_sometimes(count == 0);
}

/* [B]: the only record that is given out is being overwritten meanwhile. */
MODEL(tracering, a_record_that_is_overwritten_meanwhile_is_counted_as_lost)
{
    given(1);
    m_threads(writes_two, reader);
    m_sometimes(count == 1 && got[0].word[0] == 1);
    m_sometimes(count == 1 && got[0].word[0] == 2);
    m_sometimes(count == 1 && got[0].word[0] == 3);
    m_sometimes(count == 0 && lost > 0);
}

/* A full ring: the reader skips what is gone before it copies. */
MODEL(tracering, a_full_ring_gives_out_all_but_its_oldest)
{
    given(3);
    m_threads(writes_two, reader);
    m_sometimes(count == 1);
    m_sometimes(lost == 4);
}

/* Records that one call missed are seen by the next one. */
static void reads_twice(void)
{
    reader();
    size_t before = count;
    count = bz_tracering_read(&ring, &at, got, 2, &lost);
    for (size_t i = 0; i < count; i++)
        m_assert(got[i].word[0] == at - count + i + 1 && got[i].word[1] == got[i].word[0] * 10);
    m_assert(before + count + lost == at);
}

MODEL(tracering, a_reader_that_comes_back_goes_on_where_it_was)
{
    given(0);
    m_threads(writes_two, reads_twice);
    m_sometimes(at == 2);
}
