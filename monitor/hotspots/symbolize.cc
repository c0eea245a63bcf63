#include "monitor/hotspots/symbolize.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "monitor/hotspots/code_record.h"
#include "monitor/hotspots/places.h"

namespace vcpulse::hotspots {
namespace {

// Pieces of code of one window: those of the addresses with most samples, which stand first.
constexpr int kMostCode = 16;

bool IsUsers(const v1::HotAddresses& window, int i) {
  return i < window.modes_size() && window.modes(i) == v1::GUEST_MODE_USER;
}

void AddCode(const GuestKernel& kernel, v1::HotAddresses& window) {
  auto& code = *window.mutable_code();
  code.erase(
      std::remove_if(code.begin(), code.end(), [](const auto& piece) { return piece.of_file(); }),
      code.end());
  KnownCode known = CodeOf(window).read;
  for (int i = 0; i < window.addresses_size() && code.size() < kMostCode; ++i) {
    const uint64_t address = window.addresses(i);
    if (IsUsers(window, i) || known.WaitsAt(address)) continue;
    auto piece = kernel.code.Around(address);
    if (!piece) continue;
    *window.add_code() = RecordOf(*piece);
    code.rbegin()->set_of_file(true);
    known.Add(*std::move(piece));
  }
}

}  // namespace

Symbolized Symbolize(const GuestKernel& kernel, v1::HotAddresses& window) {
  Symbolized samples;
  window.clear_functions();
  window.clear_function_addresses();
  for (int i = 0; i < window.addresses_size(); ++i) {
    const bool is_user = IsUsers(window, i);
    const auto symbol = is_user ? std::nullopt : kernel.symbols.Find(window.addresses(i));
    window.add_functions(symbol ? symbol->name : "");
    window.add_function_addresses(symbol ? symbol->address : 0);
    const uint64_t here = i < window.samples_size() ? Believable(window.samples(i)) : 0;
    if (!is_user) samples.all += here;
    if (symbol) samples.named += here;
  }
  AddCode(kernel, window);
  return samples;
}

}  // namespace vcpulse::hotspots
