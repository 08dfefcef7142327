//! Work that rayon spreads over all cores: what comes out is the same as on one. Four threads, however many cores there are.

#![forbid(unsafe_code)]

use rayon::prelude::*;

/// Numbers that look random, from a 64-bit linear congruential generator.
fn numbers(count: usize) -> Vec<u64> {
    std::iter::successors(Some(42_u64), |last| {
        Some(last.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
    })
    .take(count)
    .collect()
}

fn fibonacci(n: u32) -> u64 {
    if n < 2 {
        return n.into();
    }
    if n < 12 {
        return fibonacci(n - 1) + fibonacci(n - 2);
    }
    let (one, two) = rayon::join(|| fibonacci(n - 1), || fibonacci(n - 2));
    one + two
}

fn main() -> Result<(), rayon::ThreadPoolBuildError> {
    rayon::ThreadPoolBuilder::new().num_threads(4).build_global()?;
    let mut values = numbers(300_000);
    let sum = values.par_iter().fold(|| 0, |sum: u64, &value| sum.wrapping_add(value)).reduce(|| 0, u64::wrapping_add);
    println!("sum {sum}, the same as alone: {}", sum == values.iter().fold(0, |sum, &value| sum.wrapping_add(value)));
    let mut alone = values.clone();
    alone.sort_unstable();
    values.par_sort_unstable();
    println!("sorted as alone: {}", values == alone);
    println!("fibonacci {}", fibonacci(24));
    let words: String = (0..200_u32).into_par_iter().filter(|n| n % 9 == 4).map(|n| format!("{n} ")).collect();
    println!("in order: {}", words.trim());
    Ok(())
}
