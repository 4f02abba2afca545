/* The poll(2) backend alone: the files in its list, and the end of a wait. */
#include "harness.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/poll.h"
#include "io/ready.h"

enum { MANY = 200 };

#define MS UINT64_C(1000000)

static struct bz_files files;
static struct bz_poll here;
static struct bz_file *file[MANY];
static int peer[MANY];
static struct bz_reaped heard;

static void forget(unsigned i)
{
    bz_half_set_ready(&file[i]->half[BZ_SIDE_IN], false);
    bz_half_set_ready(&file[i]->half[BZ_SIDE_OUT], false);
}

/* Files of which nothing is known: a new one is worth a try. */
static void begin(unsigned count)
{
    bz_files_init(&files, &bz_os_system, &bz_allocator_libc);
    bz_poll_posix_init(&here, &bz_os_system, &files);
    for (unsigned i = 0; i < count; i++) {
        int fd[2];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd), 0);
        CHECK_EQ(bz_file_open(&files, fd[0], BZ_FILE_STREAM, &file[i]), 0);
        peer[i] = fd[1];
        bz_file_lock(file[i]);
        CHECK_EQ(bz_poll_attach(&here, file[i]), 0);
        bz_file_unlock(file[i]);
        forget(i);
    }
}

static void end(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        bz_file_close(file[i], NULL, NULL);
        close(peer[i]);
    }
    bz_poll_fini(&here);
    CHECK_EQ(bz_files_fini(&files), 0u);
}

static void want(unsigned i, enum bz_side side)
{
    bz_file_lock(file[i]);
    here.ops->want(&here, file[i], side);
    bz_file_unlock(file[i]);
}

static bool is_ready(unsigned i, enum bz_side side)
{
    return bz_half_is_worth_a_try(&file[i]->half[side]);
}

/* Wait once and deliver what was heard. Returns how many files were heard, or -ETIMEDOUT. */
static int turn(uint64_t until)
{
    struct bz_wake wakes[BZ_SIDES];
    heard.count = heard.at = 0;
    bz_poll_prepare(&here);
    int err = bz_poll_wait(&here, until, &heard);
    while (bz_poll_deliver(&here, &heard, wakes)) {
    }
    return err != 0 ? err : (int)heard.count;
}

/* poll(2) reports readiness at every call. A file that was reported and has no waiter must not end
 * a wait. */
TEST(poll_posix, a_file_that_was_heard_is_not_listed_until_it_is_wanted_again)
{
    begin(2);
    want(0, BZ_SIDE_IN);
    CHECK_EQ(write(peer[0], "x", 1), 1);
    CHECK_EQ(turn(BZ_OS_FOREVER), 1);
    CHECK(is_ready(0, BZ_SIDE_IN));
    CHECK(!is_ready(0, BZ_SIDE_OUT));
    CHECK_EQ(turn(bz_os_now(&bz_os_system) + MS), -ETIMEDOUT); /* the byte is still there */
    forget(0);
    want(0, BZ_SIDE_IN);
    CHECK_EQ(turn(BZ_OS_FOREVER), 1);
    CHECK(is_ready(0, BZ_SIDE_IN));
    end(2);
}

/* The other half of a file that was heard is still wanted. */
TEST(poll_posix, the_half_that_was_not_heard_stays_listed)
{
    begin(1);
    want(0, BZ_SIDE_IN);
    want(0, BZ_SIDE_OUT);
    CHECK_EQ(turn(BZ_OS_FOREVER), 1);
    CHECK(is_ready(0, BZ_SIDE_OUT));
    CHECK(!is_ready(0, BZ_SIDE_IN));
    CHECK_EQ(write(peer[0], "x", 1), 1);
    CHECK_EQ(turn(BZ_OS_FOREVER), 1);
    CHECK(is_ready(0, BZ_SIDE_IN));
    end(1);
}

/* The list grows, and a harvest that is too small for all of them leaves none out for ever. */
TEST(poll_posix, any_number_of_files_is_heard)
{
    unsigned left = MANY;
    begin(MANY);
    for (unsigned i = 0; i < MANY; i++) {
        want(i, BZ_SIDE_IN);
        CHECK_EQ(write(peer[i], "x", 1), 1);
    }
    while (left > 0) {
        int n = turn(BZ_OS_FOREVER);
        CHECK_GT(n, 0);
        left -= (unsigned)n;
    }
    for (unsigned i = 0; i < MANY; i++)
        CHECK(is_ready(i, BZ_SIDE_IN));
    end(MANY);
}

/* A removed file's slot is taken by the last one; all other files work as before. */
TEST(poll_posix, a_file_that_goes_leaves_the_others_where_they_can_be_found)
{
    begin(5);
    for (unsigned i = 0; i < 5; i++)
        want(i, BZ_SIDE_IN);
    bz_file_close(file[1], NULL, NULL);
    bz_file_close(file[4], NULL, NULL);
    for (unsigned i = 0; i < 5; i++)
        if (i != 1 && i != 4)
            CHECK_EQ(write(peer[i], "x", 1), 1);
    CHECK_EQ(turn(BZ_OS_FOREVER), 3);
    CHECK(is_ready(0, BZ_SIDE_IN) && is_ready(2, BZ_SIDE_IN) && is_ready(3, BZ_SIDE_IN));
    for (unsigned i = 0; i < 5; i++) {
        if (i != 1 && i != 4)
            bz_file_close(file[i], NULL, NULL);
        close(peer[i]);
    }
    end(0);
}

/* ---- halves and events (ready.c) ---- */

/* A hang-up is reported once, and each later call must see it: both halves stay ready until a call
 * would block. */
TEST(ready, after_a_hang_up_both_halves_stay_worth_a_try)
{
    struct bz_wake wakes[BZ_SIDES];
    begin(1);
    bz_file_lock(file[0]);
    bz_ready_event(file[0], BZ_READY_OVER, wakes);
    bz_file_unlock(file[0]);
    forget(0); /* as a try does before its call */
    CHECK(is_ready(0, BZ_SIDE_IN));
    CHECK(is_ready(0, BZ_SIDE_OUT));
    end(1);
}

/* The peer writes no more: that says nothing of what it reads. */
TEST(ready, after_the_end_of_the_input_only_that_half_does)
{
    struct bz_wake wakes[BZ_SIDES];
    begin(1);
    bz_file_lock(file[0]);
    bz_ready_event(file[0], BZ_READY_IN_OVER, wakes);
    bz_file_unlock(file[0]);
    forget(0);
    CHECK(is_ready(0, BZ_SIDE_IN));
    CHECK(!is_ready(0, BZ_SIDE_OUT));
    end(1);
}
