// `vcpulse list events`: which events this host opens, as a table or as JSON.
#include "tools/vcpulse/list_events.h"

#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/json.h"
#include "kvm/counters/errno_advice.h"
#include "kvm/counters/group_opener.h"
#include "kvm/counters/perf_events.h"
#include "kvm/events/event_probe.h"
#include "kvm/host.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/output.h"
#include "tools/vcpulse/target_options.h"

namespace vcpulse::tools {
namespace {

namespace json = boost::json;

// An event and what the kernel said to it.
struct Row {
  kvm::ListedEvent listed;
  std::optional<int> error;  // of perf_event_open, 0: it opened; nothing: it was not tried
  std::string answer;
};

bool NoPermission(const Row& row) { return row.error == EACCES || row.error == EPERM; }

std::string_view Counts(const Row& row) {
  // Tracepoints that could not be resolved have no event that would say so.
  return row.listed.event.host_side || row.listed.kind == "tracepoint" ? "host-side" : "guest";
}

// Hardware events are not opened beside a mediated vPMU, not even for a moment: a VM that starts
// then would not.
std::vector<Row> Probe(kvm::PerfEvents& perf, std::vector<kvm::ListedEvent> events,
                       const std::string& mediated) {
  std::vector<Row> rows;
  for (kvm::ListedEvent& listed : events) {
    Row row;
    row.answer = listed.obstacle;
    if (row.answer.empty() && !mediated.empty() && !listed.event.host_side) {
      row.answer = "not tried: mediated vPMU";
    }
    if (row.answer.empty()) {
      row.error = kvm::TryToOpen(perf, listed.event);
      row.answer = kvm::OpenAnswer(*row.error);
    }
    row.listed = std::move(listed);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string TableOf(const std::vector<Row>& rows) {
  std::vector<std::vector<std::string>> cells = {{"EVENT", "KIND", "COUNTS", "THIS HOST"}};
  for (const Row& row : rows) {
    std::string name = row.listed.name;
    if (!row.listed.aliases.empty()) {
      absl::StrAppend(&name, " (", absl::StrJoin(row.listed.aliases, ", "), ")");
    }
    cells.push_back({name, row.listed.kind, std::string(Counts(row)), row.answer});
  }
  return Aligned(cells, 0);
}

json::object JsonOf(const Row& row) {
  json::array aliases;
  for (const std::string& alias : row.listed.aliases) aliases.push_back(JsonText(alias));
  json::object object;
  object["name"] = JsonText(row.listed.name);
  object["aliases"] = std::move(aliases);
  object["kind"] = JsonText(row.listed.kind);
  object["counts"] = Counts(row) == "guest" ? "guest" : "host";
  object["opens"] = row.error && !NoPermission(row) ? json::value(*row.error == 0) : nullptr;
  object["errno"] = row.error ? json::value(*row.error) : json::value(nullptr);
  object["answer"] = JsonText(row.answer);
  return object;
}

// One event per line, so that a person can read it and grep it.
std::string JsonOf(const std::vector<Row>& rows) {
  std::string text = "[";
  for (size_t i = 0; i < rows.size(); ++i) {
    absl::StrAppend(&text, i > 0 ? ",\n " : "", json::serialize(JsonOf(rows[i])));
  }
  return text + "]\n";
}

void Note(const std::string& message) { std::fprintf(stderr, "vcpulse: %s\n", message.c_str()); }

// What the whole list suffers from, once.
void SayObstacles(const std::vector<Row>& rows, const kvm::EventCatalog& catalog,
                  const std::string& mediated, const std::string& root) {
  if (catalog.core_pmus().empty()) {
    Note(
        "this host shows no PMU of its CPUs (is it a virtual machine without vPMU?): it has no "
        "hardware and cache events");
  }
  if (!mediated.empty()) Note(mediated);
  const auto refused = std::ranges::find_if(rows, NoPermission);
  if (refused == rows.end()) return;
  Note(kvm::AdviseOnOpenFailure({.error = *refused->error,
                                 .event = refused->listed.name,
                                 .tid = ::getpid(),
                                 .paranoid = kvm::PerfEventParanoid(root)}) +
       "; whether the events exist cannot be told before");
}

}  // namespace

// Where tracepoints may have been meant and this host shows none.
std::string WhyNoTracepoint(const ListEventsOptions& options, const kvm::EventCatalog& catalog) {
  const bool meant =
      options.pattern == "tracepoint" || options.pattern.find(':') != std::string::npos;
  if (!meant) return "";
  const absl::Status status = catalog.TracepointId("any", "any").status();
  return absl::IsFailedPrecondition(status) ? absl::StrCat(": ", status.message()) : "";
}

int RunListEvents(const ListEventsOptions& options) {
  if (absl::Status status = CheckRoot(options.root); !status.ok()) return Fail(status);
  const kvm::EventCatalog catalog(options.root);
  kvm::KernelPerfEvents perf;
  const std::string mediated = kvm::MediatedVpmuObstacle(options.root);
  const std::vector<Row> rows = Probe(perf, kvm::ListEvents(catalog, options.pattern), mediated);
  SayObstacles(rows, catalog, mediated, options.root);
  if (rows.empty())
    Note("no event matches '" + options.pattern + "'" + WhyNoTracepoint(options, catalog));
  std::string text = options.json ? JsonOf(rows) : rows.empty() ? "" : TableOf(rows);
  if (!options.json && options.pattern.empty()) {
    const size_t tracepoints = catalog.Tracepoints().size();
    absl::StrAppend(&text, "\n", tracepoints,
                    tracepoints > 0
                        ? " tracepoints, host-side: `vcpulse list events 'kvm:*'` shows some"
                        : " tracepoints can be read (they need root and a mounted tracefs)",
                    "\n");
  }
  return WriteStdout(text);
}

}  // namespace vcpulse::tools
