// Who had a CPU while a vCPU waited: what the scheduler did in any order, and records of damaged
// timelines. The first byte says which.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "kvm/base/bytes.h"
#include "kvm/competitors/scheduler_events.h"
#include "kvm/competitors/wait_ledger.h"
#include "monitor/reading/recorded_competitors.h"
#include "tests/fuzz/checks.h"

namespace {

using namespace vcpulse;
using fuzz::Check;

// Eight bytes an event: how long after the one before, what, the CPU, and the threads. No more is
// booked than time has passed.
void CheckLedger(std::span<const uint8_t> bytes) {
  constexpr pid_t kThread = 3;
  kvm::WaitLedger ledger(kThread);
  uint64_t now_ns = 0;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    now_ns += *ReadAt<uint16_t>(bytes, 0);
    const int cpu = bytes[3] % 4;
    const pid_t first = bytes[4] % 6;
    const pid_t second = bytes[5] % 6;
    switch (bytes[2] % 8) {
      case 0:
        ledger.Switched(now_ns, cpu, first, second);
        break;
      case 1:
        ledger.Woken(now_ns, cpu);
        break;
      case 2:
        ledger.Runs(now_ns, cpu, first);
        break;
      case 3:
        ledger.Runnable(now_ns, cpu);
        break;
      case 4:
        ledger.Missed(now_ns, cpu);
        break;
      case 5:
        ledger.GotCpu(now_ns, cpu);
        break;
      case 6:
        ledger.LostCpu(now_ns, cpu, bytes[6] % 2 != 0);
        break;
      default:
        ledger.End(now_ns);
    }
    uint64_t booked_ns = ledger.unattributed_ns();
    for (const auto& [tid, ns] : ledger.waited_ns()) booked_ns += ns;
    Check(booked_ns <= now_ns);
  }
}

// The formats are those of a kernel; the bytes are a record of one of them, or of none.
void CheckDecoding(std::span<const uint8_t> bytes) {
  static const auto records = [] {
    const auto field = [](const char* name, size_t offset, size_t size) {
      return kvm::TracepointFormat::Field{.name = name, .offset = offset, .size = size};
    };
    return kvm::SchedulerRecords::From(
        {.id = 372,
         .fields = {field("common_type", 0, 2), field("prev_comm", 8, 16), field("prev_pid", 24, 4),
                    field("next_comm", 40, 16), field("next_pid", 56, 4)}},
        {.id = 374, .fields = {field("pid", 24, 4), field("target_cpu", 32, 4)}});
  }();
  static_cast<void>(records->Decode(
      {.record = bytes}, 0, 7, [](pid_t, std::string_view name) { Check(name.size() <= 16); }));
}

// Added twice: shares are those of a whole.
void CheckRecorded(std::span<const uint8_t> bytes) {
  v1::Competitors window;
  if (!window.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  v1::VcpuSet set;
  set.set_vm(1);
  set.mutable_instance()->set_name("web");
  set.add_vcpus()->set_tid(7);
  reading::RecordedCompetitors recorded;
  recorded.Add({.sequence = 1, .record = set});
  recorded.Add({.sequence = 2, .record = window});
  recorded.Add({.sequence = 3, .record = window});
  const auto totals = recorded.Of(window.vm(), window.vcpu_index());
  const bool is_known = window.vm() == 1 && window.vcpu_index() == 0;
  Check(totals.has_value() == (is_known && window.refused().empty()));
  if (!totals) return;
  uint64_t sum_ns = totals->unattributed_ns + totals->further_ns;
  for (const reading::CompetitorTotal& one : totals->competitors) sum_ns += one.ns;
  Check(sum_ns == totals->waited_ns);
  const std::string shares = reading::SharesOf(*totals);
  if (!shares.empty()) fuzz::CheckMessage(shares);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span bytes(data + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      CheckLedger(bytes);
      break;
    case 1:
      CheckRecorded(bytes);
      break;
    default:
      CheckDecoding(bytes);
  }
  return 0;
}
