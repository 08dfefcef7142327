//! The process's surroundings: arguments, environment, working directory, standard streams, exit.

use ebb_user_checks::{check, check_result};
use std::env;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsRawFd;

fn main() -> io::Result<()> {
    check("arguments", env::args().count());
    check(
        "program-name",
        env::current_exe()?.file_name()
            == env::args_os().next().as_deref().and_then(|a| std::path::Path::new(a).file_name()),
    );
    let here = env::current_dir()?;
    std::fs::create_dir("inner")?;
    env::set_current_dir("inner")?;
    check("moved", env::current_dir()? == here.join("inner"));
    env::set_current_dir("..")?;
    check("back", env::current_dir()? == here);
    check_result("missing-directory", env::set_current_dir("missing"));
    check("no-such-variable", env::var("EBB_NO_SUCH_VARIABLE").is_err());
    let mut text = String::new();
    check("stdin", io::stdin().read_to_string(&mut text)?);
    check("stdin-terminal", io::stdin().is_terminal());
    check("stdout-number", io::stdout().as_raw_fd());
    let (mut reader, mut writer) = io::pipe()?;
    writer.write_all(b"pipe")?;
    drop(writer);
    reader.read_to_string(&mut text)?;
    check("pipe", text);
    check("family", format_args!("{} {} {}", env::consts::OS, env::consts::ARCH, env::consts::FAMILY));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full")?;
    check_result("full", (&full).write_all(b"x"));
    io::stdout().flush()?;
    std::process::exit(5)
}
