//! Calls: instantiation, arguments, variable arguments, format strings.
