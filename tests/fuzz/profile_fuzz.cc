// The text of a profile: what is taken must survive being written again.
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "kvm/base/text.h"
#include "monitor/profile/fields.h"
#include "monitor/profile/profile.h"
#include "tests/fuzz/checks.h"

namespace {

using namespace vcpulse;

using fuzz::Check;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto profile = profile::Parse(text, "FILE");
  if (!profile.ok()) {
    const std::string_view message = ToStd(profile.status().message());
    Check(message.starts_with("FILE: ") && message.size() < 1000);
    fuzz::CheckMessage(message);
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
