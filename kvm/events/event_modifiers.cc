#include "kvm/events/event_modifiers.h"

#include <algorithm>
#include <array>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"

namespace vcpulse::kvm {
namespace {

struct Refusal {
  char letter;
  std::string_view reason;
};

constexpr char kGuestOnly = 'G';

constexpr std::array<Refusal, 13> kRefusals = {{
    {'u', "would leave out the guest's kernel (on x86 its ring 0)"},
    {'k', "would leave out the guest's user space"},
    {'h', "is for the hypervisor's own time; vcpulse counts guests"},
    {'H', "is the host; vcpulse counts guests"},
    {'p', "asks for precise samples; vcpulse counts and takes no samples"},
    {'P', "asks for precise samples; vcpulse counts and takes no samples"},
    {'D', "pins the event: it would outrank and starve the guest's own vPMU"},
    {'S', "reads the group with each sample; vcpulse takes no samples and reads groups as a whole"},
    {'W', "lets a group that does not fit fall apart unseen; vcpulse says what does not fit"},
    {'I', "leaves out the idle task, which a vCPU thread never is"},
    {'e', "takes the PMU for this group alone, from the guest's own vPMU too"},
    {'b', "counts through BPF programs of perf; vcpulse opens events of its own"},
    {'R', "asks for latencies of samples; vcpulse counts and takes no samples"},
}};

const Refusal* Find(char letter) {
  const auto* found = std::ranges::find(kRefusals, letter, &Refusal::letter);
  return found == kRefusals.end() ? nullptr : found;
}

}  // namespace

bool AreModifierLetters(std::string_view text) {
  return std::ranges::all_of(
      text, [](char letter) { return letter == kGuestOnly || Find(letter) != nullptr; });
}

std::string ModifierRefusal(std::string_view modifiers) {
  for (const char& letter : modifiers) {
    if (letter == kGuestOnly) continue;
    const Refusal* refusal = Find(letter);
    const std::string shown = absl::CHexEscape(absl::string_view(&letter, 1));
    if (refusal == nullptr) {
      return absl::StrCat(":", shown, " is not a modifier that vcpulse knows; :G alone is taken");
    }
    return absl::StrCat(":", shown, " ", ToAbsl(refusal->reason));
  }
  return "";
}

}  // namespace vcpulse::kvm
