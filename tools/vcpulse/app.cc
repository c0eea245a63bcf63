#include "tools/vcpulse/app.h"

#include <utility>

#include "tools/vcpulse/commands.h"

namespace vcpulse::tools {

std::unique_ptr<CLI::App> BuildApp(std::vector<std::string> command, int& exit_code) {
  auto app = std::make_unique<CLI::App>(
      "What each vCPU of each KVM guest really did, seen from the host: halted, spinning or "
      "productive.",
      "vcpulse");
  app->set_version_flag("--version", "vcpulse " VCPULSE_VERSION);
  app->require_subcommand(1);
  app->footer(
      "Exit codes: 0 done, 1 doctor found obstacles or a check failed, 2 usage or run-time error, "
      "3 check inconclusive, 4 check skipped; `record -- CMD` returns those of CMD. "
      "`vcpulse COMMAND --help` says more.");
  AddListCommand(*app, exit_code);
  AddDoctorCommand(*app, exit_code);
  AddRecordCommand(*app, std::move(command), exit_code);
  AddControlCommands(*app, exit_code);
  AddReportCommand(*app, exit_code);
  AddCheckCommand(*app, exit_code);
  AddImportCommand(*app, exit_code);
  AddClassifyCommand(*app, exit_code);
  AddExportCommand(*app, exit_code);
  return app;
}

}  // namespace vcpulse::tools
