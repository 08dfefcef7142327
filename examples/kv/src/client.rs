//! The clients: processes that own values until they are killed, and threads that watch them.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use ipc::Geometry;
use ipc::linux::{self, Connection};

use crate::protocol::{Answer, Request};

/// How often a client looks for answers.
const LOOK: Duration = Duration::from_millis(1);

/// What an owner owns: so many values of that size, with keys from `first_key` on.
#[derive(Clone, Copy, clap::Args)]
pub struct Owned {
    /// The key of its first value.
    pub first_key: u64,
    /// How many values it puts.
    pub count: u64,
    /// The size of each, in bytes.
    pub size: u64,
}

/// An owner in a process of its own.
pub struct Owner {
    process: Child,
    output: ChildStdout,
}

impl Owner {
    /// Starts one, and makes its channel.
    pub fn start(owned: Owned, geometry: Geometry) -> Result<(Owner, Connection)> {
        let (ours, theirs) = UnixStream::pair()?;
        let numbers = [owned.first_key, owned.count, owned.size].map(|number| number.to_string());
        let mut process = Command::new(std::env::current_exe()?)
            .arg("own")
            .args(numbers)
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .spawn()
            .context("starting a client")?;
        let output = process.stdout.take().context("the client's output")?;
        let connection = linux::offer(ours, geometry).context("offering a channel")?;
        Ok((Owner { process, output }, connection))
    }

    /// Waits until its values are stored.
    pub fn wait_until_ready(&mut self) -> Result<()> {
        let mut byte = [0];
        io::Read::read_exact(&mut self.output, &mut byte).context("a client ended early")
    }

    /// Kills it, as a crash would.
    pub fn kill(mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }
}

/// What an owner's process does: takes its channel from its standard input, puts its values, says so, and is idle until it is
/// killed.
pub fn own(owned: Owned) -> Result<()> {
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut connection = linux::accept(stream).context("accepting the channel")?;
    for key in owned.first_key..owned.first_key + owned.count {
        for (request, expected) in
            [(Request::Put { key, size: owned.size }, owned.size), (Request::Get { key }, owned.size)]
        {
            let answer = Answer::of_message(&connection.call(&request.to_message(), None)?);
            ensure!(answer == Answer::Done(expected), "the server answered {answer:?} to {request:?}");
        }
    }
    io::stdout().write_all(b"!")?;
    io::stdout().flush()?;
    loop {
        std::thread::park();
    }
}

/// A thread that watches values.
pub struct Watcher {
    thread: std::thread::JoinHandle<Result<()>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    watching: AtomicBool,
    gone: AtomicUsize,
    end: AtomicBool,
}

impl Watcher {
    /// Starts one that watches these keys, over this channel.
    pub fn start(connection: Connection, keys: std::ops::Range<u64>) -> Watcher {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            // All of it, not only the part that is used: its end is closed with it.
            let mut connection = connection;
            let caller = &mut connection.endpoint.caller;
            let mut calls = Vec::new();
            for key in keys {
                calls.push(caller.post(&Request::Watch { key }.to_message())?);
            }
            own.watching.store(true, Ordering::Release);
            while !own.end.load(Ordering::Acquire) && !calls.is_empty() {
                let mut left = Vec::new();
                for call in calls {
                    match caller.poll(&call)?.map(|answer| Answer::of_message(&answer)) {
                        None => left.push(call),
                        Some(Answer::Gone) => _ = own.gone.fetch_add(1, Ordering::AcqRel),
                        Some(other) => bail!("the server answered {other:?} to a watcher"),
                    }
                }
                calls = left;
                std::thread::sleep(LOOK);
            }
            Ok(())
        });
        Watcher { thread, shared }
    }

    /// Waits until it has asked for everything.
    pub fn wait_until_ready(&self) {
        while !self.shared.watching.load(Ordering::Acquire) && !self.thread.is_finished() {
            std::thread::sleep(LOOK);
        }
    }

    /// How many of its values have gone, as far as it was told.
    pub fn gone(&self) -> usize {
        self.shared.gone.load(Ordering::Acquire)
    }

    /// Ends it.
    pub fn end(self) -> Result<()> {
        self.shared.end.store(true, Ordering::Release);
        self.thread.join().map_err(|_| anyhow::anyhow!("a watcher panicked"))?
    }
}
