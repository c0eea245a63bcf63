"""A peer of the collector that shares no code with vcpulse, written from docs/streaming.md and
docs/timeline.md; and the collector as a program of its own.

The messages come from the published schema through protoc. Everything else (heads of frames, chunk
headers, CRC-32C) is made here, so that a test can also make it wrong.
"""

import atexit
import importlib
import multiprocessing
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
PATIENCE_S = 30

HELLO, WELCOME, CHUNK, ACK, GAP, PING, ERROR, STREAM_INFO = range(1, 9)
FRAME_MAGIC = b"\x89VPS"
CHUNK_MAGIC = b"\x89VPT\r\n\x1a\n"


def schema():
    """The modules that protoc makes of proto/: (stream, timeline)."""
    folder = tempfile.mkdtemp(prefix="vcpulse-schema-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    subprocess.run(["protoc", f"--proto_path={ROOT}/proto", f"--python_out={folder}",
                    "vcpulse/v1/timeline.proto", "vcpulse/v1/stream.proto"], check=True)
    sys.path.insert(0, folder)
    return (importlib.import_module("vcpulse.v1.stream_pb2"),
            importlib.import_module("vcpulse.v1.timeline_pb2"))


stream_pb2, timeline_pb2 = schema()
CODES = stream_pb2.Error.Code


def crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


CRC_TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def frame(kind, payload=b"", flags=0, length=None, crc=None):
    """`length`: what the head claims, where that is not the payload's; `crc`: where it is known."""
    head = struct.pack("<4sBBHII", FRAME_MAGIC, kind, flags, 0,
                       len(payload) if length is None else length,
                       crc32c(payload) if crc is None else crc)
    return head + struct.pack("<I", crc32c(head)) + payload


def chunk(stream_id, first, last, content, mono_ns=0, crc=None):
    """One chunk of a .vpt file: stored as it is, not compressed. `crc`: the content's, where known."""
    head = struct.pack("<8sHHIII16sQQqqI", CHUNK_MAGIC, 1, 80, 0, len(content), len(content),
                       stream_id, first, last, mono_ns, mono_ns,
                       crc32c(content) if crc is None else crc)
    return head + struct.pack("<I", crc32c(head)) + content


class SameContent:
    """Chunks and their frames with one content, whose CRC is computed once: this CRC is slow."""

    def __init__(self, content):
        self.content = content
        self.crc = crc32c(content)
        # What each bit of a CRC becomes behind as many zero bytes: CRCs are linear.
        self.shifted = []
        for bit in range(32):
            crc = 1 << bit
            for _ in content:
                crc = CRC_TABLE[crc & 0xFF] ^ (crc >> 8)
            self.shifted.append(crc)

    def chunk_frame(self, stream_id, first, last):
        data = chunk(stream_id, first, last, self.content, crc=self.crc)
        crc = crc32c(data[:80])
        whole = self.crc
        for bit in range(32):
            if crc >> bit & 1:
                whole ^= self.shifted[bit]
        return frame(CHUNK, data, crc=whole)


def chunks_of(data):
    """[(first record, last record, bytes)] of what stands in a .vpt file."""
    found = []
    at = 0
    while at < len(data):
        size, = struct.unpack_from("<H", data, at + 10)
        payload, = struct.unpack_from("<I", data, at + 16)
        first, last = struct.unpack_from("<QQ", data, at + 40)
        end = at + size + payload
        if data[at:at + 8] != CHUNK_MAGIC or end > len(data):
            raise ValueError(f"no whole chunk at byte {at}")
        found.append((first, last, data[at:end]))
        at = end
    return found


def as_user(uid, function):
    """What `function` returns, run by another user in a process of its own. Needs root."""
    ours, theirs = multiprocessing.Pipe()

    def run():
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        theirs.send(function())

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    if not ours.poll(PATIENCE_S):
        process.kill()
        raise TimeoutError("the other user's process says nothing")
    result = ours.recv()
    process.join()
    return result


class Refused(Exception):
    """The collector sent an Error: its code and reason."""

    def __init__(self, error):
        super().__init__(f"{CODES.Name(error.code)}: {error.reason}")
        self.code = error.code
        self.reason = error.reason


class Closed(Exception):
    """The connection ended without an Error."""


