// Tokio's own channels (--with=tokio), flume (--with=flume) and async-channel (--with=async), all on
// Tokio's multi-thread runtime. The measuring and the clocks are those of bench/tasks/tasks.h: the
// fastest of five runs; CPU time with one worker, the wall's with more. A case that a crate has no
// channel for (a rendezvous of Tokio's, many receivers of its mpsc) is not in its list.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::spawn;

const CAPACITY: usize = 128;

type Boxed = Pin<Box<dyn Future<Output = f64> + Send>>;
type Run = fn(usize) -> Boxed;

static IS_WALL: AtomicBool = AtomicBool::new(false);

extern "C" {
    fn clock_gettime(clock: i32, at: *mut [i64; 2]) -> i32;
}

fn now() -> f64 {
    let mut at = [0i64; 2];
    let clock = if IS_WALL.load(Ordering::Relaxed) { 1 } else { 2 };
    unsafe { clock_gettime(clock, &mut at) };
    at[0] as f64 * 1e9 + at[1] as f64
}

// The same three programs over three kinds of channels.
macro_rules! programs {
    ($name:ident, $new:expr, $send:ident, $recv:ident) => {
        mod $name {
            use super::*;
            pub async fn ping_pong(ops: usize, size: usize) -> f64 {
                let (to, mut at) = $new(size);
                let (back, mut from) = $new(size);
                let began = now();
                let echo = spawn(async move {
                    for _ in 0..ops {
                        let v: u64 = $recv!(at);
                        $send!(back, v);
                    }
                });
                for i in 0..ops {
                    $send!(to, i as u64);
                    let v: u64 = $recv!(from);
                    std::hint::black_box(v);
                }
                echo.await.unwrap();
                now() - began
            }
            pub async fn spsc(ops: usize) -> f64 {
                let (tx, mut rx) = $new(CAPACITY);
                let began = now();
                let sender = spawn(async move {
                    for i in 0..ops {
                        $send!(tx, i as u64);
                    }
                });
                for _ in 0..ops {
                    let v: u64 = $recv!(rx);
                    std::hint::black_box(v);
                }
                sender.await.unwrap();
                now() - began
            }
            pub async fn send_recv(ops: usize) -> f64 {
                let (tx, mut rx) = $new(1);
                let began = now();
                for i in 0..ops {
                    $send!(tx, i as u64);
                    let v: u64 = $recv!(rx);
                    std::hint::black_box(v);
                }
                now() - began
            }
        }
    };
}

macro_rules! send_await {
    ($c:expr, $v:expr) => {
        $c.send($v).await.unwrap()
    };
}
macro_rules! recv_option {
    ($c:expr) => {
        $c.recv().await.unwrap()
    };
}
macro_rules! flume_send {
    ($c:expr, $v:expr) => {
        $c.send_async($v).await.unwrap()
    };
}
macro_rules! flume_recv {
    ($c:expr) => {{
        let c = &mut $c;
        c.recv_async().await.unwrap()
    }};
}
macro_rules! async_recv {
    ($c:expr) => {{
        let c = &mut $c;
        c.recv().await.unwrap()
    }};
}

programs!(of_tokio, tokio::sync::mpsc::channel, send_await, recv_option);
programs!(of_flume, flume::bounded, flume_send, flume_recv);
programs!(of_async, async_channel::bounded, send_await, async_recv);

macro_rules! many {
    ($name:ident, $new:expr, $send:ident, $recv:ident) => {
        async fn $name(ops: usize) -> f64 {
            let (tx, rx) = $new(CAPACITY);
            let each = ops / 4 + 1;
            let mut tasks = Vec::new();
            let began = now();
            for _ in 0..4 {
                let tx = tx.clone();
                tasks.push(spawn(async move {
                    for i in 0..each {
                        $send!(tx, i as u64);
                    }
                }));
                let mut rx = rx.clone();
                tasks.push(spawn(async move {
                    for _ in 0..each {
                        let v: u64 = $recv!(rx);
                        std::hint::black_box(v);
                    }
                }));
            }
            for t in tasks {
                t.await.unwrap();
            }
            now() - began
        }
    };
}
many!(flume_mpmc, flume::bounded, flume_send, flume_recv);
many!(async_mpmc, async_channel::bounded, send_await, async_recv);

