"""A command of a test that serves metrics."""

import signal
import subprocess
import urllib.parse
import urllib.request

from prometheus import PATIENCE_S


class Endpoint:
    """A command that serves metrics, and says so on standard error."""

    def __init__(self, arguments, **more):
        self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **more)
        said = ""
        while not said.startswith(("vcpulse: metrics at http://", "vcpulse: status at tcp:")):
            said = self.process.stderr.readline()
            if not said:
                raise RuntimeError(f"{arguments} ended without an endpoint: {self.process.wait()}")
        place = said.split()[-1].removeprefix("tcp:")
        self.url = place if place.startswith("http:") else f"http://{place}/metrics"
        self.place = urllib.parse.urlsplit(self.url).netloc

    def text(self):
        with urllib.request.urlopen(self.url, timeout=PATIENCE_S) as answer:
            return answer.read().decode()

    def end(self, how=signal.SIGINT):
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode
