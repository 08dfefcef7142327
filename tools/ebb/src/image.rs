//! `ebb image`: root file systems for `ebb run` and `ebb shell`.

use clap::{Args, Subcommand};
use ebb_guest::debian::{self, Cached, ImageFormat, Package, Suite};
use ebb_guest::{Debian, Error, Mebibytes, Result};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What `ebb image` takes.
#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Subcommand)]
enum Kind {
    /// A Debian: makes an image of it, or finds it in the cache, and prints its path.
    #[command(after_help = EXAMPLES, args_override_self = true)]
    Debian(DebianArguments),
}

const EXAMPLES: &str = "\
Examples:
  ebb shell --rootfs $(ebb image debian)
  ebb image debian --include vim,git,gcc,make,libc6-dev --output work.ext4
  ebb shell --memory 2G --rootfs work.ext4:rw
  ebb image debian --download postgresql --output db.ext4      (then, in the guest: apt-get install postgresql)

It needs mmdebstrap, and fakeroot and uidmap for who is not root. Images are kept in ~/.cache/ebb/images
($XDG_CACHE_HOME/ebb/images); the same options find the same image there.";

#[derive(Args)]
struct DebianArguments {
    /// Make a copy that is yours at this path, instead of printing the path in the cache.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The release.
    #[arg(long, default_value = "bookworm")]
    suite: Suite,

    /// Packages to install, with what they depend on; may be repeated.
    #[arg(long, value_name = "PACKAGES", value_delimiter = ',')]
    include: Vec<Package>,

    /// Packages whose files apt has at hand in the guest, where it has no network: `apt-get install` works with them. May be repeated.
    #[arg(long, value_name = "PACKAGES", value_delimiter = ',')]
    download: Vec<Package>,

    /// Packages whose sources are to be in /usr/src; may be repeated.
    #[arg(long, value_name = "PACKAGES", value_delimiter = ',')]
    source: Vec<Package>,

    /// Size of an image of ext4 or ext2; it takes up what is in it.
    #[arg(long, value_name = "SIZE", default_value = "4G")]
    size: Mebibytes,

    /// Its file system: ext4 and ext2 can be written, erofs and squashfs are compressed.
    #[arg(long, value_name = "ext4|ext2|erofs|squashfs", default_value = "ext4")]
    format: ImageFormat,

    /// Debian's archive [default: the one that this machine's apt uses].
    #[arg(long, value_name = "URL")]
    mirror: Option<String>,

    /// Make the image anew, with what the archive has now, though it is in the cache.
    #[arg(long)]
    refresh: bool,
}

/// Makes or finds the image and prints its path; returns the code to exit with.
pub fn image(arguments: Arguments) -> Result<u8> {
    let Kind::Debian(arguments) = arguments.kind;
    if let Some(output) = arguments.output.as_deref().filter(|output| output.symlink_metadata().is_ok()) {
        let error =
            io::Error::new(io::ErrorKind::AlreadyExists, "it is there already; remove it or choose another name");
        return Err(Error::Io { doing: output.display().to_string(), error });
    }
    let cached = if arguments.refresh { Cached::Refreshed } else { Cached::AsItIs };
    let debian = Debian {
        suite: arguments.suite,
        include: arguments.include,
        download: arguments.download,
        source: arguments.source,
        size: arguments.size,
        format: arguments.format,
        mirror: arguments.mirror,
    };
    let bar = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}");
    bar.set_style(style.unwrap_or(ProgressStyle::default_spinner()));
    let image = debian.image(&debian::cache(), cached, &mut |what| show(&bar, what))?;
    let path = match arguments.output {
        Some(output) => {
            show(&bar, "copying the image");
            copy(&image, &output)?;
            output
        }
        None => image,
    };
    bar.finish_and_clear();
    println!("{}", path.display());
    Ok(0)
}

/// Copies an image, without what is empty in it; where the file system can share blocks it copies none.
fn copy(image: &Path, output: &Path) -> Result<()> {
    let doing = || format!("copying the image to {}", output.display());
    let failed = |error| Error::Io { doing: doing(), error };
    let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = tempfile::Builder::new().prefix(".ebb-image-").tempdir_in(parent).map_err(failed)?;
    let copy = directory.path().join("image");
    let status = Command::new("cp").args(["--sparse=always", "--reflink=auto"]).args([image, &copy]).status();
    if !status.map_err(failed)?.success() {
        return Err(failed(io::Error::other("cp failed")));
    }
    std::fs::rename(&copy, output).map_err(failed)
}

/// Shows what is being done: at a terminal on one line, with the time that has passed; else a line for each step.
fn show(bar: &ProgressBar, what: &str) {
    if io::stderr().is_terminal() {
        bar.enable_steady_tick(Duration::from_millis(100));
        bar.set_message(what.to_owned());
    } else {
        eprintln!("{what}");
    }
}
