/*
 * notes.h - what the checkers must be told about stacks, in one place.
 *
 * A program that changes stacks behind the compiler's back puts its checkers wrong: ASan keeps a
 * fake stack and the bounds of the real one per thread, TSan a clock and a shadow call stack, LSan
 * looks for pointers only where it knows of a stack, Valgrind takes a jump of the stack pointer for
 * a huge allocation. Each wants a note at its own moment:
 *
 *   when            ASan                    TSan               LSan                Valgrind
 *   stack made                                                 root region         STACK_REGISTER
 *   context made                            create_fiber
 *   before switch   start_switch_fiber      switch_to_fiber
 *   after switch    finish_switch_fiber
 *   context ended   start with a NULL save  destroy_fiber
 *   stack reused    unpoison                                                       MAKE_MEM_UNDEFINED
 *   looked at       (not instrumented)                                             MAKE_MEM_DEFINED
 *   stack returned  unpoison                                   root region gone    STACK_DEREGISTER
 *
 * Without a checker every note is an empty inline function and struct bz_notes is empty of fields,
 * so the code around them carries no #ifdef. Valgrind is different: it checks unmodified programs,
 * so its notes are in every build whose compiler finds the header. They are a handful of rotates
 * that do nothing on a real CPU, and are made when a stack is made, never at a switch.
 *
 * TSan's switch is made with flag 0: switching synchronises, as the hand-over of a stack between
 * two threads does by other means that TSan cannot see (a switch carries no atomic). Use clang's
 * TSan with many fibers; gcc's stops at about eight thousand.
 * The notes around a switch must be inlined, always: TSan counts the calls and returns of each fiber,
 * and a function that is entered on one and left on another puts both counts wrong.
 * LSan gets one region a stack, not one a slab: it reads what it is given, and a slab holds guards.
 */
#ifndef BZ_NOTES_H
#define BZ_NOTES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

#if !defined(__has_feature)
#define BZ_HAS_FEATURE(x) 0
#else
#define BZ_HAS_FEATURE(x) __has_feature(x)
#endif

#if defined(__SANITIZE_ADDRESS__) || BZ_HAS_FEATURE(address_sanitizer)
#define BZ_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#else
#define BZ_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__) || BZ_HAS_FEATURE(thread_sanitizer)
#define BZ_TSAN 1
/* Declared here: gcc 12 offers the calls but ships no header that says so. */
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
#else
#define BZ_TSAN 0
#endif

#if defined(__has_include)
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#endif
#endif

/* For functions that look at memory other frames may have poisoned, or in which a job lies that others
 * link into a queue at this moment, on purpose. */
#if BZ_ASAN
#define BZ_NO_SANITIZE __attribute__((noinline, no_sanitize("address")))
#elif BZ_TSAN
#define BZ_NO_SANITIZE __attribute__((noinline, no_sanitize("thread")))
#else
#define BZ_NO_SANITIZE
#endif

/* What the checkers remember about one context; part of struct bz_ctx. */
struct bz_notes {
#if BZ_ASAN
    const void *low;  /* the stack of this context; of an adopted one, known once it was left */
    size_t size;      /* bytes from low to its top */
    void *fake_stack; /* ASan's, while the context is parked */
#endif
#if BZ_TSAN
    void *fiber;    /* TSan's name for this context */
    bool is_native; /* it is a thread's own, and TSan's to free */
#endif
};

#if BZ_ASAN
static inline void bz_note_asan_init(struct bz_notes *n, const void *low, size_t size)
{
    *n = (struct bz_notes){.low = low, .size = size};
}
static BZ_ALWAYS_INLINE void bz_note_asan_leaving(struct bz_notes *to, void **save)
{
    __sanitizer_start_switch_fiber(save, to->low, to->size);
}
/* `left` is what we came from: nobody else can touch it before the hook has run. */
static BZ_ALWAYS_INLINE void bz_note_asan_landed(void *fake_stack, struct bz_notes *left)
{
    const void *low = NULL;
    size_t size = 0;
    __sanitizer_finish_switch_fiber(fake_stack, &low, &size);
    if (left != NULL && left->low == NULL) { /* an adopted context, left for the first time */
        left->low = low;
        left->size = size;
    }
}
#define BZ_NOTE_FAKE_STACK(n) (&(n)->fake_stack)
#else
static inline void bz_note_asan_init(struct bz_notes *n, const void *low, size_t size)
{
    (void)n, (void)low, (void)size;
}
static BZ_ALWAYS_INLINE void bz_note_asan_leaving(struct bz_notes *to, void **save)
{
    (void)to, (void)save;
}
static BZ_ALWAYS_INLINE void bz_note_asan_landed(void *fake_stack, struct bz_notes *left)
{
    (void)fake_stack, (void)left;
}
#define BZ_NOTE_FAKE_STACK(n) ((void)(n), (void **)NULL)
#endif

