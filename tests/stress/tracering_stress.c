/* trace/tracering.h on real threads: readers beside a writer that never stops see no record twice,
 * none out of order and none that is half another. */
#include "harness.h"

#include "trace/tracering.h"

enum { SIZE = 64, READERS = 2 };
static bz_atomic(uint64_t) words[SIZE * BZ_RECORD_WORDS];
static struct bz_tracering ring;
static bz_atomic(uint32_t) readers_left;
static uint64_t rounds;

static void write_on(void)
{
    uint64_t n = 0;
    while (bz_load_relaxed(&readers_left) != 0) {
        bz_tracering_push(&ring, &(struct bz_record){{n, ~n, n * 3, n ^ 0x5555}});
        n++;
    }
}

static void check_is(const struct bz_record *r, uint64_t n)
{
    CHECK_EQ(r->word[0], n);
    CHECK_EQ(r->word[1], ~n);
    CHECK_EQ(r->word[2], n * 3);
    CHECK_EQ(r->word[3], n ^ 0x5555);
}

static void read_on(void)
{
    struct bz_record out[SIZE];
    uint64_t at = 0, lost = 0, got = 0;
    /* On a busy machine the writer runs while the readers do not, and most records are lost. */
    for (uint64_t looks = 0; got < rounds && looks < 10 * rounds; looks++) {
        size_t n = bz_tracering_read(&ring, &at, out, SIZE, &lost);
        for (size_t i = 0; i < n; i++)
            check_is(&out[i], at - n + i);
        got += n;
        CHECK_EQ(got + lost, at);
    }
    bz_fetch_sub_relaxed(&readers_left, 1);
}

static void writer_and_readers(void *arg, int index)
{
    (void)arg;
    if (index == 0)
        write_on();
    else
        read_on();
}

TEST(tracering, readers_beside_a_writer_see_whole_records)
{
    rounds = 1000 + t_scaled(2000000);
    bz_store_relaxed(&readers_left, READERS);
    bz_tracering_init(&ring, words, SIZE);
    t_threads(1 + READERS, writer_and_readers, NULL);
    CHECK_GT(bz_tracering_count(&ring), 0u); /* how many depends on the load */
}
