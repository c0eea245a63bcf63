#include "monitor/hotspots/symbolize.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "monitor/hotspots/code_record.h"
#include "monitor/hotspots/places.h"

namespace vcpulse::hotspots {
namespace {

// Pieces of code of one window: those of the addresses with most samples, which stand first.
constexpr int kMostCode = 16;

void AddCode(const GuestKernel& kernel, v1::HotAddresses& window) {
  KnownCode known;
  for (const v1::GuestCode& piece : window.code()) {
    if (auto code = CodeOf(piece)) known.Add(*std::move(code));
  }
  for (const uint64_t address : window.addresses()) {
    if (window.code_size() >= kMostCode) return;
    auto code = known.WaitsAt(address) ? std::nullopt : kernel.code.Around(address);
    if (!code) continue;
    *window.add_code() = RecordOf(*code);
    known.Add(*std::move(code));
  }
}

}  // namespace

uint64_t Symbolize(const GuestKernel& kernel, v1::HotAddresses& window) {
  uint64_t named = 0;
  window.clear_functions();
  window.clear_function_addresses();
  for (int i = 0; i < window.addresses_size(); ++i) {
    const bool is_user = i < window.modes_size() && window.modes(i) == v1::GUEST_MODE_USER;
    const auto symbol = is_user ? std::nullopt : kernel.symbols.Find(window.addresses(i));
    window.add_functions(symbol ? symbol->name : "");
    window.add_function_addresses(symbol ? symbol->address : 0);
    if (symbol && i < window.samples_size()) named += Believable(window.samples(i));
  }
  AddCode(kernel, window);
  return named;
}

}  // namespace vcpulse::hotspots
