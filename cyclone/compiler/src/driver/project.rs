//! `cyc new`: a directory with a program and a Makefile.

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

const PROGRAM: &str = r#"#include <core.h>
#include <stdio.h>

// The arguments are a fat pointer to strings: it knows how many there are, and an index outside throws Array_bounds.
int main(int argc, string_t ? argv) {
  for (int i = 1; i < argc; i++)
    printf("Hello, %s!\n", argv[i]);
  if (argc <= 1)
    printf("Hello!\n");
  return 0;
}
"#;

const MAKEFILE: &str = "CYC = cyc
CYCFLAGS = -O2 -g

NAME: main.o
\t$(CYC) build $(CYCFLAGS) $^ -o $@

%.o: %.cyc
\t$(CYC) build -c -MMD $(CYCFLAGS) $< -o $@

check:
\t$(CYC) check *.cyc

clean:
\trm -f NAME *.o *.d

.PHONY: check clean
-include *.d
";

/// Makes the directory, which must not be there, and its files.
pub fn begin(directory: &OsStr) -> ExitCode {
    let path = Path::new(directory);
    let name = path.file_name().map_or_else(|| "program".into(), OsStr::to_string_lossy);
    let made = std::fs::create_dir(path)
        .and_then(|()| std::fs::write(path.join("main.cyc"), PROGRAM))
        .and_then(|()| std::fs::write(path.join("Makefile"), MAKEFILE.replace("NAME", &name)))
        .and_then(|()| std::fs::write(path.join(".gitignore"), format!("/{name}\n*.o\n*.d\n")));
    match made {
        Ok(()) => {
            println!("{}: main.cyc, Makefile", path.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("cyc: {}: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}
