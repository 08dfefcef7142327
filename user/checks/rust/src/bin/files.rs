//! Files and directories through the standard library.

use ebb_user_checks::{check, check_result};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::time::{Duration, SystemTime};

fn main() -> io::Result<()> {
    fs::write("text", "one\ntwo\nthree\n")?;
    check("read-to-string", fs::read_to_string("text")?.len());
    let lines: Vec<String> = BufReader::new(File::open("text")?).lines().collect::<io::Result<_>>()?;
    check("lines", lines.join("|"));
    let mut file = OpenOptions::new().read(true).append(true).open("text")?;
    writeln!(file, "four")?;
    file.seek(SeekFrom::Start(4))?;
    let mut rest = String::new();
    file.read_to_string(&mut rest)?;
    check("appended", rest.replace('\n', "|"));
    let mut at = [0; 3];
    file.read_exact_at(&mut at, 8)?;
    check("read-at", String::from_utf8_lossy(&at));
    {
        let mut writer = BufWriter::new(File::create("numbers")?);
        for number in 0..10_000 {
            writeln!(writer, "{number}")?;
        }
    }
    check("buffered-size", fs::metadata("numbers")?.len());
    let sum: u64 =
        BufReader::new(File::open("numbers")?).lines().map(|l| l.unwrap_or_default().parse().unwrap_or(0)).sum();
    check("sum", sum);

    check_result("missing", File::open("missing"));
    check_result("create-new-exists", File::create_new("text"));
    fs::create_dir_all("a/b/c")?;
    fs::write("a/b/file", "x")?;
    symlink("b/file", "a/link")?;
    check("read-through-link", fs::read_to_string("a/link")?);
    check("read-link", fs::read_link("a/link")?.display());
    check("is-symlink", fs::symlink_metadata("a/link")?.is_symlink());
    let mut names: Vec<String> = fs::read_dir("a")?
        .map(|entry| {
            entry.map(|e| format!("{}:{}", e.file_name().to_string_lossy(), e.file_type().is_ok_and(|t| t.is_dir())))
        })
        .collect::<io::Result<_>>()?;
    names.sort();
    check("entries", names.join(" "));
    check_result("remove-full-directory", fs::remove_dir("a"));
    check("copied", fs::copy("numbers", "copy")?);
    fs::rename("copy", "a/moved")?;
    check("renamed", fs::metadata("a/moved")?.len());
    fs::hard_link("text", "hard")?;
    check("links", fs::metadata("hard")?.nlink());
    fs::set_permissions("text", fs::Permissions::from_mode(0o400))?;
    check("mode", format_args!("{:o}", fs::metadata("text")?.mode()));
    let moment = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 500);
    File::open("text")?.set_modified(moment)?;
    check("modified", fs::metadata("text")?.modified()? == moment);
    file.set_len(2)?;
    check("cut", fs::metadata("text")?.len());
    check("canonical", fs::canonicalize("a/../a/link")?.ends_with("a/b/file"));
    fs::remove_dir_all("a")?;
    check_result("removed", fs::metadata("a"));
    check("exists", fs::exists("text")?);
    Ok(())
}
