/* task/frames.h: a stack that is not what it seems leads the walk nowhere, and never out of bounds. */
#include "harness.h"

#include <sys/mman.h>

#include "os/look.h"
#include "support/sanitizers.h"
#include "task/frames.h"

enum { WORDS = 512 };

/* A stack of our own making: words, and the control block above them. */
struct forged {
    _Alignas(16) uintptr_t word[WORDS];
    struct bz_stack ctl;
};

static struct forged stack;

/* A record at word `at`: the next record's place (0: none) and a return address. */
static void record(unsigned at, uintptr_t next, uintptr_t pc)
{
    stack.word[at] = next;
    stack.word[at + 1] = pc;
}

static uintptr_t place(unsigned at)
{
    return (uintptr_t)&stack.word[at] + BZ_CTX_FP_BIAS;
}

static void given_a_context_at(unsigned sp, uintptr_t fp)
{
    if (t_under_valgrind() || t_is_emulated())
        t_skip("memory cannot be copied by the kernel here");
    stack.ctl.low = (char *)stack.word;
    stack.ctl.ctx = (struct bz_ctx){
        .sp = &stack.word[sp], .fp = (void *)fp, .pc = (void *)0x1111}; /* NOLINT: a forgery */
}

TEST(frames, a_chain_is_followed_to_its_end)
{
    uintptr_t pc[BZ_FRAMES_MAX];
    given_a_context_at(10, place(20));
    record(20, place(30), 0x2222);
    record(30, place(40), 0x3333);
    record(40, 0, 0);
    CHECK_EQ(bz_frames_walk(&stack.ctl, pc), 3);
    CHECK_EQ(pc[0], 0x1111);
    CHECK_EQ(pc[1], 0x2222);
    CHECK_EQ(pc[2], 0x3333);
}

/* Code without a frame pointer leaves anything in that register. */
TEST(frames, a_chain_that_goes_in_a_circle_ends)
{
    uintptr_t pc[BZ_FRAMES_MAX];
    given_a_context_at(10, place(20));
    record(20, place(30), 0x2222);
    record(30, place(20), 0x3333);
    CHECK_EQ(bz_frames_walk(&stack.ctl, pc), 3);
}

TEST(frames, a_chain_that_leaves_the_stack_ends_there)
{
    static uintptr_t elsewhere[2] = {0, 0x4444};
    uintptr_t pc[BZ_FRAMES_MAX];
    given_a_context_at(10, place(20));
    record(20, (uintptr_t)elsewhere, 0x2222);
    CHECK_EQ(bz_frames_walk(&stack.ctl, pc), 2);
    record(20, 7, 0x2222); /* no address at all, nor aligned */
    CHECK_EQ(bz_frames_walk(&stack.ctl, pc), 2);
    record(20, place(WORDS - 1), 0x2222); /* half of it would lie in the control block */
    CHECK_EQ(bz_frames_walk(&stack.ctl, pc), 2);
    record(20, place(5), 0x2222); /* below the stack pointer: unused */
    CHECK_EQ(bz_frames_walk(&stack.ctl, pc), 2);
}

TEST(frames, a_deep_chain_is_cut)
{
    uintptr_t pc[BZ_FRAMES_MAX];
    given_a_context_at(0, place(0));
    for (unsigned i = 0; i + 4 < WORDS; i += 4)
        record(i, place(i + 4), 0x1000 + i);
    CHECK_EQ(bz_frames_walk(&stack.ctl, pc), BZ_FRAMES_MAX);
    CHECK_EQ(pc[BZ_FRAMES_MAX - 1], 0x1000 + 4 * (BZ_FRAMES_MAX - 2));
}

TEST(frames, memory_that_is_no_stack_has_no_frames)
{
    uintptr_t pc[BZ_FRAMES_MAX];
    given_a_context_at(10, place(20));
    stack.ctl.ctx.sp = &stack; /* fine */
    stack.ctl.low = (char *)&stack.word[1];
    CHECK_EQ(bz_frames_walk(&stack.ctl, pc), 0); /* sp below the low end */
    given_a_context_at(10, place(20));
    stack.ctl.ctx.sp = &stack.ctl + 1;
    CHECK_EQ(bz_frames_walk(&stack.ctl, pc), 0); /* sp above the top */
    void *gone = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_EQ(munmap(gone, 4096), 0);
    CHECK_EQ(bz_frames_walk(gone, pc), 0); /* given back to the system */
}

/* ---- looking, as such ---- */

TEST(look, unmapped_memory_cannot_be_copied)
{
    char out[16];
    given_a_context_at(10, place(20));
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_EQ(munmap(page + 4096, 4096), 0);
    memset(page, 'x', 4096);
    CHECK_EQ(bz_look_copy(out, page + 4080, 16), 0);
    CHECK_EQ(bz_look_copy(out, page + 4088, 16), -EFAULT);
    CHECK_EQ(bz_look_copy(out, NULL, 1), -EFAULT);
    munmap(page, 4096);
}

TEST(look, a_text_is_cut_and_made_printable)
{
    char out[8];
    given_a_context_at(10, place(20));
    CHECK_EQ(bz_look_text(out, sizeof out, "short"), 5);
    CHECK_STR_EQ(out, "short");
    CHECK_EQ(bz_look_text(out, sizeof out, "a longer one"), 7);
    CHECK_STR_EQ(out, "a longe");
    bz_look_text(out, sizeof out, "a\nb\033");
    CHECK_STR_EQ(out, "a?b?");
    CHECK_EQ(bz_look_text(out, sizeof out, NULL), 0);
    CHECK_EQ(bz_look_text(out, sizeof out, (const char *)8), 0); /* NOLINT: no text at all */
    CHECK_STR_EQ(out, "");
}

TEST(look, code_has_a_name_and_data_has_none_of_a_function)
{
    char name[200];
    CHECK(bz_look_symbol(name, sizeof name, (uintptr_t)&bz_look_symbol));
    CHECK(name[0] != '\0');
    CHECK(!bz_look_symbol(name, sizeof name, 16));
    CHECK_STR_EQ(name, "");
}
