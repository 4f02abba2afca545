/*
 * Boost.Fiber. One worker has its default scheduler (round robin, one thread), which is its fastest;
 * more have its work-stealing one. Fibers are made with launch::post, as ours are: to run later. Their
 * stacks have 16 KiB, so that a reused one costs no system call; they come from its pool with one
 * worker and from the heap with more, because the pool is not made for several threads.
 *
 * Where a million are alive at once, here it is a hundred thousand, and the figure is of one: a million
 * of its stacks need more memory than many machines have, and stealing among them takes minutes.
 */
#include <boost/fiber/all.hpp>

#include <memory>
#include <thread>
#include <vector>

#include "tasks/cases.h"

namespace fibers = boost::fibers;

enum { ALIVE = 100000 };

template <typename F> static fibers::fiber spawn(F &&f)
{
    static fibers::pooled_fixedsize_stack pool(16 << 10);
    static fibers::fixedsize_stack heap(16 << 10);
    if (tasks_procs == 1)
        return fibers::fiber(fibers::launch::post, std::allocator_arg, pool, std::forward<F>(f));
    return fibers::fiber(fibers::launch::post, std::allocator_arg, heap, std::forward<F>(f));
}

/* ---- the cases ---- */

static double yield_among(uint64_t ops, uint64_t count)
{
    std::vector<fibers::fiber> all;
    all.reserve(count);
    uint64_t each = ops / count + 1, began = tasks_now_ns();
    for (uint64_t i = 0; i < count; i++)
        all.push_back(spawn([each] {
            for (uint64_t n = each; n > 0; n--)
                boost::this_fiber::yield();
        }));
    for (auto &f : all)
        f.join();
    return (double)(tasks_now_ns() - began) / (double)(each * count) * (double)ops;
}

static double case_yield_2(uint64_t ops)
{
    return yield_among(ops, 2);
}

static double case_yield_1000(uint64_t ops)
{
    return yield_among(ops, 1000);
}

static uint64_t spawn_and_join(uint64_t count, std::vector<uint64_t> &counters)
{
    std::vector<fibers::fiber> all;
    all.reserve(count);
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < count; i++)
        all.push_back(spawn([c = &counters[i]] { ++*c; }));
    for (auto &f : all)
        f.join();
    return tasks_now_ns() - began;
}

static double case_spawn_join(uint64_t ops)
{
    std::vector<uint64_t> counters(ops);
    uint64_t ns = spawn_and_join(ops, counters);
    for (uint64_t c : counters)
        if (c != 1)
            bench_die("a fiber ran %llu times", (unsigned long long)c);
    return (double)ns;
}

static double case_spawn_await(uint64_t ops)
{
    uint64_t counter = 0, began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++)
        spawn([&counter] { ++counter; }).join();
    double ns = (double)(tasks_now_ns() - began);
    if (counter != ops)
        bench_die("%llu fibers ran", (unsigned long long)counter);
    return ns;
}

static void skynet(uint64_t first, uint64_t size, uint64_t *sum)
{
    uint64_t below[10];
    fibers::fiber f[10];
    *sum = first;
    if (size == 1)
        return;
    for (uint64_t i = 0; i < 10; i++)
        f[i] = spawn([=, to = &below[i]] { skynet(first + i * (size / 10), size / 10, to); });
    *sum = 0;
    for (int i = 0; i < 10; i++) {
        f[i].join();
        *sum += below[i];
    }
}

static double case_skynet(uint64_t ops)
{
    uint64_t size = ops >= ALIVE ? (uint64_t)ALIVE : 1000, sum, began = tasks_now_ns();
    for (uint64_t done = 0; done < ops; done += size) {
        spawn([&] { skynet(0, size, &sum); }).join();
        if (sum != size * (size - 1) / 2)
            bench_die("the sum is %llu", (unsigned long long)sum);
    }
    return (double)(tasks_now_ns() - began);
}

static double case_parked(uint64_t ops)
{
    uint64_t count = ops, arrived = 0;
    fibers::mutex lock;
    fibers::condition_variable gate;
    bool is_open = false;
    std::vector<fibers::fiber> all;
    all.reserve(count);
    for (uint64_t i = 0; i < count; i++)
        all.emplace_back();
    uint64_t before = tasks_memory();
    for (auto &f : all)
        f = spawn([&] {
            std::unique_lock<fibers::mutex> l(lock);
            arrived++;
            gate.wait(l, [&] { return is_open; });
        });
    for (std::unique_lock<fibers::mutex> l(lock); arrived < count; l.lock()) {
        l.unlock();
        boost::this_fiber::yield();
    }
    double bytes = (double)(tasks_memory() - before) / (double)count;
    {
        std::unique_lock<fibers::mutex> l(lock);
        is_open = true;
    }
    gate.notify_all();
    for (auto &f : all)
        f.join();
    return bytes;
}

/* ---- the programme ---- */

static const struct tasks_case cases[] = {
    {"yield-2", TASKS_PACED, case_yield_2, 0},
    {"yield-1000", TASKS_PACED, case_yield_1000, 0},
    {"spawn-join", TASKS_FIXED, case_spawn_join, ALIVE},
    {"spawn-await", TASKS_PACED, case_spawn_await, 0},
    {"skynet", TASKS_FIXED, case_skynet, ALIVE},
    {"parked-fiber", TASKS_ONCE, case_parked, ALIVE},
};

/* The other threads steal until the end is told; that is what Boost's own examples do. */
struct finish {
    fibers::mutex lock;
    fibers::condition_variable_any told;
    bool is_over = false;
};

static void help(finish *end)
{
    fibers::use_scheduling_algorithm<fibers::algo::work_stealing>(tasks_procs);
    std::unique_lock<fibers::mutex> l(end->lock);
    end->told.wait(l, [end] { return end->is_over; });
}

static void start(const struct tasks_case *c, const char *name)
{
    finish end;
    std::vector<std::thread> helpers;
    for (unsigned i = 1; i < tasks_procs; i++)
        helpers.emplace_back(help, &end);
    if (tasks_procs > 1)
        fibers::use_scheduling_algorithm<fibers::algo::work_stealing>(tasks_procs);
    tasks_measure(c, name);
    {
        std::unique_lock<fibers::mutex> l(end.lock);
        end.is_over = true;
    }
    end.told.notify_all();
    for (auto &h : helpers)
        h.join();
}

int main(int argc, char **argv)
{
    return tasks_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]), start);
}
