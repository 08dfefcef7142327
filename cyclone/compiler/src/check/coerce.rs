//! Conversions: which are allowed where, and what they check at run time.
