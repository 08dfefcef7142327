//! Initialisers and allocation.
