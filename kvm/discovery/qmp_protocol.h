#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace vcpulse::kvm {

// One vCPU as QEMU tells it.
struct QmpCpu {
  int index = 0;
  pid_t tid = 0;  // in QEMU's own PID namespace

  bool operator==(const QmpCpu&) const = default;
};

// What QEMU said. Absent where it does not know the question.
struct QmpAnswers {
  std::vector<QmpCpu> cpus;  // ascending by index
  std::optional<bool> kvm_enabled;
  std::optional<std::string> name;
  std::optional<std::string> uuid;

  bool operator==(const QmpAnswers&) const = default;
};

// The client side of one QMP exchange (QEMU's docs/interop/qmp-spec.rst) as a value machine: bytes
// in, bytes out, no I/O. The greeting is awaited, then the questions are asked one after another;
// events in between are ignored.
class QmpProtocol {
 public:
  // A longer line is refused: no answer to our questions comes near it.
  static constexpr size_t kLongestLine = size_t{1} << 20;

  // Takes what the peer sent. Errors, after which nothing more is taken: DataLoss (this is not
  // QMP, with the beginning of what came instead), FailedPrecondition (a QEMU before 2.12).
  absl::Status Receive(std::string_view bytes);

  // What is to be sent now, once; "" while waiting.
  std::string TakeOutput();

  bool greeted() const { return step_ != Step::kGreeting; }
  bool done() const { return step_ == Step::kDone; }
  const QmpAnswers& answers() const { return answers_; }

 private:
  // In the order of the exchange.
  enum class Step { kGreeting, kCapabilities, kCpus, kKvm, kName, kUuid, kDone };

  absl::Status ReceiveLine(std::string_view line);
  void Ask(Step step);

  Step step_ = Step::kGreeting;
  std::string line_;  // what came of the line that is not complete yet
  std::string output_;
  absl::Status failed_;
  QmpAnswers answers_;
};

}  // namespace vcpulse::kvm
