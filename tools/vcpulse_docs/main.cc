// vcpulse_docs DIR VERSION DATE: writes the man pages and the completion of bash and zsh into
// DIR/man1, DIR/bash and DIR/zsh. Run by the build; not installed.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "monitor/profile/profile.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse_docs/pages.h"

namespace {

namespace docs = vcpulse::docs;
namespace fs = std::filesystem;

void Write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

void WriteAll(const fs::path& folder, const docs::ManPageHead& head) {
  std::vector<std::string> profiles;
  for (const auto& profile : vcpulse::profile::BuiltIn()) profiles.push_back(profile.name);
  int unused_exit_code = 0;
  const auto app = vcpulse::tools::BuildApp({}, unused_exit_code);
  const docs::Command root = vcpulse::tools::ReadCommandTree(*app, profiles);
  fs::remove_all(folder / "man1");  // pages of commands that are no more
  for (const docs::Command* command : docs::Flatten(root)) {
    Write(folder / "man1" / (docs::JoinPath(*command, '-') + ".1"),
          docs::ManPage(root, *command, head));
  }
  Write(folder / "bash" / "vcpulse", docs::BashCompletion(root));
  Write(folder / "zsh" / "_vcpulse", docs::ZshCompletion(root));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: vcpulse_docs DIR VERSION DATE\n", stderr);
    return 2;
  }
  try {
    WriteAll(argv[1], {.version = argv[2], .date = argv[3]});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "vcpulse_docs: %s\n", error.what());
    return 1;
  }
  return 0;
}
