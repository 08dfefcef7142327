//! What every behaviour check in Rust shares: one line `name: value` per checked fact.
//!
//! As with the programs in C, a value is never a time, an address or an identifier, and a program ends by itself
//! within seconds.

use std::fmt::Display;
use std::io;

/// Prints one fact.
pub fn check(name: &str, value: impl Display) {
    println!("{name}: {value}");
}

/// Prints `ok`, or the kind of the error.
pub fn check_result<T>(name: &str, result: io::Result<T>) {
    match result {
        Ok(_) => check(name, "ok"),
        Err(error) => check(name, format_args!("{:?}", error.kind())),
    }
}
