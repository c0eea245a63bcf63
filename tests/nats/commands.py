"""vcpulse's commands as programs, and timelines to send."""

import os
import signal
import struct
import subprocess
import sys
import threading

from nats_servers import PATIENCE_S, wait_for

VCPULSE = sys.argv[1]
MAKE_TIMELINE = sys.argv[2]


def run(*arguments, timeout=PATIENCE_S):
    return subprocess.run([VCPULSE, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=timeout)


class Command:
    """One that goes on until it is ended."""

    def __init__(self, *arguments, through=()):
        self.process = subprocess.Popen([*through, VCPULSE, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.said = []
        self.printed = []
        self.readers = [threading.Thread(target=self.read, args=(self.process.stderr, self.said)),
                        threading.Thread(target=self.read, args=(self.process.stdout, self.printed))]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def read(stream, lines):
        with stream:
            for line in stream:
                lines.append(line.rstrip("\n"))

    def wait_for_line(self, part, patience_s=PATIENCE_S):
        return wait_for(f"'{part}' of {self.process.args}, which said {self.said}",
                        lambda: any(part in line for line in self.said + self.printed), patience_s)

    def pause(self):
        """Until resume() no thread of it does anything."""
        self.process.send_signal(signal.SIGSTOP)
        wait_for("all threads to be stopped", lambda: set(self.states()) == {"T"})

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def states(self):
        folder = f"/proc/{self.process.pid}/task"
        for thread in os.listdir(folder):
            with open(f"{folder}/{thread}/stat", encoding="utf-8") as file:
                yield file.read().rsplit(")", 1)[1].split()[0]

    def end(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(how)
        code = self.process.wait(PATIENCE_S)
        for reader in self.readers:
            reader.join()
        return code


def make_timeline(path, seconds, vcpus=4):
    """A drawn timeline at 10 Hz, a chunk per second."""
    subprocess.run([MAKE_TIMELINE, path, "--ticks", str(10 * seconds), "--interval-ms", "100", "--vcpus", str(vcpus)],
                   check=True, timeout=PATIENCE_S, stdout=subprocess.DEVNULL)
    return path


def stream_folders(directory):
    """{agent: [folders of streams]} of a collector."""
    found = {}
    for agent in sorted(os.listdir(directory)):
        folder = os.path.join(directory, agent)
        if not agent.startswith(".") and os.path.isdir(folder):
            found[agent] = [os.path.join(folder, stream) for stream in sorted(os.listdir(folder))]
    return found


CHUNK_MAGIC = b"\x89VPT\r\n\x1a\n"


def chunks_of(path):
    """[(first record, last record)] of a file's chunks, or of all files of a folder, in the order in which they lie there."""
    if os.path.isdir(path):
        return [chunk for name in sorted(os.listdir(path)) for chunk in chunks_of(os.path.join(path, name))]
    with open(path, "rb") as file:
        data = file.read()
    found, at = [], 0
    while at + 80 <= len(data):  # what is just being written counts once its header is there
        assert data[at:at + 8] == CHUNK_MAGIC, f"{path}: no chunk at {at}"
        header, payload = struct.unpack_from("<H4xI", data, at + 10)
        found.append(struct.unpack_from("<QQ", data, at + 40))
        at += header + payload
    return found


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def field(number, value):
    """Of a protobuf message: an integer, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


CRC_TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    CRC_TABLE.append(byte)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def markers_chunk(first, records, size):
    """A chunk of so many bytes, not compressed, of markers with texts that do not compress well."""
    def made(pad):
        left, out = pad, b""
        for sequence in range(first, first + records):
            text = os.urandom(left // (2 * (first + records - sequence))).hex().encode()
            text += b"m" * (left // (first + records - sequence) - len(text))
            left -= len(text)
            out += field(5, field(1, sequence) + field(5, field(1, sequence * 1000) + field(2, text)))
        return out
    pad = size
    for _ in range(5):
        payload = made(pad)
        pad += size - 80 - len(payload)
        if 80 + len(payload) == size:
            break
    assert 80 + len(payload) == size, (len(payload), size)
    head = CHUNK_MAGIC + struct.pack("<HHIII16sQQqqI", 1, 80, 0, len(payload), len(payload), b"\x09" * 16, first,
                                     first + records - 1, first * 1000, (first + records - 1) * 1000, crc32c(payload))
    return head + struct.pack("<I", crc32c(head)) + payload


def merged(folders, to):
    """All that the folders hold of one recording, as one file, byte for byte; what merge said."""
    result = run("merge", *folders, "-o", to)
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    with open(to, "rb") as file:
        return file.read(), result.stderr
