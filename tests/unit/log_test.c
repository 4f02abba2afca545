/* log.h and blitz/hooks.h: where messages go. */
#include "harness.h"

#include "base/log.h"
#include "blitz.h"

#include <fcntl.h>
#include <unistd.h>

static struct {
    int count;
    blitz_log_level level;
    char text[1024];
} got;

static void keep(void *ctx, blitz_log_level level, const char *message)
{
    CHECK_EQ(ctx, (void *)&got);
    got.count++;
    got.level = level;
    snprintf(got.text, sizeof got.text, "%s", message);
}

TEST(log, a_hook_gets_the_message_its_level_and_its_argument)
{
    CHECK_EQ(blitz_log_set(keep, &got, BLITZ_LOG_DEBUG), 0);
    bz_log(BLITZ_LOG_INFO, "%d stacks", 3);
    CHECK_EQ(got.count, 1);
    CHECK_EQ((int)got.level, (int)BLITZ_LOG_INFO);
    CHECK_STR_EQ(got.text, "3 stacks");
}

TEST(log, a_hook_gets_only_its_levels)
{
    for (int max = BLITZ_LOG_ERROR; max <= BLITZ_LOG_DEBUG; max++) {
        got.count = 0;
        CHECK_EQ(blitz_log_set(keep, &got, (blitz_log_level)max), 0);
        for (int level = BLITZ_LOG_ERROR; level <= BLITZ_LOG_DEBUG; level++)
            bz_log((blitz_log_level)level, "x");
        CHECK_EQ(got.count, max + 1);
    }
}

TEST(log, a_level_that_is_none_is_refused_and_changes_nothing)
{
    CHECK_EQ(blitz_log_set(keep, &got, BLITZ_LOG_WARN), 0);
    CHECK_EQ(blitz_log_set(NULL, NULL, (blitz_log_level)4), -EINVAL);
    CHECK_EQ(blitz_log_set(NULL, NULL, (blitz_log_level)-1), -EINVAL);
    bz_log(BLITZ_LOG_WARN, "still here");
    CHECK_STR_EQ(got.text, "still here");
}

static int stderr_to(int fd)
{
    int kept = dup(STDERR_FILENO);
    dup2(fd, STDERR_FILENO);
    return kept;
}

TEST(log, without_a_hook_warnings_go_to_standard_error_and_the_rest_nowhere)
{
    int ends[2];
    char text[2048];
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(blitz_log_set(keep, &got, BLITZ_LOG_DEBUG), 0);
    CHECK_EQ(blitz_log_set(NULL, NULL, BLITZ_LOG_DEBUG), 0); /* NULL restores the default */

    int kept = stderr_to(ends[1]);
    bz_log(BLITZ_LOG_ERROR, "one");
    bz_log(BLITZ_LOG_WARN, "two");
    bz_log(BLITZ_LOG_INFO, "three");
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(ends[1]);

    ssize_t n = read(ends[0], text, sizeof text - 1);
    CHECK_GT(n, 0);
    text[n] = '\0';
    close(ends[0]);
    CHECK_STR_EQ(text, "blitz: error: one\nblitz: warning: two\n");
    CHECK_EQ(got.count, 0);
}

TEST(log, a_long_message_is_cut_and_whole_lines_come_out)
{
    static char tail[2000];
    memset(tail, 'x', sizeof tail - 1);
    CHECK_EQ(blitz_log_set(keep, &got, BLITZ_LOG_WARN), 0);
    bz_log(BLITZ_LOG_WARN, "%s", tail);
    CHECK_EQ(strlen(got.text), 511u);
}

TEST(log, once_means_once)
{
    CHECK_EQ(blitz_log_set(keep, &got, BLITZ_LOG_WARN), 0);
    for (int i = 0; i < 5; i++)
        bz_log_once(BLITZ_LOG_WARN, "round %d", i);
    CHECK_EQ(got.count, 1);
    CHECK_STR_EQ(got.text, "round 0");
}
