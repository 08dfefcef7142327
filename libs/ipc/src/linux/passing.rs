//! Passing a descriptor to another process over a Unix socket (`unix(7)`, `SCM_RIGHTS`).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

const FD_LEN: u32 = size_of::<libc::c_int>() as u32;

/// Room for one control message with one descriptor, aligned as its header must be.
#[repr(C)]
union Control {
    _align: libc::cmsghdr,
    bytes: [u8; 32],
}

/// Sends a descriptor with one byte of data.
///
/// # Errors
/// What `sendmsg` says.
pub fn send_fd(stream: &UnixStream, fd: BorrowedFd<'_>) -> io::Result<()> {
    let mut byte = 0u8;
    let mut data = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut control = Control { bytes: [0; 32] };
    let mut message = header(&mut data, &mut control);
    // SAFETY: `message` names `control`, which is zeroed and has room for a header and a descriptor.
    unsafe {
        let first = libc::CMSG_FIRSTHDR(&message);
        (*first).cmsg_level = libc::SOL_SOCKET;
        (*first).cmsg_type = libc::SCM_RIGHTS;
        (*first).cmsg_len = libc::CMSG_LEN(FD_LEN) as _;
        libc::CMSG_DATA(first).cast::<libc::c_int>().write_unaligned(fd.as_raw_fd());
        message.msg_controllen = libc::CMSG_SPACE(FD_LEN) as _;
    }
    loop {
        // SAFETY: everything that `message` points at is alive and initialised.
        let sent = unsafe { libc::sendmsg(stream.as_raw_fd(), &message, libc::MSG_NOSIGNAL) };
        match sent {
            1.. => return Ok(()),
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

/// Receives a descriptor; it is closed on `exec`.
///
/// # Errors
/// `UnexpectedEof` when the peer closed the socket, `InvalidData` when it sent something else, or what `recvmsg` says.
pub fn receive_fd(stream: &UnixStream) -> io::Result<OwnedFd> {
    let mut byte = 0u8;
    let mut data = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut control = Control { bytes: [0; 32] };
    let mut message = header(&mut data, &mut control);
    // As much as one descriptor takes: the system throws away what a peer sends beyond it.
    // SAFETY: only a computation.
    message.msg_controllen = unsafe { libc::CMSG_LEN(FD_LEN) } as _;
    loop {
        // SAFETY: everything that `message` points at is alive and writable.
        let received = unsafe { libc::recvmsg(stream.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) };
        match received {
            1.. => break,
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    // SAFETY: the system filled in `control` and said in `message` how much of it; a header that says that it carries a
    // descriptor does, and that descriptor is ours alone.
    unsafe {
        let first = libc::CMSG_FIRSTHDR(&message);
        if first.is_null()
            || (*first).cmsg_level != libc::SOL_SOCKET
            || (*first).cmsg_type != libc::SCM_RIGHTS
            || (*first).cmsg_len as usize != libc::CMSG_LEN(FD_LEN) as usize
        {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no descriptor came with the message"));
        }
        let fd = libc::CMSG_DATA(first).cast::<libc::c_int>().read_unaligned();
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

fn header(data: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: `msghdr` is numbers and pointers, for which zeros are valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = data;
    message.msg_iovlen = 1;
    message.msg_control = (control as *mut Control).cast();
    message.msg_controllen = size_of::<Control>() as _;
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    #[test]
    fn a_descriptor_arrives_and_works() {
        let (a, b) = UnixStream::pair().expect("a socket pair");
        let (mut left, right) = UnixStream::pair().expect("another");
        send_fd(&a, right.as_fd()).expect("sent");
        let got = UnixStream::from(receive_fd(&b).expect("received"));
        drop(right);
        left.write_all(b"x").expect("written");
        let mut byte = [0];
        std::io::Read::read_exact(&mut &got, &mut byte).expect("read");
        assert_eq!(&byte, b"x");
    }

    #[test]
    fn bytes_without_a_descriptor_are_refused_and_an_end_is_told() {
        let (mut a, b) = UnixStream::pair().expect("a socket pair");
        a.write_all(b"?").expect("written");
        assert_eq!(receive_fd(&b).err().map(|e| e.kind()), Some(io::ErrorKind::InvalidData));
        drop(a);
        assert_eq!(receive_fd(&b).err().map(|e| e.kind()), Some(io::ErrorKind::UnexpectedEof));
    }
}
