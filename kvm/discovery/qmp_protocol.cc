#include "kvm/discovery/qmp_protocol.h"

#include <algorithm>
#include <boost/json.hpp>
#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kvm/base/text.h"
#include "kvm/kvm_stat_names.h"

namespace vcpulse::kvm {
namespace {

namespace json = boost::json;

// Not QMP; shows the beginning of what came, on one line and harmless to a terminal.
absl::Status NotQmp(std::string_view what, std::string_view text) {
  constexpr size_t kShown = 60;
  const std::string shown = absl::CHexEscape(ToAbsl(text.substr(0, kShown)));
  return absl::DataLossError(
      absl::StrCat(ToAbsl(what), " (got \"", shown, text.size() > kShown ? "...\")" : "\")"));
}

// The text member `key` of an object, or nothing.
std::optional<std::string> TextMember(const json::value& value, std::string_view key) {
  const json::object* object = value.if_object();
  if (object == nullptr) return std::nullopt;
  const json::value* member = object->if_contains(json::string_view(key.data(), key.size()));
  if (member == nullptr || !member->is_string()) return std::nullopt;
  const json::string& text = member->get_string();
  return std::string(text.data(), text.size());
}

// An integer member from `lowest` up that fits an int, or nothing.
std::optional<int> IntMember(const json::object& object, std::string_view key, int lowest) {
  const json::value* member = object.if_contains(json::string_view(key.data(), key.size()));
  if (member == nullptr) return std::nullopt;
  const auto* number = member->if_int64();  // the parser gives int64 to all that fit
  if (number == nullptr || *number < lowest || *number > std::numeric_limits<int>::max()) {
    return std::nullopt;
  }
  return static_cast<int>(*number);
}

// The answer to query-cpus-fast, or nothing where it is not one: each index and each TID once.
std::optional<std::vector<QmpCpu>> ParseCpus(const json::value& value) {
  const json::array* array = value.if_array();
  if (array == nullptr || array->empty()) return std::nullopt;
  std::vector<QmpCpu> cpus;
  std::vector<pid_t> tids;
  for (const json::value& element : *array) {
    const json::object* object = element.if_object();
    if (object == nullptr) return std::nullopt;
    const auto index = IntMember(*object, "cpu-index", 0);
    const auto tid = IntMember(*object, "thread-id", 1);
    if (!index || !tid) return std::nullopt;
    cpus.push_back({*index, *tid});
    tids.push_back(*tid);
  }
  std::ranges::sort(cpus, {}, &QmpCpu::index);
  std::ranges::sort(tids);
  const bool index_twice = std::ranges::adjacent_find(cpus, {}, &QmpCpu::index) != cpus.end();
  const bool tid_twice = std::ranges::adjacent_find(tids) != tids.end();
  if (index_twice || tid_twice) return std::nullopt;
  return cpus;
}

// Where each vCPU of that answer is in QEMU's object tree.
std::map<std::string, int> ParseCpuPaths(const json::value& cpus) {
  std::map<std::string, int> paths;
  for (const json::value& element : cpus.as_array()) {
    const auto path = TextMember(element, "qom-path");
    if (path) paths[*path] = *IntMember(element.as_object(), "cpu-index", 0);
  }
  return paths;
}

// The answer to query-stats, or nothing where it is not one. Histograms are skipped.
std::optional<std::vector<QmpVcpuStatistics>> ParseStatistics(
    const json::value& value, const std::map<std::string, int>& cpu_of_path) {
  const json::array* array = value.if_array();
  if (array == nullptr) return std::nullopt;
  std::vector<QmpVcpuStatistics> all;
  for (const json::value& element : *array) {
    const auto path = TextMember(element, "qom-path");
    const auto cpu = path ? cpu_of_path.find(*path) : cpu_of_path.end();
    const json::object* object = element.if_object();
    const json::value* stats = object != nullptr ? object->if_contains("stats") : nullptr;
    if (cpu == cpu_of_path.end() || stats == nullptr || !stats->is_array()) return std::nullopt;
    QmpVcpuStatistics& vcpu = all.emplace_back();
    vcpu.index = cpu->second;
    for (const json::value& stat : stats->get_array()) {
      const auto name = TextMember(stat, "name");
      if (!name) return std::nullopt;
      const json::value* number = stat.get_object().if_contains("value");
      json::error_code error;
      const auto count = number != nullptr ? number->to_number<uint64_t>(error) : 0;
      if (number != nullptr && number->is_number() && !error)
        vcpu.values.emplace_back(*name, count);
    }
  }
  std::ranges::sort(all, {}, &QmpVcpuStatistics::index);
  const bool twice = std::ranges::adjacent_find(all, {}, &QmpVcpuStatistics::index) != all.end();
  if (twice) return std::nullopt;
  return all;
}

// QEMU ignores names that this kernel does not have.
std::string StatisticsArguments() {
  return absl::StrCat(
      R"(, "arguments": {"target": "vcpu", "providers": [{"provider": "kvm", )", R"("names": [")",
      absl::StrJoin(kKvmStatNames, R"(", ")",
                    [](std::string* out, std::string_view name) { out->append(name); }),
      R"("]}]})");
}

}  // namespace

