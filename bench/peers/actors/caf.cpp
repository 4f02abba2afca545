/*
 * CAF 0.17: event-based actors, and the messages of its own examples: an atom and values. The cases are those of
 * bench/actors/cases.h. As many worker threads as are asked for, with its default work-stealing scheduler. An actor gives way
 * after 100 messages, as ours do: by default it would go on as long as it has messages, and the senders of fan-in send to
 * themselves. A pong is the result of the handler of the ping. A child is initialized with its first message (lazy_init),
 * which is faster. A call is a request whose reply is awaited: the actor handles nothing else meanwhile. A failure is quit()
 * with an error, as ours is a negative number; an exception would cost more. CAF has no supervisors: an actor that is linked
 * to its child, and spawns the next one when it ends, stands in for it.
 */
#include <caf/all.hpp>

#include <atomic>
#include <functional>
#include <vector>

#include "actors/cases.h"

using caf::actor;
using caf::atom;
using caf::atom_constant;
using caf::behavior;
using caf::event_based_actor;
using caf::stateful_actor;

using token_atom = atom_constant<atom("token")>;
using next_atom = atom_constant<atom("next")>;
using done_atom = atom_constant<atom("done")>;
using go_atom = atom_constant<atom("go")>;
using add_atom = atom_constant<atom("add")>;
using ping_atom = atom_constant<atom("ping")>;
using pong_atom = atom_constant<atom("pong")>;
using die_atom = atom_constant<atom("die")>;
using ask_atom = atom_constant<atom("ask")>;
using link_atom = atom_constant<atom("link")>;
using watch_atom = atom_constant<atom("watch")>;
using crash_atom = atom_constant<atom("crash")>;

static caf::actor_system *sys;
static caf::scoped_actor *waiting; /* the main thread, as an actor that blocks */

static actor waiter()
{
    return caf::actor_cast<actor>(*waiting);
}

static double done_since(uint64_t began)
{
    (*waiting)->receive([](done_atom) {});
    return (double)(tasks_now_ns() - began);
}

static void stop(const std::vector<actor> &all)
{
    for (auto &a : all)
        caf::anon_send_exit(a, caf::exit_reason::user_shutdown);
    for (auto &a : all)
        (*waiting)->wait_for(a);
}

/* ---- ping-pong and ring ---- */

struct passer_state {
    actor next;
};

static behavior passer(stateful_actor<passer_state> *self, const actor &done)
{
    return {
        [=](token_atom, uint64_t left) {
            if (left == 0)
                self->send(done, done_atom::value);
            else
                self->send(self->state.next, token_atom::value, left - 1);
        },
        [=](next_atom, const actor &next) { self->state.next = next; },
    };
}

static double around(uint64_t hops, unsigned count)
{
    std::vector<actor> all;
    for (unsigned i = 0; i < count; i++)
        all.push_back(sys->spawn(passer, waiter()));
    for (unsigned i = 0; i < count; i++)
        caf::anon_send(all[i], next_atom::value, all[(i + 1) % count]);
    uint64_t began = tasks_now_ns();
    caf::anon_send(all[0], token_atom::value, hops);
    double ns = done_since(began);
    stop(all);
    return ns;
}

static double case_ping_pong(uint64_t ops)
{
    return around(ops, 2);
}

static double case_ring(uint64_t ops)
{
    return around(ops, RING);
}

/* ---- counting and fan-in ---- */

struct counter_state {
    uint64_t sum = 0;
};

static behavior counter(stateful_actor<counter_state> *self, uint64_t total, const actor &done)
{
    return {
        [=](add_atom, uint64_t n) {
            self->state.sum += n;
            if (self->state.sum == total)
                self->send(done, done_atom::value);
        },
    };
}

struct sender_state {
    uint64_t left = 0;
};

static behavior sender(stateful_actor<sender_state> *self, const actor &to, uint64_t total)
{
    self->state.left = total;
    return {
        [=](go_atom) {
            uint64_t &left = self->state.left;
            for (unsigned n = 0; n < BURST && left > 0; n++, left--)
                self->send(to, add_atom::value, uint64_t{1});
            if (left > 0)
                self->send(self, go_atom::value);
        },
    };
}

static double fan_in(uint64_t ops, unsigned count)
{
    uint64_t each = ops / count + 1;
    std::vector<actor> all = {sys->spawn(counter, each * count, waiter())};
    for (unsigned i = 0; i < count; i++)
        all.push_back(sys->spawn(sender, all[0], each));
    uint64_t began = tasks_now_ns();
    for (unsigned i = 1; i <= count; i++)
        caf::anon_send(all[i], go_atom::value);
    double ns = done_since(began);
    stop(all);
    return ns / (double)(each * count) * (double)ops;
}

