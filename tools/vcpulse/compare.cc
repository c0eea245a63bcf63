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
#include "tools/vcpulse/timeline_input.h"
#include "tools/vcpulse/values.h"

namespace vcpulse::tools {
namespace {

std::string CompareFooter() {
  return absl::StrCat(
      R"(Per vCPU and phase, B - A of these quantities, as `report` counts them, sorted by effect:
)",
      MetricLines([](const metric::Info& info) { return info.asked; }),
      R"(The interval holds the true difference in 95 of 100 comparisons; it comes from a block bootstrap, as ticks hang together.
  differs  told apart though so many quantities were compared (Holm, 5 % for all of them together)
  slight   told apart, but by less than 1 point of a share or 1 % of a number such as IPC: runs of
           one guest differ by as much
  maybe    its own interval leaves 0 out; with so many comparisons that may be chance
  not-told-apart  no proof that both are the same
  untold   not measured in both, or too short: fewer than 20 ticks that tell of it, or 4 blocks
VMs are matched by name, else UUID, else the only one of each; vCPUs by index; phases by name, or the
whole recordings where they have none in common. Who has no match is named in a note.
EXPR of --fail-if is [vm=NAME] [vcpu=N-M] [phase=NAME] : QUANTITY <|> CHANGE, each vCPU on its own:
  spinning > +5pt      B spins more than 5 percentage points more
  productive < -10%    B's share is more than a tenth below A's
  ipc < -0.2
FAIL: surely so (2.5 % error for all vCPUs of one EXPR together). PASS: the interval lies within the
limit. INCONCLUSIVE: neither, as in short recordings. SKIP: not counted, as a recording was degraded.
Exit codes: 0 compared and nothing failed, 1 FAIL, 2 usage error or nothing could be read, 3
INCONCLUSIVE, 4 SKIP (--allow-skip: only where nothing else was judged). Method and what it cannot tell: docs/compare.md. Field list of the JSON:
monitor/compare/compare.h.)");
}

// As given, until it is parsed.
struct CompareText {
  std::string a;
  std::string b;
  std::optional<std::string> phase;
  std::optional<std::string> vm;
  std::vector<std::string> fail_if;
  bool allow_skip = false;
  bool json = false;
};

absl::StatusOr<compare::CompareOptions> Parse(const CompareText& text) {
  compare::CompareOptions options{
      .phase = text.phase, .vm = text.vm, .limits = {}, .allow_skip = text.allow_skip};
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

int RunCompare(const CompareText& text) {
  const auto options = Parse(text);
  if (!options.ok()) return Fail(options.status());
  const auto comparison = compare::CompareTimelines(text.a, text.b, *options);
  if (!comparison.ok()) return Fail(comparison.status());
  Warn(text.a, comparison->a.loss);
  Warn(text.b, comparison->b.loss);
  const int written =
      WriteStdout(text.json ? compare::RenderJson(*comparison)
                            : compare::RenderText(*comparison, {.colour = WantsColour()}));
  if (written != kExitOk || comparison->limits.empty()) return written;
  return ExitCodeOf(comparison->outcome);
}

}  // namespace

void AddCompareCommand(CLI::App& app, int& exit_code) {
  auto text = std::make_shared<CompareText>();
  CLI::App* command = app.add_subcommand(
      "compare", "Compare two timelines: what differs per vCPU and phase, and how surely");
  command->footer(CompareFooter());
  command->add_option("A", text->a, "Timeline to compare with; - is standard input")
      ->required()
      ->type_name("TIMELINE");
  command->add_option("B", text->b, "Timeline whose differences are told")
      ->required()
      ->type_name("TIMELINE");
  command
      ->add_option("--phase", text->phase, "Only this phase, each span from its marker to the next")
      ->type_name("NAME");
  command->add_option("--vm", text->vm, "Only this VM: name, UUID or PID")->type_name("VM");
  // By a callback: an option that is a vector takes "[a,b]" apart, and the words after its value.
  command
      ->add_option(
          "--fail-if",
          [text](const std::vector<std::string>& values) {
            text->fail_if = values;
            return true;
          },
          "Exit code 1 where that is surely so, for example 'spinning > +5pt'; give it once for "
          "each")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("EXPR");
  AddAllowSkip(*command, text->allow_skip);
  command->add_flag("--json", text->json, "JSON instead of text");
  command->callback([text, &exit_code] { exit_code = RunCompare(*text); });
}

}  // namespace vcpulse::tools
