//! Programs of Debian's that use threads and processes for real (Python, make, xz, sort, git, Node.js, Java) and one that uses rayon: each must print
//! the same on the reference and on Ebb, and the time of both is shown. Where the host lacks a program, what needs it is left out, and said so.
//!
//! With `--reference` both run in machines of the same kind; without it the reference is the host itself, whose time says little.

use crate::SystemArguments;
use crate::compare::Tally;
use crate::ran::Ran;
use anyhow::{Context, Result, bail};
use ebb_guest::image::{Kind, Node, host_program};
use ebb_guest::{Guest, Image, Kernel, Machine, Mebibytes, Program, artifacts};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Where the files are that the scripts use.
const FOLDER: &str = "user/workloads";

/// Where they are in a guest.
const GUEST_FOLDER: &str = "/workloads";

/// Far more than any of them needs, however slow or busy the machine is: only a hang gets here.
const LIMIT: Duration = Duration::from_secs(900);

/// Node.js and Java reserve much.
const MEMORY: Mebibytes = Mebibytes(2048);

/// A shell script and what it needs of the host.
struct Workload {
    name: &'static str,
    /// Programs, with their libraries.
    programs: &'static [&'static str],
    /// What they load while they run, directories and libraries: of each choice the first that exists.
    files: &'static [&'static [&'static str]],
    script: &'static str,
}

const PYTHON: &[&[&str]] = &[&["/usr/lib/python3.11", "/usr/lib/python3.12", "/usr/lib/python3.13"]];
const JAVA: &[&[&str]] = &[
    &["/usr/lib/jvm/java-17-openjdk-amd64", "/usr/lib/jvm/java-21-openjdk-amd64"],
    &["/etc/java-17-openjdk", "/etc/java-21-openjdk"],
    &["/usr/lib/x86_64-linux-gnu/libstdc++.so.6"],
    &["/lib/x86_64-linux-gnu/libgcc_s.so.1"],
    &["/lib/x86_64-linux-gnu/libm.so.6"],
];

const WORKLOADS: &[Workload] = &[
    Workload {
        name: "python-threads",
        programs: &["/usr/bin/python3"],
        files: PYTHON,
        script: "exec /usr/bin/python3 threads.py",
    },
    Workload {
        name: "python-processes",
        programs: &["/usr/bin/python3"],
        files: PYTHON,
        script: "exec /usr/bin/python3 processes.py",
    },
    Workload { name: "make-j4", programs: &["/usr/bin/make"], files: &[], script: "make -s -j4 && cat total" },
    Workload {
        name: "xz-T2",
        programs: &["/usr/bin/xz"],
        files: &[],
        script: "seq 150000 > numbers; /usr/bin/xz -T2 -3 --block-size=128KiB -c numbers > packed; sha256sum < packed; \
                 /usr/bin/xz -dc -T0 packed | cmp - numbers && /usr/bin/xz -T0 -1 -c numbers | /usr/bin/xz -dc | sha256sum",
    },
    Workload {
        name: "sort-parallel",
        programs: &["/usr/bin/sort"],
        files: &[],
        script: "awk 'BEGIN { n = 1; for (i = 0; i < 120000; i++) { n = (n * 16807) % 2147483647; print n } }' > numbers; \
                 LC_ALL=C /usr/bin/sort --parallel=4 -S 40M -n numbers | sha256sum; \
                 LC_ALL=C /usr/bin/sort --parallel=4 -S 1M -r numbers | sha256sum",
    },
    Workload {
        name: "git-threads",
        programs: &["/usr/bin/git"],
        files: &[&["/usr/share/git-core/templates"]],
        script: "export GIT_AUTHOR_DATE='1000000000 +0000' GIT_COMMITTER_DATE='1000000000 +0000' GIT_CONFIG_NOSYSTEM=1 HOME=$PWD; \
                 git init -q -b main tree && cd tree && git config user.name ebb && git config user.email ebb@localhost && git config pack.threads 4; \
                 for turn in 1 2 3 4 5; do for file in a b c d e f; do seq $turn 400 > $file-$turn; echo $turn >> $file; done; \
                 git add . && git commit -q -m \"turn $turn\"; done; \
                 git gc -q --aggressive && git fsck --no-progress && git grep -c --threads=4 '^7' main -- 'a*' && git rev-parse HEAD",
    },
    Workload {
        name: "node-workers",
        programs: &["/usr/bin/node"],
        files: &[],
        script: "/usr/bin/node workers.js | sort",
    },
    Workload {
        name: "java-pools",
        programs: &["/usr/bin/java"],
        files: JAVA,
        script: "exec /usr/bin/java -XX:TieredStopAtLevel=1 -Xshare:auto -cp classes Tree",
    },
    Workload { name: "rust-rayon", programs: &[], files: &[], script: "exec ./ebb-user-parallel" },
];

