//! Tables in the book that a command writes: each stands on its page between two lines.

use anyhow::{Context, Result};
use std::fs;

const TABLE_BEGIN: &str = "<!-- table -->\n";
const TABLE_END: &str = "<!-- end of table -->\n";

/// Replaces the table of a page by what `table` makes of the one that is there.
///
/// # Errors
/// There is no such page, or it has no place for a table.
pub fn replace_table(page: &str, table: impl FnOnce(&str) -> String) -> Result<()> {
    let text =
        fs::read_to_string(page).with_context(|| format!("reading {page} (is this the top of the repository?)"))?;
    let split = text.split_once(TABLE_BEGIN).and_then(|(head, rest)| Some((head, rest.split_once(TABLE_END)?)));
    let (head, (old, tail)) = split.with_context(|| format!("{page} has no place for the table"))?;
    fs::write(page, format!("{head}{TABLE_BEGIN}{}{TABLE_END}{tail}", table(old)))
        .with_context(|| format!("writing {page}"))
}
