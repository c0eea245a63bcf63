#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "boost/json.hpp"
#include "monitor/import/text_source.h"

namespace vcpulse::importing {

// A longer line is no object.
inline constexpr size_t kMaxLineBytes = 65536;

// Text with a JSON object on some of its lines. `source` must outlive it.
class JsonLines {
 public:
  enum class Line : uint8_t {
    kEnd,
    kObject,
    kBlank,
    kComment,    // begins with #
    kText,       // holds no {
    kBroken,     // holds a {, and no object behind it
    kTruncated,  // likewise, and it is the last one and has no end
    kTooLong,
    kFailed,  // the source could not be read: status() says why
  };

  explicit JsonLines(TextSource& source);

  // The next line. Text in front of an object, and behind it where it holds no {, is passed over:
  // others write to the same place. What the C library writes in other locales and of numbers that
  // are none (`100,00`, `nan`, `inf`) is read as 100.00 and null.
  Line Next();

  // Begins anew with the first line.
  void Rewind();

  const absl::Status& status() const { return status_; }
  const boost::json::object& object() const { return value_->get_object(); }  // of a kObject
  uint64_t line() const { return line_; }                                     // from 1

 private:
  // The object at the start of `text`; false where there is none.
  bool Parse(std::string_view text);

  TextSource& source_;
  absl::Status status_;
  std::string_view rest_;  // of the piece
  bool begun_ = false;
  uint64_t line_ = 0;
  std::array<unsigned char, 65536> buffer_{};
  // Made for each line: the blocks that it takes beyond the buffer double, and go on doubling after
  // a release.
  std::optional<boost::json::monotonic_resource> memory_;
  boost::json::parser parser_;
  std::optional<boost::json::value> value_;
};

inline std::string_view ViewOf(const boost::json::string& text) {
  return {text.data(), text.size()};
}

// A whole number from 0 to 2^64-1, also where it is written as 5.0; nothing for anything else.
std::optional<uint64_t> WholeNumber(const boost::json::value& value);

// `seconds` in ns, rounded; nothing where it is negative, or beyond kMaxTime_ns.
std::optional<uint64_t> SecondsAsNs(double seconds);

}  // namespace vcpulse::importing
