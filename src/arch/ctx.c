/*
 * ctx.c - the start of a new context.
 *
 * The top of a fresh stack holds a start block. The first switch arrives at the thunk with the
 * stack pointer on that block, and the thunk calls start->main with the values passed through the
 * switch. The address of `main` is in the block and not in the thunk's code, so that top-level
 * assembly names no C symbol, which link-time optimisation may rename or split.
 *
 *     top   +---------------+
 *           | unused        |
 *           | arg           |
 *           | entry         |
 *           | main          |   +16: known to the thunk
 *           | 0             |   ends every walk along the frame records
 *      sp > | 0             | < fp (minus BZ_CTX_FP_BIAS)
 *           +---------------+
 *           | main's frame  |
 */
#include "arch/ctx.h"

#include "base/check.h"

struct ctx_start {
    void *record[2]; /* zeros: no frame pointer and no return address */
    void (*main)(struct ctx_start *, bz_ctx_hook *, void *, struct bz_ctx *);
    void (*entry)(void *arg);
    void *arg;
    void *unused; /* the size stays a multiple of 16 */
};
_Static_assert(offsetof(struct ctx_start, main) == 16, "the thunk says 16");
_Static_assert(sizeof(struct ctx_start) % 16 == 0, "the stack stays 16-aligned");

__asm__(BZ_CTX_THUNK);
extern const char bz_ctx_thunk[] BZ_HIDDEN;

static void ctx_main(struct ctx_start *start, bz_ctx_hook *hook, void *arg, struct bz_ctx *left)
{
    bz_note_landed(NULL, left != NULL ? &left->notes : NULL);
    if (hook != NULL)
        hook(arg);
    start->entry(start->arg);
    BZ_CHECK(false, "the entry function of a stack returned");
}

bz_atomic(uint32_t) bz_ctx_extras;

#if defined(__x86_64__)
/* AMD renames MXCSR. For other vendors a measurement must show it (bench-switch, "between
 * divisions"). */
static void fpcw_find_out(void)
{
    unsigned most, b = 0, c = 0, d = 0;
    __asm__("cpuid" : "=a"(most), "=b"(b), "=c"(c), "=d"(d) : "a"(0), "c"(0));
    bool is_amd = b == 0x68747541 && d == 0x69746e65 && c == 0x444d4163; /* AuthenticAMD */
    if (is_amd)
        (void)bz_fetch_or_relaxed(&bz_ctx_extras, BZ_CTX_LOADS_FPCW); /* relaxed: a constant */
}
#else
static void fpcw_find_out(void) {}
#endif

#if defined(BZ_CTX_BOUNDS)
#define bounds_set(c, low, top) bz_ctx_bounds_set(c, low, top)
#define bounds_read(c) bz_ctx_bounds_read(c)
#else
#define bounds_set(c, low, top) ((void)0)
#define bounds_read(c) ((void)0)
#endif

void bz_ctx_init(struct bz_ctx *c, void *low, void *top, void (*entry)(void *arg), void *arg,
                 uint64_t fpcw)
{
    BZ_CHECK(bz_ctx_shadow_stack() == 0, "this process runs with shadow stacks; blitz was built "
                                         "without them and the loader should have known");
    BZ_CHECK((uintptr_t)low % 16 == 0, "low %p", low);
    BZ_CHECK((uintptr_t)top % 16 == 0, "top %p", top);
    BZ_CHECK((char *)top - (char *)low >= 1024, "a stack of %td bytes", (char *)top - (char *)low);
    static bz_atomic(int) is_known;
    if (!bz_load_relaxed(&is_known)) { /* relaxed: it may be computed twice */
        fpcw_find_out();
        bz_eh_init();
        bz_store_relaxed(&is_known, 1); /* relaxed: as above */
    }
    struct ctx_start *start = (struct ctx_start *)top - 1;
    *start = (struct ctx_start){.main = ctx_main, .entry = entry, .arg = arg};
    c->sp = start;
    c->fp = (char *)start + BZ_CTX_FP_BIAS;
    c->pc = (void *)(uintptr_t)bz_ctx_thunk;
    bounds_set(c, low, top);
    c->fpcw = bz_fpcw_of(fpcw);
    c->eh = (struct bz_eh){NULL, 0};
    bz_note_ctx_init(&c->notes, low, (size_t)((char *)top - (char *)low));
}

void bz_ctx_exchange_eh(struct bz_ctx *to, struct bz_ctx *from)
{
    bz_eh_exchange(&to->eh, from != NULL ? &from->eh : NULL);
}

void bz_ctx_inherit(struct bz_ctx *c)
{
    c->eh = bz_eh_now();
}

void bz_ctx_adopt(struct bz_ctx *c)
{
    c->sp = c->fp = c->pc = NULL; /* filled in by the first switch away */
    bounds_read(c);
    c->eh = (struct bz_eh){NULL, 0};
    bz_note_ctx_init(&c->notes, NULL, 0);
}

void bz_ctx_fini(struct bz_ctx *c)
{
    bz_note_ctx_fini(&c->notes);
    c->sp = c->fp = c->pc = NULL;
}
