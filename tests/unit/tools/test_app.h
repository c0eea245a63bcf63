#pragma once

// A program with one command, for tests of what is made from a program's options.

#include <string>

#include "CLI/CLI.hpp"
#include "tools/vcpulse/command_tree.h"

namespace vcpulse::tools {

struct TestApp {
  TestApp() : app("Does one thing", "tool") {
    below = app.add_subcommand("run", "Run it");
    below->footer("Usage: [OPTIONS] FILE [-- CMD [ARGS...]]");
    below->add_option("FILE", text, "what to read")->required();
    below->add_option("-f,--format", text, "how to write [a]")->type_name("json|csv");
    below->add_flag("--quiet", flag, "say nothing");
    below->add_option("--after", text, "a time")->type_name("DURATION")->group("Limits");
  }

  Command Read() const { return ReadCommandTree(app, {"profile-a", "profile-b"}); }
  // With another footer.
  Command ReadRun(const std::string& footer) {
    below->footer(footer);
    return Read().subcommands[0];
  }

  CLI::App app;
  CLI::App* below;
  std::string text;
  bool flag = false;
};

}  // namespace vcpulse::tools
