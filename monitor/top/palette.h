#pragma once

// The colours of inks, apart from any terminal. Chosen from xterm's palette so that people with any
// colour vision tell the bands apart, on light and dark backgrounds; tests simulate that.

#include <cstdint>

#include "monitor/top/cells.h"

namespace vcpulse::top {

struct Rgb {
  uint8_t red = 0;
  uint8_t green = 0;
  uint8_t blue = 0;

  bool operator==(const Rgb&) const = default;
};

struct InkColour {
  bool is_default = false;  // the terminal's own
  uint8_t of_256 = 0;       // xterm's palette
  uint8_t of_8 = 0;         // ANSI: 1 red, 2 green, 3 yellow, 4 blue, 5 magenta, 6 cyan
  bool is_dim = false;
};

const InkColour& ColourOf(Ink ink);
// Of xterm's palette of 256: 16..231 are a cube, 232..255 greys.
Rgb RgbOf256(uint8_t colour);

}  // namespace vcpulse::top
