#include "kvm/base/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "kvm/base/text.h"

namespace vcpulse {
namespace {

namespace json = boost::json;

void AppendDouble(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  std::array<char, 32> text{};
  const auto result = std::to_chars(text.data(), text.data() + text.size(), number);
  out.append(text.data(), result.ptr);
}

void Append(std::string& out, const json::value& value, size_t depth);

// "[" items "]", one per line at depth + 1 where `spread`.
template <typename Items, typename AppendItem>
void AppendList(std::string& out, const Items& items, bool spread, size_t depth, char open,
                char close, const AppendItem& append_item) {
  out += open;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += spread ? "," : ", ";
    first = false;
    if (spread) out.append("\n").append(2 * (depth + 1), ' ');
    append_item(item);
  }
  if (spread && !first) out.append("\n").append(2 * depth, ' ');
  out += close;
}

void Append(std::string& out, const json::value& value, size_t depth) {
  if (value.is_double()) {
    AppendDouble(out, value.get_double());
  } else if (const json::array* array = value.if_array()) {
    const bool spread = std::any_of(array->begin(), array->end(),
                                    [](const json::value& v) { return v.is_structured(); });
    AppendList(out, *array, spread, depth, '[', ']',
               [&](const json::value& item) { Append(out, item, depth + 1); });
  } else if (const json::object* object = value.if_object()) {
    AppendList(out, *object, true, depth, '{', '}', [&](const json::key_value_pair& member) {
      out += json::serialize(member.key());
      out += ": ";
      Append(out, member.value(), depth + 1);
    });
  } else {
    out += json::serialize(value);
  }
}

void AppendOnOneLine(std::string& out, const json::object& object) {
  out += '{';
  for (const json::key_value_pair& member : object) {
    if (&member != object.begin()) out += ',';
    out += json::serialize(member.key());
    out += ':';
    if (member.value().is_double()) {
      AppendDouble(out, member.value().get_double());
    } else if (member.value().is_object()) {
      AppendOnOneLine(out, member.value().get_object());
    } else {
      out += json::serialize(member.value());
    }
  }
  out += '}';
}

}  // namespace

std::string ToJsonText(const boost::json::value& value) {
  std::string out;
  Append(out, value, 0);
  out += '\n';
  return out;
}

std::string ToJsonLine(const boost::json::object& object) {
  std::string out;
  AppendOnOneLine(out, object);
  out += '\n';
  return out;
}

json::value NameOrNull(std::optional<std::string_view> name) {
  if (!name) return nullptr;
  return json::string(name->data(), name->size());
}

json::value Utf8Text(std::string_view text) {
  std::string utf8(text);
  MakeUtf8(&utf8);
  return json::string(utf8);
}

json::array Utf8Texts(const std::vector<std::string>& texts) {
  json::array out;
  for (const std::string& text : texts) out.push_back(Utf8Text(text));
  return out;
}

json::value TextOrNull(std::string_view text) {
  if (text.empty()) return nullptr;
  return Utf8Text(text);
}

json::value NumberOrNull(int64_t number) {
  if (number == 0) return nullptr;
  return number;
}

}  // namespace vcpulse
