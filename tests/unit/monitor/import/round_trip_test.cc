// What `vcpulse export` writes, imported again: every interval of every vCPU has the same counters.
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

#include "monitor/export/csv.h"
#include "monitor/export/jsonl.h"
#include "monitor/import/csv_table.h"
#include "monitor/metric/interval.h"
#include "monitor/timeline/reader.h"
#include "tests/unit/monitor/import/csv_fixture.h"

namespace vcpulse::importing {
namespace {

using Bytes = std::vector<uint8_t>;

std::unique_ptr<timeline::RecordWriter> WriterTo(Bytes& bytes) {
  return timeline::NewChunkWriter({7}, [&bytes](std::span<const uint8_t> chunk) {
    bytes.insert(bytes.end(), chunk.begin(), chunk.end());
    return absl::OkStatus();
  });
}

// One interval of one vCPU, all that a person would compare.
struct Told {
  int64_t interval_ns = 0;
  uint64_t tick = 0;
  uint64_t enabled_ns = 0;
  uint64_t running_ns = 0;
  std::optional<uint64_t> run_ns;
  std::optional<uint64_t> run_delay_ns;
  core::ThreadState state = core::ThreadState::kNotRead;
  std::string vm;
  uint32_t pid = 0;
  uint32_t tid = 0;
  std::optional<uint32_t> kvm_id;

  bool operator==(const Told&) const = default;
};

struct Counts {
  std::map<std::string, std::optional<uint64_t>> counts;
  std::map<std::string, double> shares;
};

using Key = std::tuple<uint32_t, uint32_t, int64_t>;  // VM, vCPU, end

struct Recording {
  std::map<Key, Told> told;
  std::map<Key, Counts> counts;
  std::vector<std::pair<int64_t, int64_t>> clocks;  // (monotonic, realtime)
};

Recording ReadAll(const Bytes& bytes) {
  Recording recording;
  metric::IntervalReader intervals;
  const auto take = [&](const metric::Interval& interval) {
    const Key key(interval.Vm(), interval.Vcpu().index(), interval.EndNs());
    const v1::Vcpu& vcpu = interval.Vcpu();
    recording.told[key] = {
        .interval_ns = interval.delta.interval_ns,
        .tick = interval.tick,
        .enabled_ns = interval.delta.time_enabled_ns,
        .running_ns = interval.delta.time_running_ns,
        .run_ns = interval.delta.run_ns,
        .run_delay_ns = interval.delta.run_delay_ns,
        .state = interval.delta.state,
        .vm = interval.epoch.set.instance().name(),
        .pid = interval.epoch.set.instance().pid(),
        .tid = vcpu.tid(),
        .kvm_id = vcpu.has_kvm_id() ? std::optional(vcpu.kvm_id()) : std::nullopt};
    Counts& counts = recording.counts[key];
    for (const metric::EventPlace& event : interval.epoch.events) {
      const auto counted = interval.CountOf(event);
      counts.counts[event.name] = counted.count;
      if (interval.InTurns(event)) counts.shares[event.name] = counted.share.value_or(-1);
    }
    return absl::OkStatus();
  };
  const auto read = timeline::ReadTimelineBytes(bytes, [&](const timeline::Entry& entry) {
    if (const auto* clock = std::get_if<v1::ClockSnapshot>(&entry.record)) {
      recording.clocks.emplace_back(clock->mono_ns(), clock->realtime_ns());
    }
    return intervals.Add(entry, take);
  });
  EXPECT_TRUE(read.ok()) << read.status();
  return recording;
}

template <typename Export>
std::string Exported(const Bytes& bytes) {
  std::string text;
  Export exporter([&text](std::string_view part) {
    text += part;
    return absl::OkStatus();
  });
  if constexpr (std::is_same_v<Export, exporting::CsvExport>) {
    EXPECT_TRUE(timeline::ReadTimelineBytes(bytes, [&](const timeline::Entry& entry) {
                  if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) {
                    exporter.Expect(*set);
                  }
                  return absl::OkStatus();
                }).ok());
  }
  const auto read = timeline::ReadTimelineBytes(
      bytes, [&](const timeline::Entry& entry) { return exporter.Add(entry); });
  EXPECT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(exporter.Finish().ok());
  return text;
}

Bytes ImportedBytes(const absl::StatusOr<Table>& table) {
  Bytes bytes;
  EXPECT_TRUE(table.ok()) << table.status();
  if (!table.ok()) return bytes;
  EXPECT_TRUE(table->ignored.empty()) << table->ignored.front();
  const auto generic = profile::Load("generic");
  const auto report = ImportTable(*table, {.profile = *generic}, *WriterTo(bytes));
  EXPECT_TRUE(report.ok()) << report.status();
  return bytes;
}

void ExpectEqual(const Recording& imported, const Recording& original) {
  ASSERT_EQ(imported.told.size(), original.told.size());
  for (const auto& [key, told] : original.told) {
    const auto found = imported.told.find(key);
    ASSERT_NE(found, imported.told.end());
    const std::string where = "VM " + std::to_string(std::get<0>(key)) + " vCPU " +
                              std::to_string(std::get<1>(key)) + " at " +
                              std::to_string(std::get<2>(key));
    EXPECT_TRUE(found->second == told) << where;
    const Counts& before = original.counts.at(key);
    const Counts& after = imported.counts.at(key);
    for (const auto& [event, count] : before.counts) {
      const auto known = after.counts.find(event);
      EXPECT_EQ(known == after.counts.end() ? std::nullopt : known->second, count)
          << where << " " << event;
    }
    for (const auto& [event, count] : after.counts) {
      if (before.counts.contains(event)) continue;
      EXPECT_EQ(count, std::nullopt) << where << " " << event;
    }
    EXPECT_EQ(after.shares.size(), before.shares.size()) << where;
    for (const auto& [event, share] : before.shares) {
      ASSERT_TRUE(after.shares.contains(event)) << where << " " << event;
      const double one_ns = 1.0 / static_cast<double>(std::max<uint64_t>(1, told.enabled_ns));
      EXPECT_NEAR(after.shares.at(event), share, one_ns + 1e-9) << where << " " << event;
    }
  }
}

void ExpectRoundTrips(const Bytes& bytes) {
  const Recording original = ReadAll(bytes);
  ASSERT_FALSE(original.told.empty());
  {
    SCOPED_TRACE("jsonl");
    const std::string text = Exported<exporting::JsonlExport>(bytes);
    ExpectEqual(ReadAll(ImportedBytes(ParseJsonl(text, "x"))), original);
  }
  {
    SCOPED_TRACE("csv");
    const std::string text = Exported<exporting::CsvExport>(bytes);
    ExpectEqual(ReadAll(ImportedBytes(ParseCsv(text, "x"))), original);
  }
}

// Makes recordings by chance: everything that a recording may hold.
class Drawer {
 public:
  explicit Drawer(uint32_t seed) : random_(seed) {}

