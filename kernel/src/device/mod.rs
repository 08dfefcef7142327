//! Terminals and the memory devices.
