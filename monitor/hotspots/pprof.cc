#include "monitor/hotspots/pprof.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "pprof_subset.pb.h"

namespace vcpulse::hotspots {
namespace {

// Puts a profile together; texts, functions and locations once each.
class PprofProfile {
 public:
  PprofProfile() {
    TextOf("");
    pprof::ValueType& samples = *profile_.add_sample_type();
    samples.set_type(TextOf("samples"));
    samples.set_unit(TextOf("count"));
    profile_.add_comment(
        TextOf("vcpulse: guest addresses sampled from the host; callers as far as they are known"));
  }

  void Add(const VcpuHotspots& vcpu) {
    for (const Stack& stack : AllStacks(vcpu)) Add(vcpu, stack);
    const auto nanos = static_cast<int64_t>(std::clamp(vcpu.seconds, 0.0, 1e9) * 1e9);
    profile_.set_duration_nanos(std::max(profile_.duration_nanos(), nanos));
  }

  std::string Serialize() const { return profile_.SerializeAsString(); }

 private:
  int64_t TextOf(std::string_view text) {
    const auto [place, is_new] = texts_.try_emplace(std::string(text), texts_.size());
    if (is_new) profile_.add_string_table(place->first);
    return static_cast<int64_t>(place->second);
  }

  // One function each: addresses of two guests may be the same and their code another.
  uint64_t LocationOf(uint64_t address, std::string_view name) {
    const auto [place, is_new] =
        locations_.try_emplace({address, TextOf(Printable(name))}, locations_.size() + 1);
    if (!is_new) return place->second;
    pprof::Function& function = *profile_.add_function();
    function.set_id(place->second);
    function.set_name(place->first.second);
    function.set_system_name(place->first.second);
    pprof::Location& location = *profile_.add_location();
    location.set_id(place->second);
    location.set_address(address);
    location.add_line()->set_function_id(place->second);
    return place->second;
  }

  void Add(const VcpuHotspots& vcpu, const Stack& stack) {
    pprof::Sample& sample = *profile_.add_sample();
    for (const Stack::Frame& frame : stack.frames) {
      sample.add_location_id(LocationOf(frame.address, frame.name));
    }
    sample.add_value(static_cast<int64_t>(stack.samples));
    const auto label = [&](std::string_view key, std::string_view value) {
      pprof::Label& added = *sample.add_label();
      added.set_key(TextOf(key));
      added.set_str(TextOf(value));
    };
    label("vm", Printable(vcpu.vm));
    label("mode", NameOf(stack.mode));
    label("source", kvm::ToString(vcpu.source));
    label("vcpu", absl::StrCat(vcpu.vcpu));  // a number of 0 would be none to pprof
  }

  pprof::Profile profile_;
  std::map<std::string, size_t> texts_;
  std::map<std::pair<uint64_t, int64_t>, uint64_t> locations_;
};

}  // namespace

std::string PprofOf(const std::vector<VcpuHotspots>& vcpus) {
  PprofProfile profile;
  for (const VcpuHotspots& vcpu : vcpus) profile.Add(vcpu);
  return profile.Serialize();
}

}  // namespace vcpulse::hotspots
