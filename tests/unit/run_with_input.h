#pragma once

// Runs another program on a text, for tests that let an independent reader judge our output.

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "tests/fakes/temporary_folder.h"

namespace vcpulse::tests {

struct Judgement {
  int exit_code = -1;
  std::string said;  // on both outputs
};

// `command` is for the shell; the text is its standard input.
inline Judgement RunWithInput(const std::string& command, std::string_view text) {
  const std::filesystem::path folder = fakes::MakeTemporaryFolder();
  const std::string input = (folder / "input").string();
  std::ofstream(input, std::ios::binary) << text;
  Judgement judgement;
  FILE* output = ::popen((command + " <" + input + " 2>&1").c_str(), "r");
  if (output != nullptr) {
    std::array<char, 4096> bytes{};
    while (const size_t read = std::fread(bytes.data(), 1, bytes.size(), output)) {
      judgement.said.append(bytes.data(), read);
    }
    const int status = ::pclose(output);
    if (WIFEXITED(status)) judgement.exit_code = WEXITSTATUS(status);
  }
  std::filesystem::remove_all(folder);
  return judgement;
}

}  // namespace vcpulse::tests
