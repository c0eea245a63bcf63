// `vcpulse check`: a timeline held against expectations.
#include "monitor/check/check.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kvm/base/output_file.h"
#include "kvm/base/text.h"
#include "monitor/check/expression.h"
#include "monitor/check/render.h"
#include "monitor/report/text_format.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/guest_code_options.h"
#include "tools/vcpulse/output.h"
#include "tools/vcpulse/part_options.h"
#include "tools/vcpulse/progress.h"
#include "tools/vcpulse/timeline_input.h"
#include "tools/vcpulse/values.h"

namespace vcpulse::tools {
namespace {

// More is no list of expectations that a person wrote.
constexpr size_t kMaxExpectFileBytes = size_t{1} << 20;

std::string CheckFooter() {
  return absl::StrCat(
      R"(Examples:
  vcpulse check --expect 'vcpu=*: productive >= 80%' --expect 'gaps <= 1%'
  vcpulse check run.vpt --phase load --skip-first 2s --expect 'vm=web vcpu=0-3: spinning <= 5%'
  vcpulse check run.vpt --expect 'phase=boot: halted <= 50%' --expect 'phase=load: gaps <= 1%'
  vcpulse check run.vpt --expect 'any vcpu=*: ipc.p50 >= 1' --expect 'sum vm=web: run_delay <= 50%'
  vcpulse check run.vpt --baseline good.vpt --expect 'productive >= baseline - 5pt'
  vcpulse check run.vpt --expect-file ci.expect --junit result.xml --markdown >>summary.md

Expressions:
EXPR is [each|any|sum] [vm=NAME|"NAME"|*] [vcpu=*|N|N-M[,...]] [phase=NAME] : QUANTITY OP LIMIT.
The part before the colon is optional. OP is <, <=, ==, >= or >.
  each       every vCPU must satisfy the limit (the default)
  any        one vCPU that satisfies it is enough; like sum, it needs vm= or vcpu=
  sum        the shares of all vCPUs are added up; 100% is all of the time of one vCPU
  vm=        a name (vm="WITH SPACES"), a UUID or a PID
  phase=     a phase; without it --phase applies, or else the whole recording is judged
  by ipc-bands  after spinning, productive, unknown or their longest(): --trust-ipc-bands for this
             EXPR alone

LIMIT is a percentage for a share (80%), a number for a percentile (ipc.p50 >= 0.9), or a duration for
longest() (200ms). It may be relative to the same vCPU in the --baseline timeline: baseline,
baseline * 0.95, or baseline - 5pt (percentage points; for a number baseline - 0.2, for longest()
baseline - 50ms).

An expect file has one EXPR per line; # begins a comment.

Quantities:
)",
      MetricLines([](const metric::Info& info) { return info.asked; }, ".pNN"),
      R"(  longest(BAND)   the longest time in the band without a break
  longest(starved)  the longest starved time without a break
  gaps            share of the time of a VM without samples
  hot("NAME")     share of the hot addresses (`record --hotspots`) in functions of this name, which may
                  have * and ?; by --guest-kallsyms, --guest-system-map or --guest-symbols

.pNN is a percentile over the ticks that are not HALTED.

How to read it:
Time that is UNKNOWN or has no sample may have been anything, so an observed value is a range. A
residency without ref-cycles is a range, too, and time that ipc-bands calls SPINNING, PRODUCTIVE or
UNKNOWN may be any of the three.
  PASS          the whole range satisfies the limit
  FAIL          no value in the range satisfies it
  INCONCLUSIVE  a part of the range satisfies it, too little was measured, or what EXPR selects (a
                phase, VM or vCPU) was not recorded
  SKIP          the expectation needs counters, and none were recorded; or hot() of a vCPU that was not
                sampled

The result is the worst outcome, in the order FAIL, INCONCLUSIVE, SKIP, PASS. A phase lasts from its
marker to the next one; all its time ranges count.

Exit status:
  0  PASS
  1  FAIL
  2  usage error, or a file could not be read or written
  3  INCONCLUSIVE
  4  SKIP (with --allow-skip: only if nothing else was judged)

kselftest uses 0, 1 and 4 in the same way, but 2 for an expected failure and 3 for an unexpected pass:
a wrapper there maps both to 1.)");
}

enum class Format { kText, kJson, kKtap, kMarkdown };

// As given, until it is parsed.
struct CheckText {
  std::string file = kDefaultTimeline;  // "-": stdin
  std::vector<std::string> expect;
  std::optional<std::string> expect_file;
  std::optional<std::string> baseline;
  std::optional<std::string> phase;
  SymbolOptions symbols;
  std::string skip_first = "0s";
  std::optional<std::string> min_ticks;
  std::optional<std::string> min_measured;
  bool trust_ipc_bands = false;
  bool allow_skip = false;
  bool json = false;
  bool ktap = false;
  bool markdown = false;
  std::optional<std::string> junit;
};

struct CheckCommand {
  std::string file;
  std::vector<check::Expectation> expectations;
  check::CheckOptions options;
  Format format = Format::kText;
  std::optional<std::string> expect_file{};
  std::optional<std::string> junit;

