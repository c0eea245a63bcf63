#pragma once

// The vcpulse command: one file per subcommand. Flags are parsed here and nowhere else, into plain
// option structs; the work is done by monitor/ and kvm/. Results go to stdout, diagnostics to
// stderr.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace vcpulse::check {
enum class Outcome : uint8_t;
}

namespace vcpulse::tools {

// Exit codes of every subcommand (docs/architecture.md lists them for users).
inline constexpr int kExitOk = 0;
inline constexpr int kExitChecksFailed = 1;  // of doctor: a recording would not be complete
inline constexpr int kExitFailed =
    1;                                // of check: an expectation failed; of compare: beyond a limit
inline constexpr int kExitError = 2;  // usage or run-time error
inline constexpr int kExitInconclusive = 3;  // of both: none failed, one could not be told
inline constexpr int kExitSkipped = 4;       // of both: needs counters, which were not read
inline constexpr int kExitFailedBesideCommand = 125;  // the same, for `record -- CMD`

// Each adds its subcommand to `app`; when that subcommand is the one given, running it sets
// `exit_code`.
void AddListCommand(CLI::App& app, int& exit_code);
void AddDoctorCommand(CLI::App& app, int& exit_code);
void AddCalibrateCommand(CLI::App& app, int& exit_code);
// `command` is what followed `--` on the command line.
void AddRecordCommand(CLI::App& app, std::vector<std::string> command, int& exit_code);
// mark, pause, resume, stop and status: requests to a recording that runs.
void AddControlCommands(CLI::App& app, int& exit_code);
void AddReportCommand(CLI::App& app, int& exit_code);
void AddCheckCommand(CLI::App& app, int& exit_code);
void AddCompareCommand(CLI::App& app, int& exit_code);
void AddImportCommand(CLI::App& app, int& exit_code);
void AddMergeCommand(CLI::App& app, int& exit_code);
void AddClassifyCommand(CLI::App& app, int& exit_code);
void AddExportCommand(CLI::App& app, int& exit_code);
void AddRollupCommand(CLI::App& app, int& exit_code);
void AddReplayCommand(CLI::App& app, int& exit_code);
void AddTopCommand(CLI::App& app, int& exit_code);
void AddCollectCommand(CLI::App& app, int& exit_code);
void AddTailCommand(CLI::App& app, int& exit_code);
void AddHotspotsCommand(CLI::App& app, int& exit_code);
void AddSymbolizeCommand(CLI::App& app, int& exit_code);

// Prints "vcpulse: MESSAGE" as one line on stderr.
void Note(std::string_view message);
// The same, and returns kExitError.
int Fail(std::string_view message);
int Fail(const absl::Status& status);

// The exit code of a command that judges (docs/architecture.md lists them).
int ExitCodeOf(check::Outcome outcome);

// The whole command line of vcpulse, for the program and for what is made from it (man pages and
// shell completion: tools/vcpulse_docs): every subcommand with its options and help. `command` is
// what followed `--` on the command line. Parsing runs the subcommand that was given, which sets
// `exit_code`; it must outlive the result.
std::unique_ptr<CLI::App> BuildApp(std::vector<std::string> command, int& exit_code);

}  // namespace vcpulse::tools
