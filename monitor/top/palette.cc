#include "monitor/top/palette.h"

#include <array>

namespace vcpulse::top {
namespace {

// In the order of the enumerators.
constexpr std::array<InkColour, static_cast<size_t>(Ink::kEnd)> kColours = {{
    {.is_default = true},
    {.is_default = true, .is_dim = true},
    {.is_default = true},
    {.of_256 = 243, .of_8 = 7, .is_dim = true},  // halted: grey
    {.of_256 = 166, .of_8 = 3},                  // spinning: orange
    {.of_256 = 42, .of_8 = 2},                   // productive: green, rather blue
    {.of_256 = 177, .of_8 = 5},                  // unknown: violet
    {.of_256 = 27, .of_8 = 4},                   // starved: blue
    {.of_256 = 160, .of_8 = 1},                  // alarm
    {.of_256 = 37, .of_8 = 6},                   // marker
}};

}  // namespace

const InkColour& ColourOf(Ink ink) { return kColours[static_cast<size_t>(ink)]; }

Rgb RgbOf256(uint8_t colour) {
  constexpr uint8_t kFirstGrey = 232;
  if (colour >= kFirstGrey) {
    const auto level = static_cast<uint8_t>(8 + 10 * (colour - kFirstGrey));
    return {.red = level, .green = level, .blue = level};
  }
  constexpr std::array<uint8_t, 6> kLevels = {0, 95, 135, 175, 215, 255};
  const int cube = colour < 16 ? 0 : colour - 16;
  return {.red = kLevels[static_cast<size_t>(cube / 36)],
          .green = kLevels[static_cast<size_t>(cube / 6 % 6)],
          .blue = kLevels[static_cast<size_t>(cube % 6)]};
}

}  // namespace vcpulse::top
