#!/usr/bin/python3
"""Runs every vcpulse command of the fenced blocks of README.md and docs/*.md as it stands there.

usage: commands_test.py VCPULSE DRAW_TIMELINE ROOT with-guests|without-guests [unittest arguments]

Blocks that record or list have real QEMU guests and run with-guests; the others need no /dev/kvm. Each block has a
folder with recorded files of the names that the documents use, and stand-ins for the programs that a reader is to
bring. It runs in namespaces of its own (mounts, network, processes, host name), so that ports, names and /srv are
those of the documents. A command that goes on until Ctrl-C gets it.
"""

import fcntl
import glob
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

VCPULSE, DRAW_TIMELINE, ROOT = (os.path.abspath(path) for path in sys.argv[1:4])
WRAPPED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wrapped_vcpulse.py")
UNSHARE = ["unshare", "--mount", "--net", "--pid", "--uts", "--fork", "--mount-proc", "--kill-child"]
INSIDE = "VCPULSE_DOCS_INSIDE"
TRACEPOINT = "/sys/kernel/tracing/events/kvm/kvm_exit"
HAS_TRACEPOINT = False
PATIENCE_S = 40  # for one command
WITH_GUESTS = sys.argv[4:5] == ["with-guests"]
LEAST_COMMANDS = 30  # an extraction that finds fewer has lost some

# Commands that go on until Ctrl-C, and what shows that they do their work: a file that appears, "output", or for a server
# that the rest of its block needs, "stays".
UNTIL_CTRL_C = {
    "vcpulse record": "vcpulse.vpt",
    "vcpulse record --vm web -i 10ms -d 30s -o web.vpt": "web.vpt",
    "vcpulse record --qmp tcp:localhost:3636 --wait 30s": "vcpulse.vpt",
    "vcpulse record --all": "vcpulse.vpt",
    "vcpulse record --vm web --wait 60s --rewait 60s": "vcpulse.vpt",
    "vcpulse record -o - --format delimited | my-reader": "my-reader.got",
    "vcpulse record -e '{cycles,instructions},L1-dcache-load-misses,r01a8,kvm:kvm_exit'": "vcpulse.vpt",
    "vcpulse record -e cycles,instructions,branches,branch-misses,cache-references,cache-misses --multiplex":
        "vcpulse.vpt",
    "vcpulse record --profile mine.json": "vcpulse.vpt",
    "vcpulse report web.vpt --serve tcp:127.0.0.1:0": "output",
    "vcpulse replay web.vpt": "output",
    "vcpulse replay web.vpt --format jsonl | ./my-consumer": "my-consumer.got",
    "vcpulse replay web.vpt --metrics tcp:127.0.0.1:9464": "output",
    "vcpulse record --all --metrics tcp:127.0.0.1:9464 --metrics-level vm": "vcpulse.vpt",
    "vcpulse collect --listen tls:collector:4711 --dir /srv/vcpulse --cert c.pem --key c.key --ca ca.pem "
    "--status tcp:127.0.0.1:9465": "stays",
    "vcpulse collect --listen unix:/srv/vcpulse/collect.sock --dir /srv/vcpulse --rollup 10s,1m "
    "--keep raw=2d,10s=30d,1m=400d": "output",
    "vcpulse collect --listen unix:/srv/vcpulse/collect.sock --dir /srv/vcpulse --parquet /srv/ticks "
    "--keep raw=2d,parquet=90d": "output",
    "vcpulse record --all --to tls:collector:4711 --cert h.pem --key h.key --ca ca.pem": "/srv/vcpulse/host1/*/*.vpt",
    "vcpulse tail /srv/vcpulse": "output",
    "vcpulse top": "output",
    "vcpulse top web": "output",
    "vcpulse top web.vpt": "output",
    "vcpulse top /srv/vcpulse": "output",
    "vcpulse record --top -o web.vpt": "web.vpt",
    "./my-test.sh --print-phases | vcpulse record --vm web --wait 30s --phase-from-stdin -o web.vpt": "web.vpt",
}

HELPS = {"import": ["import", "csv"]}  # whose options those of the command are

FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
# At the beginning of a command; "vcpulse: ..." is what it printed.
COMMAND = re.compile(r"(?:^|[|;&(]|\brun:)\s*vcpulse ([a-z]+)(?=\s|$)", re.M)
# What a verdict may be: whether a guest spins is not the documents' business.
VERDICTS = {"check": {0, 1, 3, 4}, "compare": {0, 1, 3, 4}}

STAND_INS = {
    "bin/vcpulse": 'exec /usr/bin/python3 "{wrapped}" "{vcpulse}" "$@"\n',
    "bin/qemu-system-x86_64": 'for a; do shift; [ "$a" = ... ] || set -- "$@" "$a"; done\nexec {qemu} "$@" {guest}\n',
    "bin/vng": "exec {qemu} -accel kvm -qmp tcp:localhost:3636,server=on,wait=off {guest} & sleep 8; kill $!\n",
    "bin/my-reader": "trap '' INT\ncat >my-reader.got\n",
    "my-consumer": "trap '' INT\ncat >my-consumer.got\n",
    "run-my-guest.sh": "timeout --signal=KILL 2 {qemu} -accel kvm {guest}; true\n",
    "run-guest.sh": "timeout --signal=KILL 2 {qemu} -accel kvm {guest}; true\n",
    "my-test.sh": 'if [ "$1" = --print-phases ]; then echo boot; sleep 1; echo body; exec sleep 20; fi\n'
                  "{qemu} -accel kvm {guest} & sleep 1\nvcpulse mark body\nsleep 1\nkill -KILL $!\n",
    "scheduler-test.sh": "true\n",
    "wait-until-booted": "sleep 1\n",
    "run-the-load": "sleep 2\n",
}
QEMU = shutil.which("qemu-system-x86_64") or "qemu-system-x86_64"
GUEST = "-m 16 -smp 2 -nodefaults -no-user-config -display none"


class Block:
    """A fenced block: its text, where it begins, and the commands in it."""

    def __init__(self, place, language, text):
        self.place, self.text = place, text
        self.steps = self.scripts_of(language, text)

    @staticmethod
    def scripts_of(language, text):
        """What is run by itself: each command, or a script as a whole where it has jobs in the background."""
        if language == "yaml":
            runs = re.findall(r"^( *)(?:- )?run: (?:\|\n((?:\1 +.*\n|\n)+)|(.*)\n)", text, re.M)
            steps = [long or short for _, long, short in runs]
        elif re.search(r"[^&]&\s*(#.*)?$", text, re.M):
            steps = [text]
        else:
            steps = re.sub(r"([\\|])(\n)", "\\1\0", text).splitlines()
            steps = [step.replace("\0", "\n") for step in steps]
        return [step for step in steps if COMMAND.search(without_comments(step))]

    def has_guests(self):
        return any(needs_guest(step) or brings_its_guest(step) for step in self.steps)


def without_comments(text):
    return re.sub(r"(^|\s+)#\s.*$", "", text, flags=re.M)


def as_one_line(step):
    return " ".join(without_comments(step).split())


def blocks_of(name, text):
    for found in FENCED.finditer(text):
        block = Block(f"{name}:{text.count(chr(10), 0, found.start()) + 1}", found[1], found[2])
        if block.steps:
            yield block


def documents():
    for path in ["README.md", *sorted(glob.glob("docs/*.md", root_dir=ROOT))]:
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            yield path, file.read()


def write(path, text, mode=0o644):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


def run(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, **more)


class World:
    """Mounts, names and files as the documents have them."""

    def __init__(self, folder):
        self.folder, self.template = folder, os.path.join(folder, "template")
        self.blocks = 0
        self.set_up_network()
        run("mount", "-t", "tmpfs", "none", "/srv")
        self.put_files()

    def set_up_network(self):
        socket.sethostname("host1")
        hosts = os.path.join(self.folder, "hosts")
        write(hosts, "127.0.0.1 localhost\n127.0.0.2 host1\n127.0.0.3 collector\n")
        run("mount", "--bind", hosts, "/etc/hosts")
        SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            flags = fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack("16sh14x", b"lo", 0))
            flags = struct.unpack("16sh14x", flags)[1] | IFF_UP
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags))

    def put_files(self):
        here = self.template
        os.makedirs(os.path.join(here, "bin"))
        for name, text in STAND_INS.items():
            for key, value in {"wrapped": WRAPPED, "vcpulse": VCPULSE, "qemu": QEMU, "guest": GUEST}.items():
                text = text.replace("{" + key + "}", value)
            write(os.path.join(here, name), "#!/bin/bash\n" + text, 0o755)
        write(os.path.join(here, "bzImage"), "")
        self.put_timelines(here)
        self.put_certificates(here)
        write(os.path.join(here, "counters.csv"),
              "vcpu,t_ns,dt_ns,cycles,instructions\n" +
              "".join(f"0,{t}00000000,100000000,250000000,200000000\n" for t in range(1, 40)))
        shutil.copy(os.path.join(ROOT, "tests/data/perf-json/threads.json"), os.path.join(here, "perf.json"))
        shutil.copytree(os.path.join(ROOT, "monitor/export"), os.path.join(here, "monitor/export"))
        for _, text in documents():
            for _, block in FENCED.findall(text):
                if block.startswith("# expectations.txt\n"):
                    write(os.path.join(here, "expectations.txt"), block)

    @staticmethod
    def put_timelines(here):
        def vcpulse(*arguments):
            return run(VCPULSE, *arguments, cwd=here).stdout

        run(DRAW_TIMELINE, "web.vpt", "web", cwd=here)
        for copy in ("vcpulse", "before", "vng", "guest", "all"):
            shutil.copy(os.path.join(here, "web.vpt"), os.path.join(here, copy + ".vpt"))
        for other in ("after", "a1", "a2", "a3", "b1", "b2", "b3"):
            vcpulse("classify", "web.vpt", "-o", other + ".vpt")
        write(os.path.join(here, "rows.jsonl"), vcpulse("export", "web.vpt", "--format", "jsonl"))
        with open(os.path.join(here, "web.vpt"), "rb") as file:
            whole = file.read()
        middle = whole.index(b"\x89VPT\r\n\x1a\n", 1)
        collected = "/srv/vcpulse/host1/20261122T072146Z-" + "01" * 16
        os.makedirs(collected)
        for name, part in (("part1.vpt", whole[:middle]), ("part2.vpt", whole[middle:]),
                           (collected + "/00000000000000000001.vpt", whole)):
            with open(os.path.join(here, name), "wb") as file:
                file.write(part)
        os.makedirs(os.path.join(here, "tests/data"))
        shutil.copy(os.path.join(ROOT, "tests/data/timeline-v1.vpt"), os.path.join(here, "tests/data"))

    @staticmethod
    def put_certificates(here):
        new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        run("openssl", "req", "-x509", *new_key, "-subj", "/CN=our lab", "-keyout", "ca.key", "-out", "ca.pem", cwd=here)
        for file, name in (("c", "collector"), ("h", "host1")):
            run("openssl", "req", *new_key, "-subj", f"/CN={name}", "-keyout", f"{file}.key", "-out", f"{file}.csr",
                cwd=here)
            write(os.path.join(here, "names"), f"subjectAltName=DNS:{name}")
            run("openssl", "x509", "-req", "-in", f"{file}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-extfile", "names", "-out", f"{file}.pem", cwd=here)

    def new_folder(self):
        self.blocks += 1
        folder = os.path.join(self.folder, f"block{self.blocks}")
        shutil.copytree(self.template, folder)
        return folder