/// Runs the workloads whose names contain one of the filters (all, if there is none), and prints a line for each.
pub fn run(arguments: &SystemArguments, filters: &[String]) -> Result<Tally> {
    let selected = |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()));
    let ebb = Kernel::open(&artifacts::KERNEL.find(arguments.kernel.as_deref())?)?;
    let reference = arguments.reference.as_deref().map(Kernel::open).transpose()?;
    let folder = tempfile::tempdir().context("making a directory for the workloads' files")?;
    collect_files(folder.path())?;
    let mut tally = Tally::default();
    println!("{:<18} {:>10} {:>10} {:>6}", "workload", "Linux", "Ebb", "ratio");
    for workload in WORKLOADS.iter().filter(|workload| selected(workload.name)) {
        if let Some(missing) = workload.missing(folder.path()) {
            println!("{:<18} left out: {missing} is not on this machine", workload.name);
            continue;
        }
        let expected = match &reference {
            Some(kernel) => run_in_guest(kernel, workload, folder.path(), arguments)?,
            None => run_on_host(workload, folder.path())?,
        };
        let seen =
            if arguments.reference_only { None } else { Some(run_in_guest(&ebb, workload, folder.path(), arguments)?) };
        report(workload, &expected, seen.as_ref(), &mut tally);
    }
    Ok(tally)
}

fn report(workload: &Workload, expected: &Ran, seen: Option<&Ran>, tally: &mut Tally) {
    let seconds = |ran: &Ran| ran.time.as_secs_f64();
    let (time, ratio) = match seen {
        Some(seen) => {
            (format!("{:.2} s", seconds(seen)), format!("{:.2}", seconds(seen) / seconds(expected).max(f64::EPSILON)))
        }
        None => ("-".to_owned(), "-".to_owned()),
    };
    println!("{:<18} {:>8.2} s {time:>10} {ratio:>6}", workload.name, seconds(expected));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().replace('\n', "\n        ");
    let is_same = seen.is_none_or(|seen| seen.stdout == expected.stdout && seen.exit == expected.exit);
    if is_same && expected.exit.is_success() {
        tally.passed += 1;
        return;
    }
    tally.failed += 1;
    for (name, ran) in [("Linux", Some(expected)), ("Ebb", seen)] {
        let Some(ran) = ran else { continue };
        println!("    {name}, {}:\n        {}\n        {}", ran.exit, text(&ran.stdout), text(&ran.stderr));
    }
}

