/* idle.c - a fixture of the lint tests, and more words to make it an essay. */
#include <stdatomic.h>
_Atomic(int) sleepers;
volatile int stop;
int f(int *p)
{
    __asm__ volatile("lock; incl %0" : "+m"(*p));
    __sync_synchronize();
    atomic_store_explicit(&sleepers, 1, memory_order_release);
    return __atomic_load_n(p, __ATOMIC_ACQUIRE) + BZ_A_LOAD(p, 0);
}
