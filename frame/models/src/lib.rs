//! Models of what the cores of `ebb-frame` do with each other, in which loom goes through every interleaving that the memory model allows. `frame` itself is not built for loom: its
//! statics are made when it is compiled. Run with `RUSTFLAGS="--cfg ebb_loom" cargo test --release -p ebb-models`.

#[cfg(all(test, ebb_loom))]
mod shootdown;
