#include "kvm/statistics/vm_statistics.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <span>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "kvm/discovery/qmp_client.h"
#include "kvm/kvm_stat_names.h"
#include "kvm/statistics/kvm_stats_file.h"

namespace vcpulse::kvm {
namespace {

// The question interrupts every vCPU.
constexpr int64_t kQmpPause_ns = 900'000'000;
// QMP that did not answer is held by another client, or the VMM hangs.
constexpr int64_t kQmpRetry_ns = 60'000'000'000;

// Our own copy of a descriptor of another process.
absl::StatusOr<Fd> TakeDescriptor(pid_t pid, int fd) {
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid()) return absl::ErrnoToStatus(errno, absl::StrCat("process ", pid));
  Fd copy(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), fd, 0)));
  if (copy.valid()) return copy;
  return absl::ErrnoToStatus(
      errno, absl::StrCat("taking the VMM's statistics descriptor (needs CAP_SYS_PTRACE)"));
}

absl::StatusOr<KvmStatsLayout> ReadLayout(const Fd& fd) {
  std::vector<uint8_t> file(kLongestKvmStats);
  const ssize_t got = ::pread(fd.get(), file.data(), file.size(), 0);
  if (got < 0) return absl::ErrnoToStatus(errno, "reading KVM's statistics");
  return ParseKvmStatsLayout(std::span(file).first(static_cast<size_t>(got)));
}

}  // namespace

bool StatsDescriptorsHoldTheirVm(std::string_view kernel_release) {
  const size_t dot = kernel_release.find('.');
  if (dot == std::string_view::npos) return false;
  const auto major = ParseNumber<int>(kernel_release.substr(0, dot));
  const std::string_view rest = kernel_release.substr(dot + 1);
  const auto minor = ParseNumber<int>(rest.substr(0, rest.find_first_not_of("0123456789")));
  return major && minor && std::pair(*major, *minor) >= std::pair(6, 5);
}

VmStatistics::VmStatistics(const std::string& root, Vm vm, std::string_view kernel_release,
                           int64_t (*now_ns)(), absl::Duration qmp_timeout)
    : tree_(root), vm_(std::move(vm)), now_ns_(now_ns), qmp_timeout_(qmp_timeout) {
  const absl::Status status = OpenDescriptors(kernel_release);
  if (status.ok()) return;
  descriptors_.clear();
  kvm_refused_ = std::string(status.message());
}

absl::Status VmStatistics::OpenDescriptors(std::string_view kernel_release) {
  const std::vector<VcpuStatsDescriptor> found = tree_.VcpuStatsDescriptors(vm_.pid);
  if (found.empty()) {
    return absl::NotFoundError(
        tree_.Descriptors(vm_.pid).readable
            ? "the VMM keeps no descriptor of KVM's statistics (QEMU does from 8.1 on; one of 7.1 "
              "or newer gives them to a VM that is found by --qmp unix:PATH; of a VM with one vCPU "
              "debugfs has them too)"
            : "the VMM's descriptors may not be looked at (needs CAP_SYS_PTRACE)");
  }
  if (!StatsDescriptorsHoldTheirVm(kernel_release)) {
    return absl::FailedPreconditionError(
        absl::StrCat("reading KVM's statistics is not safe on this kernel (",
                     ToAbsl(kernel_release), "; from 6.5 on it is)"));
  }
  for (const Vcpu& vcpu : vm_.vcpus) {
    // An index is no id: x86 topologies have holes, and a thread may have been given alone.
    if (!vcpu.kvm_id) {
      return absl::NotFoundError(absl::StrCat("KVM's id of vCPU ", vcpu.index, " is not known"));
    }
    const int id = *vcpu.kvm_id;
    const auto [first, last] =
        std::ranges::equal_range(found, id, {}, &VcpuStatsDescriptor::vcpu_id);
    if (first == last || std::next(first) != last) {
      return absl::NotFoundError(absl::StrCat("the VMM keeps ",
                                              first == last ? "no" : "more than one",
                                              " descriptor of the statistics of KVM's vCPU ", id));
    }
    absl::StatusOr<Fd> fd = TakeDescriptor(vm_.pid, first->fd);
    if (!fd.ok()) return fd.status();
    const absl::StatusOr<KvmStatsLayout> layout = ReadLayout(*fd);
    if (!layout.ok()) return layout.status();
    if (VcpuIdOf(layout->id) != id) {
      return absl::DataLossError(
          absl::StrCat("the statistics of KVM's vCPU ", id, " say that they are of ", layout->id));
    }
    Descriptor& descriptor = descriptors_.emplace_back();
    descriptor.fd = *std::move(fd);
    for (const KvmStatsLayout::Value& value : layout->values) {
      if (std::ranges::find(kKvmStatNames, value.name) == kKvmStatNames.end()) continue;
      const auto known = std::ranges::find(names_, value.name);
      descriptor.places.emplace_back(known - names_.begin(), value.offset);
      if (known == names_.end()) names_.push_back(value.name);
    }
  }
  // So the descriptors are of the process that is meant, not of one that got its PID.
  const auto process = tree_.ProcessStat(vm_.pid);
  if (!process || process->start_time_ticks != vm_.start_time_ticks) {
    return absl::NotFoundError("the VM has ended");
  }
  // One kernel gives the same to all its vCPUs.
  const auto has_all = [this](const Descriptor& one) { return one.places.size() == names_.size(); };
  if (!names_.empty() && std::ranges::all_of(descriptors_, has_all)) return absl::OkStatus();
  return absl::DataLossError("KVM's statistics have none of the values that are read");
}

