#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace vcpulse::kvm {

// One vCPU as QEMU tells it.
struct QmpCpu {
  int index = 0;
  pid_t tid = 0;  // in QEMU's own PID namespace

  bool operator==(const QmpCpu&) const = default;
};

// What KVM counted of one vCPU, as QEMU hands it on.
struct QmpVcpuStatistics {
  int index = 0;                                         // the VMM's cpu-index
  std::vector<std::pair<std::string, uint64_t>> values;  // KVM's names, single numbers alone

  bool operator==(const QmpVcpuStatistics&) const = default;
};

// Which questions are asked.
enum class QmpQuestions {
  kIdentity,    // vCPUs, KVM, name and UUID
  kStatistics,  // vCPUs, and what KVM counted of each (QEMU 7.1 or newer)
  kRegisters,   // vCPUs, and the registers of each: it stops them for that long
  kCode,        // vCPUs, and bytes of the guest's memory as one vCPU sees it: it stops that one
};

// Where kCode reads: so many bytes from each address on, guest virtual.
struct QmpCodePlaces {
  int vcpu = 0;  // cpu-index
  size_t bytes = 0;
  std::vector<uint64_t> addresses;
};

// What QEMU said. Absent where it does not know the question.
struct QmpAnswers {
  std::vector<QmpCpu> cpus;  // ascending by index
  std::optional<bool> kvm_enabled;
  std::optional<std::string> name;
  std::optional<std::string> uuid;
  std::vector<QmpVcpuStatistics> statistics;  // ascending by index; of kStatistics
  // What the human monitor prints: of kRegisters `info registers` per vCPU of `cpus`, of kCode a
  // dump of bytes per address.
  std::vector<std::string> monitor_texts;

  bool operator==(const QmpAnswers&) const = default;
};

// The client side of one QMP exchange (QEMU's docs/interop/qmp-spec.rst) as a value machine: bytes
// in, bytes out, no I/O. The greeting is awaited, then the questions are asked one after another;
// events in between are ignored.
class QmpProtocol {
 public:
  // A longer line is refused: no answer to our questions comes near it.
  static constexpr size_t kLongestLine = size_t{1} << 20;

  explicit QmpProtocol(QmpQuestions questions = QmpQuestions::kIdentity, QmpCodePlaces code = {})
      : questions_(questions), code_(std::move(code)) {}

  // Takes what the peer sent. Errors, after which nothing more is taken: DataLoss (this is not
  // QMP, with the beginning of what came instead), FailedPrecondition (a QEMU before 2.12, of
  // kStatistics before 7.1).
  absl::Status Receive(std::string_view bytes);

  // What is to be sent now, once; "" while waiting.
  std::string TakeOutput();

  bool greeted() const { return step_ != Step::kGreeting; }
  bool done() const { return step_ == Step::kDone; }
  const QmpAnswers& answers() const { return answers_; }

 private:
  // In the order of the exchange.
  enum class Step {
    kGreeting,
    kCapabilities,
    kCpus,
    kKvm,
    kName,
    kUuid,
    kStatistics,
    kMonitor,
    kDone
  };

  absl::Status ReceiveLine(std::string_view line);
  void Ask(Step step);
  // What follows the vCPUs.
  Step AfterCpus() const;
  size_t MonitorQuestions() const;
  std::string MonitorArguments() const;  // of the next one

  QmpQuestions questions_;
  QmpCodePlaces code_;
  Step step_ = Step::kGreeting;
  std::map<std::string, int> cpu_of_path_;  // cpu-index by place in QEMU's object tree
  std::string line_;                        // what came of the line that is not complete yet
  std::string output_;
  absl::Status failed_;
  QmpAnswers answers_;
};

}  // namespace vcpulse::kvm
