#pragma once

// Real QEMU guests for tests: small, quick to start, gone with the test.

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace vcpulse::kvm_tests {

// Why real guests with KVM cannot run here, in words; "" where they can.
std::string WhyNoKvm();

// What vCPU 0 does from its first instruction on, after one byte to the debug port; the others wait
// to be started by it, halted for ever. There is no BIOS.
enum class GuestProgram {
  kHalt,       // interrupts off, HLT for ever
  kBusy,       // a tight loop for ever
  kPause,      // the same, of PAUSE
  kRomWrites,  // writes to its ROM for ever: an exit to QEMU each
  // Halts until the PIT interrupts, for ever, 4,800 times a second: about as often as KVM's PIT
  // does.
  kTimer,
  // Ejects each vCPU that `device_del` asks it to give back (pc machine), for ever: x86 unplugs no
  // CPU without the guest's help.
  kEject,
};

struct GuestOptions {
  int vcpus = 1;
  int max_vcpus = 0;           // slots for hotplug in one socket; 0: none
  std::string name = {};       // "": no -name
  bool debug_threads = false;  // needs a name
  bool qmp_unix = false;
  bool qmp_tcp = false;
  bool tcg = false;
  GuestProgram program = GuestProgram::kHalt;
  std::string code = {};  // in place of `program`: at most 496 bytes, for real mode at f000:fe00
  std::vector<std::string> more = {};  // further arguments
};

// One running qemu-system-x86_64. Killed with its object, and by the kernel if the test dies
// without destroying it. Not thread-safe: the thread that starts it must outlive it.
class QemuGuest {
 public:
  // Starts QEMU and waits until it is up: its QMP sockets accept, its vCPU threads exist. Errors:
  // with what QEMU said.
  static absl::StatusOr<QemuGuest> Start(const GuestOptions& options);

  QemuGuest(QemuGuest&& other) noexcept;
  QemuGuest& operator=(QemuGuest&& other) noexcept;
  ~QemuGuest();

  pid_t pid() const { return pid_; }
  const std::string& qmp_unix() const { return qmp_unix_; }  // "unix:PATH", "" without
  const std::string& qmp_tcp() const { return qmp_tcp_; }    // "tcp:127.0.0.1:PORT", "" without

  // Whether the guest's program began within `timeout`.
  bool WaitForProgram(absl::Duration timeout) const;

  // What its program has written to the debug port.
  std::string DebugOutput() const;

  // How often the guest's program has begun: once, and once more for each reset.
  int Starts() const;

  // Ends it at once and reaps it.
  void Kill();

 private:
  QemuGuest() = default;

  absl::Status Prepare(const GuestOptions& options, std::vector<std::string>& arguments);
  absl::Status Launch(const std::vector<std::string>& arguments);
  absl::Status WaitUntilUp(const GuestOptions& options);
  std::string Output() const;

  pid_t pid_ = -1;
  std::filesystem::path directory_;
  std::string qmp_unix_;
  std::string qmp_tcp_;
};

// QMP commands that change a guest, for tests. (vcpulse itself only asks.)

// Runs one command, given as a JSON object, at `unix:PATH`: connects, runs it, closes. The answer's
// line; a failed expectation where QEMU answers with an error or not at all.
std::string Qmp(const std::string& address, const std::string& command);

// Thread ids of query-cpus-fast by cpu-index, as QEMU tells them.
std::vector<pid_t> QmpTids(const std::string& address);

}  // namespace vcpulse::kvm_tests