  absl::Status Validate() const;
};

bool IsStandardOutput(const std::string& path) {
  struct stat file{};
  struct stat out{};
  if (stat(path.c_str(), &file) != 0 || fstat(STDOUT_FILENO, &out) != 0) return false;
  // What is thrown away into one device is no harm.
  return !S_ISCHR(file.st_mode) && file.st_dev == out.st_dev && file.st_ino == out.st_ino;
}

absl::Status CheckCommand::Validate() const {
  if (expectations.empty()) {
    return absl::InvalidArgumentError(
        "check: nothing is expected: give --expect EXPR or --expect-file FILE");
  }
  const auto relative = std::ranges::find_if(expectations, &check::Expectation::UsesBaseline);
  const bool uses_baseline = relative != expectations.end();
  if (uses_baseline && !options.baseline) {
    return absl::InvalidArgumentError(absl::StrCat(
        Quoted(relative->text), " needs a baseline: name its timeline with --baseline"));
  }
  if (!uses_baseline && options.baseline) {
    return absl::InvalidArgumentError(
        "--baseline: no expectation uses it, as in 'productive >= baseline - 5pt'");
  }
  if (options.phase && options.phase->empty()) {
    return absl::InvalidArgumentError("--phase: the name is empty");
  }
  if (!junit) return absl::OkStatus();
  if (junit->empty()) return absl::InvalidArgumentError("--junit: the file name is empty");
  if (*junit == "-") {
    return absl::InvalidArgumentError(
        "--junit: - is standard output, where the result is shown: name a file");
  }
  if (IsStandardOutput(*junit)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--junit: ", *junit, " is standard output, where the result is shown: name another file"));
  }
  for (const std::optional<std::string>& input : {expect_file, options.baseline}) {
    if (!input) continue;
    absl::Status status = CheckNotSameFile(*input, *junit, "--junit");
    if (!status.ok()) return status;
  }
  return CheckNotSameFile(file, *junit, "--junit");
}

absl::Status Error(const std::string& where, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", status.message()));
}

// Those of --expect first, then those of the file.
absl::StatusOr<std::vector<check::Expectation>> ParseExpectations(const CheckText& text) {
  std::vector<check::Expectation> expectations;
  for (const std::string& expression : text.expect) {
    auto expectation = check::ParseExpectation(expression);
    if (!expectation.ok()) {
      return Error(absl::StrCat("--expect '", Printable(expression), "'"), expectation.status());
    }
    expectations.push_back(*std::move(expectation));
  }
  if (!text.expect_file) return expectations;
  if (*text.expect_file == "-" && (text.file == "-" || text.baseline == "-")) {
    return absl::InvalidArgumentError("--expect-file: - is where the timeline is read from");
  }
  const auto lines = ReadWhole(*text.expect_file, kMaxExpectFileBytes);
  if (!lines.ok()) return Error("--expect-file", lines.status());
  auto of_file = check::ExpectationsFromText(*lines);
  if (!of_file.ok()) {
    // As compilers do, so that editors find it: "ci.expect:3:7: ...".
    const auto message = of_file.status().message();
    const bool has_place = absl::ascii_isdigit(message.front());
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(*text.expect_file), has_place ? ":" : ": ", message));
  }
  for (check::Expectation& expectation : *of_file) expectations.push_back(std::move(expectation));
  return expectations;
}

