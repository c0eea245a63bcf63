#include "monitor/report/why_json.h"

#include <algorithm>
#include <boost/json.hpp>
#include <string>
#include <utility>

#include "kvm/base/clock.h"
#include "kvm/base/json.h"
#include "monitor/report/why_notes.h"

namespace vcpulse::report {
namespace {

namespace json = boost::json;

// Null where none of the counts was read that they are made of.
json::value CausesJson(const VcpuSummary& vcpu) {
  const bool any = std::ranges::any_of(
      kCauses, [&vcpu](const Cause& cause) { return vcpu.Value(cause.metric).has_value(); });
  if (!any) return nullptr;
  json::array causes;
  for (const Cause* const cause : CausesOf(vcpu)) causes.push_back(Utf8Text(cause->name));
  return causes;
}

// Null where there is none.
json::value TimeJson(const TimeByCause& time) {
  if (time.TotalNs() == 0) return nullptr;
  json::object causes;
  for (const TimeByCause::Part& part : time.parts()) causes[part.cause] = ToSeconds(part.ns);
  return json::object{{"seconds", ToSeconds(time.TotalNs())},
                      {"causes", std::move(causes)},
                      {"unexplained_s", ToSeconds(time.UnexplainedNs())},
                      {"not_read_s", ToSeconds(time.UnreadNs())}};
}

// Null where no window of it was recorded.
json::value HotspotsJson(const Report& report, uint32_t vm, uint32_t vcpu) {
  const auto hot = report.summary.hotspots().Of(vm, vcpu, report.symbols);
  if (!hot) return nullptr;
  constexpr size_t kMostSpots = 50;  // `vcpulse hotspots --json` has all
  return hotspots::ObjectOf(*hot, kMostSpots);
}

// Null where no window of it was recorded.
json::value CompetitorsJson(const Report& report, uint32_t vm, uint32_t vcpu) {
  const auto totals = report.summary.competitors().Of(vm, vcpu);
  if (!totals) return nullptr;
  const auto seconds = [](uint64_t ns) { return ToSeconds(static_cast<double>(ns)); };
  json::array threads;
  for (const reading::CompetitorTotal& one : totals->competitors) {
    threads.push_back(json::object{
        {"kind", Utf8Text(reading::ToString(one.kind))},
        {"label", Utf8Text(one.label)},
        {"vm", TextOrNull(one.vm)},
        {"vcpu", OrNull(one.vcpu)},
        {"thread", TextOrNull(one.thread_name)},
        {"process", TextOrNull(one.process_name)},
        {"pid", NumberOrNull(one.pid)},
        {"seconds", seconds(one.ns)},
        {"share", static_cast<double>(one.ns) / static_cast<double>(totals->waited_ns)}});
  }
  return json::object{
      {"windows", totals->windows},
      {"waited_s", seconds(totals->waited_ns)},
      {"unattributed_s", seconds(totals->unattributed_ns)},
      {"others_s", seconds(totals->further_ns)},
      {"run_delay_s",
       totals->run_delay_ns ? json::value(seconds(*totals->run_delay_ns)) : json::value(nullptr)},
      {"lost", totals->lost},
      {"ended_by", TextOrNull(totals->ended_by)},
      {"cpus", json::array(totals->cpus.begin(), totals->cpus.end())},
      {"threads", std::move(threads)}};
}

void AddHostCpus(const Report& report, const HostCpus& cpus, json::object& out) {
  for (const char* const key : {"host_cpus", "host_cpu_shares", "host_cpu_moves"}) {
    out[key] = nullptr;
  }
  out["host_cpu_moves_omitted"] = cpus.moves_omitted();
  if (cpus.AllReadings() == 0) return;
  json::array numbers;
  json::object shares;
  for (const auto& [cpu, readings] : cpus.readings()) {
    numbers.push_back(cpu);
    shares[std::to_string(cpu)] =
        static_cast<double>(readings) / static_cast<double>(cpus.AllReadings());
  }
  out["host_cpus"] = std::move(numbers);
  out["host_cpu_shares"] = std::move(shares);
  json::array moves;
  for (const HostCpus::Move& move : cpus.moves()) {
    moves.push_back(json::object{{"t_s", report.SecondsAt(move.at_ns)}, {"cpu", move.cpu}});
  }
  out["host_cpu_moves"] = std::move(moves);
}

json::value SmtJson(const Report& report, const SmtNeighbours& smt) {
  if (smt.readings() == 0) return nullptr;
  json::array all;
  for (const SmtNeighbours::Neighbour& one : smt.MostFirst()) {
    const auto of = report.summary.vms().find(one.vcpu.vm);
    all.push_back(json::object{
        {"vm", of == report.summary.vms().end() ? json::value(nullptr)
                                                : JsonText(of->second.instance.name())},
        {"vm_number", one.vcpu.vm},
        {"vcpu", one.vcpu.index},
        {"share", static_cast<double>(one.readings) / static_cast<double>(smt.readings())}});
  }
  return all;
}

}  // namespace

void AddWhy(const Report& report, uint32_t vm, const VcpuSummary& vcpu, json::object& out) {
  out["causes"] = CausesJson(vcpu);
  out["without_counters"] = TimeJson(vcpu.uncounted);
  out["polling"] = TimeJson(vcpu.polling);
  out["hotspots"] = HotspotsJson(report, vm, vcpu.index);
  out["competitors"] = CompetitorsJson(report, vm, vcpu.index);
  AddHostCpus(report, vcpu.host_cpus, out);
  out["smt_neighbours"] = SmtJson(report, vcpu.smt);
  out["smt_neighbours_omitted"] = vcpu.smt.omitted();
}

}  // namespace vcpulse::report
