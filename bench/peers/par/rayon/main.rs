// Rayon: join for tasks (nested where a node has more than two), parallel iterators for the rest, in a
// pool with as many threads as were asked for. What the cases are is said in bench/par/cases.h, the
// clocks and the frame are those of bench/tasks/tasks.h. `tiny-outside` and `tiny-idle` call from the
// main thread, which is no worker of the pool.

use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const FIB_N: u32 = 38;
const FIB_RESULT: u32 = 39088169;
const QUEENS_ALL: u32 = (1 << 13) - 1;
const QUEENS_RESULT: u32 = 73712;
const SUM_COUNT: usize = 100_000_000;
const ORBIT_COUNT: u64 = 100_000;
const SORT_COUNT: usize = 10_000_000;
const TINY_COUNT: usize = 1000;
const TINY_IDLE_ROUNDS: usize = 50;

extern "C" {
    fn clock_gettime(clock: i32, at: *mut [i64; 2]) -> i32;
}

static IS_WALL: AtomicBool = AtomicBool::new(false);

// CLOCK_PROCESS_CPUTIME_ID with one worker, CLOCK_MONOTONIC with more.
fn now() -> f64 {
    let mut at = [0i64; 2];
    let clock = if IS_WALL.load(Ordering::Relaxed) { 1 } else { 2 };
    unsafe { clock_gettime(clock, &mut at) };
    at[0] as f64 * 1e9 + at[1] as f64
}

#[inline(never)]
fn answer(x: u64) -> u64 {
    std::hint::black_box(x)
}

// A join of two calls is one fork: the first is called, the second can be taken.
fn fork(_: &mut State, ops: usize) -> f64 {
    let began = now();
    let mut sum = 0;
    for _ in 0..ops {
        let (_, b) = rayon::join(|| (), || answer(1));
        sum += b;
    }
    let ns = now() - began;
    assert_eq!(sum, ops as u64);
    ns
}

fn fib_of(n: u32) -> u32 {
    if n < 2 {
        return n;
    }
    let (a, b) = rayon::join(|| fib_of(n - 1), || fib_of(n - 2));
    a + b
}

fn fib(_: &mut State, _: usize) -> f64 {
    let began = now();
    assert_eq!(fib_of(FIB_N), FIB_RESULT);
    (now() - began) / 1e6
}

#[derive(Clone, Copy)]
struct Board {
    columns: u32,
    left: u32,
    right: u32,
}

fn placed(q: Board, free: u32) -> Board {
    let bit = free & free.wrapping_neg();
    Board {
        columns: q.columns | bit,
        left: ((q.left | bit) << 1) & QUEENS_ALL,
        right: (q.right | bit) >> 1,
    }
}

fn solve(q: Board) -> u32 {
    if q.columns == QUEENS_ALL {
        return 1;
    }
    row(q, QUEENS_ALL & !(q.columns | q.left | q.right))
}

// The placements of a row: the first of them beside the rest.
fn row(q: Board, free: u32) -> u32 {
    let rest = free & free.wrapping_sub(1);
    if free == 0 {
        return 0;
    }
    if rest == 0 {
        return solve(placed(q, free));
    }
    let (a, b) = rayon::join(|| solve(placed(q, free)), || row(q, rest));
    a + b
}

fn queens(_: &mut State, _: usize) -> f64 {
    let began = now();
    assert_eq!(solve(Board { columns: 0, left: 0, right: 0 }), QUEENS_RESULT);
    (now() - began) / 1e6
}

// Eight sums at a time, as all have it: see bench/par/cases.h.
fn stretch(numbers: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let mut parts = numbers.chunks_exact(8);
    for part in &mut parts {
        for k in 0..8 {
            lanes[k] += part[k];
        }
    }
    parts.remainder().iter().sum::<f64>() + lanes.iter().sum::<f64>()
}

fn sum(s: &mut State, _: usize) -> f64 {
    if s.doubles.is_empty() {
        s.doubles = (0..SUM_COUNT).map(|i| 0.25 * (i % 1000) as f64).collect();
    }
    let began = now();
    let total: f64 = s.doubles.par_chunks(65536).map(stretch).sum();
    let ms = (now() - began) / 1e6;
    assert_eq!(total, 0.25 * 999.0 * 1000.0 / 2.0 * (SUM_COUNT / 1000) as f64);
    ms
}

fn orbit_of(i: u64) -> u64 {
    let mut x = (i % 1000) as f64 / 1000.0;
    for _ in 0..200 {
        x = x * x - 0.75;
    }
    ((x + 2.0) * 1024.0) as u64
}

fn orbit(_: &mut State, _: usize) -> f64 {
    let want: u64 = (0..1000).map(|i| orbit_of(i) * (ORBIT_COUNT / 1000)).sum();
    let began = now();
    let total: u64 = (0..ORBIT_COUNT).into_par_iter().map(orbit_of).sum();
    let ms = (now() - began) / 1e6;
    assert_eq!(total, want);
    ms
}

enum Input {
    Random,
    Sorted,
    Few,
}

