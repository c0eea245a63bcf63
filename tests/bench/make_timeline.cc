// Writes a timeline of VMs that never were, as long as is asked for: what benchmarks of readers and
// pages take for a large file. The same options give the same bytes.
//   make_timeline OUT --vcpus 64 --ticks 1000000 --interval-ms 10

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "monitor/timeline/writer.h"
#include "tests/fakes/synthetic_vm.h"

namespace vcpulse {
namespace {

struct Options {
  std::string output;
  uint32_t vms = 1;
  uint32_t vcpus = 64;
  uint64_t ticks = 1000;
  int64_t interval_ms = 10;
  uint64_t band_ticks = 200;  // how long a vCPU keeps its band, about
  uint64_t marker_ticks = 0;  // between markers; 0: none
  uint64_t chunk_ms = 1000;   // as `record` flushes
};

constexpr int64_t kSuspended_ns = 3'600'000'000'000;  // BOOTTIME is ahead of MONOTONIC
constexpr int64_t kRealtime_ns = 1'767'225'600'000'000'000 - 86'400'000'000'000;

v1::ClockSnapshot ClockAt(int64_t mono_ns) {
  v1::ClockSnapshot clock;
  clock.set_mono_ns(mono_ns);
  clock.set_boottime_ns(mono_ns + kSuspended_ns);
  clock.set_realtime_ns(mono_ns + kRealtime_ns);
  return clock;
}

// Spells of a band, each vCPU at its own times; every tenth is starved, every sixteenth unknown.
core::Verdict VerdictOf(uint32_t vcpu, uint64_t tick, uint64_t band_ticks) {
  const uint64_t spell = (tick + vcpu * 37) / band_ticks;
  uint64_t draw = (spell * 0x9E3779B97F4A7C15) ^ (vcpu * 0xBF58476D1CE4E5B9);
  draw ^= draw >> 29;
  draw *= 0x94D049BB133111EB;
  draw >>= 40;
  core::Verdict verdict;
  switch (draw % 16) {
    case 0:
      verdict = {.band = core::Band::kUnknown, .rule = core::Rule::kBetweenBands};
      break;
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
      verdict = {.band = core::Band::kHalted, .rule = core::Rule::kResidency, .confidence_pct = 99};
      break;
    case 6:
    case 7:
    case 8:
      verdict = {.band = core::Band::kSpinning, .rule = core::Rule::kPause, .confidence_pct = 95};
      break;
    default:
      verdict = {
          .band = core::Band::kProductive, .rule = core::Rule::kIpcHigh, .confidence_pct = 90};
  }
  verdict.starved = draw % 10 == 0;
  verdict.raw_band = verdict.band;
  verdict.raw_rule = verdict.rule;
  return verdict;
}

v1::TimelineRecord SessionRecord(const Options& options) {
  v1::TimelineRecord record;
  v1::Session& session = *record.mutable_session();
  session.set_stream_id("made-by-a-script");
  session.set_tool_version("0.1.0");
  session.set_host_name("bench");
  session.set_kernel_release("6.1.0");
  session.set_machine("x86_64");
  session.set_cpu_model("Synthetic CPU at 3 GHz");
  session.set_online_cpus(options.vcpus);
  session.set_interval_ns(static_cast<uint64_t>(options.interval_ms) * 1'000'000);
  session.set_verdict_window_ns(static_cast<uint64_t>(std::max<int64_t>(10, options.interval_ms)) *
                                1'000'000);
  session.set_residency_method(v1::RESIDENCY_METHOD_MAX_FREQUENCY);
  session.set_max_hz(3e9);
  session.set_scheduling(v1::SCHEDULING_NORMAL);
  v1::ClassifierSettings& classifier = *session.mutable_classifier();
  classifier.set_name("ipc-bands");
  classifier.set_halted_enter(0.02);
  classifier.set_halted_leave(0.04);
  classifier.set_spinning_below(0.75);
  classifier.set_productive_from(1.0);
  return record;
}

std::vector<fakes::SyntheticVm> MakeVms(const Options& options) {
  std::vector<fakes::Load> loads;
  for (size_t v = 0; v < options.vcpus; ++v) {
    loads.push_back(v % 4 < 2    ? fakes::Load::kBusy
                    : v % 4 == 2 ? fakes::Load::kIdle
                                 : fakes::Load::kShared);
  }
  std::vector<fakes::SyntheticVm> vms;
  for (uint32_t vm = 1; vm <= options.vms; ++vm) {
    vms.emplace_back(loads, options.interval_ms * 1'000'000, vm);
  }
  return vms;
}

absl::Status Write(const Options& options) {
  std::ofstream file(options.output, std::ios::binary);
  const auto writer = timeline::NewChunkWriter({7}, [&file](std::span<const uint8_t> chunk) {
    file.write(reinterpret_cast<const char*>(chunk.data()),
               static_cast<std::streamsize>(chunk.size()));
    return file ? absl::OkStatus() : absl::UnavailableError("cannot write the file");
  });
  std::vector<fakes::SyntheticVm> vms = MakeVms(options);
  int64_t now_ns = vms.front().VcpuSet(1, 1).mono_ns();
  writer->Add(SessionRecord(options), now_ns);
  for (uint32_t vm = 1; vm <= options.vms; ++vm) {
    v1::TimelineRecord record;
    *record.mutable_vcpu_set() = vms[vm - 1].VcpuSet(vm, 1);
    now_ns = record.vcpu_set().mono_ns();
    writer->Add(std::move(record), now_ns);
  }
  const uint64_t per_chunk = std::max<uint64_t>(
      1, options.chunk_ms / static_cast<uint64_t>(std::max<int64_t>(1, options.interval_ms)));
  std::vector<core::Verdict> verdicts(options.vcpus);
  for (uint64_t tick = 0; tick < options.ticks; ++tick) {
    for (uint32_t vm = 1; vm <= options.vms; ++vm) {
      for (uint32_t v = 0; v < options.vcpus; ++v) {
        verdicts[v] = VerdictOf(v + vm * 1000, tick, options.band_ticks);
      }
      const core::Sample& sample = vms[vm - 1].Next();
      now_ns = sample.wake_ns;
      writer->AddTick(vm, 1, sample, verdicts);
    }
    if (options.marker_ticks > 0 && (tick + 1) % options.marker_ticks == 0) {
      v1::TimelineRecord record;
      record.mutable_marker()->set_mono_ns(now_ns + 1000);
      record.mutable_marker()->set_name("phase-" + std::to_string(tick / options.marker_ticks));
      writer->Add(std::move(record), now_ns + 1000);
    }
    if ((tick + 1) % per_chunk != 0) continue;
    if (absl::Status status = writer->Flush(ClockAt(now_ns)); !status.ok()) return status;
  }
  v1::TimelineRecord record;
  record.mutable_summary()->set_ticks(options.ticks);
  record.mutable_summary()->set_vcpu_samples(options.ticks * options.vms * options.vcpus);
  record.mutable_summary()->set_end_reason("duration");
  writer->Add(std::move(record), now_ns);
  return writer->Flush(ClockAt(now_ns));
}

}  // namespace
}  // namespace vcpulse

int main(int argc, char** argv) {
  vcpulse::Options options;
  CLI::App app("A timeline of VMs that never were.");
  app.add_option("OUT", options.output, "file to write")->required();
  app.add_option("--vms", options.vms)->capture_default_str();
  app.add_option("--vcpus", options.vcpus, "of each VM")->capture_default_str();
  app.add_option("--ticks", options.ticks)->capture_default_str();
  app.add_option("--interval-ms", options.interval_ms)->capture_default_str();
  app.add_option("--band-ticks", options.band_ticks, "how long a vCPU keeps its band, about")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--marker-ticks", options.marker_ticks, "ticks between markers, 0: none")
      ->capture_default_str();
  app.add_option("--chunk-ms", options.chunk_ms, "time in one chunk")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = vcpulse::Write(options);
  if (!status.ok()) std::fprintf(stderr, "make_timeline: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
