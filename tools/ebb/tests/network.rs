//! Guests on QEMU's own network: what they reach, and what reaches them.
//! These tests start machines: see `command.rs`.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Waits until the network has given the guest an address.
const WAIT: &str = "until ping -c 1 -W 1 10.0.2.2 >/dev/null 2>&1; do i=$((i+1)); [ $i -lt 30 ] || exit 99; done;";

fn ebb(options: &[&str], script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebb"));
    command.args(["run", "--timeout", "200s", "--cpus", "2", "--network", "user"]).args(options);
    command.args(["sh", "-c", &format!("{WAIT} {script}")]).stdin(Stdio::null());
    command
}

#[track_caller]
fn said(options: &[&str], script: &str) -> String {
    let output = ebb(options, script).output().expect("ebb can be started");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script}\n{stdout}\n{stderr}");
    stdout.into_owned()
}

/// Bytes that look like no others.
fn pattern(len: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..len).map(next).collect()
}

/// Serves one connection.
fn serve(with: impl FnOnce(TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || with(listener.accept().unwrap().0));
    port
}

#[test]
#[ignore = "starts a machine"]
fn what_a_guest_fetches_and_sends_is_whole() {
    let bytes = pattern(3_000_000);
    let sent = bytes.clone();
    let port = serve(move |mut stream| {
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).unwrap();
        write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n", sent.len()).unwrap();
        stream.write_all(&sent).unwrap();
    });
    let (tell, told) = std::sync::mpsc::channel();
    let back = serve(move |mut stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        tell.send(all).unwrap();
    });
    let script = format!(
        "wget -q -O /tmp/f http://10.0.2.2:{port}/f && nc 10.0.2.2 {back} </tmp/f && wc -c </tmp/f && ! nc 10.0.2.2 1 </dev/null"
    );
    assert_eq!(said(&[], &script).trim(), "3000000");
    assert!(told.recv_timeout(Duration::from_secs(20)).unwrap() == bytes);
}

#[test]
#[ignore = "starts a machine"]
fn datagrams_go_there_and_back() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    // What tftp(1) asks for: one block of a file (RFC 1350).
    thread::spawn(move || {
        let mut bytes = [0; 2000];
        while let Ok((_, from)) = socket.recv_from(&mut bytes) {
            if bytes[..2] == [0, 1] {
                let _ = socket.send_to(b"\x00\x03\x00\x01over UDP\n", from);
            }
        }
    });
    let script = format!("tftp -g -r file -l /tmp/f 10.0.2.2 {port} && cat /tmp/f");
    assert_eq!(said(&[], &script).trim(), "over UDP");
}

/// A machine that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "starts a machine"]
fn a_published_port_leads_to_the_guest() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let rule = format!("127.0.0.1:{free}:80");
    let script = "mkdir /tmp/w; seq 100000 >/tmp/w/index.html; httpd -p 80 -h /tmp/w; sleep 100";
    let _machine = Running(ebb(&["--publish", &rule], script).stdout(Stdio::null()).spawn().unwrap());
    let expected: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        // QEMU takes the connection before there is a guest.
        let mut all = Vec::new();
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", free)) {
            stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            let _ = stream.write_all(b"GET /index.html HTTP/1.0\r\n\r\n");
            let _ = stream.read_to_end(&mut all);
        }
        if let Some(at) = all.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            assert!(all[at + 4..] == *expected.as_bytes());
            return;
        }
        assert!(Instant::now() < deadline, "nobody answers");
        thread::sleep(Duration::from_millis(200));
    }
}

#[test]
#[ignore = "starts a machine"]
fn addresses_and_routes_are_as_programs_have_set_them() {
    let script = "ip addr add 10.9.9.1/24 dev eth0 && ip route add 172.16.0.0/12 via 10.9.9.2 && ip route get 172.16.1.1 \
        && ! ip route add 172.16.0.0/12 via 10.9.9.2 2>/dev/null && ! ip route add 1.2.3.4 via 9.9.9.9 2>/dev/null \
        && ifconfig eth0 mtu 1400 && cat /proc/sys/net/ipv6/conf/eth0/mtu \
        && ip link set eth0 down && ! ping -c 1 -W 1 10.0.2.2 >/dev/null 2>&1 && ip link set eth0 up \
        && route add default gw 10.0.2.2 && ping -c 1 -W 5 10.0.2.2 >/dev/null && ip addr del 10.9.9.1/24 dev eth0 \
        && ip -4 route";
    let expected = [
        "172.16.1.1 via 10.9.9.2 dev eth0  src 10.9.9.1",
        "1400",
        "default via 10.0.2.2 dev eth0",
        "10.0.2.0/24 dev eth0 scope link  src 10.0.2.15",
    ];
    assert_eq!(said(&[], script).lines().map(str::trim).collect::<Vec<_>>(), expected);
}

