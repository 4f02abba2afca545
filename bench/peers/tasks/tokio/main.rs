// Tokio: tasks and join handles, on its multi-thread runtime, or with --local on its current-thread one,
// which has one worker for good and so neither locks nor steals. The measuring itself is a task, too,
// since spawning from outside goes through the injection queue. The kinds of cases and the clocks are
// those of bench/tasks/tasks.h. Built with LTO and abort on panic.

mod frame;

use frame::{now, Boxed, Case, Kind};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use tokio::task::{spawn, yield_now, JoinHandle};

const MILLION: usize = 1_000_000;

async fn yield_among(ops: usize, count: usize) -> f64 {
    let each = ops / count + 1;
    let mut handles: Vec<JoinHandle<()>> = Vec::with_capacity(count);
    let began = now();
    for _ in 0..count {
        handles.push(spawn(async move {
            for _ in 0..each {
                yield_now().await;
            }
        }));
    }
    for h in handles {
        h.await.unwrap();
    }
    (now() - began) / (each * count) as f64 * ops as f64
}

async fn spawn_join(ops: usize) -> f64 {
    let mut handles: Vec<JoinHandle<usize>> = Vec::with_capacity(ops);
    let began = now();
    for i in 0..ops {
        handles.push(spawn(async move { i }));
    }
    let mut sum = 0;
    for h in handles {
        sum += h.await.unwrap();
    }
    let ns = now() - began;
    assert_eq!(sum, ops * (ops - 1) / 2);
    ns
}

async fn spawn_await(ops: usize) -> f64 {
    let began = now();
    let mut sum = 0;
    for i in 0..ops {
        sum += spawn(async move { i }).await.unwrap();
    }
    let ns = now() - began;
    assert_eq!(sum, ops * (ops - 1) / 2);
    ns
}

fn skynet_node(first: usize, size: usize) -> Boxed<usize> {
    Box::pin(async move {
        if size == 1 {
            return first;
        }
        let mut below = Vec::with_capacity(10);
        for i in 0..10 {
            below.push(spawn(skynet_node(first + i * (size / 10), size / 10)));
        }
        let mut sum = 0;
        for b in below {
            sum += b.await.unwrap();
        }
        sum
    })
}

async fn skynet(ops: usize) -> f64 {
    let size = if ops >= MILLION { MILLION } else { 1000 };
    let began = now();
    let mut done = 0;
    while done < ops {
        let sum = spawn(skynet_node(0, size)).await.unwrap();
        assert_eq!(sum, size * (size - 1) / 2);
        done += size;
    }
    now() - began
}

// A task that waits for its flag; its waker lies in a table made before memory is measured.
struct Gate {
    waker: Mutex<Option<Waker>>,
    is_open: AtomicBool,
}

static ARRIVED: AtomicUsize = AtomicUsize::new(0);

struct AtGate(&'static Gate);

impl Future for AtGate {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0.is_open.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        let mut place = self.0.waker.lock().unwrap();
        if place.is_none() {
            *place = Some(cx.waker().clone());
            ARRIVED.fetch_add(1, Ordering::Release);
        }
        Poll::Pending
    }
}

fn memory() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let kib: f64 = text
        .lines()
        .filter(|l| l.starts_with("VmRSS:") || l.starts_with("VmPTE:"))
        .map(|l| l.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap())
        .sum();
    kib * 1024.0
}

async fn parked(ops: usize) -> f64 {
    let gates: &'static [Gate] = (0..ops)
        .map(|_| Gate { waker: Mutex::new(None), is_open: AtomicBool::new(false) })
        .collect::<Vec<_>>()
        .leak();
    // As many bytes as the handles will take, touched; only the allocator's own rounding differs.
    let mut handles: Vec<JoinHandle<()>> = Vec::with_capacity(ops);
    unsafe { std::ptr::write_bytes(handles.as_mut_ptr() as *mut u8, 1, ops * 8) };
    let before = memory();
    for g in gates {
        handles.push(spawn(AtGate(g)));
    }
    while ARRIVED.load(Ordering::Acquire) < ops {
        yield_now().await;
    }
    let state = std::mem::size_of::<AtGate>() as f64; // the task's own, not the runtime's
    let bytes = (memory() - before) / ops as f64 - state;
    for g in gates {
        g.is_open.store(true, Ordering::Release);
        g.waker.lock().unwrap().take().unwrap().wake();
    }
    for h in handles {
        h.await.unwrap();
    }
    bytes
}

static CASES: &[Case] = &[
    Case { name: "yield-2", kind: Kind::Paced, run: |n| Box::pin(yield_among(n, 2)), ops: 0 },
    Case { name: "yield-1000", kind: Kind::Paced, run: |n| Box::pin(yield_among(n, 1000)), ops: 0 },
    Case { name: "poll-yield-2", kind: Kind::Paced, run: |n| Box::pin(yield_among(n, 2)), ops: 0 },
    Case { name: "poll-yield-1000", kind: Kind::Paced, run: |n| Box::pin(yield_among(n, 1000)), ops: 0 },
    Case { name: "spawn-join", kind: Kind::Fixed, run: |n| Box::pin(spawn_join(n)), ops: MILLION },
    Case { name: "poll-spawn-join", kind: Kind::Fixed, run: |n| Box::pin(spawn_join(n)), ops: MILLION },
    Case { name: "spawn-await", kind: Kind::Paced, run: |n| Box::pin(spawn_await(n)), ops: 0 },
    Case { name: "skynet", kind: Kind::Fixed, run: |n| Box::pin(skynet(n)), ops: MILLION },
    Case { name: "parked-poll", kind: Kind::Once, run: |n| Box::pin(parked(n)), ops: MILLION },
];

fn main() {
    frame::run(CASES, |_| {});
}
