#include "tests/kvm/qmp_commands.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "kvm/base/fd.h"
#include "kvm/discovery/qmp_client.h"

namespace vcpulse::kvm_tests {
namespace {

// One line of the peer; "" where it closed or kept silent for 20 s.
std::string ReadLine(int fd) {
  std::string line;
  char byte = 0;
  while (::read(fd, &byte, 1) == 1) {
    if (byte == '\n') return line;
    line += byte;
  }
  return "";
}

// The answer to what was sent, past the events before it.
std::string ReadAnswer(int fd) {
  while (true) {
    std::string line = ReadLine(fd);
    if (line.empty() || line.starts_with("{\"return\"") || line.starts_with("{\"error\"")) {
      return line;
    }
  }
}

}  // namespace

std::string Qmp(const std::string& address, const std::string& command) {
  const Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval timeout{.tv_sec = 20, .tv_usec = 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  std::strncpy(where.sun_path, address.substr(address.find(':') + 1).c_str(),
               sizeof(where.sun_path) - 1);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&where), sizeof(where)), 0) << address;
  ReadLine(fd.get());  // the greeting
  std::string answer;
  for (const std::string& line : {std::string(R"({"execute":"qmp_capabilities"})"), command}) {
    const std::string text = line + "\n";
    EXPECT_EQ(::write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    answer = ReadAnswer(fd.get());
    EXPECT_TRUE(answer.starts_with("{\"return\"")) << line << ": " << answer;
  }
  return answer;
}

std::vector<pid_t> QmpTids(const std::string& address) {
  const auto reply = kvm::QueryQmp(address, absl::Seconds(20));
  EXPECT_TRUE(reply.ok()) << reply.status();
  std::vector<pid_t> tids;
  if (reply.ok()) {
    for (const kvm::QmpCpu& cpu : reply->answers.cpus) tids.push_back(cpu.tid);
  }
  return tids;
}

}  // namespace vcpulse::kvm_tests
