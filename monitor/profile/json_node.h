#pragma once

// JSON text as nodes that know where they are in it.

#include <boost/json/value.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace vcpulse::profile {

// The value of a text, with what Boost.JSON's own parser does not give: each number is a double as
// std::from_chars reads it (1.81 is off by one bit for some), and an error where a field comes
// twice. InvalidArgument: "line 3, column 5: ...".
absl::StatusOr<boost::json::value> ParseJson(std::string_view text);

// "; is 'NAME' meant?" with the name nearest to `text`; `otherwise` where none is near.
std::string Hint(std::string_view text, std::span<const std::string> names,
                 const std::string& otherwise);

// A value, or that there is none. The first fault that is found in a text is kept as its error:
// "PATH: what is wrong", one line. What was read wrong is empty or 0.
class Node {
 public:
  // Both must outlive the node.
  Node(const boost::json::value& value, std::string& error) : Node(value, "", error) {}

  const std::string& path() const { return path_; }  // "thresholds.halted_enter", "spin_ipc[0]"
  bool exists() const;
  bool IsNull() const { return exists() && value_.is_null(); }
  bool IsList() const { return value_.is_array(); }
  void Fail(const std::string& what) const;

  // Whether it is an object of such fields and no others.
  bool IsObjectOf(const std::vector<std::string>& known) const;
  Node operator[](std::string_view key) const;  // a field
  std::vector<Node> List(size_t least, size_t most, const std::string& of_what) const;
  // One line of text, not empty, at most `longest` bytes.
  std::string Text(size_t longest) const;
  double Number() const;
  // A whole number as such, or as the text of a hexadecimal one ("0x55").
  uint64_t Code(uint64_t highest) const;

 private:
  Node(const boost::json::value& value, std::string path, std::string& error)
      : value_(value), path_(std::move(path)), error_(error) {}
  void FailAs(const std::string& what) const;  // what is wrong with what it holds

  const boost::json::value& value_;
  std::string path_;
  std::string& error_;
};

}  // namespace vcpulse::profile
