#include "monitor/recorder/statistics_watch.h"

#include <algorithm>
#include <utility>

namespace vcpulse::recorder {
namespace {

// A little less than a second, so that ticks of a second read each time.
constexpr int64_t kPeriod_ns = 900'000'000;
constexpr int64_t kShortest_ns = 250'000'000;

}  // namespace

StatisticsWatch::StatisticsWatch(std::string root, kvm::Vm vm, std::string kernel_release,
                                 int64_t (*now_ns)())
    : root_(std::move(root)),
      vm_(std::move(vm)),
      kernel_release_(std::move(kernel_release)),
      now_ns_(now_ns) {}

bool StatisticsWatch::IsDue(int64_t now_ns, std::span<const core::Verdict> verdicts) {
  const bool changed = !std::ranges::equal(bands_, verdicts, {}, {}, &core::Verdict::band);
  const int64_t least_ns = changed ? kShortest_ns : kPeriod_ns;
  if (read_at_ns_ && now_ns - *read_at_ns_ < least_ns) return false;
  read_at_ns_ = now_ns;
  bands_.clear();
  for (const core::Verdict& verdict : verdicts) bands_.push_back(verdict.band);
  return true;
}

bool StatisticsWatch::Read(v1::Statistics& record) {
  if (!statistics_) statistics_.emplace(root_, vm_, kernel_release_, now_ns_);
  for (const kvm::SourceStatistics& source : statistics_->Read()) {
    v1::SourceStatistics& out = *record.add_sources();
    out.set_source(std::string(source.source));
    for (const std::string& name : source.names) out.add_names(name);
    for (const kvm::VcpuStatistics& vcpu : source.vcpus) {
      v1::VcpuStatistics& read = *out.add_vcpus();
      read.set_mono_ns(vcpu.mono_ns);
      read.mutable_values()->Add(vcpu.values.begin(), vcpu.values.end());
      if (vcpu.cpu) read.set_cpu(static_cast<uint32_t>(*vcpu.cpu));
    }
  }
  record.set_kvm_missing(statistics_->kvm_refused());
  return record.sources_size() > 0;
}

}  // namespace vcpulse::recorder
