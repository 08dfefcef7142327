//! Hands the linker script to the linker.

fn main() {
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../linker.ld");
    println!("cargo:rerun-if-changed={}", script.display());
    println!("cargo:rustc-link-arg-bins=-T{}", script.display());
}
