// The bands are told apart with any colour vision, by simulation: the matrices of Machado, Oliveira
// and Fernandes (2009) for full protanopia, deuteranopia and tritanopia, and distances in CIELAB.
#include "monitor/top/palette.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

namespace vcpulse::top {
namespace {

using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;

struct Vision {
  const char* name;
  Matrix matrix;
};

constexpr std::array<Vision, 4> kVisions = {{
    {"usual", {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}},
    {"protanopia",
     {{{0.152286, 1.052583, -0.204868},
       {0.114503, 0.786281, 0.099216},
       {-0.003882, -0.048116, 1.051998}}}},
    {"deuteranopia",
     {{{0.367322, 0.860646, -0.227968},
       {0.280085, 0.672501, 0.047413},
       {-0.011820, 0.042940, 0.968881}}}},
    {"tritanopia",
     {{{1.255528, -0.076749, -0.178779},
       {-0.078411, 0.930809, 0.147602},
       {0.004733, 0.691367, 0.303900}}}},
}};

Vector Times(const Matrix& matrix, const Vector& vector) {
  Vector out{};
  for (size_t i = 0; i < 3; ++i) {
    for (size_t k = 0; k < 3; ++k) out[i] += matrix[i][k] * vector[k];
  }
  return out;
}

Vector Linear(const Rgb& rgb) {
  const auto one = [](uint8_t value) {
    const double v = value / 255.0;
    return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
  };
  return {one(rgb.red), one(rgb.green), one(rgb.blue)};
}

Vector Lab(const Vector& linear) {
  constexpr Matrix kToXyz = {
      {{0.4124, 0.3576, 0.1805}, {0.2126, 0.7152, 0.0722}, {0.0193, 0.1192, 0.9505}}};
  const Vector xyz = Times(kToXyz, linear);
  const auto f = [](double t) { return t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116; };
  const double x = f(std::max(xyz[0], 0.0) / 0.9505);
  const double y = f(std::max(xyz[1], 0.0));
  const double z = f(std::max(xyz[2], 0.0) / 1.089);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

double Distance(const Rgb& a, const Rgb& b, const Vision& vision) {
  const Vector la = Lab(Times(vision.matrix, Linear(a)));
  const Vector lb = Lab(Times(vision.matrix, Linear(b)));
  return std::hypot(la[0] - lb[0], la[1] - lb[1], la[2] - lb[2]);
}

constexpr std::array kBands = {Ink::kHalted, Ink::kSpinning, Ink::kProductive, Ink::kUnknown,
                               Ink::kStarved};
constexpr double kToldApart = 25;  // 2.3 is just noticeable side by side

TEST(PaletteTest, BandsAreToldApartWithAnyColourVision) {
  for (const Vision& vision : kVisions) {
    for (size_t i = 0; i < kBands.size(); ++i) {
      for (size_t k = i + 1; k < kBands.size(); ++k) {
        EXPECT_GT(Distance(RgbOf256(ColourOf(kBands[i]).of_256),
                           RgbOf256(ColourOf(kBands[k]).of_256), vision),
                  kToldApart)
            << vision.name << ": inks " << static_cast<int>(kBands[i]) << " and "
            << static_cast<int>(kBands[k]);
      }
    }
  }
}

TEST(PaletteTest, Xterms256Colours) {
  EXPECT_EQ(RgbOf256(16), (Rgb{0, 0, 0}));
  EXPECT_EQ(RgbOf256(166), (Rgb{0xd7, 0x5f, 0x00}));
  EXPECT_EQ(RgbOf256(231), (Rgb{255, 255, 255}));
  EXPECT_EQ(RgbOf256(232), (Rgb{8, 8, 8}));
  EXPECT_EQ(RgbOf256(255), (Rgb{238, 238, 238}));
}

}  // namespace
}  // namespace vcpulse::top
