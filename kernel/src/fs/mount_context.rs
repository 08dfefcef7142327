//! [`MountContext`]: a file system that is configured step by step and then mounted (fsopen(2), fsconfig(2), fsmount(2)), or whose options are changed (fspick(2)).
//!
//! What a call did not like is kept as a message, which read(2) of the descriptor gives.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use frame::Cx;
use frame::mm::Writer;
use refs::{SpinLock, StrongRc, WeakRc};

use super::types::{BadOption, FileSystemType};
use super::{File, FileEnd, Mount, MountFlags, VfsCaller};
use crate::error::{Errno, Result};
use crate::reclaim::Held;
use crate::step::Step;

/// So many messages are kept; the oldest go first.
const MOST_MESSAGES: usize = 8;
/// So many bytes all options may have.
const MOST_OPTIONS: usize = 16 << 10;

/// A file system in the making.
///
/// Owner: its description. With it ends a mount that was made and is nowhere yet, and so perhaps the file system, whose end is its own matter.
pub struct MountContext {
    kind: &'static FileSystemType,
    state: SpinLock<State>,
}

struct State {
    phase: Phase,
    source: Option<Vec<u8>>,
    /// As mount(2) takes them.
    options: Vec<u8>,
    is_read_only: Option<bool>,
    messages: VecDeque<Vec<u8>>,
}

/// How far it is.
enum Phase {
    /// Its options are set.
    Options,
    /// It is being made.
    Making,
    /// It can be mounted: by a mount that is nowhere yet.
    Made(StrongRc<Mount>),
    /// It was mounted; the options of it are set that are to be changed.
    Changes(WeakRc<Mount>),
    /// Something went wrong: nothing can be done with it any more.
    Failed,
}

/// The value of an option.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    /// None: it is a flag.
    Flag,
    /// A string.
    String(&'a [u8]),
    /// Something else: a file, or bytes. No option takes them.
    Other,
}

/// What a file system is to be made of.
pub struct Configuration {
    /// Its type.
    pub kind: &'static FileSystemType,
    /// The source; empty if none was named.
    pub source: Vec<u8>,
    /// The options.
    pub options: Vec<u8>,
    /// Whether nothing is to be written.
    pub is_read_only: bool,
}

/// What is to be changed of a file system.
pub struct Reconfiguration {
    /// Of which mount.
    pub mount: WeakRc<Mount>,
    /// The options.
    pub options: Vec<u8>,
    /// Whether nothing is to be written; `None`: as it is.
    pub is_read_only: Option<bool>,
}

impl MountContext {
    /// One whose options are to be set.
    pub fn new(kind: &'static FileSystemType) -> Self {
        Self::with_phase(kind, Phase::Options)
    }

    /// One for changes of the file system of a mount.
    pub fn of_mount(kind: &'static FileSystemType, mount: WeakRc<Mount>) -> Self {
        Self::with_phase(kind, Phase::Changes(mount))
    }

    fn with_phase(kind: &'static FileSystemType, phase: Phase) -> Self {
        let (source, options, messages) = (None, Vec::new(), VecDeque::new());
        MountContext { kind, state: SpinLock::new(State { phase, source, options, is_read_only: None, messages }) }
    }

    /// Sets an option.
    ///
    /// # Errors
    /// EBUSY: it is too late for that. EINVAL: it is not understood, which a message says.
    pub fn set(&self, key: &[u8], value: Value<'_>, cx: &Cx) -> Result<()> {
        let mut state = self.state.lock(cx);
        if !matches!(state.phase, Phase::Options | Phase::Changes(_)) {
            return Err(Errno::EBUSY);
        }
        let outcome = self.set_in(&mut state, key, value);
        if let Err(message) = outcome {
            state.say(message);
            return Err(Errno::EINVAL);
        }
        Ok(())
    }

    /// What is wrong with it, if anything.
    fn set_in(&self, state: &mut State, key: &[u8], value: Value<'_>) -> core::result::Result<(), String> {
        let (name, shown) = (self.kind.name, String::from_utf8_lossy(key));
        match (key, value) {
            // As on Linux, whatever the value is.
            (b"ro", _) => state.is_read_only = Some(true),
            (b"rw", _) => state.is_read_only = Some(false),
            // They mean nothing here.
            (b"sync" | b"async" | b"dirsync" | b"lazytime" | b"nolazytime" | b"mand" | b"nomand", _) => {}
            (b"source", Value::String(source)) if state.source.is_none() => state.source = Some(source.to_vec()),
            (b"source", Value::String(_)) => return Err("Multiple sources".into()),
            (b"source", _) => return Err("Non-string source".into()),
            _ => {
                let text = match value {
                    Value::String(text) => {
                        Some(self.quoted(text).ok_or_else(|| format!("{name}: Bad value for '{shown}'"))?)
                    }
                    Value::Flag | Value::Other => None,
                };
                let option = text.map_or_else(|| key.to_vec(), |text| [key, b"=", &text].concat());
                match (self.kind.check)(&option) {
                    _ if key.contains(&b',') || key.contains(&b'=') => {
                        return Err(format!("{name}: Unknown parameter '{shown}'"));
                    }
                    Err(BadOption::Unknown) => return Err(format!("{name}: Unknown parameter '{shown}'")),
                    Ok(()) if !matches!(value, Value::Other) => {}
                    _ => return Err(format!("{name}: Bad value for '{shown}'")),
                }
                if state.options.len() + option.len() >= MOST_OPTIONS {
                    return Err(format!("{name}: Cumulative options too large"));
                }
                if !state.options.is_empty() {
                    state.options.push(b',');
                }
                state.options.extend_from_slice(&option);
            }
        }
        Ok(())
    }

