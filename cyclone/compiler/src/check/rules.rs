//! By which rules a program is read: the dialect, and what becomes of the original's loopholes.

use super::Checker;
use crate::diagnostics::Diagnostic;

/// Which dialect the defaults follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Dialect {
    /// 1.0.
    #[default]
    One,
    /// 0.8, the paper's: `` `U `` and `` `RC `` are regions, arguments are consumed by default.
    Paper,
}

/// What becomes of what the original accepts although it can break the safety of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Loopholes {
    /// It is an error.
    #[default]
    Closed,
    /// It is accepted, with a warning (`--compat=1.0`).
    Open,
}

/// The rules for a translation unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rules {
    /// Which defaults hold.
    pub dialect: Dialect,
    /// What becomes of loopholes.
    pub loopholes: Loopholes,
}

impl From<Dialect> for Rules {
    fn from(dialect: Dialect) -> Rules {
        Rules { dialect, ..Rules::default() }
    }
}

impl Loopholes {
    /// The report of what only the original accepts: the error, or the warning that takes its place. It names the option.
    pub fn report(self, error: Diagnostic) -> Diagnostic {
        match self {
            Loopholes::Closed => {
                let option = "the original accepts this, and so does `--compat=1.0`";
                let help = error.help.as_ref().map_or(option.to_owned(), |help| format!("{help}; {option}"));
                error.help(help)
            }
            Loopholes::Open => {
                error.into_warning().help("it is accepted because of `--compat=1.0`, and may not be safe")
            }
        }
    }
}

impl Checker<'_> {
    /// Reports what the original accepts although it is not safe.
    pub(super) fn loophole(&mut self, error: Diagnostic) {
        self.diagnostics.push(self.rules.loopholes.report(error));
    }
}
