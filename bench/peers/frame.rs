// The frame of the Tokio programs: cases by name and number of workers, and what is measured of them. The kinds of
// cases and the clocks are those of bench/tasks/tasks.h. With --local the runtime is the current-thread one,
// which has one worker for good. The measuring itself is a task, too.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::task::spawn;

pub type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

#[derive(Clone, Copy, PartialEq)]
#[allow(dead_code)]
pub enum Kind {
    Paced,
    Fixed,
    Once,
}

pub struct Case {
    pub name: &'static str,
    pub kind: Kind,
    pub run: fn(usize) -> Boxed<f64>,
    pub ops: usize,
}

static IS_WALL: AtomicBool = AtomicBool::new(false);

extern "C" {
    fn clock_gettime(clock: i32, at: *mut [i64; 2]) -> i32;
}

// CLOCK_PROCESS_CPUTIME_ID with one worker, CLOCK_MONOTONIC with more.
pub fn now() -> f64 {
    let mut at = [0i64; 2];
    let clock = if IS_WALL.load(Ordering::Relaxed) { 1 } else { 2 };
    unsafe { clock_gettime(clock, &mut at) };
    at[0] as f64 * 1e9 + at[1] as f64
}

async fn measure(c: &'static Case, seconds: f64, fixed_ops: usize) -> f64 {
    if c.kind == Kind::Once {
        return (c.run)(c.ops).await;
    }
    if fixed_ops != 0 {
        return (c.run)(fixed_ops).await / fixed_ops as f64;
    }
    if c.kind == Kind::Fixed {
        (c.run)(c.ops).await;
        let until = Instant::now() + Duration::from_secs_f64(seconds);
        let mut ns = (c.run)(c.ops).await;
        while Instant::now() < until {
            ns = ns.min((c.run)(c.ops).await);
        }
        return ns / c.ops as f64;
    }
    let (mut ops, part) = (1024, seconds * 1e9 / 5.0);
    let mut ns = (c.run)(ops).await;
    while ns < part {
        ops *= 2;
        ns = (c.run)(ops).await;
    }
    for _ in 1..5 {
        ns = ns.min((c.run)(ops).await);
    }
    ns / ops as f64
}

// What the command line asks for. `more` says what the runtime needs besides its workers.
pub fn run(cases: &'static [Case], more: fn(&mut Builder)) {
    let words: Vec<String> = std::env::args().collect();
    let name = words[1..]
        .iter()
        .find(|w| !w.starts_with("--"))
        .expect("usage: CASE.pPROCS [--seconds=S | --ops=N] [--local]")
        .clone();
    let (base, procs) = match name.split_once(".p") {
        Some((base, n)) => (base.to_string(), n.parse::<usize>().expect("a number of workers")),
        None => (name.clone(), 1),
    };
    let (mut seconds, mut ops, mut is_local) = (0.2, 0, false);
    for w in &words[1..] {
        is_local |= w == "--local";
        if let Some(s) = w.strip_prefix("--seconds=") {
            seconds = s.parse().expect("seconds");
        } else if let Some(s) = w.strip_prefix("--ops=") {
            ops = s.parse().expect("operations");
        }
    }
    let c = cases.iter().find(|c| c.name == base).expect("no such case");
    IS_WALL.store(procs > 1, Ordering::Relaxed);
    let mut builder = if is_local {
        assert_eq!(procs, 1);
        Builder::new_current_thread()
    } else {
        let mut b = Builder::new_multi_thread();
        b.worker_threads(procs);
        b
    };
    more(&mut builder);
    let rt = builder.build().unwrap();
    let figure = rt.block_on(async move { spawn(measure(c, seconds, ops)).await.unwrap() });
    println!("{} {}", name, figure);
}
