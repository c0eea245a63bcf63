#include "kvm/proc_tree.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"

namespace vcpulse::kvm {
namespace {

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};
using Dir = std::unique_ptr<DIR, CloseDir>;

// Calls `visit(name)` for each entry until it returns false. False where `dir` is null.
template <typename Visit>
bool ForEachEntry(DIR* dir, Visit visit) {
  if (dir == nullptr) return false;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (!visit(entry->d_name)) break;
  }
  return true;
}

// 0 for what says that the process is no more.
int UnlessGone(int error) { return error == ENOENT || error == ESRCH ? 0 : error; }

// `error` becomes the errno by which the folder could not be opened, or 0.
std::vector<pid_t> NumericEntries(const std::string& path, int& error) {
  std::vector<pid_t> numbers;
  const Dir dir(::opendir(path.c_str()));
  error = dir == nullptr ? errno : 0;
  ForEachEntry(dir.get(), [&numbers](const char* name) {
    const auto number = ParseNumber<pid_t>(name);
    if (number && *number > 0) numbers.push_back(*number);
    return true;
  });
  std::ranges::sort(numbers);
  return numbers;
}

// Calls `visit(link, name)` for each descriptor that KVM made until it returns false; `name` is its
// number. False where the links may not be read.
template <typename Visit>
bool ForEachKvmLink(const std::string& path, Visit visit) {
  bool readable = true;
  const Dir dir(::opendir(path.c_str()));
  const bool opened = ForEachEntry(dir.get(), [&](const char* name) {
    char text[64];
    const ssize_t size = ::readlinkat(::dirfd(dir.get()), name, text, sizeof(text));
    if (size < 0) {
      // The folder may be readable (CAP_DAC_READ_SEARCH) where its links are not.
      readable = errno != EACCES && errno != EPERM;
      return readable;
    }
    const auto link = ParseKvmLink({text, static_cast<size_t>(size)});
    return !link || visit(*link, name);
  });
  return opened && readable;
}

std::string WithoutNewline(std::optional<std::string> text) {
  if (!text) return "";
  if (text->ends_with('\n')) text->pop_back();
  return *std::move(text);
}

std::optional<Thread> ReadThread(const std::string& stat_path, pid_t tid, int* error = nullptr) {
  const auto text = ReadSmallFile(stat_path, error);
  if (!text) return std::nullopt;
  const auto stat = ParseTaskStat(*text);
  const auto name = ParseStatComm(*text);
  if (!stat || !name) return std::nullopt;
  return Thread{tid, std::string(*name), *stat};
}

}  // namespace

ProcTree::ProcTree(const std::string& root)
    : proc_(absl::StrCat(root, root.ends_with('/') ? "" : "/", "proc/")),
      debugfs_(absl::StrCat(root, root.ends_with('/') ? "" : "/", "sys/kernel/debug/kvm/")) {}

std::vector<pid_t> ProcTree::Processes() const {
  int ignored = 0;
  return NumericEntries(proc_, ignored);
}

std::vector<pid_t> ProcTree::ThreadIds(pid_t pid) const {
  int ignored = 0;
  return NumericEntries(absl::StrCat(proc_, pid, "/task"), ignored);
}

std::vector<Thread> ProcTree::Threads(pid_t pid, int* error) const {
  std::vector<Thread> threads;
  int failed = 0;
  const std::vector<pid_t> tids = NumericEntries(absl::StrCat(proc_, pid, "/task"), failed);
  failed = UnlessGone(failed);
  for (const pid_t tid : tids) {
    int why = 0;
    auto thread = ReadThread(absl::StrCat(proc_, pid, "/task/", tid, "/stat"), tid, &why);
    if (!thread && failed == 0) failed = UnlessGone(why);
    if (thread && !thread->stat.Exited()) threads.push_back(*std::move(thread));
  }
  if (error != nullptr) *error = failed;
  return threads;
}

std::optional<Thread> ProcTree::NamedProcess(pid_t pid) const {
  return ReadThread(absl::StrCat(proc_, pid, "/stat"), pid);
}

std::optional<TaskStat> ProcTree::ProcessStat(pid_t pid, int* error) const {
  int why = 0;
  const auto text = ReadSmallFile(absl::StrCat(proc_, pid, "/stat"), &why);
  if (error != nullptr) *error = text ? 0 : UnlessGone(why);
  return text ? ParseTaskStat(*text) : std::nullopt;
}

std::optional<TaskStat> ProcTree::ThreadStat(pid_t pid, pid_t tid) const {
  const auto text = ReadSmallFile(absl::StrCat(proc_, pid, "/task/", tid, "/stat"));
  return text ? ParseTaskStat(*text) : std::nullopt;
}

bool ProcTree::HasThread(pid_t pid, pid_t tid) const {
  return ::access(absl::StrCat(proc_, pid, "/task/", tid).c_str(), F_OK) == 0;
}

std::string ProcTree::ProcessName(pid_t pid) const {
  return WithoutNewline(ReadSmallFile(absl::StrCat(proc_, pid, "/comm")));
}

std::vector<std::string> ProcTree::CommandLine(pid_t pid) const {
  const auto text = ReadSmallFile(absl::StrCat(proc_, pid, "/cmdline"));
  return text ? ParseCmdline(*text) : std::vector<std::string>();
}

