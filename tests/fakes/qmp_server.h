#pragma once

// A QMP server of few words on a unix socket or tcp port: says what it was told to say, one client
// at a time, on a thread of its own.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "kvm/base/fd.h"

namespace vcpulse::fakes {

class QmpServer {
 public:
  // What it says; the defaults are QEMU 7.2's with two vCPUs.
  struct Script {
    std::string greeting =
        R"({"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}, "package": ""}, )"
        R"("capabilities": ["oob"]}})"
        "\n";
    // By a word of the command. A command without an answer gets none.
    std::map<std::string, std::string> answers = {
        {"qmp_capabilities", "{\"return\": {}}\n"},
        {"query-cpus-fast",
         R"({"return": [{"thread-id": 101, "props": {"core-id": 0, "thread-id": 0}, "cpu-index": 0},)"
         R"( {"thread-id": 102, "props": {"core-id": 1, "thread-id": 0}, "cpu-index": 1}]})"
         "\n"},
        {"query-kvm", "{\"return\": {\"enabled\": true, \"present\": true}}\n"},
        {"query-name", "{\"return\": {\"name\": \"fake\"}}\n"},
        {"query-uuid", "{\"return\": {\"UUID\": \"00000000-0000-0000-0000-000000000000\"}}\n"},
    };
    // Likewise, one after the other; the last one stays.
    std::map<std::string, std::vector<std::string>> in_turn;
    bool close_after_greeting = false;
  };

  // Listens on `path`.
  QmpServer(const std::filesystem::path& path, Script script) : script_(std::move(script)) {
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    std::strncpy(where.sun_path, path.c_str(), sizeof(where.sun_path) - 1);
    listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    Listen(reinterpret_cast<const sockaddr*>(&where), sizeof(where));
    address_ = "unix:" + path.string();
  }

  // Listens on a free port of 127.0.0.1.
  explicit QmpServer(Script script) : script_(std::move(script)) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    Listen(reinterpret_cast<const sockaddr*>(&where), sizeof(where));
    socklen_t size = sizeof(where);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&where), &size);
    address_ = "tcp:127.0.0.1:" + std::to_string(ntohs(where.sin_port));
  }

  QmpServer(const QmpServer&) = delete;
  QmpServer& operator=(const QmpServer&) = delete;
  ~QmpServer() {
    stop_ = true;
    thread_.join();
  }

  const std::string& address() const { return address_; }
  int clients() const { return clients_; }

 private:
  void Listen(const sockaddr* where, socklen_t size) {
    if (::bind(listener_.get(), where, size) != 0 || ::listen(listener_.get(), 4) != 0) {
      std::abort();  // the test's own set-up
    }
    thread_ = std::thread([this] { Serve(); });
  }

  // Waits for something to read, in steps that notice the end.
  bool WaitFor(int fd) {
    while (!stop_) {
      pollfd wanted{fd, POLLIN, 0};
      if (::poll(&wanted, 1, 10) > 0) return true;
    }
    return false;
  }

  void Serve() {
    while (WaitFor(listener_.get())) {
      const Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client.valid()) continue;
      ++clients_;
      Send(client, script_.greeting);
      if (!script_.close_after_greeting) Talk(client);
    }
  }

  void Talk(const Fd& client) {
    while (WaitFor(client.get())) {
      char buffer[4096];
      const ssize_t size = ::read(client.get(), buffer, sizeof(buffer));
      if (size <= 0) return;
      const std::string_view command(buffer, static_cast<size_t>(size));
      for (const auto& [word, answer] : script_.answers) {
        if (command.find(word) != std::string_view::npos) Send(client, answer);
      }
      for (auto& [word, answers] : script_.in_turn) {
        if (command.find(word) == std::string_view::npos) continue;
        Send(client, answers.front());
        if (answers.size() > 1) answers.erase(answers.begin());
      }
    }
  }

  static void Send(const Fd& client, std::string_view text) {
    while (!text.empty()) {
      const ssize_t size = ::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (size <= 0) return;
      text.remove_prefix(static_cast<size_t>(size));
    }
  }

  Script script_;
  std::string address_;
  Fd listener_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> clients_ = 0;
  std::thread thread_;
};

}  // namespace vcpulse::fakes
