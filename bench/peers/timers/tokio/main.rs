// Tokio's multi-thread runtime: timers and tasks that sleep. What the sleepers are is said in
// bench/timers/late.h; the kinds of cases and the clocks are those of bench/tasks/tasks.h. A timer that is
// made and cancelled is a Sleep, polled once, which registers it, and dropped.

mod frame;

use frame::{now, Boxed, Case, Kind};
use std::future::Future;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::{spawn, yield_now};
use tokio::time::{sleep, sleep_until};

const BATCH: usize = 1000;

fn timer_cancel(ops: usize) -> Boxed<f64> {
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

fn sleeps_create(count: usize) -> Boxed<f64> {
    Box::pin(async move { sleep_all(count).await.0 })
}

fn sleeps_late(count: usize) -> Boxed<f64> {
    Box::pin(async move {
        let mut by = sleep_all(count).await.1;
        by.sort();
        by[count - 1 - count / 100] as f64 / 1e6
    })
}

// Three that wait for a notification, registered by a poll and taken back by their drop, and one that is ready.
fn first_of_4(ops: usize) -> Boxed<f64> {
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

static CASES: &[Case] = &[
    Case { name: "timer-cancel", kind: Kind::Paced, run: timer_cancel, ops: 0 },
    Case { name: "sleeps-100k-late", kind: Kind::Once, run: sleeps_late, ops: 100000 },
    Case { name: "sleeps-1m-create", kind: Kind::Fixed, run: sleeps_create, ops: 1000000 },
    Case { name: "sleeps-1m-late", kind: Kind::Once, run: sleeps_late, ops: 1000000 },
    Case { name: "first-of-4", kind: Kind::Paced, run: first_of_4, ops: 0 },
];

fn main() {
    frame::run(CASES, |b| {
        b.enable_time();
    });
}
