#include "tests/kvm/qemu_guest.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kvm/base/fd.h"
#include "kvm/discovery/qmp_client.h"
#include "tests/fakes/temporary_folder.h"

namespace vcpulse::kvm_tests {
namespace {

constexpr char kQemu[] = "qemu-system-x86_64";
constexpr absl::Duration kStartTimeout = absl::Seconds(20);

// For each of 8 CPU slots in turn: select it, and where the host asks for its removal, eject it
// (QEMU's docs/specs/acpi_cpu_hotplug: registers at 0xaf00 of the pc machine).
std::string_view EjectLoop() {
  using namespace std::string_view_literals;
  // Leaves the legacy mode of the registers:  mov dx, 0xaf00; xor al, al; out dx, al
  return "\xba\x00\xaf\x30\xc0\xee"
         // a, about a millisecond:  mov ecx, 0x100000; b: dec ecx; jnz b
         "\x66\xb9\x00\x00\x10\x00\x66\x49\x75\xfc"
         // xor ecx, ecx
         "\x66\x31\xc9"
         // c, selects the slot:  mov dx, 0xaf00; mov eax, ecx; out dx, eax
         "\xba\x00\xaf\x66\x89\xc8\x66\xef"
         // mov dx, 0xaf04; in al, dx; test al, 4; jz d
         "\xba\x04\xaf\xec\xa8\x04\x74\x06"
         // Takes the request, then ejects:  mov al, 4; out dx, al; mov al, 8; out dx, al
         "\xb0\x04\xee\xb0\x08\xee"
         // d:  inc ecx; cmp ecx, 8; jb c; jmp a
         "\x66\x41\x66\x83\xf9\x08\x72\xe2\xeb\xd3"sv;
}

// Its code begins at f000:fe05.
std::string_view TimerLoop() {
  using namespace std::string_view_literals;
  // Without its local APIC, which lets no interrupt of the controller through:
  //   mov ecx, 0x1b; rdmsr; and ah, 0xf7; wrmsr
  return "\x66\xb9\x1b\x00\x00\x00\x0f\x32\x80\xe4\xf7\x0f\x30"
         // The first interrupt controller, vectors from 8 on, IRQ 0 alone:
         //   mov al, 0x11; out 0x20, al; mov al, 8; out 0x21, al; mov al, 4; out 0x21, al;
         //   mov al, 1; out 0x21, al; mov al, 0xfe; out 0x21, al
         "\xb0\x11\xe6\x20\xb0\x08\xe6\x21\xb0\x04\xe6\x21\xb0\x01\xe6\x21\xb0\xfe\xe6\x21"
         // The PIT, each 248 of its 1,193,182 steps a second:
         //   mov al, 0x34; out 0x43, al; mov al, 248; out 0x40, al; mov al, 0; out 0x40, al
         "\xb0\x34\xe6\x43\xb0\xf8\xe6\x40\xb0\x00\xe6\x40"
         // Vector 8:  xor ax, ax; mov ds, ax; mov word [0x20], 0xfe49; mov [0x22], cs
         "\x31\xc0\x8e\xd8\xc7\x06\x20\x00\x49\xfe\x8c\x0e\x22\x00"
         // mov ss, ax; mov sp, 0x1000; sti; a: hlt; jmp a
         "\x8e\xd0\xbc\x00\x10\xfb\xf4\xeb\xfd"
         // The interrupt, at f000:fe49:  mov al, 0x20; out 0x20, al; iret
         "\xb0\x20\xe6\x20\xcf"sv;
}

std::string ProgramCode(GuestProgram program) {
  using namespace std::string_view_literals;
  std::string code(
      "\xfa"              // cli
      "\xb0\x2b\xe6\xe9"  // mov al, '+'; out 0xe9, al
      ""sv);
  if (program == GuestProgram::kHalt) code += "\xf4\xeb\xfd"sv;       // hlt; jmp to the hlt
  if (program == GuestProgram::kBusy) code += "\x40\xeb\xfd"sv;       // inc ax; jmp to the inc
  if (program == GuestProgram::kPause) code += "\xf3\x90\xeb\xfc"sv;  // pause; jmp to the pause
  // mov ax, 0xf000; mov ds, ax; a: mov [0], al; jmp a
  if (program == GuestProgram::kRomWrites) code += "\xb8\x00\xf0\x8e\xd8\xa2\x00\x00\xeb\xfb"sv;
  if (program == GuestProgram::kTimer) code += TimerLoop();
  if (program == GuestProgram::kEject) code += EjectLoop();
  return code;
}

// Firmware of our own: the CPU starts 16 bytes below its end, in real mode. A BIOS takes seconds
// before it boots anything.
std::string Firmware(std::string_view code) {
  using namespace std::string_view_literals;
  constexpr size_t kProgram = 0x200;  // bytes from the end
  std::string image(size_t{64} << 10, '\xf4');
  image.replace(image.size() - kProgram, code.size(), code);
  image.replace(image.size() - 16, 3, "\xe9\x0d\xfe"sv);  // jmp there: 0x200 - 16 + 3 back
  return image;
}

std::string Smp(const GuestOptions& options) {
  if (options.max_vcpus == 0) return absl::StrCat(options.vcpus);
  return absl::StrCat(options.vcpus, ",maxcpus=", options.max_vcpus,
                      ",sockets=1,cores=", options.max_vcpus, ",threads=1");
}

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool WaitFor(absl::Duration timeout, const std::function<bool()>& condition) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return true;
}

// A tcp port of 127.0.0.1 that was free a moment ago.
std::optional<int> FreePort() {
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(where);
  auto* address = reinterpret_cast<sockaddr*>(&where);
  if (::bind(fd.get(), address, size) != 0 || ::getsockname(fd.get(), address, &size) != 0) {
    return std::nullopt;
  }
  return ntohs(where.sin_port);
}

// Threads that run vCPUs cannot be told by name in all cases: KVM's descriptors tell that they are
// there. A guest without KVM is up with its sockets.
int CountVcpuDescriptors(pid_t pid) {
  int count = 0;
  std::error_code error;
  const auto folder = absl::StrCat("/proc/", pid, "/fd");
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const auto link = std::filesystem::read_symlink(entry.path(), error);
    count += link.string().starts_with("anon_inode:kvm-vcpu") ? 1 : 0;
  }
  return count;
}

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

