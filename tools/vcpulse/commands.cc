#include "tools/vcpulse/commands.h"

#include <cstdio>
#include <set>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "kvm/base/text.h"
#include "kvm/own_rights.h"
#include "monitor/check/outcome.h"
#include "tools/vcpulse/help.h"
#include "tools/vcpulse/usage_error.h"

namespace vcpulse::tools {
namespace {

// So that an option of `app` may follow its subcommands' names too.
void LetFallThrough(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    command->fallthrough();
    LetFallThrough(*command);
  }
}

// An empty value would read as an option that was not given, and select everything; it is most
// often a shell variable that is not set.
void RefuseEmptyValues(CLI::App& app) {
  for (CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    if (option->get_items_expected_max() == 0) continue;  // a flag
    const std::string kind = option->get_type_name();
    const bool says = !kind.empty() && kind != "TEXT";  // CLI11's own name, of positionals
    const std::string refusal = "the value is empty" + (says ? ": give " + kind : "");
    // Ahead of the option's own validators.
    option->transform(CLI::Validator(
        [refusal](const std::string& value) { return value.empty() ? refusal : std::string(); },
        ""));
  }
  for (CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) {
    RefuseEmptyValues(*below);
  }
}

// Commands that only read and write files and sockets do so with what that takes. What cannot be
// dropped is kept: a sandbox may forbid even that.
void DropRightsOf(CLI::App& app) {
  const std::set<std::string> count_or_look = {"list",   "doctor",   "calibrate",
                                               "record", "hotspots", "top"};
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string name = command->get_name();
    if (count_or_look.contains(name)) continue;
    const kvm::KeptRights kept{.low_ports = name == "collect" || name == "report"};
    command->preparse_callback([kept](size_t) { static_cast<void>(kvm::DropRights(kept)); });
  }
}

}  // namespace

void Note(std::string_view message) {
  std::string line(message);
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  std::fprintf(stderr, "vcpulse: %s\n", line.c_str());
}

int Fail(std::string_view message) {
  Note(message);
  return kExitError;
}

int Fail(const absl::Status& status) { return Fail(ToStd(status.message())); }

int ExitCodeOf(check::Outcome outcome) {
  switch (outcome) {
    case check::Outcome::kPass:
      return kExitOk;
    case check::Outcome::kFail:
      return kExitFailed;
    case check::Outcome::kInconclusive:
      return kExitInconclusive;
    case check::Outcome::kSkip:
      break;
  }
  return kExitSkipped;
}

std::unique_ptr<CLI::App> BuildApp(std::vector<std::string> command, int& exit_code) {
  auto app = std::make_unique<CLI::App>(
      "What each vCPU of each KVM guest really did, seen from the host: halted, spinning or "
      "productive.",
      "vcpulse");
  app->formatter(std::make_shared<HelpFormatter>());
  app->set_help_flag("-h,--help", "print this help and exit");
  app->set_version_flag("-V,--version", "vcpulse " VCPULSE_VERSION, "print the version and exit");
  app->require_subcommand(1);
  AddListCommand(*app, exit_code);
  AddDoctorCommand(*app, exit_code);
  AddCalibrateCommand(*app, exit_code);
  AddRecordCommand(*app, std::move(command), exit_code);
  AddControlCommands(*app, exit_code);
  AddReportCommand(*app, exit_code);
  AddCheckCommand(*app, exit_code);
  AddCompareCommand(*app, exit_code);
  AddImportCommand(*app, exit_code);
  AddMergeCommand(*app, exit_code);
  AddClassifyCommand(*app, exit_code);
  AddExportCommand(*app, exit_code);
  AddRollupCommand(*app, exit_code);
  AddReplayCommand(*app, exit_code);
  AddTopCommand(*app, exit_code);
  AddCollectCommand(*app, exit_code);
  AddTailCommand(*app, exit_code);
  AddHotspotsCommand(*app, exit_code);
  AddSymbolizeCommand(*app, exit_code);
  app->set_config(
         "--config", "",
         "read options from FILE: a [COMMAND] section with lines OPTION=VALUE; options on the "
         "command line take precedence")
      ->type_name("FILE");
  app->config_formatter(std::make_shared<ConfigReader>(*app));
  app->allow_config_extras(CLI::config_extras_mode::error);
  // Behind the commands, which would inherit it.
  app->footer(
      R"(Usage: COMMAND [OPTIONS]
`vcpulse help COMMAND` prints the help of a command.

Examples:
  vcpulse doctor                        check whether this host can record
  vcpulse record -d 10s                 record all VMs for ten seconds
  vcpulse report                        summarize the recording
  vcpulse record -- ./run-tests.sh      record the VMs that a command starts
  vcpulse check --expect 'vcpu=*: spinning <= 5%'

Exit status:
  0  success
  1  doctor, check or compare: a check failed; calibrate: nothing can be calibrated
  2  usage or run-time error; one line on stderr gives the reason
  3  check or compare is inconclusive
  4  check or compare was skipped

`record -- CMD` exits with the status of CMD.)");
  LetFallThrough(*app);
  RefuseEmptyValues(*app);
  DropRightsOf(*app);
  return app;
}

}  // namespace vcpulse::tools
