// The control socket's two ends: what a client sends is cut into lines and understood, and what a
// server answers is read.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/control/request.h"
#include "monitor/control/response.h"

namespace {

using namespace vcpulse::control;

constexpr size_t kLongest = 64;

void Check(bool condition) {
  if (!condition) std::abort();
}

// What people read is one line without what a terminal obeys.
void CheckMessage(std::string_view message, std::string_view begin) {
  Check(message.starts_with(begin));
  for (const char c : message) Check(c >= ' ' && c <= '~');
}

struct Lines {
  std::vector<std::string> texts;
  std::vector<bool> too_long;

  bool operator==(const Lines&) const = default;
};

Lines Split(std::string_view text, size_t piece) {
  LineSplitter splitter(kLongest);
  Lines lines;
  const auto take = [&](const LineSplitter::Line& line) {
    Check(line.text.size() <= kLongest);
    Check(!line.too_long || line.text.empty());
    lines.texts.push_back(line.text);
    lines.too_long.push_back(line.too_long);
  };
  for (size_t i = 0; i < text.size(); i += piece) {
    splitter.Receive(text.substr(i, piece));
    while (const auto line = splitter.Next()) take(*line);
  }
  if (const auto line = splitter.Rest()) take(*line);
  return lines;
}

void CheckRequest(std::string_view line) {
  const auto request = ParseRequest(line);
  if (!request.ok()) {
    const auto message = request.status().message();
    return CheckMessage({message.data(), message.size()}, "column ");
  }
  const std::string written = RequestLine(*request);
  const auto again = ParseRequest(std::string_view(written).substr(0, written.size() - 1));
  Check(again.ok() && *again == *request);
  Check(request->name.size() <= kLongestMarkerName_bytes);
  Check((request->verb == Verb::kMark) != request->name.empty());
}

// What is understood of an answer is written so that it is understood the same.
void CheckResponse(std::string_view line) {
  const auto response = ParseResponse(line);
  if (!response.ok()) {
    const auto message = response.status().message();
    return CheckMessage({message.data(), message.size()}, "it");
  }
  const std::string written = ResponseLine(*response);
  Check(written.size() <= kLongestAnswer_bytes);
  const auto again = ParseResponse(written);
  Check(again.ok() && ResponseLine(*again) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // The first byte says how what is sent arrives in pieces.
  const size_t piece = size_t{data[0]} + 1;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const Lines lines = Split(text, text.size() + 1);
  Check(lines == Split(text, piece));
  for (const std::string& line : lines.texts) CheckRequest(line);
  CheckRequest(text);
  CheckResponse(text);
  return 0;
}
