/* io/raw.h: foreign descriptors. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "io/raw.h"

/* A pipe is made non-blocking; a regular file is always ready, and its flags stay unchanged. */
TEST(raw, only_descriptors_that_can_wait_are_told_not_to_block)
{
    bool is_disk = true;
    int fd[2];
    CHECK_EQ(pipe(fd), 0);
    CHECK_EQ(bz_raw_take_up(fd[0], &is_disk), 0);
    CHECK(!is_disk);
    CHECK_NE(fcntl(fd[0], F_GETFL) & O_NONBLOCK, 0);
    CHECK_EQ(fcntl(fd[1], F_GETFL) & O_NONBLOCK, 0);
    close(fd[0]);
    close(fd[1]);
    char name[] = "/tmp/blitz-raw-XXXXXX";
    int file = mkstemp(name);
    CHECK_GE(file, 0);
    unlink(name);
    CHECK_EQ(bz_raw_take_up(file, &is_disk), 0);
    CHECK(is_disk);
    CHECK_EQ(fcntl(file, F_GETFL) & O_NONBLOCK, 0);
    close(file);
    CHECK_EQ(bz_raw_take_up(file, &is_disk), -EBADF);
}
