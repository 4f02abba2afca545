/*
 * eh.h - the state of C++ exceptions belongs to the context, as the rounding mode does.
 *
 * The C++ runtime keeps two words for each thread: the stack of exceptions that are being handled
 * and the number of exceptions in flight. `throw;`, std::current_exception() and the end of a catch
 * block use them. A context that stops inside a catch block and continues on another thread must
 * find its own words, or two tasks exchange their exceptions. So a switch saves the words of the
 * left context and loads those of the target. Both happen just before the jump, in one access: the
 * thread is the same before and after it.
 *
 *   a fresh context     starts with no exception
 *   bz_ctx_inherit()    it starts with those of its creator: a call, on another stack
 *   claim.c             a task that is called on the stack of another task starts with none
 *
 * A program without the C++ runtime pays a load and a test. The words are found through
 * __cxa_get_globals() of the Itanium C++ ABI, which all our architectures use: as a weak symbol or,
 * if a C program has loaded C++ code later, through bz_eh_found().
 *
 * An exception must not leave the function of a task: the frames below belong to the scheduler or
 * to another task. BZ_EH_STOP(personality) makes the unwinder call `personality` at this frame. It
 * costs no instruction. The personality reports the exception and ends the search; then the C++
 * runtime calls std::terminate().
 */
#ifndef BZ_EH_H
#define BZ_EH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"

/* __cxa_eh_globals of the C++ ABI. */
struct bz_eh {
    void *caught;      /* the exceptions being handled, innermost first */
    unsigned uncaught; /* thrown and not yet caught */
};

typedef struct bz_eh *bz_eh_globals_fn(void);

/* NULL: no C++ in this process. Hidden, so that a join needs no GOT access. */
extern bz_atomic(bz_eh_globals_fn *) bz_eh_globals BZ_HIDDEN;

/* True if the C++ runtime is linked, or was found. */
static BZ_ALWAYS_INLINE bool bz_eh_is_used(void)
{
    return BZ_UNLIKELY(
        !bz_equals_relaxed(&bz_eh_globals, NULL)); /* relaxed: a constant, once set */
}

/* Check whether the C++ runtime is linked. Call before the first switch. */
void bz_eh_init(void);

/* Call when the C++ runtime has been loaded later. `globals` is its __cxa_get_globals; NULL changes
 * nothing. */
void bz_eh_found(bz_eh_globals_fn *globals);

/* Save the words of this thread in *from and load *to. NULL: nothing to save; no exception. */
void bz_eh_exchange(const struct bz_eh *to, struct bz_eh *from);

/* The words of this thread; zeros without C++. */
struct bz_eh bz_eh_now(void);

/* ---- exceptions that must not pass ---- */

enum { BZ_EH_SEARCH = 1, BZ_EH_FORCED = 8 }; /* bits of `actions` */
enum bz_eh_reason { BZ_EH_NO_HANDLER = 3, BZ_EH_GO_ON = 8 };

typedef enum bz_eh_reason bz_eh_personality(int version, int actions, uint64_t kind,
                                            void *exception, void *frame);

/* The unwinder calls `personality`, a hidden function, at this frame. 0x1b: a 32-bit distance. The
 * function must not be inlined into other functions. On aarch64 and riscv64 a function is no constant
 * in position-independent code, so it is named in the text. */
#if !defined(__ELF__)
#define BZ_EH_STOP(personality) ((void)0) /* these unwinders have other personalities */
#elif defined(__x86_64__)
#define BZ_EH_STOP(personality) __asm__ volatile(".cfi_personality 0x1b, %c0" ::"i"(personality))
#else
#define BZ_EH_STOP(personality) __asm__ volatile(".cfi_personality 0x1b, " #personality)
#endif

#endif
