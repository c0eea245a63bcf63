#pragma once

// A terminal that a test types on and reads: a tmux server of its own, in a folder of its own.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace vcpulse::kvm_tests {

// One program on one terminal; both are gone with the object. A shell runs it, and when it has
// ended prints "exit N".
class Tmux {
 public:
  // `command` is for a shell; `term` is TERM for it.
  Tmux(size_t columns, size_t rows, const std::string& command,
       const std::string& term = "tmux-256color");
  ~Tmux();
  Tmux(const Tmux&) = delete;
  Tmux& operator=(const Tmux&) = delete;

  // Names of keys as tmux has them ("Enter", "Escape", "C-c", "Up"), or characters.
  void Press(const std::vector<std::string>& keys) const;
  void Type(const std::string& text) const;
  void Resize(size_t columns, size_t rows) const;
  // The terminal goes, as where a connection is lost.
  void Kill() const;
  // What it shows, its rows as lines.
  std::string Text() const;
  // The same with the colours, as escape sequences.
  std::string Coloured() const;
  // Whether it came to show that, in the time that a slow machine needs.
  bool Shows(const std::string& text) const;
  bool ShowsNoMore(const std::string& text) const;
  // The folder, for files of the test.
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::string Run(std::vector<std::string> arguments) const;

  std::string folder_;
};

// One word for a shell.
std::string Quote(const std::string& word);
// A command line of the vcpulse under test.
std::string VcpulseLine(const std::vector<std::string>& arguments);

}  // namespace vcpulse::kvm_tests
