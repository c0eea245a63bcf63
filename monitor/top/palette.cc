#include "monitor/top/palette.h"

#include <array>

namespace vcpulse::top {
namespace {

// In the order of the enumerators. On light and dark backgrounds alike.
constexpr std::array<InkColour, static_cast<size_t>(Ink::kEnd)> kColours = {{
    {.is_default = true},
    {.is_default = true, .is_dim = true},
    {.is_default = true},
    {.rgb = {0x8a, 0x93, 0xa1}, .of_256 = 246, .of_8 = 7, .is_dim = true},  // halted
    {.rgb = {0xd5, 0x5e, 0x00}, .of_256 = 166, .of_8 = 3},                  // spinning
    {.rgb = {0x00, 0x9e, 0x73}, .of_256 = 36, .of_8 = 6},                   // productive
    {.rgb = {0xcc, 0x79, 0xa7}, .of_256 = 175, .of_8 = 5},                  // unknown
    {.rgb = {0x00, 0x72, 0xb2}, .of_256 = 25, .of_8 = 4},                   // starved
    {.rgb = {0xcc, 0x00, 0x00}, .of_256 = 160, .of_8 = 1},                  // alarm
    {.rgb = {0x56, 0xb4, 0xe9}, .of_256 = 74, .of_8 = 6},                   // marker
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
