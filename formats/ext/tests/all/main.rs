//! Tests of ext2 and ext4 beside e2fsprogs: images that `mke2fs` made are read, images that were written here `e2fsck` must find clean.
//!
//! They need `mke2fs`, `e2fsck` and `debugfs` (Debian's e2fsprogs; `make setup` gets it). `EXT_STRESS=N` makes the random ones N times as long.
mod damage;
mod image;
mod model;
mod mount;
mod power;
mod reading;
mod workload;
