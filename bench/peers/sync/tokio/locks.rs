// tokio::sync: Mutex, RwLock, Semaphore.

use crate::{alone, together, Case, Kind};
use std::hint::black_box;
use tokio::sync::{Mutex, RwLock, Semaphore};

const LOCKERS: usize = 8;
const PERMITS: usize = 4;
const WRITE_EVERY: usize = 100;

static MUTEX: Mutex<u64> = Mutex::const_new(0);
static RWLOCK: RwLock<u64> = RwLock::const_new(0);
static SEMAPHORE: Semaphore = Semaphore::const_new(PERMITS);

async fn mutex_often(ops: usize) {
    for _ in 0..ops {
        *MUTEX.lock().await += 1;
    }
}

async fn read_often(ops: usize) {
    for _ in 0..ops {
        black_box(*RWLOCK.read().await);
    }
}

async fn read_mostly(ops: usize) {
    for n in 0..ops {
        if n % WRITE_EVERY == 0 {
            *RWLOCK.write().await += 1;
        } else {
            black_box(*RWLOCK.read().await);
        }
    }
}

async fn permit_often(ops: usize) {
    for _ in 0..ops {
        drop(SEMAPHORE.acquire().await.unwrap());
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
