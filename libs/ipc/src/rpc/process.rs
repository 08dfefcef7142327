//! Ports to other processes: the memory goes over a Unix socket, which then is the doorbell and the sign of life.

use alloc::sync::Arc;
use std::io;
use std::os::unix::net::UnixStream;

use super::{Seed, Sleepers};
use crate::linux::{Notice, Sign, accepted, offered, ring_over, watch};
use crate::{Endpoint, Geometry};

/// Makes a channel and offers its other end over the socket. `stream` is used for nothing else from here on.
///
/// # Errors
/// As [`linux::offer`](crate::linux::offer).
pub fn offer(stream: UnixStream, geometry: Geometry) -> io::Result<Seed> {
    seed(offered(&stream, geometry)?, stream)
}

/// Takes a channel that the process at the other end of the socket offers. Blocks the thread until it does.
///
/// # Errors
/// As [`linux::accept`](crate::linux::accept).
pub fn accept(stream: UnixStream) -> io::Result<Seed> {
    seed(accepted(&stream)?, stream)
}

fn seed(endpoint: Endpoint, stream: UnixStream) -> io::Result<Seed> {
    let stream = Arc::new(stream);
    let sleepers = Arc::new(Sleepers::new(&endpoint.link));
    let woken = sleepers.clone();
    let watch = watch(Sign::Socket(stream.clone()), move |notice| match notice {
        Notice::Died => woken.died(),
        Notice::Rung => woken.ring(),
    })?;
    Ok(Seed::new(endpoint, sleepers, move || ring_over(&stream)).keeping(watch))
}
