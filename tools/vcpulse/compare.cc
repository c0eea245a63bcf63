// `vcpulse compare`: two timelines side by side.
#include "monitor/compare/compare.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/compare/comparison.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/output.h"
#include "tools/vcpulse/part_options.h"
#include "tools/vcpulse/progress.h"
#include "tools/vcpulse/timeline_input.h"
#include "tools/vcpulse/values.h"

namespace vcpulse::tools {
namespace {

std::string CompareFooter() {
  return absl::StrCat(
      R"(Examples:
  vcpulse compare before.vpt after.vpt
  vcpulse compare --before a1.vpt a2.vpt a3.vpt --after b1.vpt b2.vpt b3.vpt --fail-if 'ipc < -0.2'

Expressions:
EXPR of --fail-if is [vm=NAME] [vcpu=N-M] [phase=NAME] : QUANTITY OP CHANGE, judged for each vCPU. OP
is <, <=, >= or >. CHANGE is of B against A:
  spinning > +5pt    more than 5 percentage points more
  productive < -10%  more than a tenth less
  ipc < -0.2         more than 0.2 less

Quantities:
)",
      MetricLines([](const metric::Info& info) { return info.asked; }),
      R"(
How to read it:
The table lists B - A of each quantity, per vCPU and phase, sorted by effect. VMs are matched by name,
or else by UUID, or else as the only one of each side; vCPUs by index; phases by name, or else the
whole recordings. A note names each VM, vCPU and phase without a match.

With several recordings per side (--before, --after) the interval holds the true difference in 95 of
100 comparisons: Student's t on the means of the runs (Welch). With one recording per side it comes
from a block bootstrap of correlated ticks. The variance between runs is then unknown, and --fail-if
is INCONCLUSIVE unless --single-run accepts that.
  differs               significant even though many quantities were compared (Holm, 5 % for all of
                        them together)
  slight                significant, but less than 1 point of a share or 1 % of a number such as IPC
  maybe                 its own interval excludes 0; with so many comparisons that may be chance
  no-difference-found   no significant difference; this does not prove that both are the same
  insufficient-data     not measured on both sides, or too short: fewer than 20 ticks, 4 blocks, or
                        with several recordings 2 runs per side; or a share's interval is 100 points
                        wide or wider

Outcomes of --fail-if:
  FAIL          the limit is exceeded (error probability 2.5 % for all vCPUs of one EXPR together)
  PASS          the whole interval is within the limit
  INCONCLUSIVE  neither, as in short recordings, or a vCPU or VM that EXPR selects is missing from a
                recording
  SKIP          not counted, since a recording is degraded

Exit status:
  0  compared, and no --fail-if failed
  1  FAIL
  2  usage error, or a file could not be read
  3  INCONCLUSIVE
  4  SKIP (with --allow-skip: only if nothing else was judged)

Method and limits: docs/compare.md.)");
}

constexpr int kMostRuns = 1000;  // per side

// As given, until it is parsed.
struct CompareText {
  std::string a;
  std::string b;
  std::vector<std::string> before;
  std::vector<std::string> after;
  std::optional<std::string> phase;
  bool whole = false;
  std::optional<std::string> vm;
  std::vector<std::string> fail_if;
  bool allow_skip = false;
  bool single_run = false;
  bool json = false;
};

// Makes A and B sides of one recording each.
absl::Status TakeSides(CompareText& text) {
  const bool by_option = !text.before.empty() || !text.after.empty();
  if (by_option && !text.a.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", Printable(text.a),
                     "': name all recordings after --before and --after, or two without either"));
  }
  if (by_option) {
    if (!text.before.empty() && !text.after.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        text.after.empty() ? "--before needs --after with the recordings to compare with it"
                           : "--after needs --before with the recordings to compare with it");
  }
  if (text.a.empty() || text.b.empty()) {
    return absl::InvalidArgumentError(
        "compare needs two recordings, A and B; or several per side: --before A1 A2 --after B1 B2");
  }
  text.before = {text.a};
  text.after = {text.b};
  return absl::OkStatus();
}

