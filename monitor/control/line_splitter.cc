#include "monitor/control/line_splitter.h"

namespace vcpulse::control {

void LineSplitter::Receive(std::string_view bytes) { pending_ += bytes; }

LineSplitter::Line LineSplitter::Take(size_t size, size_t ending) {
  Line line{.text = pending_.substr(0, size)};
  pending_.erase(0, size + ending);
  if (line.text.ends_with('\r')) line.text.pop_back();
  if (line.text.size() > longest_) line = {.too_long = true};
  return line;
}

std::optional<LineSplitter::Line> LineSplitter::Next() {
  size_t end = pending_.find('\n');
  if (skipping_) {
    if (end == std::string::npos) {
      pending_.clear();
      return std::nullopt;
    }
    skipping_ = false;
    pending_.erase(0, end + 1);
    end = pending_.find('\n');
  }
  if (end != std::string::npos) return Take(end, 1);
  // One more for the CR of an end that has come half.
  if (pending_.size() <= longest_ + 1) return std::nullopt;
  pending_.clear();
  skipping_ = true;
  return Line{.too_long = true};
}

std::optional<LineSplitter::Line> LineSplitter::Rest() {
  if (skipping_ || pending_.empty()) return std::nullopt;
  return Take(pending_.size(), 0);
}

}  // namespace vcpulse::control
