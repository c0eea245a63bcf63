#pragma once

// What tests/data/timeline-v5.vpt holds: all that schema release 5 added to release 4, which is
// code and names in a window of hot addresses. make_golden_timeline.cc wrote the file;
// golden_timeline_test.cc reads it. Neither is ever changed once released.

#include <cstdint>
#include <string>
#include <vector>

#include "monitor/timeline/writer.h"
#include "tests/unit/monitor/timeline/golden_timeline_v4.h"

namespace vcpulse::timeline::golden_v5 {

using golden_v4::kStart_ns;
inline constexpr StreamId kStream = {0x67, 0x6f, 0x6c, 0x64, 0x65, 0x6e, 0x2d, 0x76,
                                     0x35, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0xff};
inline constexpr uint64_t kTicks = 20;

// 60 samples in a lock that PAUSEs, 30 of a process whose code says nothing, 10 in no function.
inline v1::TimelineRecord HotAddressesOf(int64_t mono_ns) {
  v1::TimelineRecord record;
  v1::HotAddresses& hot = *record.mutable_hot_addresses();
  hot.set_vm(1);
  hot.set_epoch(1);
  hot.set_vcpu_index(0);
  hot.set_begin_mono_ns(mono_ns - 1'000'000'000);
  hot.set_mono_ns(mono_ns);
  hot.set_trigger(v1::HotAddresses::TRIGGER_SPINNING);
  hot.set_source("cycles");
  const auto add = [&hot](uint64_t address, uint64_t samples, v1::GuestMode mode,
                          const char* function, uint64_t begins) {
    hot.add_addresses(address);
    hot.add_samples(samples);
    hot.add_modes(mode);
    hot.add_functions(function);
    hot.add_function_addresses(begins);
  };
  add(0xffffffff81000012, 60, v1::GUEST_MODE_KERNEL, "lock_slowpath", 0xffffffff81000000);
  add(0x401000, 30, v1::GUEST_MODE_USER, "", 0);
  add(0xffffffffc0000000, 10, v1::GUEST_MODE_KERNEL, "", 0);
  v1::GuestCode& code = *hot.add_code();
  code.set_address(0xffffffff81000010);
  code.set_bytes("\xf3\x90\x8b\x07\x85\xc0\x75\xf8");  // pause; mov; test; jne to the pause
  code.set_isa(v1::GuestCode::ISA_X86);
  v1::GuestCode& other = *hot.add_code();
  other.set_address(0x400ffc);
  other.set_bytes(std::string("\x1f\x20\x03\xd5\x1f\x20\x03\xd5", 8));  // nop; nop
  other.set_isa(v1::GuestCode::ISA_ARM64);
  return record;
}

// All of it in two chunks; gives the ticks as a reader hands them over.
inline std::vector<SeenTick> Write(RecordWriter& writer) {
  std::vector<SeenTick> ticks;
  uint64_t sequence = 0;
  const auto add = [&](v1::TimelineRecord record, int64_t mono_ns) {
    writer.Add(std::move(record), mono_ns);
    ++sequence;
  };
  v1::TimelineRecord session = golden_v4::SessionOf();
  session.mutable_session()->set_stream_id(kStream.data(), kStream.size());
  session.mutable_session()->set_host_name("golden-five");
  add(session, kStart_ns);
  add(golden_v3::SetOf(), kStart_ns);
  const core::Verdict spinning{.band = core::Band::kSpinning,
                               .rule = core::Rule::kIpcLow,
                               .raw_band = core::Band::kSpinning,
                               .raw_rule = core::Rule::kIpcLow};
  for (uint64_t t = 0; t < kTicks; ++t) {
    const core::Sample sample = golden_v3::SampleOf(t);
    const std::vector<core::Verdict> verdicts(2, t == 0 ? core::Verdict() : spinning);
    writer.AddTick(1, 1, sample, verdicts);
    ticks.push_back({++sequence, 1, 1, sample, verdicts,
                     t == 0 ? std::nullopt : std::optional(ticks.back().sample)});
    if (t == 14) add(HotAddressesOf(sample.wake_ns), sample.wake_ns);
    if (t % 10 != 9) continue;
    v1::ClockSnapshot clock;
    clock.set_mono_ns(sample.wake_ns);
    clock.set_realtime_ns(sample.wake_ns + 1'700'000'000'000'000'000);
    clock.set_boottime_ns(sample.wake_ns);
    if (t + 1 == kTicks) {
      v1::TimelineRecord summary;
      summary.mutable_summary()->set_ticks(kTicks);
      summary.mutable_summary()->set_end_reason("duration");
      add(summary, sample.wake_ns);
    }
    EXPECT_TRUE(writer.Flush(clock).ok());
  }
  return ticks;
}

}  // namespace vcpulse::timeline::golden_v5
