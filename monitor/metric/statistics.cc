#include "monitor/metric/statistics.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace vcpulse::metric {
namespace {

struct Name {
  std::string_view name;  // of the source
  Statistic statistic;    // several names of one add up
};

// Those of KVM are the kernel's (arch/*/include/asm/kvm_host.h, KVM_GENERIC_VCPU_STATS).
constexpr std::array kNames = {
    Name{"migrations", Statistic::kMigrations},
    Name{"involuntary_switches", Statistic::kPreemptions},
    Name{"exits", Statistic::kExits},
    Name{"halt_exits", Statistic::kHaltExits},     // x86
    Name{"wfi_exit_stat", Statistic::kHaltExits},  // arm64
    Name{"io_exits", Statistic::kIoExits},         // x86
    Name{"mmio_exits", Statistic::kIoExits},       // x86
    Name{"mmio_exit_user", Statistic::kIoExits},   // arm64
    Name{"signal_exits", Statistic::kSignalExits},
    Name{"hypercalls", Statistic::kHypercalls},     // x86
    Name{"hvc_exit_stat", Statistic::kHypercalls},  // arm64
    Name{"wfe_exit_stat", Statistic::kWfeExits},    // arm64
    Name{"halt_poll_success_ns", Statistic::kHaltPollNs},
    Name{"halt_poll_fail_ns", Statistic::kHaltPollNs},
};

// Farther apart than any recording's readings: the numbers of a damaged file.
constexpr uint64_t kLongestTime_ns = uint64_t{366} * 24 * 3600 * 1'000'000'000;

}  // namespace

void StatisticsReader::Add(const v1::Statistics& record, const v1::VcpuSet& set) {
  const auto vcpus = static_cast<size_t>(set.vcpus_size());
  std::vector<Vcpu>& epoch = epochs_[{record.vm(), record.epoch()}];
  epoch.resize(vcpus);
  for (const v1::SourceStatistics& source : record.sources()) {
    if (static_cast<size_t>(source.vcpus_size()) != vcpus) continue;
    const auto run_ns = std::ranges::find(source.names(), "run_ns") - source.names().begin();
    for (size_t column = 0; column < vcpus; ++column) {
      const v1::VcpuStatistics& read = source.vcpus(static_cast<int>(column));
      Vcpu& vcpu = epoch[column];
      if (read.has_cpu()) {
        vcpu.cpu = read.cpu();
        Place(vcpu, read.cpu());
        vcpu.is_news = true;
      }
      if (read.values_size() != source.names_size()) continue;
      if (read.has_cpu() && run_ns < read.values_size()) {
        const VcpuId vcpu_id{.vm = record.vm(),
                             .index = set.vcpus(static_cast<int>(column)).index()};
        vcpu.neighbours = neighbours_.Add(vcpu_id, read.cpu(), read.mono_ns(),
                                          read.values(static_cast<int>(run_ns)));
      }
      std::array<std::optional<Reading>, kStatistics> now;
      for (int i = 0; i < source.names_size(); ++i) {
        const auto known = std::ranges::find(kNames, source.names(i), &Name::name);
        if (known == kNames.end()) continue;
        std::optional<Reading>& sum = now[static_cast<size_t>(known->statistic)];
        sum = {.count = (sum ? sum->count : 0) + read.values(i), .mono_ns = read.mono_ns()};
      }
      for (size_t s = 0; s < kStatistics; ++s) {
        if (!now[s]) continue;
        vcpu.latest[s] = now[s];
        if (!vcpu.taken[s]) vcpu.taken[s] = now[s];
        vcpu.is_news = true;
      }
    }
  }
}

void StatisticsReader::Place(Vcpu& vcpu, uint32_t cpu) const {
  if (cpu >= cpu_nodes_.size() || cpu_nodes_[cpu] == 0) return;
  const uint32_t node = cpu_nodes_[cpu];
  const uint64_t readings = ++vcpu.nodes[node];
  if (readings > vcpu.nodes[vcpu.home]) vcpu.home = node;
  vcpu.is_remote = node != vcpu.home;
}

std::optional<StatisticsDelta> StatisticsReader::Take(uint32_t vm, uint32_t epoch, size_t column) {
  const auto found = epochs_.find({vm, epoch});
  if (found == epochs_.end() || column >= found->second.size()) return std::nullopt;
  Vcpu& vcpu = found->second[column];
  if (!std::exchange(vcpu.is_news, false)) return std::nullopt;
  StatisticsDelta delta{.cpu = vcpu.cpu,
                        .is_remote = std::exchange(vcpu.is_remote, {}),
                        .neighbours = std::exchange(vcpu.neighbours, {})};
  for (size_t s = 0; s < kStatistics; ++s) {
    if (!vcpu.latest[s]) continue;
    const Reading before = *std::exchange(vcpu.taken[s], vcpu.latest[s]);
    const Reading& now = *vcpu.latest[s];
    // A count that fell is of another life of the vCPU. Instants of a damaged file may be any.
    const uint64_t time_ns =
        static_cast<uint64_t>(now.mono_ns) - static_cast<uint64_t>(before.mono_ns);
    const bool makes_sense =
        now.count >= before.count && now.mono_ns > before.mono_ns && time_ns <= kLongestTime_ns;
    if (!makes_sense) continue;
    delta.progress[s] = {.count = now.count - before.count,
                         .time_ns = static_cast<int64_t>(time_ns),
                         .end_ns = now.mono_ns};
  }
  return delta;
}

}  // namespace vcpulse::metric
