#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace vcpulse::control {

inline constexpr size_t kLongestLine_bytes = 4096;

// Cuts what arrives into lines. A line ends with LF or CR LF, neither of which is part of it. It
// does no I/O: the owner feeds it what was received, and takes lines until there is none; so it
// holds no more than one line and one piece. One thread.
class LineSplitter {
 public:
  struct Line {
    std::string text;
    // The line has more than `longest` bytes: `text` is empty, and what is left of it is skipped.
    // Said once, before its end has come.
    bool too_long = false;
  };

  explicit LineSplitter(size_t longest = kLongestLine_bytes) : longest_(longest) {}

  void Receive(std::string_view bytes);
  // The next line, nothing where none is whole yet.
  std::optional<Line> Next();
  // Nothing more will come: the last line where it has no end, nothing where there is none. Called
  // when Next has none.
  std::optional<Line> Rest();

 private:
  // Takes `size` bytes as a line, and `ending` more.
  Line Take(size_t size, size_t ending);

  size_t longest_;
  std::string pending_;
  bool skipping_ = false;  // to the end of a line that is too long
};

}  // namespace vcpulse::control
