//! Text that nobody would write, through all phases up to C: no panic, no hang, no stack overflow, whatever the text is.
//!
//! The texts are our own programs with damage ([`damage`]), random words, and texts that are too deep or too long ([`extremes`]). `make test` tries some of them, always the same. For more:
//!
//! ```text
//! EBB_FUZZ=20000 [EBB_FUZZ_SEED=7] [EBB_FUZZ_C=gcc] cargo test -p ebb-cyclone --test fuzz -- --nocapture
//! ```
//!
//! tries that many, from that seed on; the C text of what is accepted must also be accepted by the C compiler that `EBB_FUZZ_C` names. Of
//! each place where the compiler panics one text is shown, made as short as it gets.

mod bytes;
mod corpus;
mod damage;
mod extremes;
mod phases;
#[path = "../shared/random.rs"]
mod random;

use corpus::Corpus;
use ebb_cyclone::check::Dialect;
use phases::{Failure, try_text};
use random::Random;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A text that takes longer is reported; it is no failure, since the machine may be busy.
const SLOW: Duration = Duration::from_secs(3);

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Tries the texts that `make` makes and reports each failure once. There are `rounds`, unless the environment asks for others.
fn try_all(rounds: usize, make: impl Fn(&Corpus, &mut Random) -> damage::Text) {
    let corpus = Corpus::find();
    let rounds = number("EBB_FUZZ").unwrap_or(rounds);
    let first = number("EBB_FUZZ_SEED").unwrap_or(0);
    let mut failures: BTreeMap<String, damage::Text> = BTreeMap::new();
    let mut accepted = 0;
    for seed in first..first + rounds {
        let mut random = Random::new(seed as u64);
        let dialect = if random.below(8) == 0 { Dialect::Paper } else { Dialect::One };
        let text = make(&corpus, &mut random);
        let begin = Instant::now();
        let tried = try_text(&text.whole(), dialect);
        if begin.elapsed() > SLOW {
            eprintln!("seed {seed}, {dialect:?}: {:?}", begin.elapsed());
        }
        match tried {
            Ok(outcome) => accepted += usize::from(outcome == phases::Outcome::Accepted),
            Err(Failure { place, what }) => {
                failures.entry(place.clone()).or_insert_with(|| {
                    let short =
                        damage::shortest(text, |text| try_text(text, dialect).is_err_and(|other| other.place == place));
                    eprintln!("seed {seed}, {dialect:?}: {place}: {what}\n----\n{}\n----", short.own());
                    short
                });
            }
        }
    }
    eprintln!("{rounds} texts, {accepted} accepted");
    assert!(failures.is_empty(), "failures at {:#?}", failures.keys());
}

#[test]
fn damaged_programs_do_not_make_the_compiler_fail() {
    try_all(250, damage::damaged_program);
}

#[test]
fn random_words_do_not_make_the_compiler_fail() {
    try_all(3_000, damage::random_words);
}

#[test]
fn texts_too_deep_or_too_long_do_not_make_the_compiler_fail() {
    for (name, text) in extremes::texts() {
        let begin = Instant::now();
        if let Err(Failure { place, what }) = try_text(&text, Dialect::One) {
            panic!("{name}: {place}: {what}");
        }
        if begin.elapsed() > SLOW {
            eprintln!("{name}: {:?}", begin.elapsed());
        }
    }
}
