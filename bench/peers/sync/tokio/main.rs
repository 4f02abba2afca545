// Tokio: what tokio::sync has, on its multi-thread runtime, or with --local on its current-thread one,
// which has one worker for good. The measuring itself is a task, too. The kinds of cases and the clocks
// are those of bench/tasks/tasks.h. The cases are in the other files of this folder. Built with LTO and
// abort on panic.

mod locks;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::task::{spawn, JoinHandle};

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

// work(ops) by one task.
pub async fn alone<F: Future<Output = ()>>(ops: usize, work: fn(usize) -> F) -> f64 {
    let began = now();
    work(ops).await;
    now() - began
}

// The same by several, each with its share.
pub async fn together<F>(ops: usize, count: usize, work: fn(usize) -> F) -> f64
where
    F: Future<Output = ()> + Send + 'static,
{
    let each = ops / count;
    let mut handles: Vec<JoinHandle<()>> = Vec::with_capacity(count);
    let began = now();
    for _ in 0..count {
        handles.push(spawn(work(each)));
    }
    for h in handles {
        h.await.unwrap();
    }
    (now() - began) / (each * count) as f64 * ops as f64
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

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let name = words[1..].iter().find(|w| !w.starts_with("--")).expect("usage: CASE.pPROCS [--seconds=S | --ops=N]").clone();
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
    let all: &[&'static [Case]] = &[locks::CASES];
    let c: &'static Case = all.iter().flat_map(|cases| cases.iter()).find(|c| c.name == base).expect("no such case");
    IS_WALL.store(procs > 1, Ordering::Relaxed);
    let figure = if is_local {
        assert_eq!(procs, 1);
        let rt = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        rt.block_on(async move { spawn(measure(c, seconds, ops)).await.unwrap() })
    } else {
        let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(procs).enable_time().build().unwrap();
        rt.block_on(async move { spawn(measure(c, seconds, ops)).await.unwrap() })
    };
    println!("{} {}", name, figure);
}