absl::Status QmpProtocol::Receive(std::string_view bytes) {
  while (failed_.ok() && !bytes.empty() && !done()) {
    const size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (line_.size() + part.size() > kLongestLine) {
      failed_ =
          NotQmp("a line of more than 1 MiB is not a QMP answer", line_.empty() ? part : line_);
      break;
    }
    line_ += part;
    if (end == std::string_view::npos) {
      // Something that ends no line would otherwise be waited for until the time-out.
      const size_t first = line_.find_first_not_of(" \t\r");
      if (first != std::string::npos && line_[first] != '{') failed_ = ReceiveLine(line_);
      break;
    }
    bytes.remove_prefix(end + 1);
    failed_ = ReceiveLine(line_);
    line_.clear();
  }
  return failed_;
}

std::string QmpProtocol::TakeOutput() { return std::exchange(output_, {}); }

absl::Status QmpProtocol::ReceiveLine(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return absl::OkStatus();
  json::error_code error;
  const json::value message = json::parse(json::string_view(line.data(), line.size()), error);
  const json::object* object = error ? nullptr : message.if_object();
  if (object == nullptr) {
    const bool human = line.find("monitor - type 'help'") != std::string_view::npos;
    return NotQmp(human ? "this is QEMU's human monitor, not QMP (-qmp, or -mon with mode=control)"
                        : "this does not speak QMP",
                  line);
  }
  if (step_ == Step::kGreeting) {
    if (!object->contains("QMP")) return NotQmp("no QMP greeting", line);
    Ask(Step::kCapabilities);
    return absl::OkStatus();
  }
  if (object->contains("event")) return absl::OkStatus();

  const json::value* answer = object->if_contains("return");
  const json::value* refusal = object->if_contains("error");
  if (answer == nullptr && refusal == nullptr) return NotQmp("neither answer nor event", line);
  switch (step_) {
    case Step::kCapabilities:
      if (answer == nullptr) return NotQmp("qmp_capabilities was refused", line);
      Ask(Step::kCpus);
      break;
    case Step::kCpus: {
      if (answer == nullptr) {
        if (TextMember(*refusal, "class") != "CommandNotFound") {
          return NotQmp("query-cpus-fast was refused", line);
        }
        return absl::FailedPreconditionError(
            "QEMU does not know query-cpus-fast (before 2.12): give the vCPU threads with --tid");
      }
      auto cpus = ParseCpus(*answer);
      if (!cpus) return NotQmp("an answer to query-cpus-fast that makes no sense", line);
      answers_.cpus = *std::move(cpus);
      cpu_of_path_ = ParseCpuPaths(*answer);
      Ask(AfterCpus());
      break;
    }
    case Step::kKvm: {
      const json::object* kvm = answer != nullptr ? answer->if_object() : nullptr;
      const json::value* enabled = kvm != nullptr ? kvm->if_contains("enabled") : nullptr;
      if (enabled != nullptr && enabled->is_bool()) answers_.kvm_enabled = enabled->get_bool();
      Ask(Step::kName);
      break;
    }
    case Step::kName:
      if (answer != nullptr) answers_.name = TextMember(*answer, "name");
      Ask(Step::kUuid);
      break;
    case Step::kUuid:
      if (answer != nullptr) answers_.uuid = TextMember(*answer, "UUID");
      Ask(Step::kDone);
      break;
    case Step::kStatistics: {
      if (answer == nullptr) {
        return absl::FailedPreconditionError(
            "QEMU does not tell KVM's statistics (query-stats: 7.1 or newer, with KVM)");
      }
      auto statistics = ParseStatistics(*answer, cpu_of_path_);
      if (!statistics) return NotQmp("an answer to query-stats that makes no sense", line);
      answers_.statistics = *std::move(statistics);
      Ask(Step::kDone);
      break;
    }
    case Step::kMonitor:
      if (answer == nullptr || !answer->is_string()) {
        return absl::FailedPreconditionError(
            absl::StrCat("QEMU does not print ",
                         questions_ == QmpQuestions::kCode ? "the guest's memory" : "registers",
                         " (human-monitor-command is refused)"));
      }
      answers_.monitor_texts.emplace_back(answer->get_string());
      Ask(answers_.monitor_texts.size() < MonitorQuestions() ? Step::kMonitor : Step::kDone);
      break;
    case Step::kGreeting:
    case Step::kDone:
      break;
  }
  return absl::OkStatus();
}

