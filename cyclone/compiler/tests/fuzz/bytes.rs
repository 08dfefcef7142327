//! Files that are no text: the command says so, or that there is an error, and does nothing else.

use super::corpus::Corpus;
use super::damage::damaged_program;
use super::random::Random;
use std::process::Command;

/// What is put into files: no UTF-8, no characters of text, other ends of lines.
const BYTES: &[&[u8]] =
    &[b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf", b"\r\n", b"\r", b"\x1a", b"\x0c"];

#[test]
fn files_of_any_bytes_do_not_make_the_command_fail() {
    let corpus = Corpus::find();
    let directory = tempfile::tempdir().expect("a directory for the test");
    let file = directory.path().join("bytes.cyc");
    for seed in 0..super::number("EBB_FUZZ").unwrap_or(60) {
        let mut random = Random::new(seed as u64);
        let mut bytes = damaged_program(&corpus, &mut random).own().into_bytes();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len() + 1);
            bytes.splice(at..at, random.one_of(BYTES).iter().copied());
        }
        if random.below(4) == 0 {
            bytes = bytes.split(|&byte| byte == b'\n').collect::<Vec<_>>().join(&b"\r\n"[..]);
        }
        std::fs::write(&file, &bytes).expect("the file can be written");
        for how in [&["--plain"][..], &["--json", "--no-preprocess"], &["--compat=0.8"]] {
            let mut check = Command::new(env!("CARGO_BIN_EXE_cyc"));
            let output = check.arg("check").args(how).arg(&file).output().expect("cyc runs");
            let says = String::from_utf8_lossy(&output.stderr);
            assert!(matches!(output.status.code(), Some(0 | 1)), "seed {seed}, {how:?}: {}\n{says}", output.status);
            assert!(output.status.success() || !says.is_empty(), "seed {seed}, {how:?}: it says nothing");
        }
    }
}