class Peer:
    """One connection. `address` as in `--listen`, with the port that was taken."""

    def __init__(self, address, tls=None, timeout_s=PATIENCE_S):
        kind, rest = address.split(":", 1)
        if kind == "unix":
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(timeout_s)
            self.socket.connect(rest)
        else:
            host, port = rest.rsplit(":", 1)
            self.socket = socket.create_connection((host.strip("[]"), int(port)), timeout_s)
            if kind == "tls":
                self.socket = tls.wrap_socket(self.socket, server_hostname=host.strip("[]"))
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def send_hello(self, agent_id="agent", stream_id=bytes(16), first=1, next_sequence=1,
                   boot_id="boot", host_name="host", **more):
        hello = stream_pb2.Hello(major=1, minor=0, min_major=1, agent_id=agent_id, host_name=host_name,
                                 boot_id=boot_id, tool_version="hostile", stream_id=stream_id,
                                 first_sequence=first, next_sequence=next_sequence, **more)
        hello.clock.mono_ns = time.monotonic_ns()
        hello.clock.realtime_ns = time.time_ns()
        self.send(frame(HELLO, hello.SerializeToString()))

    def hello(self, *arguments, **named):
        """Says hello; the Welcome."""
        self.send_hello(*arguments, **named)
        welcome = stream_pb2.Welcome()
        welcome.ParseFromString(self.expect(WELCOME))
        return welcome

    def follow(self, agent_id="", own_id="follower"):
        return self.hello(own_id, role=stream_pb2.Hello.ROLE_FOLLOWER, follow_agent_id=agent_id)

    def read(self, count):
        while len(self.buffer) < count:
            try:
                more = self.socket.recv(1 << 16)
            except (ConnectionError, ssl.SSLEOFError) as error:
                raise Closed(str(error)) from error
            if not more:
                raise Closed(f"end after {len(self.buffer)} bytes of {count}")
            self.buffer += more
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def receive(self):
        """(type, payload) of the next frame."""
        head = self.read(20)
        magic, kind, _, _, length, crc, head_crc = struct.unpack("<4sBBHIII", head)
        if magic != FRAME_MAGIC or crc32c(head[:16]) != head_crc:
            raise ValueError(f"no head of a frame: {head.hex()}")
        payload = self.read(length)
        if crc32c(payload) != crc:
            raise ValueError("a frame's payload is damaged")
        return kind, payload

    def expect(self, wanted):
        """The payload of the next frame of that type; answers pings meanwhile."""
        while True:
            kind, payload = self.receive()
            if kind == ERROR:
                error = stream_pb2.Error()
                error.ParseFromString(payload)
                raise Refused(error)
            if kind == PING:
                ping = stream_pb2.Ping()
                ping.ParseFromString(payload)
                if not ping.is_answer:
                    ping.is_answer = True
                    self.send(frame(PING, ping.SerializeToString()))
            if kind == wanted:
                return payload

    def acknowledged(self, sequence):
        """Waits until records up to `sequence` are acknowledged; up to which they are."""
        while True:
            ack = stream_pb2.Ack()
            ack.ParseFromString(self.expect(ACK))
            if ack.durable_sequence >= sequence:
                return ack.durable_sequence

    def refused(self):
        """Waits for the collector's Error."""
        try:
            self.expect(0)
        except Refused as refusal:
            return refusal


class Collector:
    """`vcpulse collect` into `directory`, listening on `listen`; more arguments as they are."""

    def __init__(self, vcpulse, listen, directory, *more, **popen):
        self.directory = directory
        self.lines = []
        self.process = subprocess.Popen(
            [vcpulse, "collect", "--listen", listen, "--dir", directory, *more],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **popen)
        self.reader = threading.Thread(target=self.read_lines, daemon=True)
        self.reader.start()
        self.address = self.said("listening on ")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end(signal.SIGKILL)

    def read_lines(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))

    def said(self, words, patience_s=PATIENCE_S):
        """What stands behind `words` in the first line that has them; waits for it."""
        end = time.monotonic() + patience_s
        while True:
            is_over = self.process.poll() is not None
            for line in list(self.lines):
                if words in line:
                    return line.split(words, 1)[1]
            if is_over or time.monotonic() > end:
                raise RuntimeError(f"never said {words!r}: {self.lines}")
            time.sleep(0.01)

    def rss_kib(self):
        return self.status_number("VmRSS")

    def peak_rss_kib(self):
        return self.status_number("VmHWM")

    def status_number(self, name):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(name + ":"))

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def end(self, how=signal.SIGTERM, patience_s=PATIENCE_S):
        """Its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.wait(timeout=patience_s)
        self.reader.join()
        return self.process.returncode

    def stored(self, agent_folder, stream_id):
        """All bytes that it keeps of a stream, file by file."""
        data = b""
        agent = os.path.join(self.directory, agent_folder)
        for name in sorted(os.listdir(agent)):
            if not name.endswith(stream_id.hex()):
                continue
            folder = os.path.join(agent, name)
            for file in sorted(os.listdir(folder)):
                if file.endswith(".vpt"):
                    with open(os.path.join(folder, file), "rb") as opened:
                        data += opened.read()
        return data
