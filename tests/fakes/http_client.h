#pragma once

// An HTTP client that does as it is told, for tests of servers on 127.0.0.1.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "kvm/base/fd.h"

namespace vcpulse::fakes {

// A connection to the server; invalid where there is none.
inline Fd ConnectTo(uint16_t port) {
  Fd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return {};
  }
  return client;
}

inline bool Send(const Fd& client, const std::string& bytes) {
  return send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

// All that comes until the server closes the connection, in order or not.
inline std::string ReceiveAll(const Fd& client) {
  std::string all;
  char bytes[4096];
  while (true) {
    const ssize_t count = recv(client.get(), bytes, sizeof bytes, 0);
    if (count <= 0) return all;
    all.append(bytes, static_cast<size_t>(count));
  }
}

// What the server says to these bytes, until it closes.
inline std::string Exchange(uint16_t port, const std::string& bytes) {
  const Fd client = ConnectTo(port);
  if (!Send(client, bytes)) return "";
  return ReceiveAll(client);
}

// The whole answer to a GET.
inline std::string HttpGet(uint16_t port, const std::string& target) {
  return Exchange(port, "GET " + target + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
                            "\r\nConnection: close\r\n\r\n");
}

}  // namespace vcpulse::fakes