static double case_counting(uint64_t ops)
{
    return fan_in(ops, 1);
}

static double case_fan_in(uint64_t ops)
{
    return fan_in(ops, SENDERS);
}

static double case_counting_peak(uint64_t ops)
{
    (void)fan_in(ops, 1);
    return cases_peak_mb();
}

static double case_fan_in_peak(uint64_t ops)
{
    (void)fan_in(ops, SENDERS);
    return cases_peak_mb();
}

/* ---- big ---- */

static std::vector<actor> talkers;
static std::atomic<uint64_t> running;

struct talker_state {
    uint64_t left = 0, seed = 0;
};

static behavior talker(stateful_actor<talker_state> *self, uint64_t me, uint64_t pings,
                       const actor &done)
{
    auto ping = [=] {
        self->send(talkers[cases_partner(&self->state.seed, me, BIG)], ping_atom::value);
    };
    self->state = talker_state{pings, me + 1};
    return {
        [=](go_atom) { ping(); },
        [](ping_atom) { return pong_atom::value; },
        [=](pong_atom) {
            if (--self->state.left > 0)
                ping();
            else if (--running == 0)
                self->send(done, done_atom::value);
        },
    };
}

static double case_big(uint64_t ops)
{
    uint64_t each = ops / (2 * BIG) + 1;
    running = BIG;
    for (uint64_t i = 0; i < BIG; i++)
        talkers.push_back(sys->spawn(talker, i, each, waiter()));
    uint64_t began = tasks_now_ns();
    for (auto &t : talkers)
        caf::anon_send(t, go_atom::value);
    double ns = done_since(began);
    stop(talkers);
    talkers.clear();
    return ns / (double)(2 * each * BIG) * (double)ops;
}

/* ---- create, message, end ---- */

static behavior child(event_based_actor *self)
{
    return {
        [=](die_atom) { self->quit(); },
        [=](die_atom, const actor &parent) {
            self->send(parent, go_atom::value);
            self->quit();
        },
    };
}

static behavior parent(stateful_actor<sender_state> *self, uint64_t total, const actor &done)
{
    self->state.left = total;
    return {
        [=](go_atom) {
            uint64_t &left = self->state.left;
            if (left == 0) {
                self->send(done, done_atom::value);
                self->quit();
                return;
            }
            uint64_t now = left < BATCH ? left : uint64_t{BATCH};
            left -= now;
            for (; now > 1; now--)
                self->send(self->spawn<caf::lazy_init>(child), die_atom::value);
            self->send(self->spawn<caf::lazy_init>(child), die_atom::value,
                       caf::actor_cast<actor>(self));
        },
    };
}

static double case_create(uint64_t ops)
{
    size_t before = sys->registry().running();
    uint64_t began = tasks_now_ns();
    caf::anon_send(sys->spawn(parent, ops, waiter()), go_atom::value);
    (void)done_since(began);
    sys->registry().await_running_count_equal(before);
    return (double)(tasks_now_ns() - began);
}

/* ---- call, link, monitor ---- */

static behavior server(stateful_actor<counter_state> *self)
{
    return {
        [=](ask_atom) { return ++self->state.sum; },
    };
}

static void call_next(stateful_actor<sender_state> *self, const actor &to, const actor &done)
{
    self->request(to, caf::infinite, ask_atom::value).await([=](uint64_t answer) {
        if (answer < self->state.left)
            call_next(self, to, done);
        else
            self->send(done, done_atom::value);
    });
}

static behavior partner(stateful_actor<sender_state> *self, const actor &to, uint64_t total,
                        const actor &done)
{
    auto batch = [=](const std::function<void()> &pair) {
        for (unsigned n = 0; n < BATCH && self->state.left > 0; n++, self->state.left--)
            pair();
        if (self->state.left == 0)
            self->send(done, done_atom::value);
        return self->state.left > 0;
    };
    self->state.left = total;
    return {
        [=](ask_atom) { call_next(self, to, done); },
        [=](link_atom) {
            if (batch([&] {
                    self->link_to(to);
                    self->unlink_from(to);
                }))
                self->send(self, link_atom::value);
        },
        [=](watch_atom) {
            if (batch([&] {
                    self->monitor(to);
                    self->demonitor(to);
                }))
                self->send(self, watch_atom::value);
        },
    };
}

template <typename Atom> static double together(uint64_t ops, Atom what)
{
    actor to = sys->spawn(server);
    actor from = sys->spawn(partner, to, ops, waiter());
    uint64_t began = tasks_now_ns();
    caf::anon_send(from, what);
    double ns = done_since(began);
    stop({from, to});
    return ns;
}

