"""NATS servers of a test's own, on loopback, each with its store in the test's folder."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

PATIENCE_S = 60


def free_ports(number):
    sockets = [socket.socket() for _ in range(number)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def wait_for(what, condition, patience_s=PATIENCE_S):
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {patience_s} s: {what}")


class Server:
    """One nats-server. `more`: lines of its configuration."""

    def __init__(self, folder, name, port, http, more=""):
        self.name, self.port, self.http = name, port, http
        self.folder = os.path.join(folder, name)
        self.store = os.path.join(self.folder, "store")
        os.makedirs(self.store, exist_ok=True)
        self.configuration = os.path.join(self.folder, "server.conf")
        with open(self.configuration, "w", encoding="utf-8") as file:
            file.write(f'server_name: "{name}"\nlisten: "127.0.0.1:{port}"\nhttp: "127.0.0.1:{http}"\n'
                       f'jetstream {{ store_dir: "{self.store}" }}\n{more}\n')
        self.process = None

    @property
    def url(self):
        return f"nats://127.0.0.1:{self.port}"

    def start(self):
        with open(os.path.join(self.folder, "server.log"), "ab") as log:
            self.process = subprocess.Popen(["nats-server", "-c", self.configuration], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)

    def ask(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http}{path}", timeout=2) as answer:
                return json.load(answer)
        except (OSError, ValueError):
            return None

    def is_up(self):
        return self.ask("/healthz") is not None

    def kill(self, how=signal.SIGKILL):
        if self.process is None:
            return
        self.process.send_signal(signal.SIGCONT)
        self.process.send_signal(how)
        self.process.wait(PATIENCE_S)
        self.process = None

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)


class Servers:
    """One server, or a cluster of three."""

    def __init__(self, folder, number=1, more=""):
        ports = free_ports(3 * number)
        routes = ", ".join(f'"nats-route://127.0.0.1:{port}"' for port in ports[2 * number:])
        self.servers = []
        for i in range(number):
            cluster = "" if number == 1 else (
                f'cluster {{ name: "test", listen: "127.0.0.1:{ports[2 * number + i]}", routes: [{routes}] }}\n')
            self.servers.append(Server(folder, f"n{i}", ports[i], ports[number + i], cluster + more))

    @property
    def urls(self):
        return [server.url for server in self.servers]

    def start(self):
        for server in self.servers:
            if server.process is None:
                server.start()
        for server in self.servers:
            wait_for(f"{server.name} to be up", server.is_up)
        if len(self.servers) > 1:
            wait_for("a leader of the cluster", self.has_leader)

    def has_leader(self):
        for server in self.servers:
            info = server.ask("/jsz") if server.process else None
            if info and (info.get("meta_cluster") or {}).get("leader"):
                return True
        return False

    def stream(self):
        """What the servers say of the stream VCPULSE: {server's name: its details}."""
        found = {}
        for server in self.servers:
            info = (server.ask("/jsz?streams=true&consumers=true") if server.process else None) or {}
            for account in info.get("account_details") or []:
                for stream in account.get("stream_detail") or []:
                    if stream["name"] == "VCPULSE":
                        found[server.name] = stream
        return found

    def consumer(self, name="vcpulse"):
        """What the consumer's own leader says of it; None: nobody knows."""
        for server, stream in self.stream().items():
            for one in stream.get("consumer_detail") or []:
                leader = (one.get("cluster") or {}).get("leader", server)
                if one["name"] == name and leader in (server, ""):
                    return one
        return None

    def not_acknowledged(self, consumer="vcpulse"):
        """Messages that no collector has acknowledged; None: it is not known."""
        one = self.consumer(consumer)
        return one and one["num_pending"] + one["num_ack_pending"]

    def leader(self):
        for stream in self.stream().values():
            name = (stream.get("cluster") or {}).get("leader")
            for server in self.servers:
                if server.name == name and server.process:
                    return server
        return None

    def stop(self):
        for server in self.servers:
            server.kill(signal.SIGKILL)

    def copy_stores(self, to):
        """The stores as they are at one instant."""
        for server in self.servers:
            server.pause()
        for server in self.servers:
            shutil.copytree(server.store, os.path.join(to, server.name))
        for server in self.servers:
            server.resume()

    def put_back_stores(self, copies):
        """After stop(): as after a power cut that has cost all that was written since copy_stores."""
        for server in self.servers:
            shutil.rmtree(server.store)
            shutil.copytree(os.path.join(copies, server.name), server.store)