class Guest:
    """The VM "web", with a QMP socket at virtme-ng's port."""

    def __init__(self):
        self.process = subprocess.Popen(
            [QEMU, "-accel", "kvm", "-name", "web,debug-threads=on", "-qmp", "tcp:localhost:3636,server=on,wait=off",
             *GUEST.split()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE_S
        while len(self.vcpu_threads()) < 2:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the guest did not start")
            time.sleep(0.05)

    def vcpu_threads(self):
        names = []
        for path in glob.glob(f"/proc/{self.process.pid}/task/*/comm"):
            with open(path, encoding="utf-8") as file:
                names.append(file.read())
        return [name for name in names if name.startswith("CPU ")]

    def end(self):
        self.process.kill()
        self.process.wait()


def needs_guest(step):
    if re.search(r"\bvcpulse top( \w+)?$", without_comments(step).strip()):
        return True
    return bool({"record", "list"} & set(COMMAND.findall(without_comments(step))))


def brings_its_guest(step):
    return re.search(r"\b(qemu-system-x86_64|vng)\b| -- \./", without_comments(step)) is not None


class Step:
    """A command as it stands in a document, in a shell of its own."""

    def __init__(self, folder, text):
        self.folder, self.text = folder, text
        self.log = os.path.join(folder, "log")
        self.printed = os.path.join(folder, "printed")
        write(self.log, "")
        write(os.path.join(folder, "summary.md"), "")
        self.begun_ns = time.time_ns()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("VCPULSE")}
        environment |= {"PATH": os.path.join(folder, "bin") + ":" + os.environ["PATH"], "DOCS_LOG": self.log,
                        "GITHUB_STEP_SUMMARY": os.path.join(folder, "summary.md"),
                        "STATE_DIRECTORY": os.path.join(folder, "state")}
        with open(self.printed, "w", encoding="utf-8") as printed:
            self.process = subprocess.Popen(["bash", "-c", text], cwd=folder, stdin=subprocess.DEVNULL, stdout=printed,
                                            stderr=printed, env=environment, start_new_session=True)

    def is_at_work(self, sign):
        path = self.printed if sign in ("output", "stays") else os.path.join(self.folder, sign)
        found = [os.stat(each) for each in glob.glob(path)]
        return any(each.st_size > 0 and each.st_mtime_ns >= self.begun_ns for each in found)

    def wait(self, sign):
        """Until it has ended, or is at work. Whether it did either in time."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None or (sign and self.is_at_work(sign)):
                return True
            time.sleep(0.05)
        return False

    def interrupt(self):
        """Ctrl-C."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
        try:
            self.process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            pass

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def calls(self):
        """(command, exit status) of each vcpulse that has ended."""
        with open(self.log, encoding="utf-8") as log:
            lines = [line.split() for line in log]
        return [(line[1], int(line[0])) for line in lines if len(line) > 1]

    def output(self):
        with open(self.printed, encoding="utf-8", errors="replace") as printed:
            return printed.read()[-2000:]


class ExtractionTest(unittest.TestCase):
    def commands(self, text):
        return [COMMAND.findall(without_comments(step)) for block in blocks_of("X", text) for step in block.steps]

    def test_commands_of_fenced_blocks(self):
        self.assertEqual(self.commands("```\nvcpulse list   # vcpulse help\n\nfoo | vcpulse record -o - | bar\n```\n"),
                         [["list"], ["record"]])
        self.assertEqual(self.commands("```\nvcpulse check a \\\n    --expect b\nvcpulse report |\n  less\n```\n"),
                         [["check"], ["report"]])
        self.assertEqual(self.commands("```sh\nvcpulse record &  # begins\nvcpulse stop || true\n```\n"),
                         [["record", "stop"]])
        self.assertEqual(self.commands("```yaml\n- run: vcpulse list\n- name: x\n  run: |\n    a\n    vcpulse top\n```\n"),
                         [["list"], ["top"]])

    def test_prose_and_output_are_not(self):
        self.assertEqual(self.commands("vcpulse list\n```\nvcpulse: streaming\n# vcpulse list\n`vcpulse doctor` says\n```\n"),
                         [])


class DocumentsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="vcpulse-docs-")
        cls.world = World(cls.folder.name)
        cls.blocks = [block for name, text in documents() for block in blocks_of(name, text)]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_what_the_tables_name_stands_in_the_documents(self):
        steps = {as_one_line(step) for block in self.blocks for step in block.steps}
        self.assertEqual(set(UNTIL_CTRL_C) - steps, set())

    def test_no_command_stands_in_a_block_that_is_not_fenced(self):
        for name, text in documents():
            self.assertEqual(re.findall(r"^(?: {4,}|\t)vcpulse .*", FENCED.sub("", text), re.M), [], name)

    def test_commands_in_sentences_have_the_options_that_they_name(self):
        helps = {}
        for name, text in documents():
            for command, rest in re.findall(r"`vcpulse ([a-z]+)([^`]*)`", FENCED.sub("", text)):
                with self.subTest(name, command=command + rest):
                    if command not in helps:
                        helps[command] = run(VCPULSE, *HELPS.get(command, [command]), "--help").stdout
                    for option in re.findall(r"\s(--?[a-z][a-z-]*)", rest.split(" -- ")[0]):
                        self.assertRegex(helps[command], rf"(?m)^  (-\S, )?{option}\b")
        self.assertGreater(len(helps), 10)

    def test_each_command_does_what_the_documents_say(self):
        commands = 0
        for block in self.blocks:
            if block.has_guests() != WITH_GUESTS:
                continue
            folder = self.world.new_folder()
            servers = []
            for step in block.steps:
                names = COMMAND.findall(without_comments(step))
                commands += len(names)
                with self.subTest(block.place, step=step):
                    if "kvm:kvm_exit" in step and not HAS_TRACEPOINT:
                        print(f"not run, as this kernel has no tracepoint kvm:kvm_exit: {step}", file=sys.stderr)
                        continue
                    server = self.run_step(folder, step, names)
                    servers += [server] if server else []
            for server in servers:
                with self.subTest(block.place, step=server.text):
                    self.addCleanup(server.kill)
                    server.interrupt()
                    self.expect_done(server, COMMAND.findall(server.text))
        print(f"{commands} commands run", file=sys.stderr)
        self.assertGreaterEqual(commands, LEAST_COMMANDS)

    def run_step(self, folder, text, names):
        """The step where it stays, else nothing."""
        guest = Guest() if needs_guest(text) and not brings_its_guest(text) else None
        sign = UNTIL_CTRL_C.get(as_one_line(text))
        step = Step(folder, text)
        try:
            self.assertTrue(step.wait(sign), "it goes on, or does nothing, and UNTIL_CTRL_C does not name it:\n" +
                            step.output())
            if sign == "stays" and step.process.poll() is None:
                return step
            if sign:
                self.assertIsNone(step.process.poll(), "it ended before Ctrl-C:\n" + step.output())
                step.interrupt()
            self.expect_done(step, names)
        finally:
            if guest:
                guest.end()
            if sign != "stays":
                step.kill()
        return None

    def expect_done(self, step, names):
        # One in the background notes its end a moment later.
        deadline = time.monotonic() + PATIENCE_S
        while len(step.calls()) < len(names) and time.monotonic() < deadline:
            time.sleep(0.05)
        calls = step.calls()
        ran = [name for name, _ in calls]
        for name in set(names):
            self.assertGreaterEqual(ran.count(name), names.count(name), f"{name} did not end:\n{step.output()}")
        for name, status in calls:
            self.assertIn(status, VERDICTS.get(name, {0}), f"vcpulse {name}:\n{step.output()}")


def what_is_missing():
    if WITH_GUESTS:
        try:
            os.close(os.open("/dev/kvm", os.O_RDWR))
        except OSError as error:
            return f"/dev/kvm cannot be opened: {error.strerror}"
    tried = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True, check=False)
    return tried.stderr.strip() if tried.returncode != 0 else ""


def main():
    global HAS_TRACEPOINT
    if INSIDE not in os.environ:
        missing = what_is_missing()
        if missing:
            print(f"skipped: the commands of the documents: {missing}")
            sys.exit(77)
        os.execvpe(UNSHARE[0], [*UNSHARE, sys.executable, *sys.argv], {**os.environ, INSIDE: "1"})
    if not os.path.exists(TRACEPOINT):  # not mounted, as on a machine that nobody has traced so far
        subprocess.run(["mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing"], capture_output=True, check=False)
    HAS_TRACEPOINT = os.path.exists(TRACEPOINT)
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[5:]])


if __name__ == "__main__":
    main()
