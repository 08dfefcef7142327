//! Random functions over pointers and indices, which must do what an interpreter says: give its value, or throw its exception.
//!
//! The compiler leaves out checks that it proves not to be needed. A wrong proof shows only where an index is out of bounds,
//! so the functions are made ([`generate`]) such that much can be proved, and such that what is nearly proved is not true. Each is run
//! by the interpreter ([`machine`]) with many inputs, of which those are chosen ([`inputs`]) that throw at different places. A program
//! ([`program`]) has some hundred functions and prints a line for each call. A function that prints another line than the interpreter
//! says is made shorter ([`shrink`]) and shown.

mod expressions;
mod generate;
mod inputs;
mod loops;
mod machine;
mod memory;
mod prelude;
mod print;
mod program;
mod scope;
mod shrink;
mod syntax;

use anyhow::Result;
use fastrand::Rng;
use indicatif::ProgressBar;
use program::{Builder, Case, Difference, Way};
use std::path::Path;

/// Functions of one program.
const FUNCTIONS: u64 = 200;

const fn way(name: &'static str, cc: &'static str, arguments: &'static [&'static str]) -> Way {
    Way { name, cc, arguments }
}

/// The ways to compile, of which most programs go the first and quickest: without optimisation a missing check shows as well. The
/// others show what C compilers make of the rest; the address sanitizer finds what happens to do no harm.
const WAYS: &[Way] = &[
    way("clang -O0", "clang", &["-O0"]),
    way("gcc -O0", "gcc", &["-O0"]),
    way("gcc -O2", "gcc", &["-O2"]),
    way("clang -O1", "clang", &["-O1"]),
    way("gcc with the address sanitizer", "gcc", &["-O0", "-g", "--no-gc", "-fsanitize=address"]),
];
/// Of so many programs one goes another way than the first.
const OTHER_WAYS: usize = 3;

/// What has been tried.
#[derive(Default)]
pub struct Report {
    pub functions: usize,
    pub calls: usize,
    /// Functions that the compiler rejected.
    pub rejected: u64,
    pub different: usize,
}

fn case(number: u64) -> Case {
    let mut random = Rng::with_seed(number);
    let function = generate::function(&mut random);
    let calls = inputs::chosen(&function, &mut random);
    Case { number: number as usize, function, calls }
}

/// The program of so many functions from this number on.
pub fn program(first: u64, count: u64) -> String {
    let cases: Vec<Case> = (first..first + count).map(case).collect();
    program::text(&cases).0
}

/// Tries the functions with these numbers; what goes wrong is printed, `at_most` so many.
pub fn run(
    cyc: &Path,
    directory: &Path,
    has: impl Fn(&str) -> bool,
    numbers: std::ops::Range<u64>,
    at_most: usize,
    progress: &ProgressBar,
) -> Result<Report> {
    let builder = Builder { cyc, directory };
    let ways: Vec<Way> = WAYS.iter().copied().filter(|way| has(way.cc)).collect();
    let mut report = Report::default();
    let (mut first, mut round) = (numbers.start, 0);
    while first < numbers.end {
        let last = (first + FUNCTIONS).min(numbers.end);
        let cases = builder.accepted((first..last).map(case).collect())?;
        report.functions += cases.len();
        report.rejected += last - first - cases.len() as u64;
        report.calls += cases.iter().map(|case| case.calls.len()).sum::<usize>();
        let way = ways[if round % OTHER_WAYS == 0 { round / OTHER_WAYS % ways.len() } else { 0 }];
        for difference in builder.differences(&cases, way)? {
            if report.different >= at_most {
                return Ok(report);
            }
            report.different += 1;
            let number = difference.case.number;
            progress.suspend(|| eprintln!("function {number} goes wrong ({}); making it shorter", way.name));
            let shown = shown(&builder, difference, way)?;
            progress.suspend(|| println!("{shown}"));
        }
        progress.inc(last - first);
        (first, round) = (last, round + 1);
    }
    Ok(report)
}

/// The shortest function that goes wrong, and how.
fn shown(builder: &Builder, difference: Difference, way: Way) -> Result<String> {
    let number = difference.case.number;
    let input = difference.case.calls.first().map(|(input, _)| input.clone());
    let mut shortest = difference;
    let again = |function: &syntax::Function| -> Option<Difference> {
        let mut case = shortest_case(number, function, input.as_ref());
        // Most texts that are no Cyclone any more.
        case = builder.accepted(vec![case]).ok()?.pop()?;
        builder.differences(&[case], way).ok()?.pop()
    };
    let function = shortest.case.function.clone();
    shrink::shortest(function, |shorter| match again(shorter) {
        Some(found) => {
            shortest = found;
            true
        }
        None => false,
    });
    let Difference { case, expected, found } = shortest;
    let text = program::case_text(&case);
    Ok(format!("function {number}, {}:\n{text}expected: {expected}\nfound:    {found}\n", way.name))
}

fn shortest_case(number: usize, function: &syntax::Function, input: Option<&inputs::Input>) -> Case {
    let call = input.and_then(|input| Some((input.clone(), machine::run(function, input)?)));
    Case { number, function: function.clone(), calls: call.into_iter().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_gives_the_same_function_each_time() {
        assert_eq!(program(1, 3), program(1, 3));
        assert_ne!(program(1, 3), program(2, 3));
    }
}
