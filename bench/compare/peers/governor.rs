// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the gale authors
//
// governor.rs -- the crate governor, its limiter by key, by the line protocol of driver.h.
//
//     governor DRAWS
//
// Debian has no package of it, so this driver is built by hand, optimised, where the crate is;
// compare.py --program governor=PATH takes it.  check_key() takes a cell at once or says no.
// allow: a rate that is never reached.  deny: a cell in 30 years, and the first is used up.
//
// Threads   A call may come from any.

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

const EVERY: usize = 64; // calls, of which one is timed

type Key = [u8; 16];

#[derive(Default)]
struct Tally {
    allowed: u64,
    denied: u64,
    times: Vec<u64>,
}

struct Driver {
    folder: String,
    keys: Vec<Key>,
    draws: Vec<u32>,
    prepared: String,
    limiter: DefaultKeyedRateLimiter<Key>,
}

fn key_of(id: usize) -> Key {
    let mut key = [0; 16];
    key.copy_from_slice(&format!("client-{:09}", id).as_bytes()[..16]);
    key
}

fn limiter_of(allows: bool) -> DefaultKeyedRateLimiter<Key> {
    let one = NonZeroU32::new(1).unwrap();
    let much = NonZeroU32::new(1_000_000_000).unwrap();
    let quota = if allows {
        Quota::per_second(much)
    } else {
        Quota::with_period(Duration::from_secs(1_000_000_000)).unwrap().allow_burst(one)
    };
    RateLimiter::keyed(quota)
}

fn resident_bytes() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: f64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096.0
}

impl Tally {
    fn ask(&mut self, limiter: &DefaultKeyedRateLimiter<Key>, key: &Key) {
        match limiter.check_key(key) {
            Ok(_) => self.allowed += 1,
            Err(_) => self.denied += 1,
        }
    }

    fn result(mut self, seconds: f64, bytes: f64) -> String {
        self.times.sort_unstable();
        let count = self.times.len();
        let part = |p: usize| if count == 0 { 0 } else { self.times[(count - 1) * p / 100] };
        format!(
            "operations={} allowed={} denied={} failed=0 seconds={:.6} p50={} p99={} bytes={:.1}",
            self.allowed + self.denied,
            self.allowed,
            self.denied,
            seconds,
            part(50),
            part(99),
            bytes
        )
    }
}

impl Driver {
    fn turn(&self, mut at: usize, end: Instant) -> Tally {
        let mut tally = Tally::default();
        loop {
            let began = Instant::now();
            if began >= end {
                return tally;
            }
            for i in 0..EVERY {
                tally.ask(&self.limiter, &self.keys[self.draws[at] as usize]);
                at = if at + 1 == self.draws.len() { 0 } else { at + 1 };
                if i == 0 {
                    tally.times.push(began.elapsed().as_nanos() as u64);
                }
            }
        }
    }

    fn run(&self, threads: usize, seconds: f64) -> String {
        let began = Instant::now();
        let end = began + Duration::from_secs_f64(seconds);
        let mut all = Tally::default();
        std::thread::scope(|scope| {
            let turns: Vec<_> = (0..threads)
                .map(|i| scope.spawn(move || self.turn(self.draws.len() * i / threads, end)))
                .collect();
            for turn in turns {
                let tally = turn.join().unwrap();
                all.allowed += tally.allowed;
                all.denied += tally.denied;
                all.times.extend(tally.times);
            }
        });
        all.result(began.elapsed().as_secs_f64(), 0.0)
    }

    fn fill(&mut self, count: usize) -> String {
        self.limiter = limiter_of(true);
        self.prepared.clear();
        let before = resident_bytes();
        let began = Instant::now();
        let mut tally = Tally::default();
        for id in 0..count {
            tally.ask(&self.limiter, &key_of(id));
        }
        let bytes = (resident_bytes() - before) / count as f64;
        tally.result(began.elapsed().as_secs_f64(), bytes)
    }

    fn prepare(&mut self, work: &str, space: &str, count: usize) {
        if self.keys.len() != count {
            self.keys = (0..count).map(key_of).collect();
            let bytes = std::fs::read(format!("{}/{}", self.folder, count)).unwrap();
            self.draws = bytes
                .chunks_exact(4)
                .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                .collect();
            self.prepared.clear();
        }
        if self.prepared == space {
            return;
        }
        self.limiter = limiter_of(work == "allow");
        let mut ignored = Tally::default();
        for key in &self.keys {
            ignored.ask(&self.limiter, key);
        }
        self.prepared = space.to_string();
    }

    fn answer(&mut self, words: &HashMap<&str, &str>) -> String {
        let number = |name: &str| words.get(name).and_then(|text| text.parse::<f64>().ok()).unwrap_or(1.0);
        let (count, threads) = (number("keys") as usize, number("threads") as usize);
        match words.get("work").copied().unwrap_or("") {
            "fill" => self.fill(count),
            work @ ("allow" | "deny") => {
                self.prepare(work, words.get("space").copied().unwrap_or(""), count);
                self.run(threads, number("seconds"))
            }
            "guard" => "cannot=it limits calls in a time, and not calls in flight".to_string(),
            _ => "cannot=it limits one process, and has no store that others share".to_string(),
        }
    }
}

fn main() {
    let mut driver = Driver {
        folder: std::env::args().nth(1).expect("DRAWS"),
        keys: Vec::new(),
        draws: Vec::new(),
        prepared: String::new(),
        limiter: limiter_of(true),
    };
    for line in io::stdin().lock().lines() {
        let line = line.unwrap();
        let words = line.split(' ').filter_map(|word| word.split_once('=')).collect();
        println!("{}", driver.answer(&words));
        io::stdout().flush().unwrap();
    }
}
