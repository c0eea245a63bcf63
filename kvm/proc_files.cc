#include "kvm/proc_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "kvm/base/fd.h"
#include "kvm/base/text.h"

namespace vcpulse::kvm {
namespace {

// The next field up to a blank or the end of the line, and `text` past it. Empty at the end.
std::string_view NextField(std::string_view& text) noexcept {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) {
    text = {};
    return {};
  }
  text.remove_prefix(begin);
  const std::string_view field = text.substr(0, text.find_first_of(" \t\n"));
  text.remove_prefix(field.size());
  return field;
}

// The rest of the line of `status` that begins with "LABEL:".
std::optional<std::string_view> StatusLine(std::string_view status, std::string_view label) {
  while (!status.empty()) {
    const size_t end = status.find('\n');
    const std::string_view line = status.substr(0, end);
    if (line.starts_with(label) && line.substr(label.size()).starts_with(':')) {
      return line.substr(label.size() + 1);
    }
    if (end == std::string_view::npos) break;
    status.remove_prefix(end + 1);
  }
  return std::nullopt;
}

// A PID as text: positive and in range.
std::optional<pid_t> ParsePid(std::string_view text) {
  const auto pid = ParseNumber<pid_t>(text);
  return pid && *pid > 0 ? pid : std::nullopt;
}

// A count from 0; from_chars would take a minus sign.
std::optional<int> ParseIndex(std::string_view text) {
  const auto index = ParseNumber<int>(text);
  return index && *index >= 0 && text.front() != '-' ? index : std::nullopt;
}

}  // namespace

std::optional<char> ParseTaskState(std::string_view text) noexcept {
  const size_t end = text.rfind(')');  // of the name, which may hold any character
  if (end == std::string_view::npos || text.size() < end + 4) return std::nullopt;
  if (text[end + 1] != ' ' || text[end + 2] == ' ' || text[end + 3] != ' ') return std::nullopt;
  return text[end + 2];
}

std::optional<TaskStat> ParseTaskStat(std::string_view text) noexcept {
  constexpr uint64_t kKernelThreadFlag = 0x00200000;  // PF_KTHREAD of include/linux/sched.h
  const size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  text.remove_prefix(name_end + 1);

  TaskStat stat;
  const std::string_view state = NextField(text);
  if (state.size() != 1) return std::nullopt;
  stat.state = state.front();
  for (int number = 4; number <= 43; ++number) {
    const std::string_view field = NextField(text);
    if (field.empty()) return std::nullopt;
    if (number == 4) {
      const auto parent = ParseNumber<pid_t>(field);
      if (!parent || *parent < 0) return std::nullopt;
      stat.parent = *parent;
    }
    if (number == 39) {
      const auto cpu = ParseIndex(field);
      if (!cpu) return std::nullopt;
      stat.cpu = *cpu;
    }
    if (number != 9 && number != 22 && number != 43) continue;
    const auto value = ParseNumber<uint64_t>(field);
    if (!value) return std::nullopt;
    if (number == 9) stat.kernel_thread = (*value & kKernelThreadFlag) != 0;
    if (number == 22) stat.start_time_ticks = *value;
    if (number == 43) stat.guest_time_ticks = *value;
  }
  return stat;
}

std::optional<std::string_view> ParseStatComm(std::string_view text) noexcept {
  const size_t begin = text.find('(');
  const size_t end = text.rfind(')');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) {
    return std::nullopt;
  }
  return text.substr(begin + 1, end - begin - 1);
}

std::optional<SchedStat> ParseSchedStat(std::string_view text) noexcept {
  const auto run_ns = ParseNumber<uint64_t>(NextField(text));
  const auto run_delay_ns = ParseNumber<uint64_t>(NextField(text));
  const auto timeslices = ParseNumber<uint64_t>(NextField(text));
  if (!run_ns || !run_delay_ns || !timeslices) return std::nullopt;
  return SchedStat{*run_ns, *run_delay_ns, *timeslices};
}

// "12.000345" ms as ns, as the kernel prints times in sched files; whole ms on kernels that have no
// fraction.
std::optional<uint64_t> ParseMilliseconds(std::string_view text) {
  constexpr uint64_t kNsPerMs = 1'000'000;
  const size_t point = text.find('.');
  const auto whole = ParseNumber<uint64_t>(text.substr(0, point));
  if (!whole || *whole > UINT64_MAX / kNsPerMs - 1) return std::nullopt;
  if (point == std::string_view::npos) return *whole * kNsPerMs;
  const std::string_view fraction = text.substr(point + 1);
  const auto ns = ParseNumber<uint64_t>(fraction);
  if (!ns || fraction.size() != 6) return std::nullopt;
  return *whole * kNsPerMs + *ns;
}