    /// A value as it stands between commas. Only an overlay's may have some in it.
    fn quoted(&self, value: &[u8]) -> Option<Vec<u8>> {
        let is_overlay = self.kind.name == "overlay";
        if !value.contains(&b',') {
            return Some(value.to_vec());
        }
        is_overlay.then(|| {
            value.iter().fold(Vec::new(), |mut quoted, &byte| {
                if byte == b',' && quoted.last() != Some(&b'\\') {
                    quoted.push(b'\\');
                }
                quoted.push(byte);
                quoted
            })
        })
    }

    /// Begins to make it: what of. Who calls this says at the end what came of it ([`end_making`](Self::end_making)).
    ///
    /// # Errors
    /// EBUSY: it is made already, or was.
    pub fn begin_making(&self, cx: &Cx) -> Result<Configuration> {
        let mut state = self.state.lock(cx);
        if !matches!(state.phase, Phase::Options) {
            return Err(Errno::EBUSY);
        }
        state.phase = Phase::Making;
        Ok(Configuration {
            kind: self.kind,
            source: state.source.take().unwrap_or_default(),
            options: core::mem::take(&mut state.options),
            is_read_only: state.is_read_only.take() == Some(true),
        })
    }

    /// It is made, as a mount that is nowhere yet; or not, which `message` explains.
    pub fn end_making(&self, made: core::result::Result<StrongRc<Mount>, &str>, cx: &Cx) {
        let mut state = self.state.lock(cx);
        match made {
            Ok(mount) => state.phase = Phase::Made(mount),
            Err(message) => {
                state.phase = Phase::Failed;
                if !message.is_empty() {
                    state.say(message.into());
                }
            }
        }
    }

    /// Has the mount that was made entered somewhere; it does not allow this as well. From then on the context changes the options. Where `enter` fails all is as before.
    ///
    /// # Errors
    /// EINVAL: there is none yet. EBUSY: it was taken. Those of `enter`.
    pub fn mount<T>(&self, flags: MountFlags, cx: &Cx, enter: impl FnOnce(StrongRc<Mount>) -> Result<T>) -> Result<T> {
        let made = self.take_mount(cx)?;
        let before = made.with(|mount| {
            let before = mount.flags();
            mount.set_flags(mount.allowed(before & MountFlags::READ_ONLY | flags));
            before
        });
        let outcome = enter(made.share());
        if outcome.is_err() {
            made.with(|mount| mount.set_flags(before));
            self.state.lock(cx).phase = Phase::Made(made);
        }
        outcome
    }

    /// Takes the mount that was made.
    fn take_mount(&self, cx: &Cx) -> Result<StrongRc<Mount>> {
        let mut state = self.state.lock(cx);
        match core::mem::replace(&mut state.phase, Phase::Failed) {
            Phase::Made(mount) => {
                state.phase = Phase::Changes(mount.downgrade());
                Ok(mount)
            }
            phase => {
                let error = if matches!(phase, Phase::Changes(_)) { Errno::EBUSY } else { Errno::EINVAL };
                state.phase = phase;
                Err(error)
            }
        }
    }

    /// What is to be changed.
    ///
    /// # Errors
    /// EBUSY: it is not mounted yet.
    pub fn changes(&self, cx: &Cx) -> Result<Reconfiguration> {
        let mut state = self.state.lock(cx);
        let Phase::Changes(mount) = state.phase else { return Err(Errno::EBUSY) };
        state.source = None;
        Ok(Reconfiguration {
            mount,
            options: core::mem::take(&mut state.options),
            is_read_only: state.is_read_only.take(),
        })
    }

    /// A change failed: nothing can be done with it any more.
    pub fn fail(&self, cx: &Cx) {
        self.state.lock(cx).phase = Phase::Failed;
    }
}

impl State {
    /// Keeps a message about an error.
    fn say(&mut self, message: String) {
        if self.messages.len() == MOST_MESSAGES {
            self.messages.pop_front();
        }
        self.messages.push_back(format!("e {message}\n").into_bytes());
    }
}

impl File for MountContext {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::File
    }

    fn read(&self, _offset: u64, to: &mut Writer<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let mut state = self.state.lock(cx);
        let message = state.messages.front().ok_or(Errno::ENODATA)?;
        let len = message.len();
        if len > to.remaining() {
            return Err(Errno::EMSGSIZE.into());
        }
        to.write(message)?;
        state.messages.pop_front();
        Ok(len)
    }
}