QmpProtocol::Step QmpProtocol::AfterCpus() const {
  switch (questions_) {
    case QmpQuestions::kIdentity:
      return Step::kKvm;
    case QmpQuestions::kStatistics:
      return Step::kStatistics;
    case QmpQuestions::kRegisters:
    case QmpQuestions::kCode:
      return MonitorQuestions() > 0 ? Step::kMonitor : Step::kDone;
  }
  return Step::kDone;
}

size_t QmpProtocol::MonitorQuestions() const {
  return questions_ == QmpQuestions::kCode ? code_.addresses.size() : answers_.cpus.size();
}

std::string QmpProtocol::MonitorArguments() const {
  const size_t next = answers_.monitor_texts.size();
  const bool is_code = questions_ == QmpQuestions::kCode;
  const std::string line = is_code
                               ? absl::StrFormat("x /%dxb 0x%x", code_.bytes, code_.addresses[next])
                               : "info registers";
  return absl::StrCat(R"(, "arguments": {"command-line": ")", line, R"(", "cpu-index": )",
                      is_code ? code_.vcpu : answers_.cpus[next].index, "}");
}

void QmpProtocol::Ask(Step step) {
  step_ = step;
  const char* command = "";
  std::string arguments;
  switch (step) {
    case Step::kCapabilities:
      command = "qmp_capabilities";
      break;
    case Step::kCpus:
      command = "query-cpus-fast";
      break;
    case Step::kKvm:
      command = "query-kvm";
      break;
    case Step::kName:
      command = "query-name";
      break;
    case Step::kUuid:
      command = "query-uuid";
      break;
    case Step::kStatistics:
      command = "query-stats";
      arguments = StatisticsArguments();
      break;
    case Step::kMonitor:
      command = "human-monitor-command";
      arguments = MonitorArguments();
      break;
    case Step::kGreeting:
    case Step::kDone:
      return;
  }
  output_ += absl::StrCat("{\"execute\": \"", command, "\"", arguments, "}\n");
}

}  // namespace vcpulse::kvm