/// The scripts' files and what is built of them.
fn collect_files(to: &Path) -> Result<()> {
    for entry in
        std::fs::read_dir(FOLDER).with_context(|| format!("reading {FOLDER} (is this the top of the repository?)"))?
    {
        let path = entry?.path();
        if let (true, Some(name)) = (path.is_file(), path.file_name()) {
            std::fs::copy(&path, to.join(name)).with_context(|| format!("copying {}", path.display()))?;
        }
    }
    let status = Command::new("tools/build/host-cargo")
        .args(["build", "--quiet", "--release", "-p", "ebb-user-parallel"])
        .status()
        .context("running cargo")?;
    if !status.success() {
        bail!("the program that uses rayon does not compile");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    std::fs::copy(target.join("release/ebb-user-parallel"), to.join("ebb-user-parallel"))
        .context("copying the program that uses rayon")?;
    // Java's compiler is not always there where Java is.
    let _ = Command::new("/usr/bin/javac")
        .args(["--release", "17", "-d"])
        .arg(to.join("classes"))
        .arg(to.join("Tree.java"))
        .stderr(Stdio::null())
        .status();
    Ok(())
}

impl Workload {
    /// What it needs and the host does not have.
    fn missing(&self, folder: &Path) -> Option<String> {
        let program = self.programs.iter().find(|program| host_program::find(program).is_err());
        let files = self.files.iter().find(|choice| first_of(choice).is_none());
        let classes = self.script.contains("classes") && !folder.join("classes").is_dir();
        program
            .map(|program| (*program).to_owned())
            .or_else(|| files.map(|choice| choice.join(" or ")))
            .or_else(|| classes.then(|| "javac".to_owned()))
    }

    fn image(&self, folder: &Path) -> Result<Image> {
        let mut image = Image::base();
        for program in self.programs {
            image.add_host_program(&host_program::find(program)?)?;
        }
        for path in self.files.iter().filter_map(|choice| first_of(choice)) {
            if path.is_dir() {
                add_tree(&mut image, path, path)?;
            } else {
                // A library: with the links that lead to it.
                image.add_host_program(path)?;
            }
        }
        add_tree(&mut image, folder, Path::new(GUEST_FOLDER))?;
        if self.programs.is_empty() {
            // Its libraries.
            image.add_host_program(&folder.join("ebb-user-parallel"))?;
        }
        image.add_busybox()?;
        Ok(image)
    }
}

fn first_of(choice: &[&'static str]) -> Option<&'static Path> {
    choice.iter().map(|&path| Path::new(path)).find(|path| path.exists())
}

/// Adds a directory of the host with all that is below it.
fn add_tree(image: &mut Image, from: &Path, to: &Path) -> Result<()> {
    for entry in std::fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let path = entry?.path();
        let Some(name) = path.file_name() else { continue };
        let guest_path = to.join(name);
        let kind = path.symlink_metadata().with_context(|| format!("reading {}", path.display()))?.file_type();
        if name == "__pycache__" || name == "test" || (kind.is_symlink() && !path.exists()) {
            continue;
        }
        if kind.is_symlink() {
            let target = std::fs::read_link(&path)?;
            image.insert(&guest_path, Node::new(0o777, Kind::Symlink(target)));
        } else if kind.is_dir() {
            image.add_directory(&guest_path, 0o755);
            add_tree(image, &path, &guest_path)?;
        } else if kind.is_file() {
            image.add_file(&guest_path, &path)?;
        }
    }
    Ok(())
}

fn run_in_guest(kernel: &Kernel, workload: &Workload, folder: &Path, arguments: &SystemArguments) -> Result<Ran> {
    let image = workload.image(folder)?;
    let machine = Machine { memory: MEMORY, cpus: arguments.cpus, ..Machine::new(kernel.clone()) };
    let mut guest = Guest::boot(machine, &image).with_context(|| format!("booting {}", kernel.name()))?;
    // Linux's devtmpfs has no directory for shared memory.
    let script =
        format!("[ -d /dev/shm ] || {{ mkdir /dev/shm && mount -t tmpfs tmpfs /dev/shm; }}; {}", workload.script);
    let program = Program::new("/bin/sh").args(["-c", &script]).current_dir(GUEST_FOLDER);
    Ran::in_guest(&mut guest, &program, LIMIT, |_| {})
}

fn run_on_host(workload: &Workload, folder: &Path) -> Result<Ran> {
    let directory = tempfile::tempdir().context("making a working directory")?;
    let started = Instant::now();
    let output = Command::new("/bin/sh")
        .args(["-c", &format!("cp -R \"$0\"/. . && {}", workload.script)])
        .arg(folder)
        .current_dir(directory.path())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", directory.path())
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("starting {}", workload.name))?;
    Ok(Ran::on_host(output, started.elapsed()))
}