  Bytes Draw() {
    const auto writer = WriterTo(bytes_);
    v1::TimelineRecord session;
    session.mutable_session()->set_stream_id(std::string(16, 's'));
    session.mutable_session()->set_interval_ns(100'000'000);
    writer->Add(session, now_ns_);
    v1::ClockSnapshot clock;
    clock.set_mono_ns(now_ns_);
    clock.set_realtime_ns(kWall_ns + now_ns_);
    for (uint32_t vm = 1; vm <= 3; ++vm) Begin(*writer, vm);
    for (tick_ = 1; tick_ < 60; ++tick_) {
      now_ns_ += 100'000'000 + static_cast<int64_t>(Below(50'000));
      for (uint32_t vm = 1; vm <= 3; ++vm) {
        if (Below(20) == 0) continue;  // a gap
        if (Below(15) == 0) Begin(*writer, vm);
        AddTick(*writer, vm);
      }
    }
    EXPECT_TRUE(writer->Flush(clock).ok());
    return bytes_;
  }

  static constexpr int64_t kWall_ns = 1'700'000'000'000'000'000;

 private:
  struct Vm {
    uint32_t epoch = 0;
    v1::VcpuSet set;
    core::Sample last;
  };

  uint64_t Below(uint64_t end) { return random_() % end; }

  void Begin(timeline::RecordWriter& writer, uint32_t number) {
    Vm& vm = vms_[number];
    if (vm.epoch > 0) writer.EndEpoch(number, vm.epoch);
    vm.set = v1::VcpuSet();
    vm.set.set_vm(number);
    vm.set.set_epoch(++vm.epoch);
    vm.set.set_mono_ns(now_ns_);
    vm.set.mutable_instance()->set_pid(100 + number);
    vm.set.mutable_instance()->set_name(number < 3 ? "twins" : "a, \"b\"");
    if (number == 2) vm.set.mutable_instance()->set_uuid("8e5d");
    for (uint32_t i = 0; i <= Below(3); ++i) {
      v1::Vcpu& vcpu = *vm.set.add_vcpus();
      vcpu.set_index(i * 2);
      vcpu.set_tid(static_cast<uint32_t>(1000 * number + i + 10 * Below(2)));
      if (Below(2) == 0) vcpu.set_kvm_id(i * 4);
    }
    for (const char* event : {"cycles", "instructions", "branch-misses", "r01a8", "tick"}) {
      if (event == std::string("cycles") || Below(4) > 0) {
        vm.set.add_events(event);
      } else {
        vm.set.add_absent_events()->set_event(event);
      }
    }
    if (number == 1) {
      for (const auto& group : {std::vector<std::string>{"kvm:kvm_exit", "L1-dcache-load-misses"},
                                std::vector<std::string>{"armv8_pmuv3/inst_retired/", "i1"}}) {
        v1::EventGroup& added = *vm.set.add_further_groups();
        for (const std::string& event : group) added.add_events(event);
      }
    }
    v1::TimelineRecord record;
    *record.mutable_vcpu_set() = vm.set;
    writer.Add(record, now_ns_);
    vm.last = core::Sample{.tick = tick_};
    vm.last.vcpus.resize(static_cast<size_t>(vm.set.vcpus_size()));
    vm.last.further.resize(vm.last.vcpus.size() *
                           static_cast<size_t>(vm.set.further_groups_size()));
    Stamp(vm.last, now_ns_ - 50'000'000);
    Write(writer, number, vm);
  }

  void Stamp(core::Sample& sample, int64_t wake_ns) {
    sample.wake_ns = sample.deadline_ns = wake_ns;
    for (size_t i = 0; i < sample.vcpus.size(); ++i) {
      sample.vcpus[i].read_begin_ns = wake_ns + static_cast<int64_t>(1000 * i + Below(300));
      sample.vcpus[i].read_end_ns =
          sample.vcpus[i].read_begin_ns + static_cast<int64_t>(Below(3000));
    }
  }

  // Time on the CPU of one group, and its counts.
  template <typename Group>
  void Run(Group& group, uint64_t enabled_ns, int events) {
    const uint64_t running_ns = Below(6) == 0 ? 0 : enabled_ns - Below(enabled_ns + 1) / 2;
    group.time_enabled_ns += enabled_ns;
    group.time_running_ns += running_ns;
    for (int e = 0; e < events; ++e) {
      if (running_ns > 0) group.counts[static_cast<size_t>(e)] += Below(1'000'000'000);
    }
  }

  void AddTick(timeline::RecordWriter& writer, uint32_t number) {
    Vm& vm = vms_[number];
    vm.last.tick = tick_;
    Stamp(vm.last, now_ns_);
    const size_t further = vm.last.FurtherGroups();
    for (size_t i = 0; i < vm.last.vcpus.size(); ++i) {
      core::VcpuSample& vcpu = vm.last.vcpus[i];
      const uint64_t enabled_ns = Below(5) == 0 ? 0 : Below(40'000'000);
      Run(vcpu, enabled_ns, vm.set.events_size());
      for (size_t g = 0; g < further; ++g) {
        Run(vm.last.further[i * further + g], enabled_ns,
            vm.set.further_groups(static_cast<int>(g)).events_size());
      }
      vcpu.has_scheduler_times = number != 3;
      if (vcpu.has_scheduler_times) {
        vcpu.run_ns += enabled_ns;
        vcpu.run_delay_ns += Below(100'000'000);
      }
      vcpu.state =
          enabled_ns == 0 ? static_cast<core::ThreadState>(Below(6)) : core::ThreadState::kNotRead;
    }
    Write(writer, number, vm);
  }

  static void Write(timeline::RecordWriter& writer, uint32_t number, Vm& vm) {
    const std::vector<core::Verdict> none(vm.last.vcpus.size());
    writer.AddTick(number, vm.epoch, vm.last, none);
  }

  std::mt19937 random_;
  Bytes bytes_;
  std::map<uint32_t, Vm> vms_;
  int64_t now_ns_ = 5'000'000'000;
  uint64_t tick_ = 0;
};

TEST(RoundTrip, RecordingsByChance) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    ExpectRoundTrips(Drawer(seed).Draw());
    if (HasFailure()) return;
  }
}

TEST(RoundTrip, TheGoldenTimelines) {
  for (const char* name : {"timeline-v1.vpt", "timeline-v2.vpt"}) {
    SCOPED_TRACE(name);
    std::ifstream file(std::string(VCPULSE_TEST_DATA "/") + name, std::ios::binary);
    ASSERT_TRUE(file);
    ExpectRoundTrips(Bytes((std::istreambuf_iterator<char>(file)), {}));
  }
}

// The wall clock of every row comes back, to the nanosecond.
TEST(RoundTrip, TheWallClock) {
  const std::string text = Exported<exporting::JsonlExport>(Drawer(1).Draw());
  const Recording imported = ReadAll(ImportedBytes(ParseJsonl(text, "x")));
  ASSERT_FALSE(imported.clocks.empty());
  for (const auto& [mono_ns, realtime_ns] : imported.clocks) {
    EXPECT_EQ(realtime_ns - mono_ns, Drawer::kWall_ns);
  }
}

}  // namespace
}  // namespace vcpulse::importing
