//! Constant expressions, sizes and layouts.
