// The QMP client's state machine: any bytes, in any pieces, give the same end.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "kvm/discovery/qmp_protocol.h"

namespace {

using vcpulse::kvm::QmpCodePlaces;
using vcpulse::kvm::QmpProtocol;
using vcpulse::kvm::QmpQuestions;

void Check(bool condition) {
  if (!condition) std::abort();
}

void CheckAnswers(const QmpProtocol& protocol) {
  std::set<int> indexes;
  std::set<pid_t> tids;
  for (const auto& cpu : protocol.answers().cpus) {
    Check(cpu.index >= 0 && cpu.tid > 0);
    Check(indexes.insert(cpu.index).second && tids.insert(cpu.tid).second);
  }
  if (protocol.done()) Check(protocol.greeted() && !indexes.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // The first byte says how the peer cuts what it sends, and what was asked.
  const size_t piece = size_t{data[0]} + 1;
  const auto questions = static_cast<QmpQuestions>(data[0] % 4);
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);

  const QmpCodePlaces places{.vcpu = 1, .bytes = 64, .addresses = {0, 0x1000, ~uint64_t{0}}};
  QmpProtocol whole(questions, places);
  const absl::Status status = whole.Receive(text);
  const std::string output = whole.TakeOutput();
  Check(whole.TakeOutput().empty());
  CheckAnswers(whole);
  if (!status.ok()) {
    Check(status.message().find('\n') == absl::string_view::npos);
    Check(whole.Receive("{}\n") == status);
  }

  QmpProtocol pieces(questions, places);
  std::string pieces_output;
  absl::Status pieces_status;
  for (size_t i = 0; i < text.size() && pieces_status.ok(); i += piece) {
    pieces_status = pieces.Receive(text.substr(i, piece));
    pieces_output += pieces.TakeOutput();
  }
  // The message may show less of what came: its kind and the questions asked are the same.
  Check(pieces_status.code() == status.code());
  Check(pieces_output == output);
  Check(pieces.answers() == whole.answers());
  return 0;
}
