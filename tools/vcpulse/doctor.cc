// `vcpulse doctor`: what stands in the way of a recording on this host, and how to fix it.
//
// With --json one object:
//   complete   bool: a recording here would be complete, for all that could be told
//   verdict    "complete", "unknown" (no check failed, but vCPUs of a VM that runs may be missing),
//              "degraded" (counters or VMs would be missing) or "fails"
//   findings   array, in the order in which a person would fix them, of
//     id       stable name of the check, such as "paranoid"; more than one where it is about VMs
//     state    "ok", "fail", "note" (changes nothing about completeness), "unknown" (cannot be
//              told, or was not tried)
//     tried    what was tried
//     answered what that answered
//     fix   how to fix it; null where nothing has to be done
// With --prove, in place of complete and verdict:
//   proven     "yes", "no" (a claim failed) or "not-told" (none failed, some could not be tried)
#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kvm/base/json.h"
#include "kvm/base/text.h"
#include "kvm/counters/perf_events.h"
#include "kvm/doctor/checks.h"
#include "kvm/doctor/proof.h"
#include "kvm/host.h"
#include "monitor/profile/installed.h"
#include "monitor/profile/profile.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/target_options.h"

namespace vcpulse::tools {
namespace {

namespace json = boost::json;
using kvm::doctor::Finding;
using kvm::doctor::Proven;
using kvm::doctor::Verdict;

struct DoctorOptions {
  bool json = false;
  bool prove = false;
  std::string root = "/";
};

json::array ToJson(const std::vector<Finding>& findings) {
  json::array array;
  for (const Finding& finding : findings) {
    json::object object;
    object["id"] = JsonText(finding.id);
    object["state"] = JsonText(kvm::doctor::ToString(finding.state));
    object["tried"] = JsonText(finding.tried);
    object["answered"] = JsonText(finding.answered);
    object["fix"] = finding.fix.empty() ? json::value(nullptr) : json::value(JsonText(finding.fix));
    array.push_back(std::move(object));
  }
  return array;
}

std::string JsonOf(const std::vector<Finding>& findings) {
  const Verdict verdict = kvm::doctor::VerdictOf(findings);
  json::object all;
  all["complete"] = verdict == Verdict::kComplete;
  all["verdict"] = JsonText(kvm::doctor::ToString(verdict));
  all["findings"] = ToJson(findings);
  return json::serialize(all) + "\n";
}

std::string JsonOfProof(const std::vector<Finding>& findings) {
  json::object all;
  all["proven"] = JsonText(kvm::doctor::ToString(kvm::doctor::IsProven(findings)));
  all["findings"] = ToJson(findings);
  return json::serialize(all) + "\n";
}

std::string TextOf(const Finding& finding) {
  const bool fails = finding.state == Finding::State::kFail;
  const std::string state = fails ? "FAIL" : std::string(kvm::doctor::ToString(finding.state));
  std::string text = absl::StrFormat("%-8s  %-14s  ", state, finding.id);
  if (!fails) {
    absl::StrAppend(&text, finding.answered);
    if (!finding.fix.empty()) absl::StrAppend(&text, " (", finding.fix, ")");
    return text + "\n";
  }
  absl::StrAppend(&text, "tried:    ", finding.tried, "\n");
  const std::string indent(26, ' ');
  absl::StrAppend(&text, indent, "answered: ", finding.answered, "\n");
  absl::StrAppend(&text, indent, "fix:      ", finding.fix, "\n");
  return text;
}

// What could not be tried for one and the same reason takes one line.
std::string TextOf(const std::vector<Finding>& findings) {
  std::string text;
  for (auto at = findings.begin(); at != findings.end();) {
    const Finding& first = *at++;
    Finding together = first;
    const char* joint = "; likewise ";
    while (first.state == Finding::State::kUnknown && !first.of_vm && at != findings.end() &&
           at->state == first.state && at->answered == first.answered) {
      absl::StrAppend(&together.answered, std::exchange(joint, ", "), (at++)->id);
    }
    text += TextOf(together);
  }
  return text;
}

std::string UnknownLine(const std::vector<Finding>& findings) {
  const auto vms = std::ranges::count_if(findings, kvm::doctor::LeavesAVmUnknown);
  return absl::StrCat(
      "no check failed, but it is unknown whether a recording here would be complete: ", vms,
      vms == 1 ? " VM" : " VMs", " may have more vCPUs than were found\n");
}

std::string VerdictLine(const std::vector<Finding>& findings) {
  const auto failed = std::ranges::count(findings, Finding::State::kFail, &Finding::state);
  const std::string count = absl::StrCat(Plural(failed, "check"), " failed");
  switch (kvm::doctor::VerdictOf(findings)) {
    case Verdict::kComplete:
      return "recording here would be complete\n";
    case Verdict::kUnknown:
      return UnknownLine(findings);
    case Verdict::kDegraded:
      return count + ": recording would be degraded\n";
    case Verdict::kFails:
      return count + ": recording would fail\n";
  }
  return "";
}

std::string ProofLine(const std::vector<Finding>& findings) {
  switch (kvm::doctor::IsProven(findings)) {
    case Proven::kYes: {
      const auto ipc = std::ranges::find(findings, "ipc", &Finding::id);
      const bool alike = ipc != findings.end() && ipc->state == Finding::State::kNote;
      return absl::StrCat(
          "proven: the counters of this host count the guest alone, and its instructions rightly",
          alike ? "; its cycles mean nothing (see ipc)" : "", "\n");
    }
    case Proven::kNo:
      return absl::StrCat(
          Plural(std::ranges::count(findings, Finding::State::kFail, &Finding::state), "claim"),
          " failed: do not trust what the counters of this host say of guests\n");
    case Proven::kNotTold:
      if (std::ranges::count(findings, Finding::State::kOk, &Finding::state) == 0) {
        return "not proven: no claim could be tried; the first line says why\n";
      }
      return absl::StrCat(
          "not proven: no claim failed, but ",
          Plural(std::ranges::count(findings, Finding::State::kUnknown, &Finding::state), "claim"),
          " could not be tried\n");
  }
  return "";
}

int Print(const std::string& text, bool good) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (std::fflush(stdout) != 0 || !written) {
    return Fail(absl::ErrnoToStatus(errno, "cannot write standard output"));
  }
  return good ? kExitOk : kExitChecksFailed;
}

int RunProof(const DoctorOptions& options) {
  kvm::KernelPerfEvents perf;
  kvm::doctor::ProofOptions proof{.root = options.root};
  const auto profile = profile::ChooseForHost(options.root);
  if (!profile.ok()) return Fail(profile.status());
  if (profile->profile.pause) proof.pause = profile->profile.pause->ToEvent();
  const std::vector<Finding> findings = kvm::doctor::Prove(perf, proof);
  return Print(options.json ? JsonOfProof(findings) : TextOf(findings) + ProofLine(findings),
               kvm::doctor::IsProven(findings) == Proven::kYes);
}

int RunDoctor(const DoctorOptions& options) {
  if (absl::Status status = CheckRoot(options.root); !status.ok()) return Fail(status);
  if (options.prove) return RunProof(options);
  kvm::KernelPerfEvents perf;
  std::vector<Finding> findings = kvm::doctor::Examine(perf, options.root);
  if (const auto profile = profile::ChooseForHost(options.root); !profile.ok()) {
    findings.push_back(
        {.id = "profile",
         .state = Finding::State::kFail,
         .tried = "read the installed profiles",
         .answered = std::string(profile.status().message()),
         .fix = "correct that file or remove it: until then `record` refuses to start",
         .prevents = true});
  }
  return Print(options.json ? JsonOf(findings) : TextOf(findings) + VerdictLine(findings),
               kvm::doctor::VerdictOf(findings) == Verdict::kComplete);
}

}  // namespace

void AddDoctorCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Check what this host can count; report each problem with its fix");
  command->add_flag("--json", options->json, "one object: complete, verdict, findings");
  command->add_flag("--prove", options->prove,
                    "run guests of known instructions on /dev/kvm, and compare what the counters "
                    "count (about 2 s)");
  command
      ->add_option("--root", options->root,
                   "read /proc and /sys below this directory, the host's mounted in a container "
                   "[/]")
      ->type_name("DIR");
  command->footer(
      "Exit status:\n"
      "  0  a recording would be complete; with --prove: the counters are proven\n"
      "  1  a check failed, or could not be made; with --prove: a claim failed, or could not be "
      "tried\n"
      "  2  usage or run-time error");
  command->callback([options, &exit_code] { exit_code = RunDoctor(*options); });
}

}  // namespace vcpulse::tools
