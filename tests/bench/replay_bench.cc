// How late the records of a replay at speed 1 are: 64 vCPUs, a tick each 10 ms, written as
// delimited records to /dev/null, each when it is due. Prints p50, p99 and the worst of (written -
// due).
//   replay_bench [SECONDS]
// On an idle core; what else runs there is part of the result.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <variant>
#include <vector>

#include "kvm/base/clock.h"
#include "kvm/base/signals.h"
#include "monitor/replay/pace.h"
#include "monitor/replay/record_copy.h"
#include "monitor/timeline/reader.h"
#include "monitor/timeline/writer.h"
#include "tests/fakes/synthetic_vm.h"

namespace vcpulse {
namespace {

constexpr size_t kVcpus = 64;
constexpr size_t kTicksPerSecond = 100;

std::vector<uint8_t> MakeChunks(size_t seconds) {
  std::vector<uint8_t> made;
  const auto writer = timeline::NewChunkWriter({}, [&](std::span<const uint8_t> chunk) {
    made.insert(made.end(), chunk.begin(), chunk.end());
    return absl::OkStatus();
  });
  fakes::SyntheticVm vm(std::vector(kVcpus, fakes::Load::kShared), 10'000'000, 1);
  v1::TimelineRecord record;
  record.mutable_session()->set_max_hz(3e9);
  writer->Add(record, 1);
  *record.mutable_vcpu_set() = vm.VcpuSet(1, 1);
  writer->Add(record, 1);
  const std::vector<core::Verdict> verdicts = vm.Verdicts();
  for (size_t tick = 1; tick <= seconds * kTicksPerSecond; ++tick) {
    writer->AddTick(1, 1, vm.Next(), verdicts);
    if (tick % kTicksPerSecond == 0 && !writer->Flush({}).ok()) std::abort();
  }
  return made;
}

int Run(size_t seconds) {
  const std::vector<uint8_t> chunks = MakeChunks(seconds);
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  const auto writer = timeline::NewDelimitedWriter([null](std::span<const uint8_t> bytes) {
    return write(null, bytes.data(), bytes.size()) < 0 ? absl::UnavailableError("write")
                                                       : absl::OkStatus();
  });
  replay::RecordCopy copy(*writer);
  replay::Pace pace({.speed = 1});
  std::vector<int64_t> late_ns;
  StopWaitsOnSignals();
  const auto read = timeline::ReadTimelineBytes(chunks, [&](const timeline::Entry& entry) {
    const auto due_ns = pace.DueNs(entry, MonotonicNow_ns());
    absl::Status status;
    if (due_ns) status = WaitUntil(*due_ns);
    if (!status.ok()) return status;
    copy.Take(entry);
    status = writer->Flush({});
    if (due_ns) late_ns.push_back(MonotonicNow_ns() - *due_ns);
    return status;
  });
  if (late_ns.empty() || (!read.ok() && !absl::IsCancelled(read.status()))) return 1;
  std::sort(late_ns.begin(), late_ns.end());
  const auto at = [&](double share) {
    return static_cast<double>(
               late_ns[static_cast<size_t>(share * static_cast<double>(late_ns.size() - 1))]) /
           1e3;
  };
  std::printf("%zu records: late p50 %.1f us, p99 %.1f us, worst %.1f us\n", late_ns.size(),
              at(0.5), at(0.99), at(1));
  return 0;
}

}  // namespace
}  // namespace vcpulse

int main(int argc, char** argv) {
  return vcpulse::Run(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 20);
}
