/*
 * The cost of a million stacks: mappings, memory, page tables, the time of a fresh one and of a
 * reused one.
 *
 *     bench_stacks [COUNT]        COUNT guarded, touched stacks of 64 KiB (default 1000000)
 *
 * Prints a line per figure with the bound it is held to and ends with status 1 if one is missed, 77
 * if this machine has not the memory. Memory and mappings are what the process has grown by. A fresh
 * stack's time is the median over batches of 1000 (guards of its slab and its first page fault
 * included), in CPU time: on a machine that others use, too, the clock tells of them.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"
#include "task/stack.h"

enum { BATCH = 1000, ROUNDS = 31 };

static uint64_t number_in(const char *file, const char *key)
{
    char line[256];
    uint64_t value = 0;
    FILE *f = fopen(file, "r");
    if (f == NULL)
        bench_die("cannot read %s", file);
    while (fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            value = strtoull(line + strlen(key), NULL, 10);
    fclose(f);
    return value;
}

static uint64_t mappings(void)
{
    uint64_t count = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    if (f == NULL)
        bench_die("cannot read /proc/self/maps");
    for (int c; (c = fgetc(f)) != EOF;)
        count += c == '\n';
    fclose(f);
    return count;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

static int missed;
static void figure(const char *name, double value, double bound, const char *unit)
{
    bool holds = value <= bound;
    printf("%-28s %10.3f %-12s (at most %g)%s\n", name, value, unit, bound,
           holds ? "" : "  MISSED");
    missed += !holds;
}

static struct bz_stack_pool pool;
static struct bz_stack_cache cache;

static void take(struct bz_stack **s)
{
    int err = bz_stack_take(&cache, BZ_STACK_64K, s);
    if (err != 0)
        bench_die("no stack: error %d", -err);
    if ((*s)->guard != BZ_STACK_GUARD_LIGHT)
        bench_die("no light guards on this kernel");
    *((volatile char *)bz_stack_top(*s) - 256) = 1; /* as a first frame would */
}

static double take_all(struct bz_stack **s, size_t count)
{
    size_t batches = (count + BATCH - 1) / BATCH;
    double *each = malloc(batches * sizeof *each);
    if (each == NULL)
        bench_die("out of memory");
    for (size_t b = 0; b < batches; b++) {
        size_t from = b * BATCH, to = from + BATCH < count ? from + BATCH : count;
        uint64_t began = bench_thread_ns();
        for (size_t i = from; i < to; i++)
            take(&s[i]);
        each[b] = (double)(bench_thread_ns() - began) / (double)(to - from);
    }
    double ns = median(each, batches);
    free(each);
    return ns;
}

static double reuse(void)
{
    double each[ROUNDS];
    struct bz_stack *s[16];
    for (int r = 0; r < ROUNDS; r++) {
        uint64_t began = bench_thread_ns();
        for (int n = 0; n < 10000; n++) {
            for (int i = 0; i < 16; i++)
                take(&s[i]);
            for (int i = 0; i < 16; i++)
                bz_stack_give(&cache, s[i]);
        }
        each[r] = (double)(bench_thread_ns() - began) / (10000 * 16);
    }
    return median(each, ROUNDS);
}

/* The first touch of a virtual machine's memory is paid to its host: not by us, and not today. */
static void warm_the_machine(size_t bytes)
{
    void *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (all == MAP_FAILED)
        bench_die("out of memory");
    munmap(all, bytes);
}

int main(int argc, char **argv)
{
    size_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    if (count == 0 || argc > 2) {
        fprintf(stderr, "usage: %s [COUNT]\n", argv[0]);
        return 2;
    }
    if (number_in("/proc/meminfo", "MemAvailable:") < count * 5) {
        printf("less than %zu MiB of memory are free\n", count * 5 / 1024);
        return 77;
    }
    size_t bytes = count * sizeof(struct bz_stack *);
    warm_the_machine(count * 4200);
    struct bz_stack **s = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (s == MAP_FAILED)
        bench_die("out of memory");
    struct bz_stack_config config = {.guards = BZ_STACK_GUARDS_REQUIRED};
    if (bz_stack_pool_init(&pool, &config) != 0)
        bench_die("no pool");
    bz_stack_cache_init(&cache, &pool);
    uint64_t rss = number_in("/proc/self/status", "VmRSS:");
    uint64_t pte = number_in("/proc/self/status", "VmPTE:");
    uint64_t maps = mappings();

    printf("%zu guarded, touched stacks of 64 KiB\n", count);
    double fresh_ns = take_all(s, count);
    double n = (double)count;
    figure("mappings", (double)(mappings() - maps), 100, "");
    figure("memory, a stack", (double)(number_in("/proc/self/status", "VmRSS:") - rss) / n, 4.2,
           "KiB");
    printf("%-28s %10.3f %-12s\n", "page tables, a stack",
           (double)(number_in("/proc/self/status", "VmPTE:") - pte) / n, "KiB");
    figure("a fresh one", fresh_ns / 1000, 3, "us");
    uint64_t began = bench_thread_ns();
    for (size_t i = 0; i < count; i++)
        bz_stack_give(&cache, s[i]);
    printf("%-28s %10.3f %-12s\n", "given back, all of them",
           (double)(bench_thread_ns() - began) / n, "ns each");
    figure("a reused one", reuse(), 50, "ns");
    bz_stack_cache_fini(&cache);
    bz_stack_pool_fini(&pool);
    return missed == 0 ? 0 : 1;
}
