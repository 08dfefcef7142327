//! Tests of the whole linter, on small workspaces.

mod command;
mod corpus;
mod workspace;
