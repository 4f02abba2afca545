// Tokio's multi-thread runtime: timers and tasks that sleep. What the sleepers are is said in
// bench/timers/late.h; the kinds of cases and the clocks are those of bench/tasks/tasks.h. A timer that is
// made and cancelled is a Sleep, polled once, which registers it, and dropped.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::{spawn, yield_now};
use tokio::time::{sleep, sleep_until};

const BATCH: usize = 1000;

extern "C" {
    fn clock_gettime(clock: i32, at: *mut [i64; 2]) -> i32;
}

static IS_WALL: AtomicBool = AtomicBool::new(false);

fn now() -> f64 {
    let mut at = [0i64; 2];
    unsafe { clock_gettime(if IS_WALL.load(Ordering::Relaxed) { 1 } else { 2 }, &mut at) };
    at[0] as f64 * 1e9 + at[1] as f64
}

type Figure = Pin<Box<dyn Future<Output = f64> + Send>>;

fn timer_cancel(ops: usize) -> Figure {
    Box::pin(async move {
        let began = now();
        for i in 0..ops {
            let nap = sleep(Duration::from_millis(1000 + (i % 64) as u64));
            tokio::pin!(nap);
            std::future::poll_fn(|cx| {
                assert!(nap.as_mut().poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
        }
        now() - began
    })
}

async fn sleep_all(count: usize) -> (f64, Vec<i64>) {
    let by: Arc<Vec<AtomicI64>> = Arc::new((0..count).map(|_| AtomicI64::new(0)).collect());
    let mut handles = Vec::with_capacity(count);
    let (mut base, mut seed) = (Instant::now(), 12345u64);
    let began = now();
    for i in 0..count {
        if i % BATCH == 0 {
            base = Instant::now() + Duration::from_millis(500);
        }
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let due = base + Duration::from_nanos((seed >> 33) % 1000000000);
        let by = by.clone();
        handles.push(spawn(async move {
            sleep_until(due.into()).await;
            by[i].store((Instant::now() - due).as_nanos() as i64, Ordering::Relaxed);
        }));
        if i % BATCH == BATCH - 1 {
            yield_now().await;
        }
    }
    let ns = now() - began;
    for h in handles {
        h.await.unwrap();
    }
    (ns, by.iter().map(|x| x.load(Ordering::Relaxed)).collect())
}

fn sleeps_create(count: usize) -> Figure {
    Box::pin(async move { sleep_all(count).await.0 })
}

fn sleeps_late(count: usize) -> Figure {
    Box::pin(async move {
        let mut by = sleep_all(count).await.1;
        by.sort();
        by[count - 1 - count / 100] as f64 / 1e6
    })
}

// Three that wait for a notification, registered by a poll and taken back by their drop, and one that is ready.
fn first_of_4(ops: usize) -> Figure {
    Box::pin(async move {
        let (a, b, c) = (Notify::new(), Notify::new(), Notify::new());
        let began = now();
        for _ in 0..ops {
            tokio::select! {
                biased;
                _ = a.notified() => unreachable!(),
                _ = b.notified() => unreachable!(),
                _ = c.notified() => unreachable!(),
                _ = std::future::ready(()) => (),
            }
        }
        now() - began
    })
}

#[derive(PartialEq)]
enum Kind {
    Paced,
    Fixed,
    Once,
}

struct Case {
    name: &'static str,
    kind: Kind,
    run: fn(usize) -> Figure,
    ops: usize,
}

static CASES: [Case; 5] = [
    Case { name: "timer-cancel", kind: Kind::Paced, run: timer_cancel, ops: 0 },
    Case { name: "sleeps-100k-late", kind: Kind::Once, run: sleeps_late, ops: 100000 },
    Case { name: "sleeps-1m-create", kind: Kind::Fixed, run: sleeps_create, ops: 1000000 },
    Case { name: "sleeps-1m-late", kind: Kind::Once, run: sleeps_late, ops: 1000000 },
    Case { name: "first-of-4", kind: Kind::Paced, run: first_of_4, ops: 0 },
];

async fn measure(c: &'static Case, seconds: f64, fixed: usize) -> f64 {
    if c.kind == Kind::Once {
        return (c.run)(if fixed != 0 { fixed } else { c.ops }).await;
    }
    if fixed != 0 {
        return (c.run)(fixed).await / fixed as f64;
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
    let name = words[1..]
        .iter()
        .find(|w| !w.starts_with("--"))
        .expect("usage: CASE.pPROCS [--seconds=S | --ops=N]")
        .clone();
    let (base, procs) = match name.split_once(".p") {
        Some((base, n)) => (base.to_string(), n.parse::<usize>().expect("a number of workers")),
        None => (name.clone(), 1),
    };
    let (mut seconds, mut ops) = (0.2, 0);
    for w in &words[1..] {
        if let Some(s) = w.strip_prefix("--seconds=") {
            seconds = s.parse().expect("seconds");
        } else if let Some(s) = w.strip_prefix("--ops=") {
            ops = s.parse().expect("operations");
        }
    }
    let c = CASES.iter().find(|c| c.name == base).expect("no such case");
    IS_WALL.store(procs > 1, Ordering::Relaxed);
    let rt = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(procs)
        .enable_time()
        .build()
        .unwrap();
    let figure = rt.block_on(async move { spawn(measure(c, seconds, ops)).await.unwrap() });
    println!("{} {}", name, figure);
}
