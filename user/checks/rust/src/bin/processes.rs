//! Child processes through the standard library: this program runs itself.

use ebb_user_checks::{check, check_result};
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio, exit};
use std::time::Duration;
use std::{env, thread};

fn child(role: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg(role);
    command
}

fn play(role: &str) -> io::Result<()> {
    match role {
        "echo" => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text)?;
            print!("{}", text.to_uppercase());
            eprint!("{} bytes", text.len());
        }
        "environment" => {
            let mut variables: Vec<String> = env::vars().map(|(name, value)| format!("{name}={value}")).collect();
            variables.sort();
            print!("{}", variables.join(","));
        }
        "arguments" => print!("{}", env::args().skip(2).collect::<Vec<_>>().join("|")),
        "directory" => print!("{}", env::current_dir()?.display()),
        "wait" => thread::sleep(Duration::from_secs(10)),
        "lines" => (0..20_000).for_each(|i| println!("line {i}")),
        "panic" => {
            std::panic::set_hook(Box::new(|_| ()));
            panic!("on purpose")
        }
        "abort" => std::process::abort(),
        code => exit(code.parse().unwrap_or(99)),
    }
    Ok(())
}

fn main() -> io::Result<()> {
    if let Some(role) = env::args().nth(1) {
        return play(&role);
    }
    let mut echo = child("echo").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    echo.stdin.take().expect("it is piped").write_all(b"through a child")?;
    let output = echo.wait_with_output()?;
    check("stdout", String::from_utf8_lossy(&output.stdout));
    check("stderr", String::from_utf8_lossy(&output.stderr));
    check("status", output.status);
    check("code", child("37").status()?);
    check("panic", child("panic").stderr(Stdio::null()).status()?);
    check("abort", child("abort").status()?.signal().unwrap_or(0));
    let environment = child("environment").env_clear().env("A", "1").env("B", "two words").output()?;
    check("environment", String::from_utf8_lossy(&environment.stdout));
    let arguments = child("arguments").args(["", "a b", "ü", "--flag"]).output()?;
    check("arguments", String::from_utf8_lossy(&arguments.stdout));
    let directory = child("directory").current_dir("/").output()?;
    check("directory", String::from_utf8_lossy(&directory.stdout));
    let mut waiting = child("wait").spawn()?;
    check("alive", waiting.try_wait()?.is_none());
    waiting.kill()?;
    check("killed", waiting.wait()?.signal().unwrap_or(0));
    let lines = child("lines").output()?;
    check("much-output", lines.stdout.len());
    check_result("missing-program", Command::new("/no/such/program").spawn());
    check_result("not-executable", {
        std::fs::write("text", "x")?;
        Command::new("./text").spawn()
    });
    // A pipeline of three children.
    let mut first = child("lines").stdout(Stdio::piped()).spawn()?;
    let mut second = child("echo")
        .stdin(first.stdout.take().expect("it is piped"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let third = child("echo").stdin(second.stdout.take().expect("it is piped")).stderr(Stdio::null()).output()?;
    check("pipeline", String::from_utf8_lossy(&third.stdout).lines().filter(|line| line.starts_with("LINE ")).count());
    check("pipeline-ends", first.wait()?.success() && second.wait()?.success());
    let group = child("wait").process_group(0).spawn().and_then(|mut c| c.kill().and_then(|()| c.wait()));
    check("own-group", group?.signal().unwrap_or(0));
    let many: usize =
        (0..20).map(|i| child(&i.to_string()).status().ok().and_then(|s| s.code()).unwrap_or(0) as usize).sum();
    check("many", many);
    Ok(())
}
