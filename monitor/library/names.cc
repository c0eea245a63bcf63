// What the values of the C API's enums are called.
#include <array>
#include <cstddef>

#include "monitor/library/include/vcpulse.h"

namespace {

template <size_t N>
const char* NameOf(const std::array<const char*, N>& names, int value) {
  return value < 0 || static_cast<size_t>(value) >= N ? nullptr : names[static_cast<size_t>(value)];
}

constexpr std::array kStatuses = {
    "ok",          "invalid-argument", "not-found", "not-permitted", "not-possible",
    "unavailable", "no-resources",     "io",        "unsupported",   "ended",
    "internal"};
static_assert(kStatuses.size() == VCPULSE_STATUS_INTERNAL + 1);
constexpr std::array kBands = {"none", "halted", "spinning", "productive", "unknown"};
static_assert(kBands.size() == VCPULSE_BAND_UNKNOWN + 1);
constexpr std::array<const char*, 5> kKinds = {nullptr, "tick", "marker", "gap", "life-cycle"};
static_assert(kKinds.size() == VCPULSE_KIND_LIFE_CYCLE + 1);
constexpr std::array kOutcomes = {"SKIP", "PASS", "INCONCLUSIVE", "FAIL"};
static_assert(kOutcomes.size() == VCPULSE_OUTCOME_FAIL + 1);

}  // namespace

const char* vcpulse_status_name(int status) { return NameOf(kStatuses, status); }
const char* vcpulse_band_name(int band) { return NameOf(kBands, band); }
const char* vcpulse_kind_name(int kind) { return NameOf(kKinds, kind); }
const char* vcpulse_outcome_name(int outcome) { return NameOf(kOutcomes, outcome); }
