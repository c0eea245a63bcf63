#include "monitor/timeline/utf8_texts.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "google/protobuf/descriptor.h"

namespace vcpulse::timeline {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Length of the well-formed sequence at the start of `text` (RFC 3629, section 4), or 0.
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const auto in = [&](size_t i, uint8_t low, uint8_t high) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const auto tail = [&](size_t i) { return in(i, 0x80, 0xBF); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return tail(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool second = lead == 0xE0   ? in(1, 0xA0, 0xBF)
                        : lead == 0xED ? in(1, 0x80, 0x9F)  // no surrogates
                                       : tail(1);
    return second && tail(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool second = lead == 0xF0   ? in(1, 0x90, 0xBF)
                        : lead == 0xF4 ? in(1, 0x80, 0x8F)
                                       : tail(1);
    return second && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

void FixTexts(const Reflection& reflection, const FieldDescriptor* field, Message* message) {
  const int count = field->is_repeated() ? reflection.FieldSize(*message, field) : 1;
  for (int i = 0; i < count; ++i) {
    std::string text = field->is_repeated() ? reflection.GetRepeatedString(*message, field, i)
                                            : reflection.GetString(*message, field);
    MakeUtf8(&text);
    if (field->is_repeated()) {
      reflection.SetRepeatedString(message, field, i, std::move(text));
    } else {
      reflection.SetString(message, field, std::move(text));
    }
  }
}

void FixMessages(const Reflection& reflection, const FieldDescriptor* field, Message* message) {
  if (!field->is_repeated()) return MakeTextsUtf8(reflection.MutableMessage(message, field));
  for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
    MakeTextsUtf8(reflection.MutableRepeatedMessage(message, field, i));
  }
}

}  // namespace

void MakeUtf8(std::string* text) {
  for (size_t i = 0; i < text->size();) {
    const size_t length = SequenceLength(std::string_view(*text).substr(i));
    if (length == 0) (*text)[i] = '?';
    i += length == 0 ? 1 : length;
  }
}

void MakeTextsUtf8(Message* message) {
  const Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->type() == FieldDescriptor::TYPE_STRING) FixTexts(reflection, field, message);
    if (field->type() == FieldDescriptor::TYPE_MESSAGE) FixMessages(reflection, field, message);
  }
}

}  // namespace vcpulse::timeline
