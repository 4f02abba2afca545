/* blitz/gate.h - a fixture of the lint tests, and more words to make it an essay. */

/* A wait as a future. */
typedef struct blitz_gate_future {
    blitz_future future; /* to be awaited */
    int result;
} blitz_gate_future;

/*
 * Wait for a gate: the mix plays it.
 * Suspends: until it opens. Call from anywhere.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_gate_wait(blitz_gate *g, blitz_deadline until);

/*
 * Pass a gate: a new operation that no mix plays.
 * Suspends: until it opens. Call from anywhere.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_gate_pass(blitz_gate *g, blitz_deadline until);

/*
 * Make a future.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_gate_wait_future_init(blitz_gate_future *f, blitz_gate *g);

/*
 * Stop.
 * Suspends: never a task: it blocks the calling thread.
 */
BLITZ_API int blitz_gate_stop(blitz_gate *g);

/*
 * Pass two gates.
 * Suspends: as blitz_gate_pass().
 */
#define BLITZ_GATE_BOTH(a, b) blitz_gate_both_(a, b)

/*
 * Open it.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_gate_open(blitz_gate *g);
