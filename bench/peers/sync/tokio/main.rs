// Tokio: what tokio::sync has, on its multi-thread runtime, or with --local on its current-thread one,
// which has one worker for good. The measuring itself is a task, too. The kinds of cases and the clocks
// are those of bench/tasks/tasks.h. The cases are in the other files of this folder. Built with LTO and
// abort on panic.

mod frame;
mod locks;

pub use frame::{now, Case, Kind};
use std::future::Future;
use tokio::task::{spawn, JoinHandle};

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

fn main() {
    frame::run(locks::CASES, |b| {
        b.enable_time();
    });
}
