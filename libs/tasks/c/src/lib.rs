#![doc = include_str!("../README.md")]
//!
//! This crate makes the library that C programs link; it has nothing of its own.

pub use tasks::rt::c::*;
