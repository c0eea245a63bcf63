#include "monitor/timeline/utf8_texts.h"

#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "kvm/base/utf8.h"

namespace vcpulse::timeline {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

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
