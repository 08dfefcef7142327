//! Statements without patterns.
