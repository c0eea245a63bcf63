// The text of a profile: what is taken must survive being written again.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "kvm/base/text.h"
#include "monitor/profile/fields.h"
#include "monitor/profile/profile.h"

namespace {

using namespace vcpulse;

void Check(bool condition) {
  if (!condition) std::abort();
}

// What people read is one line of valid UTF-8 that begins with the file.
void CheckMessage(std::string_view message) {
  Check(message.starts_with("FILE: ") && message.size() < 1000);
  Check(Printable(message) == message);
  for (size_t i = 0; i < message.size();) {
    const size_t length = Utf8SequenceLength(message.substr(i));
    Check(length > 0);
    i += length;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto profile = profile::Parse(text, "FILE");
  if (!profile.ok()) {
    CheckMessage({profile.status().message().data(), profile.status().message().size()});
    return 0;
  }
  Check(!profile->name.empty() && profile->source == "FILE");
  Check(profile::Check(profile->values).ok());
  for (const profile::Field& field : profile::Fields()) {
    const auto value = field.Get(profile->values);
    Check(value ? std::isfinite(*value) : field.MayBeOff());
    Check(!profile->origins.at(std::string(field.name)).empty());
  }
  const std::string json = profile::ToJson(*profile);
  const auto again = profile::Parse(json, "FILE");
  Check(again.ok());
  Check(again->name == profile->name && again->description == profile->description);
  Check(again->values == profile->values && again->pause == profile->pause);
  Check(again->cpu == profile->cpu && again->origins == profile->origins);
  Check(profile::ToJson(*again) == json);
  return 0;
}
