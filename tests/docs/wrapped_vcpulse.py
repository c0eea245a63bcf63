#!/usr/bin/python3
"""Runs vcpulse for commands_test.py, on a terminal where it draws on one, and notes in $DOCS_LOG how it ended.

usage: wrapped_vcpulse.py VCPULSE ARGUMENT...

Ctrl-C reaches vcpulse by itself; on a terminal of its own it gets SIGTERM instead, which the end of a session sends.
SIGTERM, which `kill` in a document sends, is passed on. This is no shell script, since bash's wait may lose the status of a
child when a signal comes.
"""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios


def run(command):
    child = subprocess.Popen(command)
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    return child.wait()


def run_in_terminal(command):
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm"
        os.execv(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    has_ended = False
    for caught in (signal.SIGINT, signal.SIGTERM):
        signal.signal(caught, lambda *_: has_ended or os.kill(child, signal.SIGTERM))
    while True:
        try:
            text = os.read(terminal, 4096)
        except OSError:
            text = b""
        if not text:
            break
        os.write(1, text)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    has_ended = True  # before its number is another's
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main():
    arguments = sys.argv[2:]
    draws = "top" in arguments or "--top" in arguments
    status = (run_in_terminal if draws else run)(sys.argv[1:])
    with open(os.environ["DOCS_LOG"], "a", encoding="utf-8") as log:
        log.write(f"{status} {' '.join(arguments)}\n")
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
