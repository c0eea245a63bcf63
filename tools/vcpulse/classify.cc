#include <unistd.h>

#include <memory>
#include <span>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "kvm/base/output_file.h"
#include "monitor/recorder/session_record.h"
#include "monitor/replay/reclassify.h"
#include "monitor/replay/recorded_settings.h"
#include "monitor/report/text_format.h"
#include "monitor/timeline/reader.h"
#include "tools/vcpulse/classifier_options.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/progress.h"
#include "tools/vcpulse/timeline_input.h"

namespace vcpulse::tools {
namespace {

constexpr const char* kClassifyFooter =
    R"(Classifies every tick again from its counts and copies everything else. Settings that are not given
are those of the timeline: with none given, verdicts are made again as it says. The new timeline names its source
(Session.derived_from) and holds the profile that was used. Data that FILE has lost is reported on
stderr and becomes a gap (source-lost).

Examples:
  vcpulse classify web.vpt --classifier ipc-bands -o again.vpt
  vcpulse classify web.vpt --profile mine.json -o again.vpt

Exit status:
  0  written
  2  usage error, or a file could not be read or written)";

struct ClassifyOptions {
  std::string file = kDefaultTimeline;
  std::string output;
  ClassifierOptions classifier;

  absl::Status Validate() const;
};

absl::Status ClassifyOptions::Validate() const {
  if (output.empty()) return absl::InvalidArgumentError("--output: the file name is empty");
  if (output == "-" && isatty(STDOUT_FILENO) == 1) {
    return absl::InvalidArgumentError(
        "--output: - is a terminal, and a timeline is binary: redirect it or name a file");
  }
  return CheckNotSameFile(file, output);
}

// Errors of what was read begin with its name; those of options do not.
absl::StatusOr<replay::Settings> Decide(const ClassifyOptions& options, const v1::Session& session,
                                        const v1::Profile* kept) {
  replay::Settings settings;
  const bool replaced = options.classifier.profile && options.classifier.choice;
  if (!replaced) {
    absl::StatusOr<replay::Settings> recorded = replay::SettingsOf(session, kept);
    if (!recorded.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(NameOf(options.file), ": ",
                                                     recorded.status().message(),
                                                     " (--classifier and --profile name others)"));
    }
    settings = *std::move(recorded);
  }
  auto resolved = ResolveOver(options.classifier,
                              {.choice = settings.choice, .profile = std::move(settings.profile)});
  if (!resolved.ok()) return resolved.status();
  if (!options.classifier.profile) Warn(options.file, settings.remark);
  return replay::Settings{.choice = resolved->choice, .profile = std::move(resolved->profile)};
}

int RunClassify(const ClassifyOptions& options) {
  if (absl::Status status = options.Validate(); !status.ok()) return Fail(status);
  const timeline::StreamId id = timeline::RandomStreamId();
  const auto output = OutputFile::Create(options.output, OutputFile::Appears::kWhenFinished);
  if (!output.ok()) return Fail(output.status());
  const auto writer = timeline::NewChunkWriter(
      id, [&output](std::span<const uint8_t> bytes) { return (*output)->Append(bytes); });
  replay::Reclassify reclassify(
      NameOf(options.file), id,
      [&options](const v1::Session& session, const v1::Profile* kept) {
        return Decide(options, session, kept);
      },
      *writer);
  ReadProgress progress(NameOf(options.file), BytesToRead({options.file}),
                        options.output == "-" ? Writes::kStdout : Writes::kFile);
  const absl::StatusOr<timeline::ReadReport> read =
      ReadInput(options.file, [&](const timeline::Entry& entry) { return reclassify.Take(entry); });
  progress.Stop();
  if (absl::IsCancelled(read.status())) return kExitOk;  // the reader of OUT has seen enough
  if (!read.ok()) return Fail(read.status());
  const std::string loss =
      report::DescribeLoss(*read, reclassify.unusable_ticks(), read->ended_in_order);
  if (read->records == 0) {
    return Fail(absl::StrCat(NameOf(options.file), ": holds no record that can be read",
                             loss.empty() ? "" : ": ", loss));
  }
  absl::Status status = reclassify.Finish();
  if (absl::IsCancelled(status)) return kExitOk;
  if (status.ok()) status = (*output)->Finish();
  if (!status.ok()) return Fail(status);
  Warn(options.file, loss);
  SayWritten(options.output);
  return kExitOk;
}

}  // namespace

void AddClassifyCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ClassifyOptions>();
  CLI::App* command = app.add_subcommand(
      "classify", "Classify a timeline again, with another classifier or profile");
  command->footer(kClassifyFooter);
  command
      ->add_option("FILE", options->file, "timeline, or a folder of its parts; - is standard input")
      ->capture_default_str();
  command
      ->add_option("-o,--output", options->output,
                   "file to write, - for stdout; an older one is kept as OUT.old")
      ->type_name("OUT")
      ->required();
  AddReclassifierOptions(*command, options->classifier);
  command->callback([options, &exit_code] { exit_code = RunClassify(*options); });
}

}  // namespace vcpulse::tools
