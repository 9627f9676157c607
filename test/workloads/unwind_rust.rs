// A Rust release build with inlined iterators and closures, trait objects, sorting, hashing, formatting, caught panics
// and a second thread. Runs until it is killed.
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::panic;

fn mix(mut x: u64) -> u64 {
    for _ in 0..80 {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(x >> 31);
    }
    x
}

trait Node {
    fn value(&self, x: u64) -> u64;
}
struct Leaf(u64);
struct Pair(Box<dyn Node>, Box<dyn Node>);

impl Node for Leaf {
    fn value(&self, x: u64) -> u64 {
        mix(x ^ self.0)
    }
}
impl Node for Pair {
    fn value(&self, x: u64) -> u64 {
        self.0.value(x).wrapping_add(self.1.value(x + 1))
    }
}

fn tree(depth: u64) -> Box<dyn Node> {
    if depth == 0 {
        Box::new(Leaf(depth))
    } else {
        Box::new(Pair(tree(depth - 1), tree(depth - 1)))
    }
}

#[inline(never)]
fn containers(x: u64) -> u64 {
    let mut counts: HashMap<String, u64> = HashMap::new();
    for i in 0..100 {
        *counts.entry(format!("key {}", mix(x + i) % 50)).or_insert(0) += i;
    }
    let sorted: BTreeMap<_, _> = counts.into_iter().collect();
    let mut rows: Vec<(String, u64)> = sorted.into_iter().collect();
    rows.sort_by(|a, b| mix(a.1).cmp(&mix(b.1)).then_with(|| a.0.cmp(&b.0)));
    rows.iter().map(|(name, n)| name.len() as u64 + n).sum()
}

#[inline(never)]
fn panics(depth: u64, x: u64) -> u64 {
    let text = format!("at {}", depth);
    if depth == 0 {
        panic!("caught {}", x);
    }
    panics(depth - 1, mix(x)) + text.len() as u64
}

fn work(seed: u64) {
    let root = tree(6);
    let mut x = seed;
    loop {
        x = x.wrapping_add(black_box(root.value(x))).wrapping_add(containers(x % 1000));
        let caught = panic::catch_unwind(|| panics(x % 8, x));
        x = x.wrapping_add(caught.unwrap_or(1));
    }
}

fn main() {
    panic::set_hook(Box::new(|_| {}));
    std::thread::spawn(|| work(17));
    work(42);
}