std::string WhyNoKvm() {
  const Fd fd(::open("/dev/kvm", O_RDWR | O_CLOEXEC));
  if (!fd.valid()) return absl::StrCat("/dev/kvm cannot be opened: ", std::strerror(errno));
  return "";
}

QemuGuest::QemuGuest(QemuGuest&& other) noexcept { *this = std::move(other); }

QemuGuest& QemuGuest::operator=(QemuGuest&& other) noexcept {
  if (this == &other) return *this;
  std::swap(pid_, other.pid_);
  std::swap(directory_, other.directory_);
  std::swap(qmp_unix_, other.qmp_unix_);
  std::swap(qmp_tcp_, other.qmp_tcp_);
  return *this;
}

QemuGuest::~QemuGuest() {
  Kill();
  std::error_code ignored;
  if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
}

void QemuGuest::Kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

absl::StatusOr<QemuGuest> QemuGuest::Start(const GuestOptions& options) {
  QemuGuest guest;
  std::vector<std::string> arguments;
  absl::Status status = guest.Prepare(options, arguments);
  if (status.ok()) status = guest.Launch(arguments);
  if (status.ok()) status = guest.WaitUntilUp(options);
  if (!status.ok()) return status;
  return guest;
}

absl::Status QemuGuest::Prepare(const GuestOptions& options, std::vector<std::string>& arguments) {
  directory_ = fakes::MakeTemporaryFolder();
  if (directory_.empty()) return absl::ErrnoToStatus(errno, "mkdtemp");
  constexpr size_t kRoom = 496;  // bytes
  if (options.code.size() > kRoom) return absl::InvalidArgumentError("too much code");
  const std::string firmware = (directory_ / "firmware").string();
  std::ofstream(firmware, std::ios::binary)
      << Firmware(options.code.empty() ? ProgramCode(options.program) : options.code);

  arguments = {kQemu,
               "-accel",
               options.tcg ? "tcg" : "kvm",
               "-m",
               "16",
               "-smp",
               Smp(options),
               "-nodefaults",
               "-no-user-config",
               "-display",
               "none",
               "-debugcon",
               absl::StrCat("file:", (directory_ / "debug").string()),
               "-bios",
               firmware};
  if (!options.name.empty()) {
    arguments.emplace_back("-name");
    arguments.push_back(
        absl::StrCat("guest=", options.name, options.debug_threads ? ",debug-threads=on" : ""));
  }
  if (options.qmp_unix) {
    qmp_unix_ = absl::StrCat("unix:", (directory_ / "qmp").string());
    arguments.insert(arguments.end(), {"-qmp", qmp_unix_ + ",server=on,wait=off"});
  }
  if (options.qmp_tcp) {
    const auto port = FreePort();
    if (!port) return absl::InternalError("no free tcp port");
    qmp_tcp_ = absl::StrCat("tcp:127.0.0.1:", *port);
    arguments.insert(arguments.end(), {"-qmp", qmp_tcp_ + ",server=on,wait=off"});
  }
  arguments.insert(arguments.end(), options.more.begin(), options.more.end());
  return absl::OkStatus();
}

absl::Status QemuGuest::Launch(const std::vector<std::string>& arguments) {
  const std::string output = (directory_ / "output").string();
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return absl::ErrnoToStatus(errno, "fork");
  if (child > 0) {
    pid_ = child;
    return absl::OkStatus();
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(126);
  const int fd = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::dup2(fd, 1);
  ::dup2(fd, 2);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

absl::Status QemuGuest::WaitUntilUp(const GuestOptions& options) {
  int exit_status = 0;
  bool ended = false;
  const bool up = WaitFor(kStartTimeout, [&] {
    ended = ::waitpid(pid_, &exit_status, WNOHANG) == pid_;
    if (ended) return true;
    if (!options.tcg && CountVcpuDescriptors(pid_) < options.vcpus) return false;
    // QEMU creates its image's debug file and its sockets before its vCPUs.
    const bool socket = !options.qmp_unix || std::filesystem::exists(directory_ / "qmp");
    return socket && std::filesystem::exists(directory_ / "debug");
  });
  if (ended) {
    pid_ = -1;  // reaped
    return absl::InternalError(absl::StrCat(kQemu, " ended at once (status ", exit_status,
                                            "; 127: not installed): ", Output()));
  }
  if (!up) return absl::DeadlineExceededError(absl::StrCat(kQemu, " does not come up: ", Output()));
  return absl::OkStatus();
}

std::string QemuGuest::Output() const { return ReadAll(directory_ / "output"); }

std::string QemuGuest::DebugOutput() const { return ReadAll(directory_ / "debug"); }

int QemuGuest::Starts() const { return static_cast<int>(std::ranges::count(DebugOutput(), '+')); }

bool QemuGuest::WaitForProgram(absl::Duration timeout) const {
  return WaitFor(timeout, [this] { return Starts() > 0; });
}

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
