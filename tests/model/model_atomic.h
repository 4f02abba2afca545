/*
 * model_atomic.h - base/bz_atomic.h in its model form: every operation is a step of the checker.
 *
 * In a model build (-DBZ_MODEL) base/bz_atomic.h takes its primitives from here. A field keeps the
 * size and alignment of its type, so the structures of src/ have their normal layout. The values
 * that a thread may read are in the checker's history of the location (lib/memory.c), and real
 * memory holds the newest one. Values travel as 64 bits: integers, enums, bools and pointers.
 *
 * Each use leaves one static record of its place in the source, so that a report can say
 * `mpsc.c:71  tail.xchg acq_rel`, and so that the checker can say where the branching is.
 */
#ifndef MODEL_ATOMIC_H
#define MODEL_ATOMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A place in the source that performs an operation. */
struct m_site {
    const char *file;
    int line;
    const char *expr;    /* the operand as written */
    uint64_t branches;   /* how often the search had more than one way to go here */
    struct m_site *next; /* in the list of sites that ever branched */
};

/* Bits: 1 acquires, 2 releases, 4 takes part in the order of all seq_cst operations. */
enum m_order { BZ_RELAXED = 0, BZ_ACQUIRE = 1, BZ_RELEASE = 2, BZ_ACQREL = 3, BZ_SEQCST = 7 };
enum m_rmw_op { M_OP_xchg, M_OP_add, M_OP_sub, M_OP_or, M_OP_and };

uint64_t m_load(const volatile void *p, size_t size, enum m_order o, struct m_site *at);
void m_store(volatile void *p, size_t size, uint64_t v, enum m_order o, struct m_site *at);
void m_init(volatile void *p, size_t size, uint64_t v, struct m_site *at);
uint64_t m_rmw(volatile void *p, size_t size, enum m_rmw_op op, uint64_t v, enum m_order o,
               struct m_site *at);
bool m_cas(volatile void *p, size_t size, void *expected, uint64_t v, enum m_order won,
           enum m_order lost, bool is_weak, struct m_site *at);
void m_fence(enum m_order o, struct m_site *at);
const volatile void *m_get(const volatile void *p, size_t size, struct m_site *at);
volatile void *m_set(volatile void *p, size_t size, struct m_site *at);
void m_set_done(void);

/* A broken invariant inside the code under test (base/check.c): ends this execution and draws it. */
__attribute__((noreturn)) void bz_model_fail(const char *text);

#define bz_atomic(T) __typeof__(T)
#define bz_shared(T) __typeof__(T)

#define M_SITE(expr_)                                                        \
    __extension__({                                                          \
        static struct m_site m_site_ = {__FILE__, __LINE__, expr_, 0, NULL}; \
        &m_site_;                                                            \
    })
#define M_BITS(p, v) ((uint64_t)((__typeof__(*(p)))(v)))

#define BZ_A_INIT(p, v) m_init(p, sizeof *(p), M_BITS(p, v), M_SITE(#p))
#define BZ_A_LOAD(p, order) ((__typeof__(*(p)))m_load(p, sizeof *(p), order, M_SITE(#p)))
#define BZ_A_STORE(p, v, order) m_store(p, sizeof *(p), M_BITS(p, v), order, M_SITE(#p))
#define BZ_A_XCHG(p, v, order) \
    __extension__(             \
        { (__typeof__(*(p)))m_rmw(p, sizeof *(p), M_OP_xchg, M_BITS(p, v), order, M_SITE(#p)); })
#define BZ_A_FETCH(op, p, v, order) \
    __extension__(                  \
        { (__typeof__(*(p)))m_rmw(p, sizeof *(p), M_OP_##op, M_BITS(p, v), order, M_SITE(#p)); })
#define BZ_A_CAS_WEAK(p, e, v, won, lost) \
    m_cas(p, sizeof *(p) + 0 * sizeof(*(p) = *(e)), e, M_BITS(p, v), won, lost, true, M_SITE(#p))
#define BZ_A_CAS_STRONG(p, e, v, won, lost) \
    m_cas(p, sizeof *(p) + 0 * sizeof(*(p) = *(e)), e, M_BITS(p, v), won, lost, false, M_SITE(#p))
#define BZ_A_FENCE(order) m_fence(order, M_SITE(""))
#define BZ_A_GET(p) (*(__typeof__(p))m_get(p, sizeof *(p), M_SITE(#p)))
#define BZ_A_SET(p, v)                                                \
    __extension__({                                                   \
        __typeof__(*(p)) m_value_ = (v);                              \
        *(__typeof__(p))m_set(p, sizeof *(p), M_SITE(#p)) = m_value_; \
        m_set_done();                                                 \
    })

#endif
