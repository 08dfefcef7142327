//! What the disk's files contain: the same on every host, and made up.

use anyhow::{Context, Result};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// How many files the source tree has, and how many each of its directories.
const FILES: usize = 5_000;
const FILES_EACH: usize = 20;

/// How many directories are in each of the top.
const DIRECTORIES_EACH: usize = 25;

/// One in so many files has the word that `grep` looks for.
const FOUND_IN: usize = 100;

const WORDS: [&str; 24] = [
    "int",
    "char *",
    "struct node",
    "return",
    "static",
    "if (",
    ") {",
    "}",
    "for (",
    "size_t",
    "index",
    "length",
    "buffer",
    "next",
    "previous",
    "count",
    "/* the number of",
    "that are left */",
    "= 0;",
    "+= 1;",
    "->list",
    "[i]",
    "&&",
    "sizeof",
];

/// Random numbers that are the same each time: Marsaglia, Xorshift RNGs, with the triple (13, 7, 17).
struct Random(u64);

impl Random {
    fn new() -> Self {
        Self(88_172_645_463_325_252)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// A file's bytes without a pattern, a multiple of 8 of them.
pub fn noise(bytes: usize) -> Vec<u8> {
    let mut random = Random::new();
    (0..bytes / 8).flat_map(|_| random.next().to_le_bytes()).collect()
}

/// Makes the source tree in `directory`: many small files, some large ones.
///
/// # Errors
/// A file cannot be written.
pub fn make(directory: &Path) -> Result<()> {
    let mut random = Random::new();
    for number in 0..FILES {
        let folder = number / FILES_EACH;
        let folder = directory.join(format!("part{}/unit{folder}", folder / DIRECTORIES_EACH));
        if number.is_multiple_of(FILES_EACH) {
            fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        }
        let path = folder.join(format!("source_{number}.c"));
        fs::write(&path, source(number, &mut random)).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

fn source(number: usize, random: &mut Random) -> String {
    // Seven of ten files have less than 2 KiB, one of forty more than 32 KiB.
    let length = 64 << random.below(10).min(random.below(12));
    let length = usize::try_from(length + random.below(length)).unwrap_or(0);
    let mut text = format!("/* {number} */\n");
    while text.len() < length {
        for _ in 0..=random.below(8) {
            text.push_str(WORDS[random.below(WORDS.len() as u64) as usize]);
            text.push(' ');
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "name_{}", random.below(1000));
    }
    if number.is_multiple_of(FOUND_IN) {
        text.push_str("found_in_some\n");
    }
    text
}

/// A script for sqlite3 in the manner of SQLite's old "Database Speed Comparison": what is done often, on tables of some thousand lines.
pub fn sqlite_speed() -> String {
    let mut random = Random::new();
    let mut script = String::from(
        "CREATE TABLE t1(a INTEGER, b INTEGER, c TEXT);\nCREATE TABLE t2(a INTEGER, b INTEGER, c TEXT);\n",
    );
    script.push_str("CREATE INDEX i2a ON t2(a);\nCREATE INDEX i2b ON t2(b);\n");
    for table in ["t1", "t2"] {
        script.push_str("BEGIN;\n");
        for line in 0..5_000 {
            insert(&mut script, table, line, &mut random);
        }
        script.push_str("COMMIT;\n");
    }
    let mut add = |line: std::fmt::Arguments<'_>| {
        // Writing to a string cannot fail.
        let _ = script.write_fmt(line);
    };
    for from in (0..1_000).step_by(100) {
        add(format_args!("SELECT count(*), avg(b) FROM t1 WHERE b >= {from} AND b < {};\n", from + 1_000));
        add(format_args!("SELECT count(*), avg(b) FROM t1 WHERE c LIKE '%{from}%';\n"));
    }
    for from in (0..100_000).step_by(100) {
        add(format_args!("SELECT count(*), avg(b) FROM t2 WHERE b >= {from} AND b < {};\n", from + 100));
    }
    add(format_args!("CREATE INDEX i1b ON t1(b);\nBEGIN;\n"));
    for line in 0..1_000 {
        add(format_args!("UPDATE t2 SET b = b * 2, c = 'changed {line}' WHERE a = {line};\n"));
    }
    add(format_args!("COMMIT;\nINSERT INTO t1 SELECT b, a, c FROM t2;\n"));
    add(format_args!(
        "DELETE FROM t2 WHERE a % 3 = 0;\nDELETE FROM t2 WHERE a > 10 AND a < 2000;\nVACUUM;\nDROP TABLE t1;\nPRAGMA integrity_check;\n"
    ));
    script
}

/// A script that inserts lines, each in a transaction of its own, with a journal of this mode.
pub fn sqlite_inserts(journal: &str) -> String {
    let mut random = Random::new();
    let mut script = format!("PRAGMA journal_mode = {journal};\nCREATE TABLE t1(a INTEGER, b INTEGER, c TEXT);\n");
    for line in 0..200 {
        insert(&mut script, "t1", line, &mut random);
    }
    script
}

fn insert(script: &mut String, table: &str, line: usize, random: &mut Random) {
    let number = random.below(100_000);
    // Writing to a string cannot fail.
    let _ = writeln!(script, "INSERT INTO {table} VALUES({line}, {number}, 'the number {number} of the line {line}');");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_the_same_each_time() {
        let [one, two] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        make(one.path()).unwrap();
        make(two.path()).unwrap();
        let (mut files, mut bytes) = (0, 0);
        for number in 0..FILES {
            let folder = number / FILES_EACH;
            let path = format!("part{}/unit{folder}/source_{number}.c", folder / DIRECTORIES_EACH);
            let text = fs::read(one.path().join(&path)).unwrap();
            assert_eq!(text, fs::read(two.path().join(&path)).unwrap());
            files += 1;
            bytes += text.len();
        }
        assert_eq!(files, 5_000);
        assert!((10 << 20..60 << 20).contains(&bytes), "{bytes}");
    }
}