// "10%" as 0.1.
absl::StatusOr<double> ParsePercentage(const std::string& flag, const std::string& text) {
  double percent = -1;
  const char* end = text.data() + text.size() - (text.ends_with('%') ? 1 : 0);
  const auto read = std::from_chars(text.data(), end, percent);
  const bool whole = text.ends_with('%') && read.ec == std::errc() && read.ptr == end;
  if (!whole || !(percent >= 0 && percent <= 100)) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": '", text, "' is not a percentage from 0% to 100%, such as 10%"));
  }
  return percent / 100;
}

absl::StatusOr<check::CheckOptions> ParseOptions(const CheckText& text) {
  check::CheckOptions options;
  options.phase = text.phase;
  options.baseline = text.baseline;
  if (text.baseline == "-" && text.file == "-") {
    return absl::InvalidArgumentError("--baseline: - is where the timeline is read from");
  }
  auto symbols = ReadSymbols(text.symbols);
  if (!symbols.ok()) return symbols.status();
  options.symbols = *std::move(symbols);
  options.trust_ipc_bands = text.trust_ipc_bands;
  options.allow_skip = text.allow_skip;
  const auto skip_first = ParseDurationOption("--skip-first", text.skip_first);
  if (!skip_first.ok()) return skip_first.status();
  options.skip_first_ns = absl::ToInt64Nanoseconds(*skip_first);
  if (text.min_ticks) {
    const auto ticks = ParseNumber<uint64_t>(*text.min_ticks);
    if (!ticks) {
      return absl::InvalidArgumentError(
          absl::StrCat("--min-ticks: '", *text.min_ticks, "' is not a number of ticks"));
    }
    options.min_ticks = *ticks;
  }
  if (text.min_measured) {
    const auto share = ParsePercentage("--min-measured", *text.min_measured);
    if (!share.ok()) return share.status();
    options.min_measured = *share;
  }
  return options;
}

absl::StatusOr<CheckCommand> Parse(const CheckText& text) {
  auto expectations = ParseExpectations(text);
  if (!expectations.ok()) return expectations.status();
  auto options = ParseOptions(text);
  if (!options.ok()) return options.status();
  CheckCommand command{.file = text.file,
                       .expectations = *std::move(expectations),
                       .options = *std::move(options),
                       .expect_file = text.expect_file,
                       .junit = text.junit};
  if (text.json) command.format = Format::kJson;
  if (text.ktap) command.format = Format::kKtap;
  if (text.markdown) command.format = Format::kMarkdown;
  if (absl::Status status = command.Validate(); !status.ok()) return status;
  return command;
}

std::string Render(const check::Result& result, const CheckCommand& command) {
  const std::string name = NameOf(command.file);
  switch (command.format) {
    case Format::kJson:
      return check::RenderJson(result, name);
    case Format::kKtap:
      return check::RenderKtap(result, name);
    case Format::kMarkdown:
      return check::RenderMarkdown(result, name);
    case Format::kText:
      break;
  }
  return check::RenderText(result, name, {.colour = WantsColour()});
}

absl::Status WriteFile(OutputFile& file, const std::string& text) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  absl::Status status = file.Append(std::span(bytes, text.size()));
  return status.ok() ? file.Finish() : status;
}

absl::Status JunitError(const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("--junit: ", status.message()));
}

// In the JUnit file too, so that no older success stays there.
int CouldNotRead(const absl::Status& status, const CheckCommand& command, OutputFile* junit) {
  const std::string why(ReadFailure(status, command.file).message());
  if (junit != nullptr) {
    const absl::Status written = WriteFile(*junit, check::RenderJunitError(why));
    if (!written.ok()) return Fail(absl::StrCat(why, "; ", JunitError(written).message()));
  }
  return Fail(why);
}

