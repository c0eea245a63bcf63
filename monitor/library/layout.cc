// What the ABI promises, held at compile time: the layout of the public structs and the values of
// the public enums. A line here changes only where a field or a value was added at the end.
#include <array>
#include <cstddef>

#include "monitor/core/verdict.h"
#include "monitor/library/include/vcpulse.h"

namespace vcpulse::library {
namespace {

// x86-64 and AArch64.
static_assert(sizeof(void*) == 8 && sizeof(size_t) == 8 && sizeof(long) == 8);  // NOLINT

static_assert(offsetof(vcpulse_record, size) == 0);
static_assert(offsetof(vcpulse_record, kind) == 8);
static_assert(offsetof(vcpulse_record, band) == 12);
static_assert(offsetof(vcpulse_record, mono_ns) == 16);
static_assert(offsetof(vcpulse_record, vm) == 24);
static_assert(offsetof(vcpulse_record, vm_pid) == 32);
static_assert(offsetof(vcpulse_record, vcpu) == 36);
static_assert(offsetof(vcpulse_record, tick) == 40);
static_assert(offsetof(vcpulse_record, last_tick) == 48);
static_assert(offsetof(vcpulse_record, text) == 56);
static_assert(offsetof(vcpulse_record, detail) == 64);
static_assert(offsetof(vcpulse_record, interval_ns) == 72);
static_assert(offsetof(vcpulse_record, rule) == 80);
static_assert(offsetof(vcpulse_record, has) == 88);
static_assert(offsetof(vcpulse_record, starved) == 92);
static_assert(offsetof(vcpulse_record, confidence_pct) == 96);
static_assert(offsetof(vcpulse_record, residency) == 104);
static_assert(offsetof(vcpulse_record, ipc) == 112);
static_assert(offsetof(vcpulse_record, run_ns) == 120);
static_assert(offsetof(vcpulse_record, run_delay_ns) == 128);
static_assert(offsetof(vcpulse_record, event_count) == 136);
static_assert(offsetof(vcpulse_record, event_names) == 144);
static_assert(offsetof(vcpulse_record, event_counts) == 152);
static_assert(offsetof(vcpulse_record, event_shares) == 160);
static_assert(sizeof(vcpulse_record) == 168);

static_assert(offsetof(vcpulse_bounds, size) == 0);
static_assert(offsetof(vcpulse_bounds, low) == 8);
static_assert(offsetof(vcpulse_bounds, high) == 16);
static_assert(offsetof(vcpulse_bounds, ticks) == 24);
static_assert(offsetof(vcpulse_bounds, judged_ns) == 32);
static_assert(offsetof(vcpulse_bounds, unknown_ns) == 40);
static_assert(sizeof(vcpulse_bounds) == 48);

static_assert(offsetof(vcpulse_limits, size) == 0);
static_assert(offsetof(vcpulse_limits, skip_first_ns) == 8);
static_assert(offsetof(vcpulse_limits, min_ticks) == 16);
static_assert(offsetof(vcpulse_limits, min_measured) == 24);
static_assert(offsetof(vcpulse_limits, trust_ipc_bands) == 32);
static_assert(offsetof(vcpulse_limits, allow_skip) == 36);
static_assert(sizeof(vcpulse_limits) == 40);

template <typename Public, typename Own>
constexpr bool Same(Public value, Own own) {
  return static_cast<int>(value) == static_cast<int>(own);
}

static_assert(Same(VCPULSE_BAND_NONE, core::Band::kNone));
static_assert(Same(VCPULSE_BAND_HALTED, core::Band::kHalted));
static_assert(Same(VCPULSE_BAND_SPINNING, core::Band::kSpinning));
static_assert(Same(VCPULSE_BAND_PRODUCTIVE, core::Band::kProductive));
static_assert(Same(VCPULSE_BAND_UNKNOWN, core::Band::kUnknown));
static_assert(core::kBands == 5);

static_assert(Same(VCPULSE_OUTCOME_SKIP, 0) && Same(VCPULSE_OUTCOME_PASS, 1));
static_assert(Same(VCPULSE_OUTCOME_INCONCLUSIVE, 2) && Same(VCPULSE_OUTCOME_FAIL, 3));
static_assert(Same(VCPULSE_KIND_TICK, 1) && Same(VCPULSE_KIND_MARKER, 2));
static_assert(Same(VCPULSE_KIND_GAP, 3) && Same(VCPULSE_KIND_LIFE_CYCLE, 4));

}  // namespace
}  // namespace vcpulse::library

// What the values are called.
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