async fn tokio_oneshot(ops: usize) -> f64 {
    let began = now();
    for i in 0..ops {
        let (tx, rx) = tokio::sync::oneshot::channel();
        tx.send(i as u64).unwrap();
        std::hint::black_box(rx.await.unwrap());
    }
    now() - began
}

async fn tokio_select(ops: usize) -> f64 {
    let mut tx = Vec::new();
    let mut rx = Vec::new();
    for _ in 0..4 {
        let (t, r) = tokio::sync::mpsc::channel::<u64>(1);
        t.send(1).await.unwrap();
        tx.push(t);
        rx.push(r);
    }
    let (mut d, mut c, mut b, mut a) =
        (rx.pop().unwrap(), rx.pop().unwrap(), rx.pop().unwrap(), rx.pop().unwrap());
    let began = now();
    for _ in 0..ops {
        let (i, v) = tokio::select! {
            v = a.recv() => (0, v),
            v = b.recv() => (1, v),
            v = c.recv() => (2, v),
            v = d.recv() => (3, v),
        };
        tx[i].send(v.unwrap()).await.unwrap();
    }
    now() - began
}

const CASES: &[(&str, &str, Run)] = &[
    ("tokio", "ping-pong-1", |n| Box::pin(of_tokio::ping_pong(n, 1))),
    ("tokio", "spsc", |n| Box::pin(of_tokio::spsc(n))),
    ("tokio", "send-recv", |n| Box::pin(of_tokio::send_recv(n))),
    ("tokio", "oneshot", |n| Box::pin(tokio_oneshot(n))),
    ("tokio", "select-4", |n| Box::pin(tokio_select(n))),
    ("flume", "rendezvous", |n| Box::pin(of_flume::ping_pong(n, 0))),
    ("flume", "ping-pong-1", |n| Box::pin(of_flume::ping_pong(n, 1))),
    ("flume", "spsc", |n| Box::pin(of_flume::spsc(n))),
    ("flume", "mpmc", |n| Box::pin(flume_mpmc(n))),
    ("flume", "send-recv", |n| Box::pin(of_flume::send_recv(n))),
    ("async", "ping-pong-1", |n| Box::pin(of_async::ping_pong(n, 1))),
    ("async", "spsc", |n| Box::pin(of_async::spsc(n))),
    ("async", "mpmc", |n| Box::pin(async_mpmc(n))),
    ("async", "send-recv", |n| Box::pin(of_async::send_recv(n))),
];

async fn measure(run: Run, seconds: f64, fixed_ops: usize) -> f64 {
    if fixed_ops != 0 {
        return run(fixed_ops).await / fixed_ops as f64;
    }
    let (mut ops, part) = (1024, seconds * 1e9 / 5.0);
    let mut ns = run(ops).await;
    while ns < part {
        ops *= 2;
        ns = run(ops).await;
    }
    for _ in 1..5 {
        ns = ns.min(run(ops).await);
    }
    ns / ops as f64
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let name = words[1..].iter().find(|w| !w.starts_with("--")).expect("a case").clone();
    let (base, procs) = match name.split_once(".p") {
        Some((base, n)) => (base.to_string(), n.parse::<usize>().expect("a number of workers")),
        None => (name.clone(), 1),
    };
    let (mut seconds, mut ops, mut with) = (0.2, 0, "tokio".to_string());
    for w in &words[1..] {
        if let Some(s) = w.strip_prefix("--seconds=") {
            seconds = s.parse().expect("seconds");
        } else if let Some(s) = w.strip_prefix("--ops=") {
            ops = s.parse().expect("operations");
        } else if let Some(s) = w.strip_prefix("--with=") {
            with = s.to_string();
        }
    }
    let run = CASES.iter().find(|c| c.0 == with && c.1 == base).expect("no such case").2;
    IS_WALL.store(procs > 1, Ordering::Relaxed);
    let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(procs).build().unwrap();
    let figure = rt.block_on(async move { spawn(measure(run, seconds, ops)).await.unwrap() });
    println!("{} {}", name, figure);
}
