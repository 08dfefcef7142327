//! The library as others get it: installed by CMake, found by pkg-config and by CMake. And its manual pages.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn has(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok();
    if !found {
        eprintln!("{tool} is not installed: left out");
    }
    found
}

fn must(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// The archive that cargo made beside the tests.
fn archive() -> PathBuf {
    let tests = std::env::current_exe().expect("this test is a file");
    let folder = tests.parent().expect("in a folder");
    let files = std::fs::read_dir(folder).expect("cargo's folder").filter_map(|entry| {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_ours = name.starts_with("libac-") && name.ends_with(".a");
        is_ours.then(|| (entry.metadata().and_then(|data| data.modified()).expect("a date"), entry.path()))
    });
    files.max().expect("cargo makes libac for the tests").1
}

#[test]
fn an_installed_library_is_found_by_pkg_config_and_by_cmake() {
    if !has("cmake") {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("install-{}", std::process::id()));
    let (build, prefix) = (folder.join("build"), folder.join("prefix"));
    let configure = |source: &Path, build: &Path, options: &[String]| {
        must(Command::new("cmake").arg("-S").arg(source).arg("-B").arg(build).args(options));
        must(Command::new("cmake").arg("--build").arg(build));
    };
    let options =
        [format!("-DCMAKE_INSTALL_PREFIX={}", prefix.display()), format!("-DAC_ARCHIVE={}", archive().display())];
    configure(here(), &build, &[options.as_slice(), &["-DCMAKE_INSTALL_LIBDIR=lib".into()]].concat());
    must(Command::new("cmake").arg("--install").arg(&build));
    assert!(prefix.join("share/man/man3/ac.3").exists());

    let user = folder.join("user");
    std::fs::create_dir_all(&user).expect("a folder");
    std::fs::copy(here().join("tests/c/figure1.c"), user.join("program.c")).expect("a copy");
    std::fs::copy(here().join("tests/c/check.h"), user.join("check.h")).expect("a copy");
    if has("pkg-config") {
        let path = prefix.join("lib/pkgconfig");
        let flags = must(Command::new("pkg-config").env("PKG_CONFIG_PATH", path).args(["--cflags", "--libs", "ac"]));
        let flags = String::from_utf8(flags.stdout).expect("text");
        let program = user.join("program");
        must(Command::new("gcc").arg(user.join("program.c")).arg("-o").arg(&program).args(flags.split_whitespace()));
        must(Command::new(&program).env("LD_LIBRARY_PATH", prefix.join("lib")));
    }

    std::fs::write(
        user.join("CMakeLists.txt"),
        "cmake_minimum_required(VERSION 3.16)\nproject(user C)\nfind_package(ac 0.1 REQUIRED)\n\
         add_executable(shared program.c)\ntarget_link_libraries(shared ac::ac)\n\
         add_executable(static program.c)\ntarget_link_libraries(static ac::static)\n",
    )
    .expect("a file");
    let user_build = user.join("build");
    configure(&user, &user_build, &[format!("-DCMAKE_PREFIX_PATH={}", prefix.display())]);
    must(&mut Command::new(user_build.join("shared")));
    must(&mut Command::new(user_build.join("static")));
    std::fs::remove_dir_all(folder).expect("made by this test");
}

#[test]
fn the_installed_version_is_the_crate_s() {
    let version = std::fs::read_to_string(here().join("version.txt")).expect("a file");
    assert_eq!(version.trim(), env!("CARGO_PKG_VERSION"));
}

#[test]
fn manual_pages_are_without_warnings() {
    if !has("groff") {
        return;
    }
    let mut pages = 0;
    for page in std::fs::read_dir(here().join("man")).expect("a folder") {
        let page = page.expect("an entry").path();
        let output = must(Command::new("groff").args(["-man", "-ww", "-Tutf8", "-z"]).arg(&page));
        assert!(output.stderr.is_empty(), "{page:?}: {}", String::from_utf8_lossy(&output.stderr));
        pages += 1;
    }
    assert_eq!(pages, 7);
}