static double case_call(uint64_t ops)
{
    return together(ops, ask_atom::value);
}

static double case_link(uint64_t ops)
{
    return together(ops, link_atom::value);
}

static double case_monitor(uint64_t ops)
{
    return together(ops, watch_atom::value);
}

/* ---- crash and restart ---- */

static uint64_t crashes_left; /* only the child of the moment touches it */

static behavior mortal(event_based_actor *self, const actor &done)
{
    if (crashes_left == 0) {
        self->send(done, done_atom::value);
    } else {
        crashes_left--;
        self->send(self, crash_atom::value);
    }
    return {
        [=](crash_atom) { self->quit(caf::make_error(caf::sec::runtime_error)); },
    };
}

struct supervisor_state {
    uint64_t restarts = 0;
    actor child; /* without a handle it would end, because no message could reach it */
};

static behavior supervisor(stateful_actor<supervisor_state> *self, const actor &done)
{
    self->set_exit_handler([=](caf::exit_msg &m) {
        if (m.reason == caf::exit_reason::user_shutdown) { /* its own end, and so its child's */
            self->quit(m.reason);
            return;
        }
        self->state.restarts++;
        self->state.child = self->spawn<caf::linked>(mortal, done);
    });
    self->state.child = self->spawn<caf::linked>(mortal, done);
    return {
        [=](ask_atom) { return self->state.restarts; },
    };
}

static double case_restart(uint64_t ops)
{
    crashes_left = ops;
    uint64_t began = tasks_now_ns();
    actor sup = sys->spawn(supervisor, waiter());
    double ns = done_since(began);
    (*waiting)
        ->request(sup, caf::infinite, ask_atom::value)
        .receive(
            [=](uint64_t restarts) {
                if (restarts != ops)
                    bench_die("%llu restarts", (unsigned long long)restarts);
            },
            [](const caf::error &) { bench_die("no answer"); });
    stop({sup});
    return ns;
}

/* ---- idle actors ---- */

struct idler_state {
    unsigned char bytes[64] = {0};
};

static std::atomic<uint64_t> born;

static behavior idler(stateful_actor<idler_state> *self)
{
    born++;
    return {
        [=](uint64_t n) { self->state.bytes[n]++; },
    };
}

static behavior smallest(event_based_actor *)
{
    born++;
    return {
        [](uint64_t) {},
    };
}

/* Its handles keep an actor alive. */
template <typename F> static double idle(uint64_t count, F fn)
{
    std::vector<actor> all(count);
    uint64_t before = tasks_memory();
    for (uint64_t i = 0; i < count; i++) {
        all[i] = sys->spawn(fn);
        while (i % IDLE_STEP == IDLE_STEP - 1 && born <= i)
            sched_yield();
    }
    return (double)(tasks_memory() - before) / (double)count;
}

static double case_idle_64(uint64_t ops)
{
    return idle(ops, idler);
}

static double case_idle_0(uint64_t ops)
{
    return idle(ops, smallest);
}

/* ---- the programme ---- */

static const struct tasks_case cases[] = {
    {"ping-pong", TASKS_PACED, case_ping_pong, 0},
    {"ring", TASKS_PACED, case_ring, 0},
    {"counting", TASKS_PACED, case_counting, 0},
    {"fan-in", TASKS_PACED, case_fan_in, 0},
    {"big", TASKS_PACED, case_big, 0},
    {"create", TASKS_PACED, case_create, 0},
    {"call", TASKS_PACED, case_call, 0},
    {"link", TASKS_PACED, case_link, 0},
    {"monitor", TASKS_PACED, case_monitor, 0},
    {"restart", TASKS_PACED, case_restart, 0},
    {"counting-peak", TASKS_ONCE, case_counting_peak, PEAK},
    {"fan-in-peak", TASKS_ONCE, case_fan_in_peak, PEAK},
    {"idle-64", TASKS_ONCE, case_idle_64, IDLE},
    {"idle-0", TASKS_ONCE, case_idle_0, IDLE},
};

static void start(const struct tasks_case *c, const char *name)
{
    caf::actor_system_config config;
    config.set("scheduler.max-threads", (int64_t)tasks_procs);
    config.set("scheduler.max-throughput", (int64_t)100);
    caf::actor_system system(config);
    caf::scoped_actor self(system);
    sys = &system;
    waiting = &self;
    tasks_measure(c, name);
}

int main(int argc, char **argv)
{
    return tasks_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]), start);
}
