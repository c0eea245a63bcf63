#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "kvm/text.h"
#include "tools/vcpulse/commands.h"

namespace vcpulse::tools {

int Fail(std::string_view message) {
  std::string line(message);
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  std::fprintf(stderr, "vcpulse: %s\n", line.c_str());
  return kExitError;
}

int Fail(const absl::Status& status) { return Fail(ToStd(status.message())); }

}  // namespace vcpulse::tools

namespace {

// Takes the first `--` and what follows it off the arguments; nothing where there is none.
std::optional<std::vector<std::string>> TakeCommand(std::vector<std::string>& arguments) {
  const auto separator = std::ranges::find(arguments, "--");
  if (separator == arguments.end()) return std::nullopt;
  std::vector<std::string> command(separator + 1, arguments.end());
  arguments.erase(separator, arguments.end());
  return command;
}

}  // namespace

int main(int argc, char** argv) {
  namespace tools = vcpulse::tools;
  // A reader that goes away (`vcpulse report | head`) is an error of write(2), not our end.
  std::signal(SIGPIPE, SIG_IGN);

  CLI::App app{
      "What each vCPU of each KVM guest really did, seen from the host: halted, spinning or "
      "productive.",
      "vcpulse"};
  app.set_version_flag("--version", "vcpulse " VCPULSE_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done, 1 doctor found obstacles or a check failed, 2 usage or run-time error, "
      "3 check inconclusive, 4 check skipped; `record -- CMD` returns those of CMD. "
      "`vcpulse COMMAND --help` says more.");
  int exit_code = tools::kExitOk;
  tools::AddListCommand(app, exit_code);
  tools::AddDoctorCommand(app, exit_code);
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::optional<std::vector<std::string>> command = TakeCommand(arguments);
  if (command && command->empty()) return tools::Fail("no command follows --");
  if (command && (arguments.empty() || arguments.front() != "record")) {
    return tools::Fail("-- CMD belongs to `vcpulse record`");
  }
  tools::AddRecordCommand(app, command.value_or(std::vector<std::string>{}), exit_code);
  tools::AddControlCommands(app, exit_code);
  tools::AddReportCommand(app, exit_code);
  tools::AddCheckCommand(app, exit_code);
  tools::AddImportCommand(app, exit_code);
  tools::AddClassifyCommand(app, exit_code);
  tools::AddExportCommand(app, exit_code);

  const bool named = !arguments.empty() && !arguments.front().starts_with('-');
  const auto is_first = [&](const CLI::App* known) {
    return known->get_name() == arguments.front();
  };
  if (named && app.get_subcommands(is_first).empty()) {
    return tools::Fail("'" + arguments.front() +
                       "' is no command of vcpulse: list, doctor, record, mark, pause, resume, "
                       "stop, status, report, check, classify, export or import");
  }
  try {
    std::ranges::reverse(arguments);  // as CLI11 wants them
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return tools::Fail(std::string(error.what()) + " (vcpulse --help says what is known)");
  } catch (const std::exception& error) {
    return tools::Fail(error.what());
  }
  return exit_code;
}
