// A calibration as text and as JSON.

#include <algorithm>
#include <array>
#include <ranges>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "boost/json.hpp"
#include "kvm/base/json.h"
#include "kvm/base/text.h"
#include "monitor/calibrate/calibration.h"
#include "monitor/profile/profile.h"
#include "monitor/reading/labels.h"
#include "monitor/report/text_format.h"

namespace vcpulse::calibrate {
namespace {

namespace json = boost::json;
using core::Band;
using core::Classifier;
using report::DurationText;
using report::MetricText;
using report::Percent;
using report::Table;

constexpr std::array kTruths = {Band::kHalted, Band::kSpinning, Band::kProductive};
constexpr std::array kSaid = {Band::kHalted, Band::kSpinning, Band::kProductive, Band::kUnknown,
                              Band::kNone};
constexpr std::array kBoth = {Classifier::kEvidence, Classifier::kIpcBands};
constexpr char kNoVerdict[] = "no verdict";

const Said& Of(const SceneOutcome& scene, Classifier classifier) {
  return scene.said[static_cast<size_t>(classifier)];
}

// "SPINNING 98.0%": what it said most, and how much.
std::string MostText(const Said& said) {
  const Band most = said.Most();
  if (most == Band::kNone) return said.TotalNs() == 0 ? "-" : kNoVerdict;
  return absl::StrCat(std::string(core::ToString(most)), " ", Percent(said.Share(most)));
}

std::string TableOfPrograms(const Calibration& calibration) {
  Table table({"truth", "program", "IPC", "residency", "evidence", "found after", "ipc-bands"});
  for (const SceneOutcome& scene : calibration.scenes) {
    if (scene.scene.duty) continue;
    const auto truth = scene.Truth();
    const Said& evidence = Of(scene, Classifier::kEvidence);
    table.AddRow(
        {{std::string(truth ? core::ToString(*truth) : ToString(scene.scene.program->truth))},
         {scene.scene.name},
         {MetricText(metric::InfoOf(metric::Metric::kIpc), scene.Ipc())},
         {Percent(scene.Residency())},
         {MostText(evidence)},
         {evidence.found_after_ns ? DurationText(static_cast<double>(*evidence.found_after_ns))
                                  : "-"},
         {MostText(Of(scene, Classifier::kIpcBands))}});
  }
  return table.Render(false);
}

std::string Confusion(const Calibration& calibration, Classifier classifier) {
  const std::string name(core::ToString(classifier));
  Table table(
      {absl::StrCat(name, " said"), "HALTED", "SPINNING", "PRODUCTIVE", "UNKNOWN", kNoVerdict});
  for (const Band truth : kTruths) {
    const Said said = calibration.Of(classifier, truth);
    std::vector<Table::Cell> cells = {
        {absl::StrCat("of ", std::string(core::ToString(truth)), " guests")}};
    for (const Band band : kSaid) cells.push_back({Percent(said.Share(band))});
    table.AddRow(std::move(cells));
  }
  const auto right = calibration.RightShare(classifier);
  if (!right) return table.Render(false);
  return absl::StrCat(table.Render(false), name, " was right in ", Percent(*right),
                      " of the time\n");
}

// The guest's speed in a scene, as a share of that of the whole loop.
std::optional<double> SpeedOf(const Calibration& calibration, const SceneOutcome& scene) {
  const SceneOutcome* const whole = calibration.Find("loop");
  if (whole == nullptr || !whole->TurnsPerSecond() || !scene.TurnsPerSecond()) return std::nullopt;
  return *scene.TurnsPerSecond() / *whole->TurnsPerSecond();
}

std::string TableOfDuties(const Calibration& calibration) {
  Table table({"in the guest", "residency", "error", "turns per second", "HALTED by evidence"});
  bool any = false;
  for (const SceneOutcome& scene : calibration.scenes) {
    const auto inside = scene.InsideShare();
    if (!scene.scene.duty || !inside) continue;
    any = true;
    const auto residency = scene.Residency();
    const auto speed = SpeedOf(calibration, scene);
    table.AddRow({{Percent(*inside)},
                  {residency ? Percent(*residency) : "-"},
                  {residency ? absl::StrFormat("%+.2f points", 100 * (*residency - *inside)) : "-"},
                  {speed ? absl::StrCat(Percent(*speed), " of the loop's") : "-"},
                  {Percent(Of(scene, Classifier::kEvidence).Share(Band::kHalted))}});
  }
  return any ? table.Render(false) : "";
}

std::string Closing(const Calibration& calibration) {
  std::string out;
  if (const auto smallest = calibration.SmallestSeen(Classifier::kEvidence)) {
    absl::StrAppend(&out, "the smallest share of time seen as not HALTED: ", Percent(*smallest),
                    "\n");
  }
  const SceneOutcome* const pause = calibration.Find("pause");
  if (pause != nullptr && pause->CyclesPerTurn() && calibration.IpcTellsProgramsApart() == true) {
    absl::StrAppend(&out, absl::StrFormat("a turn of the PAUSE spin takes %.1f cycles\n",
                                          *pause->CyclesPerTurn()));
  }
  if (calibration.measured.ok()) {
    const Measured& measured = *calibration.measured;
    const std::string before = absl::StrCat(Percent(calibration.RightShare(Classifier::kEvidence)),
                                            " by ", Printable(calibration.profile));
    out += report::Wrapped(
        "", absl::StrCat("by the profile that was measured, evidence is right in ",
                         Percent(measured.right), " of the time instead of ", before, ": ",
                         calibration.MeasuredIsBetter() ? "better here" : "no better here"));
  }
  return out;
}

// A profile of the user's own may have a name that says whose it is.
std::string PublicName(const std::string& profile) {
  const auto names = std::views::transform(profile::BuiltIn(), &profile::Profile::name);
  return std::ranges::find(names, profile) != names.end() ? profile : "custom";
}

json::value NumberOrNull(std::optional<double> value) {
  return value ? json::value(*value) : json::value(nullptr);
}

json::object ToJson(const Said& said) {
  json::object object;
  for (const Band band : kSaid) {
    const auto name = reading::BandName(band);
    object[name ? JsonText(*name) : "no_verdict"] = NumberOrNull(said.Share(band));
  }
  return object;
}

json::object ToJson(const SceneOutcome& scene) {
  json::object object;
  object["name"] = JsonText(scene.scene.name);
  object["truth"] = nullptr;
  if (!scene.scene.duty) object["truth"] = JsonText(ToString(scene.scene.program->truth));
  object["seconds"] = static_cast<double>(scene.played.end_ns - scene.played.begin_ns) / 1e9;
  object["turns"] = scene.played.turns;
  object["ipc"] = NumberOrNull(scene.Ipc());
  object["residency"] = NumberOrNull(scene.Residency());
  object["inside_share"] = NumberOrNull(scene.InsideShare());
  object["turns_per_second"] = NumberOrNull(scene.TurnsPerSecond());
  object["cycles_per_turn"] = NumberOrNull(scene.CyclesPerTurn());
  for (const Classifier classifier : kBoth) {
    const Said& said = Of(scene, classifier);
    json::object one = ToJson(said);
    one["found_after_s"] = said.found_after_ns
                               ? json::value(static_cast<double>(*said.found_after_ns) / 1e9)
                               : json::value(nullptr);
    object[JsonText(core::ToString(classifier))] = std::move(one);
  }
  return object;
}

// Only what was measured: the rest, and its origins, may be a user's own.
json::object ToJson(const Measured& measured) {
  const core::EvidenceThresholds& evidence = measured.profile.values.evidence;
  const auto origin = [&measured](const std::string& field) {
    const auto found = measured.profile.origins.find(field);
    const bool is_ours = found != measured.profile.origins.end() &&
                         found->second.starts_with("measured on this host");
    return is_ours ? json::value(JsonText(found->second)) : json::value(nullptr);
  };
  json::object object;
  object["right"] = measured.right;
  json::array spins;
  for (size_t i = 0; i < evidence.spin_ipcs; ++i) {
    spins.push_back({{"from", evidence.spin_ipc[i].from},
                     {"to", evidence.spin_ipc[i].to},
                     {"origin", origin(absl::StrCat("spin_ipc[", i, "]"))}});
  }
  object["spin_ipc"] = std::move(spins);
  object["pause_cycles_each"] = NumberOrNull(evidence.pause_cycles_each);
  object["pause_cycles_each_origin"] = origin("pause_cycles_each");
  return object;
}

}  // namespace

std::string ToText(const Calibration& calibration) {
  const v1::Session& session = calibration.session;
  const std::string on_cpus =
      calibration.on_cpus.empty()
          ? ""
          : absl::StrCat("; on CPUs ", absl::StrJoin(calibration.on_cpus, ","));
  std::string out = report::Wrapped(
      "", absl::StrCat("Linux ", Printable(session.kernel_release()), " ",
                       Printable(session.machine()), ", ", Printable(session.cpu_model()),
                       "; profile ", Printable(calibration.profile), on_cpus, "; a tick every ",
                       DurationText(static_cast<double>(session.interval_ns())), "; vcpulse ",
                       Printable(session.tool_version())));
  if (calibration.IpcTellsProgramsApart() == false) {
    out += report::Wrapped(
        "note: ",
        "every program ran at about the same IPC, so the cycles counter of this host does not "
        "count the cycles of a CPU (an emulated PMU): SPINNING and PRODUCTIVE mean nothing on this "
        "host; HALTED, residency and delays do.");
  }
  absl::StrAppend(&out, "\n", TableOfPrograms(calibration));
  for (const Classifier classifier : kBoth) {
    absl::StrAppend(&out, "\n", Confusion(calibration, classifier));
  }
  const std::string duties = TableOfDuties(calibration);
  if (!duties.empty()) absl::StrAppend(&out, "\n", duties);
  if (!calibration.left_out.empty()) out += "\n";
  for (const std::string& one : calibration.left_out) {
    out += report::Wrapped("left out: ", one);
  }
  const std::string closing = Closing(calibration);
  if (!closing.empty()) absl::StrAppend(&out, "\n", closing);
  return out;
}

std::string ToJson(const Calibration& calibration) {
  const v1::Session& session = calibration.session;
  json::object all;
  all["vcpulse"] = JsonText(session.tool_version());
  all["kernel"] = JsonText(session.kernel_release());
  all["machine"] = JsonText(session.machine());
  all["cpu"] = JsonText(session.cpu_model());
  all["microcode"] = calibration.cpu.microcode.empty()
                         ? nullptr
                         : json::value(JsonText(calibration.cpu.microcode));
  all["on_cpus"] = json::value_from(calibration.on_cpus);
  all["left_out"] = json::value_from(calibration.left_out);
  all["profile"] = JsonText(PublicName(calibration.profile));
  all["interval_s"] = static_cast<double>(session.interval_ns()) / 1e9;
  const auto apart = calibration.IpcTellsProgramsApart();
  all["ipc_tells_programs_apart"] = apart ? json::value(*apart) : json::value(nullptr);
  for (const Classifier classifier : kBoth) {
    json::object said;
    for (const Band truth : kTruths) {
      said[JsonText(*reading::BandName(truth))] = ToJson(calibration.Of(classifier, truth));
    }
    json::object one;
    one["right"] = NumberOrNull(calibration.RightShare(classifier));
    one["smallest_seen"] = NumberOrNull(calibration.SmallestSeen(classifier));
    one["confusion"] = std::move(said);
    all[JsonText(core::ToString(classifier))] = std::move(one);
  }
  if (calibration.measured.ok()) {
    all["measured_profile"] = ToJson(*calibration.measured);
  } else {
    all["measured_profile"] = nullptr;
  }
  json::array scenes;
  for (const SceneOutcome& scene : calibration.scenes) {
    scenes.push_back(ToJson(scene));
  }
  all["scenes"] = std::move(scenes);
  return json::serialize(all) + "\n";
}

}  // namespace vcpulse::calibrate