absl::StatusOr<compare::CompareOptions> Parse(const CompareText& text) {
  compare::CompareOptions options{.phase = text.phase,
                                  .whole = text.whole,
                                  .vm = text.vm,
                                  .limits = {},
                                  .allow_skip = text.allow_skip,
                                  .single_run = text.single_run};
  if (text.single_run && text.fail_if.empty()) {
    return absl::InvalidArgumentError("--single-run is about --fail-if, which was not given");
  }
  if (text.single_run && text.before.size() + text.after.size() > 2) {
    return absl::InvalidArgumentError(
        "--single-run is for one recording per side: leave it out here");
  }
  if (text.phase && text.phase->empty()) {
    return absl::InvalidArgumentError("--phase: the name is empty");
  }
  if (text.vm && text.vm->empty()) return absl::InvalidArgumentError("--vm: the name is empty");
  for (const std::string& expression : text.fail_if) {
    auto limit = compare::ParseLimit(expression);
    if (!limit.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--fail-if '", Printable(expression), "': ", limit.status().message()));
    }
    options.limits.push_back(*std::move(limit));
  }
  return options;
}

int RunCompare(CompareText text) {
  if (const absl::Status sides = TakeSides(text); !sides.ok()) return Fail(sides);
  const auto options = Parse(text);
  if (!options.ok()) return Fail(options.status());
  std::vector<std::string> runs = text.before;
  runs.insert(runs.end(), text.after.begin(), text.after.end());
  constexpr uint64_t kReadings = 2;  // for phases, then for ticks
  ReadProgress progress(Plural(runs.size(), "recording"), BytesToRead(runs, kReadings));
  const auto comparison = compare::CompareTimelines(text.before, text.after, *options);
  progress.Stop();
  if (!comparison.ok()) return Fail(comparison.status());
  for (size_t i = 0; i < text.before.size(); ++i) Warn(text.before[i], comparison->a[i].loss);
  for (size_t i = 0; i < text.after.size(); ++i) Warn(text.after[i], comparison->b[i].loss);
  const int written =
      WriteStdout(text.json ? compare::RenderJson(*comparison)
                            : compare::RenderText(*comparison, {.colour = WantsColour()}));
  if (written != kExitOk || comparison->limits.empty()) return written;
  return ExitCodeOf(comparison->outcome);
}

}  // namespace

void AddCompareCommand(CLI::App& app, int& exit_code) {
  auto text = std::make_shared<CompareText>();
  CLI::App* command = app.add_subcommand("compare",
                                         "Compare timelines, one or several runs each: what "
                                         "differs per vCPU and phase, and how surely");
  command->footer(CompareFooter());
  command->add_option("A", text->a, "The baseline (before); - is standard input")
      ->type_name("TIMELINE");
  command->add_option("B", text->b, "The timeline that is compared with it (after)")
      ->type_name("TIMELINE");
  // By callbacks: an option that is a vector takes "[a,b]" apart.
  const auto take = [](std::vector<std::string>& into) {
    return [&into](const std::vector<std::string>& values) {
      into = values;
      return true;
    };
  };
  command->add_option("--before", take(text->before), "Several runs to compare with, in place of A")
      ->expected(1, kMostRuns)
      ->type_name("TIMELINE");
  command->add_option("--after", take(text->after), "Several runs to compare, in place of B")
      ->expected(1, kMostRuns)
      ->type_name("TIMELINE");
  command
      ->add_option("--phase", text->phase, "Only this phase, each span from its marker to the next")
      ->type_name("NAME");
  command->add_flag("--whole", text->whole, "The whole recordings, whatever phases they have")
      ->excludes("--phase");
  command->add_option("--vm", text->vm, "Only this VM: name, UUID, PID or number")
      ->type_name("NAME");
  command
      ->add_option(
          "--fail-if", take(text->fail_if),
          "Exit code 1 where that is surely so, for example 'spinning > +5pt'; give it once for "
          "each")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("EXPR");
  AddAllowSkip(*command, text->allow_skip);
  command->add_flag("--single-run", text->single_run,
                    "With one recording per side, let --fail-if pass or fail although the variance "
                    "between runs is unknown");
  command->add_flag("--json", text->json, "JSON instead of text");
  command->callback([text, &exit_code] { exit_code = RunCompare(*text); });
}

}  // namespace vcpulse::tools