#[test]
#[ignore = "starts a machine"]
fn a_program_gets_an_address_by_packets_of_its_own() {
    let script = "printf '#!/bin/sh\n[ $1 != bound ] || ip addr add $ip/24 dev eth0 && echo $1 $ip $router\n' >/tmp/s; chmod +x /tmp/s; \
        ip addr flush dev eth0; udhcpc -i eth0 -n -q -s /tmp/s 2>/dev/null && ping -c 1 -W 5 10.0.2.2 >/dev/null && echo there";
    assert_eq!(said(&[], script).lines().last(), Some("there"));
}

/// A C program of `user/network`, in a directory of its own that the guest can have.
fn program(name: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../user/network/{name}.c"));
    let mut compiler = Command::new("gcc");
    compiler.args(["-static", "-O1", "-Wall", "-o"]).args([&directory.path().join(name), &source]);
    assert!(compiler.status().expect("gcc is installed").success());
    directory
}

#[test]
#[ignore = "starts a machine"]
fn the_kill_of_a_group_resets_its_connections_and_gives_back_what_they_held() {
    const COUNT: usize = 100;
    let directory = program("crowd");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // More than anybody on the way takes, so that all buffers are full, and closing is no end in order.
    let (tell, told) = std::sync::mpsc::channel();
    thread::spawn(move || {
        for _ in 0..COUNT {
            let (mut stream, _) = listener.accept().unwrap();
            let tell = tell.clone();
            thread::spawn(move || {
                let _ = stream.set_write_timeout(Some(Duration::from_secs(60)));
                let bytes = vec![7; 1 << 16];
                let error = (0..256).find_map(|_| stream.write_all(&bytes).err());
                let _ = tell.send(error.map(|error| error.kind()));
            });
        }
    });
    let script = format!(
        "mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null; cd /sys/fs/cgroup; echo +reclaim >cgroup.subtree_control
        mkdir job; empty=$(cat job/reclaim.current)
        sh -c 'echo $$ >job/cgroup.procs; exec /v/crowd 10.0.2.2 {port} {COUNT}' >/tmp/out &
        until grep -q ready /tmp/out; do sleep 1; done; sleep 2
        grep ^connection job/reclaim.stat | cut -d ' ' -f 2
        before=$(sed -n 's/MemFree: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo)
        echo 1 >job/cgroup.kill; while grep -q 'populated 1' job/cgroup.events; do :; done
        after=$(sed -n 's/MemFree: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo)
        [ $(cat job/reclaim.current) = $empty ] && echo charges are back
        [ $after -gt $((before + 8 * {COUNT})) ] && echo memory is back
        wc -l </proc/net/tcp"
    );
    let volume = format!("{}:/v", directory.path().display());
    let said = said(&["--volume", &volume], &script);
    assert_eq!(said, format!("{COUNT}\ncharges are back\nmemory is back\n1\n"));
    for _ in 0..COUNT {
        let error = told.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(matches!(error, Some(ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)), "{error:?}");
    }
}

#[test]
#[ignore = "starts a machine"]
fn what_came_before_an_end_in_order_is_read_after_it() {
    // More than a socket has room for.
    const COUNT: usize = 350_000;
    let directory = program("late");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            thread::spawn(move || {
                stream.write_all(&pattern(COUNT)).unwrap();
                stream.shutdown(std::net::Shutdown::Write).unwrap();
                let _ = stream.read(&mut [0]);
            });
        }
    });
    // It ends second, and reads when LAST-ACK is over; it ends first, and reads when TIME-WAIT is over.
    let script = format!(
        "/v/late 10.0.2.2 {port} 3 3 >/tmp/second & /v/late 10.0.2.2 {port} 0 70 >/tmp/first & wait
        cat /tmp/second /tmp/first; sleep 1; wc -l </proc/net/tcp"
    );
    let volume = format!("{}:/v", directory.path().display());
    let expected = format!("{COUNT} bytes, then the end\n{COUNT} bytes, then the end\n");
    assert_eq!(said(&["--volume", &volume], &script), format!("{expected}1\n"));
}

#[test]
#[ignore = "starts a machine"]
fn options_do_for_connections_with_other_machines_what_they_do_on_linux() {
    let directory = program("options");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    thread::spawn(move || {
        let mut streams = Vec::new();
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.write_all(b"x");
            streams.push(stream);
        }
    });
    let linux = Command::new(directory.path().join("options")).args(["127.0.0.1", &port]).output().unwrap();
    let volume = format!("{}:/v", directory.path().display());
    let ebb = said(&["--volume", &volume], &format!("/v/options 10.0.2.2 {port}"));
    assert_eq!(ebb, String::from_utf8(linux.stdout).unwrap());
    assert!(!ebb.contains(": no") && ebb.lines().count() > 30, "{ebb}");
}
