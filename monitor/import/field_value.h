#pragma once

#include <cstdint>
#include <string>

#include "monitor/import/table.h"

namespace vcpulse::importing {

// Why a number cannot be a value of this field, for people; empty where it can.
std::string WhyNoValue(Field field, uint64_t value);

}  // namespace vcpulse::importing