#if BZ_TSAN
static inline void bz_note_tsan_init(struct bz_notes *n, bool is_native)
{
    n->is_native = is_native;
    n->fiber = is_native ? __tsan_get_current_fiber() : __tsan_create_fiber(0);
}
static inline void bz_note_tsan_fini(struct bz_notes *n)
{
    if (!n->is_native)
        __tsan_destroy_fiber(n->fiber);
}
static BZ_ALWAYS_INLINE void bz_note_tsan_leaving(struct bz_notes *to)
{
    __tsan_switch_to_fiber(to->fiber, 0);
}
#else
static inline void bz_note_tsan_init(struct bz_notes *n, bool is_native)
{
    (void)n, (void)is_native;
}
static inline void bz_note_tsan_fini(struct bz_notes *n)
{
    (void)n;
}
static BZ_ALWAYS_INLINE void bz_note_tsan_leaving(struct bz_notes *to)
{
    (void)to;
}
#endif

/* A context over [low, low + size) begins; one adopted from a thread has no bounds yet. */
static inline void bz_note_ctx_init(struct bz_notes *n, const void *low, size_t size)
{
    bz_note_asan_init(n, low, size);
    bz_note_tsan_init(n, low == NULL);
}

static inline void bz_note_ctx_fini(struct bz_notes *n)
{
    bz_note_tsan_fini(n);
}

/* The last things before the switch. `from` is NULL when the context ends with it. */
static BZ_ALWAYS_INLINE void bz_note_leaving(struct bz_notes *from, struct bz_notes *to)
{
    bz_note_asan_leaving(to, from != NULL ? BZ_NOTE_FAKE_STACK(from) : NULL);
    if (!BZ_BROKEN(45))
        bz_note_tsan_leaving(to);
}

/* The first thing after it. `me` is NULL on a stack entered for the first time. */
static BZ_ALWAYS_INLINE void bz_note_landed(struct bz_notes *me, struct bz_notes *left)
{
    void **fake_stack = me != NULL ? BZ_NOTE_FAKE_STACK(me) : NULL;
    bz_note_asan_landed(fake_stack != NULL ? *fake_stack : NULL, left);
}

/* For tests of what its CPU does not do. */
static inline bool bz_note_on_valgrind(void)
{
#if defined(RUNNING_ON_VALGRIND)
    return RUNNING_ON_VALGRIND != 0;
#else
    return false;
#endif
}

/* A stack begins to hold what may be the only pointer to something. Returns Valgrind's id of it, 0 if
 * Valgrind is not about. */
static inline unsigned bz_note_stack_made(void *low, size_t size)
{
    (void)low, (void)size;
#if BZ_ASAN
    __lsan_register_root_region(low, size);
#endif
#if defined(VALGRIND_STACK_REGISTER)
    return (unsigned)VALGRIND_STACK_REGISTER(low, (char *)low + size - 1);
#else
    return 0;
#endif
}

/* The stack's memory goes back: nothing on it counts any more, and nothing of it is poisoned. */
static inline void bz_note_stack_gone(void *low, size_t size, unsigned id)
{
    (void)low, (void)size, (void)id;
#if BZ_ASAN
    __lsan_unregister_root_region(low, size);
    __asan_unpoison_memory_region(low, size);
#endif
#if defined(VALGRIND_STACK_DEREGISTER)
    VALGRIND_STACK_DEREGISTER(id);
#endif
}

/* Another user begins on it: what the last one's frames left poisoned is nobody's now. */
static inline void bz_note_stack_reused(void *low, size_t size, unsigned id)
{
    (void)low, (void)size, (void)id;
#if BZ_ASAN
    __asan_unpoison_memory_region(low, size);
#endif
#if defined(VALGRIND_MAKE_MEM_UNDEFINED)
    if (id != 0)
        VALGRIND_MAKE_MEM_UNDEFINED(low, size);
#endif
}

/* We are about to look at, or write, a few words that may lie below somebody's stack pointer. */
static inline void bz_note_stack_looked_at(const void *at, size_t size, unsigned id)
{
    (void)at, (void)size, (void)id;
#if defined(VALGRIND_MAKE_MEM_DEFINED)
    if (id != 0)
        VALGRIND_MAKE_MEM_DEFINED(at, size);
#endif
}

#endif