std::optional<TaskSched> ProcTree::ThreadSched(pid_t pid, pid_t tid) const {
  const auto text = ReadSmallFile(absl::StrCat(proc_, pid, "/task/", tid, "/sched"));
  return text ? ParseTaskSched(*text) : std::nullopt;
}

std::optional<pid_t> ProcTree::ThreadGroup(pid_t tid) const {
  const auto status = ReadSmallFile(absl::StrCat(proc_, tid, "/status"));
  return status ? ParseStatusPid(*status, "Tgid") : std::nullopt;
}

std::optional<pid_t> ProcTree::InnermostTid(pid_t pid, pid_t tid) const {
  const auto status = ReadSmallFile(absl::StrCat(proc_, pid, "/task/", tid, "/status"));
  if (!status) return std::nullopt;
  const std::vector<pid_t> ids = ParseNsPids(*status);
  return ids.empty() ? tid : ids.back();
}

LibvirtCgroup ProcTree::Cgroup(pid_t pid) const { return Cgroup(pid, pid); }

LibvirtCgroup ProcTree::Cgroup(pid_t pid, pid_t tid) const {
  const auto text = ReadSmallFile(absl::StrCat(proc_, pid, "/task/", tid, "/cgroup"));
  return text ? ParseLibvirtCgroup(*text) : LibvirtCgroup();
}

KvmDescriptors ProcTree::Descriptors(pid_t pid) const {
  KvmDescriptors found;
  found.readable = ForEachKvmLink(absl::StrCat(proc_, pid, "/fd"),
                                  [&found](const KvmLink& link, const char* /*name*/) {
                                    if (link.kind == KvmLink::Kind::kVm) {
                                      ++found.vms;
                                    } else if (link.kind == KvmLink::Kind::kVcpu) {
                                      ++found.vcpus;
                                      if (link.vcpu_id) found.vcpu_ids.push_back(*link.vcpu_id);
                                    }
                                    return true;
                                  });
  if (!found.readable) return {};
  std::ranges::sort(found.vcpu_ids);
  return found;
}

std::vector<VcpuStatsDescriptor> ProcTree::VcpuStatsDescriptors(pid_t pid) const {
  std::vector<VcpuStatsDescriptor> found;
  ForEachKvmLink(absl::StrCat(proc_, pid, "/fd"), [&found](const KvmLink& link, const char* name) {
    const auto fd = ParseNumber<int>(name);
    if (link.kind == KvmLink::Kind::kVcpuStats && fd) found.push_back({*link.vcpu_id, *fd});
    return true;
  });
  std::ranges::sort(found, {}, &VcpuStatsDescriptor::vcpu_id);
  return found;
}

std::optional<bool> ProcTree::HoldsVm(pid_t pid) const {
  bool holds = false;
  const bool readable = ForEachKvmLink(absl::StrCat(proc_, pid, "/fd"),
                                       [&holds](const KvmLink& link, const char* /*name*/) {
                                         holds = holds || link.kind == KvmLink::Kind::kVm;
                                         return !holds;
                                       });
  return holds || readable ? std::optional(holds) : std::nullopt;
}

std::vector<std::string> ProcTree::DebugfsVms(pid_t pid) const {
  std::vector<std::string> folders;
  const Dir vms(::opendir(debugfs_.c_str()));
  ForEachEntry(vms.get(), [&](const char* name) {
    const auto vm = ParseDebugfsVmDir(name);
    if (vm && vm->pid == pid) folders.emplace_back(name);
    return true;
  });
  return folders;
}

std::vector<DebugfsVcpu> ProcTree::DebugfsVcpus(pid_t pid) const {
  constexpr std::string_view kVcpu = "vcpu";
  std::vector<DebugfsVcpu> vcpus;
  for (const std::string& vm : DebugfsVms(pid)) {
    const std::string path = absl::StrCat(debugfs_, vm);
    const Dir entries(::opendir(path.c_str()));
    ForEachEntry(entries.get(), [&](const char* name) {
      const std::string_view text = name;
      if (!text.starts_with(kVcpu)) return true;
      const auto id = ParseNumber<int>(text.substr(kVcpu.size()));
      if (!id || *id < 0) return true;
      const auto tid_text = WithoutNewline(ReadSmallFile(absl::StrCat(path, "/", name, "/pid")));
      const auto tid = ParseNumber<pid_t>(tid_text);
      if (tid && *tid >= 0) vcpus.push_back({ParseDebugfsVmDir(vm)->vm_fd, *id, *tid});
      return true;
    });
  }
  std::ranges::sort(vcpus, {},
                    [](const DebugfsVcpu& vcpu) { return std::tuple(vcpu.vm_fd, vcpu.vcpu_id); });
  return vcpus;
}

std::vector<std::pair<std::string, uint64_t>> ProcTree::DebugfsSums(
    pid_t pid, std::span<const std::string_view> names) const {
  std::vector<std::pair<std::string, uint64_t>> sums;
  const std::vector<std::string> vms = DebugfsVms(pid);
  if (vms.size() != 1) return sums;
  for (const std::string_view name : names) {
    const std::string path = absl::StrCat(debugfs_, vms.front(), "/", ToAbsl(name));
    const auto value = ParseNumber<uint64_t>(WithoutNewline(ReadSmallFile(path)));
    if (value) sums.emplace_back(name, *value);
  }
  return sums;
}

}  // namespace vcpulse::kvm
