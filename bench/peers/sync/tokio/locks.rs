// tokio::sync: Mutex, RwLock, Semaphore.

use crate::{alone, together, Case, Kind};
use std::hint::black_box;
use std::sync::LazyLock;
use tokio::sync::{Mutex, RwLock, Semaphore};

const LOCKERS: usize = 8;
const PERMITS: usize = 4;
const WRITE_EVERY: usize = 100;

// Looked up once by each task: what is measured is the lock.
static MUTEX: LazyLock<Mutex<u64>> = LazyLock::new(|| Mutex::new(0));
static RWLOCK: LazyLock<RwLock<u64>> = LazyLock::new(|| RwLock::new(0));
static SEMAPHORE: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(PERMITS));

async fn mutex_often(ops: usize) {
    let mutex: &Mutex<u64> = &MUTEX;
    for _ in 0..ops {
        *mutex.lock().await += 1;
    }
}

async fn read_often(ops: usize) {
    let rwlock: &RwLock<u64> = &RWLOCK;
    for _ in 0..ops {
        black_box(*rwlock.read().await);
    }
}

async fn read_mostly(ops: usize) {
    let rwlock: &RwLock<u64> = &RWLOCK;
    for n in 0..ops {
        if n % WRITE_EVERY == 0 {
            *rwlock.write().await += 1;
        } else {
            black_box(*rwlock.read().await);
        }
    }
}

async fn permit_often(ops: usize) {
    let semaphore: &Semaphore = &SEMAPHORE;
    for _ in 0..ops {
        drop(semaphore.acquire().await.unwrap());
    }
}

pub static CASES: &[Case] = &[
    Case { name: "mutex", kind: Kind::Paced, run: |n| Box::pin(alone(n, mutex_often)), ops: 0 },
    Case { name: "mutex-8", kind: Kind::Paced, run: |n| Box::pin(together(n, LOCKERS, mutex_often)), ops: 0 },
    Case { name: "rwlock-read", kind: Kind::Paced, run: |n| Box::pin(alone(n, read_often)), ops: 0 },
    Case { name: "rwlock-8", kind: Kind::Paced, run: |n| Box::pin(together(n, LOCKERS, read_mostly)), ops: 0 },
    Case { name: "semaphore", kind: Kind::Paced, run: |n| Box::pin(alone(n, permit_often)), ops: 0 },
    Case { name: "semaphore-8", kind: Kind::Paced, run: |n| Box::pin(together(n, LOCKERS, permit_often)), ops: 0 },
];