std::vector<SourceStatistics> VmStatistics::Read() {
  std::vector<SourceStatistics> all;
  if (SourceStatistics scheduler = ReadScheduler();
      std::ranges::any_of(scheduler.vcpus, [](const auto& vcpu) { return !vcpu.values.empty(); })) {
    all.push_back(std::move(scheduler));
  }
  if (!descriptors_.empty()) {
    all.push_back(ReadDescriptors());
  } else if (vm_.qmp_address.starts_with("unix:") && !by_debugfs_) {
    if (now_ns_() < qmp_not_before_ns_) return all;
    if (absl::StatusOr<SourceStatistics> told = AskQmp(); told.ok()) {
      kvm_refused_.clear();
      qmp_not_before_ns_ = now_ns_() + kQmpPause_ns;
      all.push_back(*std::move(told));
    } else {
      kvm_refused_ = std::string(told.status().message());
      // From here on: values of two sources are not mixed.
      if (auto sums = ReadDebugfs()) {
        by_debugfs_ = true;
        kvm_refused_.clear();
        all.push_back(*std::move(sums));
        return all;
      }
      const bool is_held =
          absl::IsUnavailable(told.status()) || absl::IsFailedPrecondition(told.status());
      qmp_not_before_ns_ = now_ns_() + (is_held ? kQmpRetry_ns : kQmpPause_ns);
    }
  } else if (auto sums = ReadDebugfs()) {
    kvm_refused_.clear();
    all.push_back(*std::move(sums));
  }
  return all;
}

SourceStatistics VmStatistics::ReadScheduler() const {
  SourceStatistics scheduler{
      .source = "scheduler",
      .names = {"migrations", "voluntary_switches", "involuntary_switches", "run_ns"}};
  for (const Vcpu& vcpu : vm_.vcpus) {
    VcpuStatistics& out = scheduler.vcpus.emplace_back();
    out.mono_ns = now_ns_();
    const auto sched = tree_.ThreadSched(vm_.pid, vcpu.tid);
    // Read after it: so both are of this thread.
    const auto stat = tree_.ThreadStat(vm_.pid, vcpu.tid);
    if (!stat || stat->Exited() || stat->start_time_ticks != vcpu.start_time_ticks) continue;
    out.cpu = stat->cpu;
    if (!sched) continue;
    out.values = {sched->migrations, sched->voluntary_switches, sched->involuntary_switches,
                  sched->run_ns};
  }
  return scheduler;
}

SourceStatistics VmStatistics::ReadDescriptors() const {
  SourceStatistics kvm{.source = "kvm-descriptor", .names = names_};
  for (const Descriptor& descriptor : descriptors_) {
    VcpuStatistics& out = kvm.vcpus.emplace_back();
    out.mono_ns = now_ns_();
    size_t end = 0;
    for (const auto& [name, offset] : descriptor.places) end = std::max(end, offset + 8);
    std::vector<uint8_t> file(end);
    const ssize_t got = ::pread(descriptor.fd.get(), file.data(), file.size(), 0);
    if (got != static_cast<ssize_t>(end)) continue;
    out.values.resize(names_.size());
    for (const auto& [name, offset] : descriptor.places) {
      std::memcpy(&out.values[name], file.data() + offset, sizeof(uint64_t));
    }
  }
  return kvm;
}

std::optional<SourceStatistics> VmStatistics::ReadDebugfs() const {
  // Of several vCPUs the sums tell nothing of one, whether or not the others are recorded.
  if (vm_.vcpus.size() != 1 || vm_.vcpu_descriptors != 1) return std::nullopt;
  SourceStatistics kvm{.source = "kvm-debugfs"};
  VcpuStatistics& vcpu = kvm.vcpus.emplace_back();
  vcpu.mono_ns = now_ns_();
  for (const auto& [name, sum] : tree_.DebugfsSums(vm_.pid, kKvmStatNames)) {
    kvm.names.push_back(name);
    vcpu.values.push_back(sum);
  }
  return kvm.names.empty() ? std::nullopt : std::optional(std::move(kvm));
}

absl::StatusOr<SourceStatistics> VmStatistics::AskQmp() const {
  const absl::StatusOr<QmpReply> reply =
      QueryQmp(vm_.qmp_address, qmp_timeout_, QmpQuestions::kStatistics);
  if (!reply.ok()) return reply.status();
  if (reply->answers.statistics.empty()) {
    return absl::FailedPreconditionError("QEMU has no statistics of this VM's vCPUs (query-stats)");
  }
  SourceStatistics kvm{.source = "kvm-qmp"};
  std::map<int, const QmpVcpuStatistics*> by_index;
  for (const QmpVcpuStatistics& vcpu : reply->answers.statistics) by_index[vcpu.index] = &vcpu;
  for (const auto& [name, value] : reply->answers.statistics.front().values) {
    kvm.names.push_back(name);
  }
  const int64_t now_ns = now_ns_();
  for (const Vcpu& vcpu : vm_.vcpus) {
    VcpuStatistics& out = kvm.vcpus.emplace_back();
    out.mono_ns = now_ns;
    const auto told = by_index.find(vcpu.index);
    if (told == by_index.end()) continue;
    const bool same_names = std::ranges::equal(told->second->values, kvm.names, {},
                                               &std::pair<std::string, uint64_t>::first);
    if (!same_names) continue;
    for (const auto& [name, value] : told->second->values) out.values.push_back(value);
  }
  return kvm;
}

}  // namespace vcpulse::kvm