std::optional<TaskSched> ParseTaskSched(std::string_view text) {
  TaskSched sched;
  struct Wanted {
    std::string_view label;
    uint64_t& value;
    bool found = false;
  };
  Wanted wanted[] = {{"se.nr_migrations", sched.migrations},
                     {"nr_voluntary_switches", sched.voluntary_switches},
                     {"nr_involuntary_switches", sched.involuntary_switches},
                     {"se.sum_exec_runtime", sched.run_ns}};
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::string_view label = NextField(line);
    const auto field = std::ranges::find(wanted, label, &Wanted::label);
    if (field == std::end(wanted) || NextField(line) != ":") continue;
    const std::string_view number = NextField(line);
    const auto value =
        &field->value == &sched.run_ns ? ParseMilliseconds(number) : ParseNumber<uint64_t>(number);
    if (!value) return std::nullopt;
    field->value = *value;
    field->found = true;
  }
  if (!std::ranges::all_of(wanted, &Wanted::found)) return std::nullopt;
  return sched;
}

std::optional<pid_t> ParseStatusPid(std::string_view status, std::string_view label) {
  auto line = StatusLine(status, label);
  if (!line) return std::nullopt;
  return ParsePid(NextField(*line));
}

std::vector<pid_t> ParseNsPids(std::string_view status) {
  std::vector<pid_t> pids;
  auto line = StatusLine(status, "NSpid");
  if (!line) return pids;
  for (auto field = NextField(*line); !field.empty(); field = NextField(*line)) {
    const auto pid = ParsePid(field);
    if (!pid) return {};
    pids.push_back(*pid);
  }
  return pids;
}

std::vector<std::string> ParseCmdline(std::string_view text) {
  std::vector<std::string> arguments;
  while (!text.empty()) {
    const size_t end = text.find('\0');
    arguments.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return arguments;
}

std::optional<KvmLink> ParseKvmLink(std::string_view link) {
  constexpr std::string_view kPrefix = "anon_inode:";
  constexpr std::string_view kVcpu = "kvm-vcpu";
  constexpr std::string_view kStats = "kvm-vcpu-stats:";
  if (!link.starts_with(kPrefix)) return std::nullopt;
  link.remove_prefix(kPrefix.size());
  if (link.starts_with('[') && link.ends_with(']')) link = link.substr(1, link.size() - 2);

  if (link == "kvm-vm") return KvmLink{KvmLink::Kind::kVm, std::nullopt};
  if (link.starts_with(kStats)) {
    const auto id = ParseIndex(link.substr(kStats.size()));
    if (!id) return std::nullopt;
    return KvmLink{KvmLink::Kind::kVcpuStats, id};
  }
  if (!link.starts_with(kVcpu)) return std::nullopt;
  link.remove_prefix(kVcpu.size());
  if (link.empty()) return KvmLink{KvmLink::Kind::kVcpu, std::nullopt};
  if (link.front() != ':') return std::nullopt;
  const auto id = ParseIndex(link.substr(1));
  if (!id) return std::nullopt;
  return KvmLink{KvmLink::Kind::kVcpu, id};
}

std::optional<DebugfsVmDir> ParseDebugfsVmDir(std::string_view name) {
  const size_t dash = name.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto pid = ParsePid(name.substr(0, dash));
  const auto vm_fd = ParseIndex(name.substr(dash + 1));
  if (!pid || !vm_fd) return std::nullopt;
  return DebugfsVmDir{*pid, *vm_fd};
}

std::optional<std::string> ReadSmallFile(const std::string& path, int* error) {
  int ignored = 0;
  int& why = error == nullptr ? ignored : *error;
  constexpr size_t kMost = size_t{256} << 10;
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  why = errno;
  if (!fd.valid()) return std::nullopt;
  std::string text;
  char buffer[4096];
  while (text.size() < kMost) {
    const ssize_t size = ::read(fd.get(), buffer, sizeof(buffer));
    if (size < 0 && errno == EINTR) continue;
    why = errno;
    if (size < 0) return std::nullopt;
    if (size == 0) break;
    text.append(buffer, static_cast<size_t>(size));
  }
  why = 0;
  return text;
}

}  // namespace vcpulse::kvm
