#include "tests/terminal/tmux.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tests/fakes/temporary_folder.h"
#include "tests/kvm/run_program.h"

namespace vcpulse::kvm_tests {

std::string Quote(const std::string& word) {
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

std::string VcpulseLine(const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  for (const std::string& word : Vcpulse(arguments)) words.push_back(Quote(word));
  return absl::StrJoin(words, " ");
}

Tmux::Tmux(size_t columns, size_t rows, const std::string& command, const std::string& term)
    : folder_(fakes::MakeTemporaryFolder()) {
  // Another program behind it: the server ends with its last one.
  const std::string line = absl::StrCat("export TERM=", term, " LC_ALL=C.UTF-8; ", command,
                                        "; echo exit $?; exec sleep 600");
  Run({"new-session", "-d", "-x", absl::StrCat(columns), "-y", absl::StrCat(rows), line});
}

Tmux::~Tmux() {
  Kill();
  std::filesystem::remove_all(folder_);
}

std::string Tmux::Run(std::vector<std::string> arguments) const {
  std::vector<std::string> all = {"tmux", "-S", Path("socket"), "-f", "/dev/null"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return RunProgram(all).out;
}

void Tmux::Press(const std::vector<std::string>& keys) const {
  std::vector<std::string> arguments = {"send-keys", "--"};
  arguments.insert(arguments.end(), keys.begin(), keys.end());
  Run(arguments);
}

void Tmux::Type(const std::string& text) const { Run({"send-keys", "-l", "--", text}); }

void Tmux::Resize(size_t columns, size_t rows) const {
  Run({"resize-window", "-x", absl::StrCat(columns), "-y", absl::StrCat(rows)});
}

void Tmux::Kill() const { Run({"kill-server"}); }

std::string Tmux::Text() const { return Run({"capture-pane", "-p"}); }

std::string Tmux::Coloured() const { return Run({"capture-pane", "-p", "-e"}); }

bool Tmux::Shows(const std::string& text) const {
  return Eventually([&] { return absl::StrContains(Text(), text); });
}

bool Tmux::ShowsNoMore(const std::string& text) const {
  return Eventually([&] { return !absl::StrContains(Text(), text); });
}

}  // namespace vcpulse::kvm_tests
