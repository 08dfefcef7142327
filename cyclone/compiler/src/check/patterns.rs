//! Patterns: typing, exhaustiveness, `switch`, `try`, `let`.
