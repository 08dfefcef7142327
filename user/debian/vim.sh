# vim in a pseudo-terminal: keys are typed, the file is written, the window changes its size
set -e
seq 20 >file
cat >drive.py <<'P'
import os, pty, select, signal, struct, fcntl, termios, sys
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execvp("vim", ["vim", "-u", "NONE", "-i", "NONE", "-n", "file"])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
screen = b""
def until(text):
    global screen
    while text not in screen:
        try:
            read = os.read(fd, 4096)
        except OSError:
            read = b""
        if not read:
            sys.exit(f"vim ended; it showed {screen!r}")
        screen += read
def type(keys, text):
    global screen
    screen = b""
    os.write(fd, keys)
    until(text)
until(b"20")
type(b"Ohello from vim\x1b", b"vim")
type(b":%s/1/one/g\r", b"substitutions")
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
type(b":echo 'size' &lines &columns\r", b"size 40 120")
# What is waited for is not in what is typed, which is echoed: keys that come while the command runs are not for vim.
type(b":r !echo $((60 * 70))\r", b"4200")
type(b":w\r", b"written")
os.write(fd, b":q\r")
print("vim ended with", os.waitpid(pid, 0)[1])
P
python3 drive.py
cat file
