#include "monitor/live/options.h"

namespace vcpulse::live {

std::optional<Reader> ParseReader(std::string_view name) {
  if (name == "auto") return Reader::kAuto;
  if (name == "bpf") return Reader::kBpf;
  if (name == "read") return Reader::kRead;
  return std::nullopt;
}

}  // namespace vcpulse::live