fn sort_once(s: &mut State, input: Input) -> f64 {
    if s.fresh.is_empty() {
        let mut x: u64 = 88172645463325252;
        let mut random = || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x
        };
        s.fresh = (0..SORT_COUNT as u64)
            .map(|i| match input {
                Input::Random => random(),
                Input::Sorted => i,
                Input::Few => random() % 100,
            })
            .collect();
        s.numbers = s.fresh.clone();
    }
    s.numbers.copy_from_slice(&s.fresh);
    let began = now();
    s.numbers.par_sort_unstable();
    let ms = (now() - began) / 1e6;
    assert!(s.numbers.windows(2).all(|w| w[0] <= w[1]));
    let total = |v: &[u64]| v.iter().fold(0u64, |a, b| a.wrapping_add(*b));
    assert_eq!(total(&s.numbers), total(&s.fresh));
    ms
}

fn tiny_check(tiny: &mut [u32], times: usize) {
    for item in tiny {
        assert_eq!(*item, times as u32);
        *item = 0;
    }
}

fn tiny_loop(tiny: &mut [u32]) {
    tiny.par_iter_mut().for_each(|item| *item += 1);
}

fn tiny(s: &mut State, ops: usize) -> f64 {
    let began = Instant::now();
    for _ in 0..ops {
        tiny_loop(&mut s.tiny);
    }
    let ns = began.elapsed().as_nanos() as f64;
    tiny_check(&mut s.tiny, ops);
    ns
}

fn tiny_idle(s: &mut State, _: usize) -> f64 {
    tiny_loop(&mut s.tiny);
    let mut all: Vec<u128> = (0..TINY_IDLE_ROUNDS)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(4));
            let began = Instant::now();
            tiny_loop(&mut s.tiny);
            began.elapsed().as_nanos()
        })
        .collect();
    tiny_check(&mut s.tiny, TINY_IDLE_ROUNDS + 1);
    all.sort();
    all[TINY_IDLE_ROUNDS / 2] as f64
}

#[derive(PartialEq)]
enum Kind {
    Paced,
    Fixed,
    Once,
}

struct State {
    doubles: Vec<f64>,
    fresh: Vec<u64>,
    numbers: Vec<u64>,
    tiny: Vec<u32>,
}

struct Case {
    name: &'static str,
    kind: Kind,
    run: fn(&mut State, usize) -> f64,
    is_outside: bool,
}

const fn case(name: &'static str, kind: Kind, run: fn(&mut State, usize) -> f64) -> Case {
    Case { name, kind, run, is_outside: false }
}

static CASES: &[Case] = &[
    case("fork", Kind::Paced, fork),
    case("fib", Kind::Fixed, fib),
    case("queens", Kind::Fixed, queens),
    case("sum", Kind::Fixed, sum),
    case("orbit", Kind::Fixed, orbit),
    case("sort-random", Kind::Fixed, |s, _| sort_once(s, Input::Random)),
    case("sort-sorted", Kind::Fixed, |s, _| sort_once(s, Input::Sorted)),
    case("sort-few", Kind::Fixed, |s, _| sort_once(s, Input::Few)),
    case("tiny-inside", Kind::Paced, tiny),
    Case { name: "tiny-outside", kind: Kind::Paced, run: tiny, is_outside: true },
    Case { name: "tiny-idle", kind: Kind::Once, run: tiny_idle, is_outside: true },
];

fn measure(c: &Case, seconds: f64, fixed_ops: usize) -> f64 {
    let mut s =
        State { doubles: vec![], fresh: vec![], numbers: vec![], tiny: vec![0; TINY_COUNT] };
    if c.kind == Kind::Once {
        return (c.run)(&mut s, 1);
    }
    if fixed_ops != 0 {
        return (c.run)(&mut s, fixed_ops) / fixed_ops as f64;
    }
    if c.kind == Kind::Fixed {
        (c.run)(&mut s, 1);
        let until = Instant::now() + Duration::from_secs_f64(seconds);
        let mut figure = (c.run)(&mut s, 1);
        while Instant::now() < until {
            figure = figure.min((c.run)(&mut s, 1));
        }
        return figure;
    }
    let (mut ops, part) = (1024, seconds * 1e9 / 5.0);
    let mut ns = (c.run)(&mut s, ops);
    while ns < part {
        ops *= 2;
        ns = (c.run)(&mut s, ops);
    }
    for _ in 1..5 {
        ns = ns.min((c.run)(&mut s, ops));
    }
    ns / ops as f64
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let name = words.get(1).expect("usage: CASE.pPROCS [--seconds=S | --ops=N]").clone();
    let (base, procs) = match name.split_once(".p") {
        Some((base, n)) => (base.to_string(), n.parse::<usize>().expect("a number of workers")),
        None => (name.clone(), 1),
    };
    let (mut seconds, mut ops) = (0.2, 0);
    for w in &words[2..] {
        if let Some(s) = w.strip_prefix("--seconds=") {
            seconds = s.parse().expect("seconds");
        } else if let Some(s) = w.strip_prefix("--ops=") {
            ops = s.parse().expect("operations");
        }
    }
    let c = CASES.iter().find(|c| c.name == base).expect("no such case");
    IS_WALL.store(procs > 1, Ordering::Relaxed);
    rayon::ThreadPoolBuilder::new().num_threads(procs).build_global().unwrap();
    let figure = if c.is_outside {
        measure(c, seconds, ops)
    } else {
        rayon::scope(|_| measure(c, seconds, ops))
    };
    println!("{} {}", name, figure);
}