int RunCheck(const CheckText& text) {
  const absl::StatusOr<CheckCommand> command = Parse(text);
  if (!command.ok()) return Fail(command.status());
  std::unique_ptr<OutputFile> junit;
  if (command->junit) {  // what cannot be written is told before a long file is read
    auto file = OutputFile::Create(*command->junit, OutputFile::Appears::kWhenFinished);
    if (!file.ok()) return Fail(JunitError(file.status()));
    junit = *std::move(file);
  }
  std::vector<std::string> inputs = {command->file};
  if (command->options.baseline) inputs.push_back(*command->options.baseline);
  constexpr uint64_t kReadings = 2;  // for phases, then for ticks
  ReadProgress progress(NameOf(command->file), BytesToRead(inputs, kReadings));
  const absl::StatusOr<check::Result> result =
      check::CheckTimeline(command->file, command->expectations, command->options);
  progress.Stop();
  if (!result.ok()) return CouldNotRead(result.status(), *command, junit.get());
  if (junit != nullptr) {
    const absl::Status written =
        WriteFile(*junit, check::RenderJunit(*result, NameOf(command->file)));
    if (!written.ok()) return Fail(JunitError(written));
  }
  const int written = WriteStdout(Render(*result, *command));
  return written == kExitOk ? ExitCodeOf(result->outcome) : written;
}

void AddExpectations(CLI::App& command, CheckText& text) {
  // By a callback: an option that is a vector takes "[a,b]" apart, and the words after its value.
  command
      .add_option(
          "--expect",
          [&text](const std::vector<std::string>& values) {
            text.expect = values;
            return true;
          },
          "What must hold, for example 'vcpu=*: spinning <= 5%'; give it once for each")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("EXPR");
  command
      .add_option("--expect-file", text.expect_file,
                  "Read expectations from FILE, one per line; - is stdin")
      ->type_name("FILE");
  command
      .add_option("--baseline", text.baseline,
                  "Timeline that 'baseline' in expectations refers to, for example a good run")
      ->type_name("FILE");
  command
      .add_option("--phase", text.phase,
                  "Judge only the spans of this phase where EXPR has no phase=")
      ->type_name("NAME");
  command
      .add_option("--skip-first", text.skip_first,
                  "Leave out the beginning of each span, or of the recording [0s]")
      ->type_name("DURATION");
  command
      .add_option("--min-ticks", text.min_ticks,
                  "With fewer measured ticks a vCPU is inconclusive [10]")
      ->type_name("N");
  command
      .add_option("--min-measured", text.min_measured,
                  "So it is where a smaller share of the time was measured [10%]")
      ->type_name("P%");
  command.add_flag("--trust-ipc-bands", text.trust_ipc_bands,
                   "Let verdicts of ipc-bands, a hint by IPC alone, decide PASS and FAIL");
  AddAllowSkip(command, text.allow_skip);
  AddSymbolOptions(command, text.symbols);
}

void AddFormats(CLI::App& command, CheckText& text) {
  CLI::Option* json = command.add_flag("--json", text.json, "JSON instead of text");
  CLI::Option* ktap = command.add_flag("--ktap", text.ktap, "KTAP, version 1, instead of text");
  CLI::Option* markdown = command.add_flag("--markdown", text.markdown,
                                           "Markdown instead of text, for the summary of a CI job");
  ktap->excludes(json);
  markdown->excludes(json)->excludes(ktap);
  command
      .add_option("--junit", text.junit,
                  "Also write JUnit XML to this file; an older one is kept as FILE.old. "
                  "INCONCLUSIVE is an <error>")
      ->type_name("FILE");
}

}  // namespace

void AddCheckCommand(CLI::App& app, int& exit_code) {
  auto text = std::make_shared<CheckText>();
  CLI::App* command = app.add_subcommand("check", "Check a timeline against expectations, for CI");
  command->footer(CheckFooter());
  command->add_option("FILE", text->file, "timeline, or a folder of its parts; - is standard input")
      ->capture_default_str();
  AddExpectations(*command, *text);
  AddFormats(*command, *text);
  command->callback([text, &exit_code] { exit_code = RunCheck(*text); });
}

}  // namespace vcpulse::tools
