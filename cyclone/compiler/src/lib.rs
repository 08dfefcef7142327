#![doc = include_str!("../README.md")]
//!
//! # How the compiler is built
//!
//! Each phase is a module, reads what the phase before it made, and pushes messages into one vector:
//!
//! | module | from | to |
//! | --- | --- | --- |
//! | [`driver`] | the command line | a run of the phases below, and of the C compiler |
//! | [`source`] | preprocessed text | places for people |
//! | [`lex`] | text | tokens |
//! | [`parse`] | tokens | [`ast`] |
//! | `check` | [`ast`] | [`tree`], over [`types`] |
//! | [`flow`] | [`tree`] | the same with checks removed; errors of initialisation, consumption, aliasing |
//! | `lower` | [`tree`] | C |
//! | [`diagnostics`] | messages | text for terminals, scripts and editors |

#![forbid(unsafe_code)]
#![allow(rustdoc::private_intra_doc_links, reason = "comments of modules lead readers of the source to their parts")]

pub mod ast;
pub mod check;
pub mod diagnostics;
pub mod driver;
pub mod elements;
pub mod flow;
pub mod hash;
pub mod lex;
pub mod lower;
pub mod original;
pub mod ownership;
pub mod parse;
pub mod preprocess;
pub mod source;
pub mod symbol;
pub mod tree;
pub mod types;
