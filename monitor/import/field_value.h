#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "monitor/import/table.h"

namespace vcpulse::importing {

// Why a number cannot be a value of this field, for people; empty where it can.
std::string WhyNoValue(Field field, uint64_t value);

// A share from 0 to 1, in decimals; nothing where the whole text is none.
std::optional<double> ParseShare(std::string_view text);

}  // namespace vcpulse::importing
