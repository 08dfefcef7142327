//! Running programs for the host: one loop that waits for the line, the program's pipes and the end of processes.

use crate::children::ChildNotice;
use crate::line::Line;
use crate::run::Run;
use ebb_protocol::{ToGuest, ToHost};
use rustix::event::{PollFd, PollFlags, poll};
use std::ffi::OsStr;
use std::io;
use std::ops::ControlFlow;

/// Serves the host until it says to shut down.
pub fn serve(own_path: &OsStr, boot_ns: u64) -> io::Result<()> {
    let mut notice = ChildNotice::install()?;
    let mut line = Line::open()?;
    line.send(&ToHost::Ready { boot_ns })?;
    let mut run: Option<Run> = None;

    loop {
        let ready = wait(&line, &notice, run.as_ref())?;
        if ready.line {
            for message in line.receive()? {
                if obey(own_path, message, &mut run, &mut line)?.is_break() {
                    return Ok(());
                }
            }
        }
        if ready.notice {
            notice.clear();
        }
        let Some(program) = &mut run else { continue };
        if ready.input {
            program.pass_input(&mut line)?;
        }
        for index in 0..ready.outputs.len() {
            if ready.outputs[index] {
                program.pass_output(index, &mut line)?;
            }
        }
        if let Some(exit) = program.finished(&mut line)? {
            line.send(&ToHost::Exited(exit))?;
            run = None;
        }
    }
}

/// What can go on without waiting.
#[derive(Default)]
struct Ready {
    line: bool,
    notice: bool,
    input: bool,
    outputs: [bool; 2],
}

fn wait(line: &Line, notice: &ChildNotice, run: Option<&Run>) -> io::Result<Ready> {
    let mut descriptors = vec![PollFd::new(line, PollFlags::IN), PollFd::new(notice, PollFlags::IN)];
    let mut input_at = None;
    let mut outputs_at = [None; 2];
    if let Some(run) = run {
        if let Some(pipe) = run.waiting_input() {
            input_at = Some(descriptors.len());
            descriptors.push(PollFd::new(pipe, PollFlags::OUT));
        }
        for (at, output) in outputs_at.iter_mut().zip(run.outputs()) {
            if let Some(pipe) = &output.pipe
                && output.window.available_bytes() > 0
            {
                *at = Some(descriptors.len());
                descriptors.push(PollFd::new(pipe, PollFlags::IN));
            }
        }
    }
    match poll(&mut descriptors, None) {
        Ok(_) => {}
        // A child's end interrupts the wait; its notice is in the pipe, and the next round finds it.
        Err(rustix::io::Errno::INTR) => return Ok(Ready::default()),
        Err(errno) => return Err(errno.into()),
    }
    let is_ready = |at: usize| !descriptors[at].revents().is_empty();
    Ok(Ready {
        line: is_ready(0),
        notice: is_ready(1),
        input: input_at.is_some_and(is_ready),
        outputs: outputs_at.map(|at| at.is_some_and(is_ready)),
    })
}

/// Does what the host says; `Break` to shut down.
fn obey(own_path: &OsStr, message: ToGuest, run: &mut Option<Run>, line: &mut Line) -> io::Result<ControlFlow<()>> {
    match (message, run.as_mut()) {
        (ToGuest::Shutdown, _) => return Ok(ControlFlow::Break(())),
        (ToGuest::Start(start), None) => match Run::start(own_path, &start) {
            Ok(started) => *run = Some(started),
            Err(error) => line.send(&ToHost::StartError(error))?,
        },
        (ToGuest::Start(_), Some(_)) => {
            return Err(io::Error::other("the host started a program while another one runs"));
        }
        (ToGuest::Stdin(bytes), Some(program)) => program.queue_input(bytes),
        (ToGuest::StdinEof, Some(program)) => program.end_input(),
        (ToGuest::Signal(number), Some(program)) => program.signal(number),
        (ToGuest::Credit(stream, count), Some(program)) => program.refund(stream, count as usize),
        (ToGuest::CloseOutput(stream), Some(program)) => program.close_output(stream),
        (ToGuest::WindowSize { rows, columns }, Some(program)) => program.resize(rows, columns),
        // What was meant for a program that has just ended.
        (_, _) => {}
    }
    Ok(ControlFlow::Continue(()))
}
