"""A real Prometheus server for a test: its own configuration, data folder and port, on loopback."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

PATIENCE_S = 60  # never reached


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def promtool(text):
    """What `promtool check metrics` says of this text: its exit code and its words."""
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def scrape_config(job, target):
    static = {"targets": [target]} if isinstance(target, str) else None
    return {"job_name": job, "static_configs": [static] if static else [
        {"targets": [place], "labels": {"instance": instance}} for instance, place in target.items()]}


class Prometheus:
    """Scrapes these targets, {job: "HOST:PORT"} or {job: {instance: "HOST:PORT"}}, twice a second; evaluates the rules
    of these files once a second."""

    def __init__(self, targets, rules=()):
        self.folder = tempfile.mkdtemp(prefix="vcpulse-prometheus-")
        self.url = f"http://127.0.0.1:{free_port()}"
        config = {
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "1s"},
            "rule_files": list(rules),
            "scrape_configs": [scrape_config(job, target) for job, target in targets.items()],
        }
        path = os.path.join(self.folder, "prometheus.yml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)  # JSON is YAML
        with open(os.path.join(self.folder, "log"), "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={path}", f"--storage.tsdb.path={self.folder}/data",
                 f"--web.listen-address={urllib.parse.urlsplit(self.url).netloc}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=PATIENCE_S)
        shutil.rmtree(self.folder)

    def ask(self, path, **parameters):
        """The data of an answer of its HTTP API; None while it does not answer. Raises what it says of a bad query."""
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}",
                                        timeout=PATIENCE_S) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it is starting
                return None
            raise RuntimeError(f"{path} {parameters}: {error.read().decode()}") from None
        except (urllib.error.URLError, ConnectionError):
            if self.process.poll() is not None:
                with open(os.path.join(self.folder, "log"), encoding="utf-8") as log:
                    raise RuntimeError("Prometheus ended: " + log.read()) from None
            return None

    def wait_for(self, query):
        """The series of a query once there are any: [(labels, value), ...]."""
        give_up = time.monotonic() + PATIENCE_S
        while time.monotonic() < give_up:
            data = self.ask("query", query=query)
            if data and data["result"]:
                return [(series["metric"], float(series["value"][1])) for series in data["result"]]
            time.sleep(0.1)
        raise TimeoutError(f"no series of {query}; targets: {self.ask('targets')}")
