#include "tests/kvm/tiny_vmm.h"

#include <fcntl.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace vcpulse::kvm_tests {
namespace {

constexpr size_t kVcpus = 2;

// The child's whole life. Answers each command with its letter, and 'r' or 'x' first: ready or not.
[[noreturn]] void RunVmm(int commands, int answers) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int kvm = ::open("/dev/kvm", O_RDWR | O_CLOEXEC);
  const int vm = kvm < 0 ? -1 : ::ioctl(kvm, KVM_CREATE_VM, 0);
  bool ready = vm >= 0;
  for (size_t i = 0; i < kVcpus; ++i) ready = ready && ::ioctl(vm, KVM_CREATE_VCPU, i) >= 0;

  std::array<std::thread, kVcpus> threads;
  std::array<std::atomic<bool>, kVcpus> named{};
  std::array<std::atomic<bool>, kVcpus> ends{};
  const auto begin = [&](size_t vcpu) {
    named[vcpu] = false;
    ends[vcpu] = false;
    threads[vcpu] = std::thread([&named, &ends, vcpu] {
      ::prctl(PR_SET_NAME, ("vcpu" + std::to_string(vcpu)).c_str());
      named[vcpu] = true;
      named[vcpu].notify_all();
      while (!ends[vcpu]) ends[vcpu].wait(false);
    });
    named[vcpu].wait(false);
  };
  for (size_t i = 0; i < kVcpus && ready; ++i) begin(i);
  const char first = ready ? 'r' : 'x';
  if (::write(answers, &first, 1) != 1) ::_exit(1);
  char command[2];
  while (ready && ::read(commands, command, sizeof(command)) == sizeof(command)) {
    const auto vcpu = static_cast<size_t>(command[1]);
    if (command[0] == 'b') {
      begin(vcpu);
    } else {
      ends[vcpu] = true;
      ends[vcpu].notify_all();
      threads[vcpu].join();
    }
    if (::write(answers, command, 1) != 1) break;
  }
  ::_exit(0);
}

}  // namespace

TinyVmm::TinyVmm() {
  int to_child[2];
  int from_child[2];
  if (::pipe2(to_child, O_CLOEXEC) != 0 || ::pipe2(from_child, O_CLOEXEC) != 0) return;
  pid_ = ::fork();
  if (pid_ == 0) RunVmm(to_child[0], from_child[1]);
  ::close(to_child[0]);
  ::close(from_child[1]);
  commands_ = to_child[1];
  answers_ = from_child[0];
  char first = 0;
  if (::read(answers_, &first, 1) != 1 || first != 'r') {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
}

TinyVmm::~TinyVmm() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(commands_);
  ::close(answers_);
}

pid_t TinyVmm::Tid(int vcpu) const {
  const std::string task = "/proc/" + std::to_string(pid_) + "/task";
  for (const auto& entry : std::filesystem::directory_iterator(task)) {
    std::string name;
    std::getline(std::ifstream(entry.path() / "comm"), name);
    if (name == "vcpu" + std::to_string(vcpu)) return std::stoi(entry.path().filename());
  }
  return -1;
}

void TinyVmm::EndThread(int vcpu) { Command('e', vcpu); }

void TinyVmm::BeginThread(int vcpu) { Command('b', vcpu); }

void TinyVmm::Command(char what, int vcpu) const {
  const char command[2] = {what, static_cast<char>(vcpu)};
  char answer = 0;
  if (::write(commands_, command, sizeof(command)) == sizeof(command)) {
    while (::read(answers_, &answer, 1) < 0 && errno == EINTR) {
    }
  }
}

}  // namespace vcpulse::kvm_tests
