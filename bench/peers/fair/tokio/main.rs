// Tokio's multi-thread runtime: tasks that sleep, compute, or call something that blocks. What the tickers
// are is said in bench/fair/tickers.h; the clocks of the short cases are those of bench/tasks/tasks.h. Main
// closes the books: it is a plain thread. Tokio does not preempt; hogs let go between two of their turns by
// yield_now. Blocking work goes where its documentation sends it: spawn_blocking, block_in_place.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::task::{block_in_place, spawn_blocking, yield_now};

const TICKERS: usize = 1000;
const TICKS: usize = 100;
const TICK: Duration = Duration::from_millis(10);
const HOG: Duration = Duration::from_millis(100);
const LEAD: Duration = Duration::from_millis(20);

extern "C" {
    fn clock_gettime(clock: i32, at: *mut [i64; 2]) -> i32;
}

// CLOCK_PROCESS_CPUTIME_ID with one worker, CLOCK_MONOTONIC with more.
fn now(procs: usize) -> f64 {
    let mut at = [0i64; 2];
    unsafe { clock_gettime(if procs == 1 { 2 } else { 1 }, &mut at) };
    at[0] as f64 * 1e9 + at[1] as f64
}

fn due(start: Instant, ticker: usize, tick: usize) -> Instant {
    start + TICK * tick as u32 + TICK / TICKERS as u32 * ticker as u32
}

struct Figures {
    p50: f64,
    p99: f64,
    delivered: f64,
}

fn close_books(start: Instant, late: &[AtomicU32]) -> Figures {
    let end = start + TICK * TICKS as u32;
    std::thread::sleep(end.saturating_duration_since(Instant::now()));
    let at = Instant::now();
    let (mut all, mut delivered) = (Vec::with_capacity(TICKERS * TICKS), 0);
    for i in 0..TICKERS {
        for k in 0..TICKS {
            let due = due(start, i, k);
            if due > end {
                continue;
            }
            let came = late[i * TICKS + k].load(Ordering::Relaxed);
            let us = if came != 0 { came - 1 } else { (at - due).as_micros() as u32 };
            delivered += (came != 0 && due + Duration::from_micros(us as u64) <= end) as usize;
            all.push(us);
        }
    }
    all.sort();
    let n = all.len();
    Figures {
        p50: (all[n / 2] + 1) as f64 / 1000.0,
        p99: (all[n / 100 * 99] + 1) as f64 / 1000.0,
        delivered: 100.0 * delivered as f64 / n as f64 + 1e-9,
    }
}

async fn run_ticker(start: Instant, me: usize, late: &'static [AtomicU32]) {
    for k in 0..TICKS {
        let due = due(start, me, k);
        tokio::time::sleep_until(due.into()).await;
        let us = Instant::now().saturating_duration_since(due).as_micros() as u32;
        late[me * TICKS + k].store(us + 1, Ordering::Relaxed);
    }
}

async fn hog() {
    loop {
        let until = Instant::now() + HOG;
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        yield_now().await;
    }
}

async fn endless() {
    let never = AtomicU32::new(0);
    while never.load(Ordering::Relaxed) == 0 {
        unsafe { std::arch::asm!("", options(nostack)) };
    }
}

fn beside<F: Future<Output = ()> + Send + 'static>(
    rt: &tokio::runtime::Runtime,
    make: fn() -> F,
    count: usize,
) -> Figures {
    let late: &'static [AtomicU32] =
        (0..TICKERS * TICKS).map(|_| AtomicU32::new(0)).collect::<Vec<_>>().leak();
    let start = Instant::now() + LEAD;
    for i in 0..TICKERS {
        rt.spawn(run_ticker(start, i, late));
    }
    for _ in 0..count {
        rt.spawn(make());
    }
    close_books(start, late)
}

async fn calls() -> f64 {
    let began = Instant::now();
    let all: Vec<_> = (0..100)
        .map(|_| spawn_blocking(|| std::thread::sleep(Duration::from_millis(50))))
        .collect();
    for h in all {
        h.await.unwrap();
    }
    began.elapsed().as_secs_f64() * 1e3
}

async fn pool_trip(ops: usize) -> f64 {
    let (began, mut sum) = (Instant::now(), 0);
    for i in 0..ops {
        sum += spawn_blocking(move || i).await.unwrap();
    }
    assert_eq!(sum, ops * (ops - 1) / 2);
    began.elapsed().as_nanos() as f64
}

// The first block_in_place of a poll hands the worker's core to another thread; those after it find nothing left
// to hand over and cost nothing. So there is one in each turn.
async fn in_place(ops: usize, procs: usize) -> f64 {
    let (began, mut sum) = (now(procs), 0);
    for i in 0..ops {
        sum += block_in_place(move || std::hint::black_box(i));
        yield_now().await;
    }
    assert_eq!(sum, ops * (ops - 1) / 2);
    now(procs) - began
}

async fn paced<F: Future<Output = f64>>(run: impl Fn(usize) -> F, seconds: f64) -> f64 {
    let (mut ops, part) = (64, Duration::from_secs_f64(seconds / 5.0));
    loop {
        let began = Instant::now();
        let mut ns = run(ops).await;
        if began.elapsed() < part {
            ops *= 2;
            continue;
        }
        for _ in 1..5 {
            ns = ns.min(run(ops).await);
        }
        return ns / ops as f64;
    }
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let name = words.get(1).expect("usage: CASE.pPROCS [--seconds=S]").clone();
    let (base, procs) = name.split_once(".p").expect("CASE.pPROCS");
    let procs = procs.parse::<usize>().expect("a number of workers");
    let seconds = words
        .iter()
        .find_map(|w| w.strip_prefix("--seconds="))
        .map_or(0.2, |s| s.parse().expect("seconds"));
    let rt = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(procs)
        .enable_time()
        .build()
        .unwrap();
    let figure = match base {
        "hogs-p50" => beside(&rt, hog, procs).p50,
        "hogs-p99" => beside(&rt, hog, procs).p99,
        "hogs-wakes" => beside(&rt, hog, procs).delivered,
        "calls" => rt.block_on(rt.spawn(calls())).unwrap(),
        "pool-trip" => rt.block_on(rt.spawn(paced(pool_trip, seconds))).unwrap(),
        "in-place-turn" => {
            rt.block_on(rt.spawn(paced(move |n| in_place(n, procs), seconds))).unwrap()
        }
        _ => match base.strip_prefix("loops-") {
            Some(n) => beside(&rt, endless, n.parse().expect("a number of loops")).p99,
            None => panic!("no case {}", base),
        },
    };
    println!("{} {}", name, figure);
    std::process::exit(0); // do not wait for endless tasks
}
