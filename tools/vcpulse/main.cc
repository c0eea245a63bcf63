#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "kvm/base/text.h"
#include "monitor/report/text_format.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/help.h"
#include "tools/vcpulse/output.h"
#include "tools/vcpulse/timeline_input.h"
#include "tools/vcpulse/usage_error.h"
#include "tools/vcpulse/values.h"

#if __has_include("google/protobuf/stubs/logging.h")  // up to protobuf 21
#include "google/protobuf/stubs/logging.h"
#else
#include "absl/log/globals.h"
#endif

namespace {

// Takes the first `--` and what follows it off the arguments; nothing where there is none.
std::optional<std::vector<std::string>> TakeCommand(std::vector<std::string>& arguments) {
  const auto separator = std::ranges::find(arguments, "--");
  if (separator == arguments.end()) return std::nullopt;
  std::vector<std::string> command(separator + 1, arguments.end());
  arguments.erase(separator, arguments.end());
  return command;
}

// What is wrong with the file of --config, where that is what `error` says.
std::optional<std::string> ConfigFileError(const CLI::App& app, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::FileError*>(&error) != nullptr) {
    const auto name = app.get_config_ptr()->as<std::string>();
    return "--config: " + std::string(vcpulse::tools::ReadWhole(name, 0).status().message());
  }
  if (dynamic_cast<const CLI::ConfigError*>(&error) == nullptr) return std::nullopt;
  return vcpulse::Printable(error.what());
}

// What any peer or file can make protobuf log (texts that are not UTF-8) is reported by us where it
// matters.
void SilenceProtobuf() {
#ifdef GOOGLE_LOG
  google::protobuf::SetLogHandler(nullptr);
#else
  absl::SetMinLogLevel(absl::LogSeverityAtLeast::kFatal);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  namespace tools = vcpulse::tools;
  // A reader that goes away (`vcpulse report | head`) is an error of write(2), not our end.
  std::signal(SIGPIPE, SIG_IGN);
  SilenceProtobuf();
  constexpr size_t kNarrowest = 60;
  constexpr size_t kWidest = 100;  // longer lines read badly
  if (const auto width = tools::WidthOfStdout()) {
    vcpulse::report::SetParagraphWidth(std::clamp(*width, kNarrowest, kWidest));
  }

  std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool asks_help = !arguments.empty() && arguments.front() == "help";
  if (asks_help) arguments.erase(arguments.begin());
  const std::optional<std::vector<std::string>> command = TakeCommand(arguments);
  if (command && command->empty()) return tools::Fail("no command follows --");
  tools::SpellOutEmptyValues(arguments);
  int exit_code = tools::kExitOk;
  const std::unique_ptr<CLI::App> app =
      tools::BuildApp(command.value_or(std::vector<std::string>{}), exit_code);

  if (asks_help) {
    if (const auto wrong = tools::WrongCommandPath(*app, arguments)) return tools::Fail(*wrong);
    arguments.emplace_back("--help");
  }
  const bool named = !arguments.empty() && !arguments.front().starts_with('-');
  const auto is_first = [&](const CLI::App* known) {
    return known->get_name() == arguments.front();
  };
  if (named && std::as_const(*app).get_subcommands(is_first).empty()) {
    return tools::Fail(tools::UnknownCommand(*app, arguments.front()));
  }
  if (command && (arguments.empty() || arguments.front() != "record")) {
    return tools::Fail("-- CMD belongs to `vcpulse record`");
  }
  if (const auto wrong = tools::FlagWithValue(*app, arguments)) return tools::Fail(*wrong);
  try {
    // As CLI11 wants them.
    app->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      app->exit(error, text, text);
      return tools::WriteStdout(text.str());
    }
    if (const auto text = ConfigFileError(*app, error)) return tools::Fail(*text);
    return tools::Fail(tools::UsageError(*app, arguments, error));
  } catch (const std::exception& error) {
    return tools::Fail(error.what());
  }
  return exit_code;
}
