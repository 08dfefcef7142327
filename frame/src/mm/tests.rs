//! Tests over simulated memory.
