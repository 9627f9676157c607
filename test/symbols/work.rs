// A program with generics, closures, iterators and dynamic calls that a compiler can inline.
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

trait Shape {
    fn area(&self) -> f64;
    fn name(&self) -> String {
        "shape".to_string()
    }
}

struct Circle(f64);
struct Polygon {
    points: Vec<(f64, f64)>,
}

impl Shape for Circle {
    fn area(&self) -> f64 {
        std::f64::consts::PI * self.0 * self.0
    }
}

impl Shape for Polygon {
    fn area(&self) -> f64 {
        let n = self.points.len();
        let twice: f64 = (0..n)
            .map(|i| {
                let (a, b) = (self.points[i], self.points[(i + 1) % n]);
                a.0 * b.1 - b.0 * a.1
            })
            .sum();
        twice.abs() / 2.0
    }
    fn name(&self) -> String {
        format!("polygon of {}", self.points.len())
    }
}

#[inline(never)]
fn count_words(text: &str) -> BTreeMap<String, usize> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()) {
        *counts.entry(word).or_default() += 1;
    }
    counts.into_iter().map(|(word, n)| (word.to_lowercase(), n)).collect()
}

fn mix<T: Copy + Into<u64>>(values: &[T]) -> u64 {
    values.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &v| (hash ^ v.into()).wrapping_mul(0x1000_0000_01b3))
}

fn sorted<T: Ord + Clone>(values: &[T]) -> Vec<T> {
    let mut out = values.to_vec();
    out.sort_by(|a, b| b.cmp(a));
    out.dedup();
    out
}

fn main() {
    let rounds: usize = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(3);
    let mut out = String::new();
    for round in 0..rounds {
        let shapes: Vec<Box<dyn Shape>> = vec![
            Box::new(Circle(round as f64)),
            Box::new(Polygon { points: (0..9).map(|i| ((i * i) as f64, (i + round) as f64)).collect() }),
        ];
        for shape in &shapes {
            writeln!(out, "{} {:.3}", shape.name(), shape.area()).unwrap();
        }
        let counts = count_words("the quick brown fox jumps over the lazy dog, the end");
        let bytes: Vec<u8> = counts.keys().flat_map(|k| k.bytes()).collect();
        writeln!(out, "{:x} {:?}", mix(&bytes), sorted(&counts.values().copied().collect::<Vec<_>>())).unwrap();
    }
    print!("{out}");
}
