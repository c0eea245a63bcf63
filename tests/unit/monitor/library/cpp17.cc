// Compiled, not run: the C++ headers in C++17.
#include <vcpulse.hpp>
#include <vcpulse_gtest.hpp>

static_assert(__cplusplus == 201703L, "this file is to be compiled as C++17");

vcpulse::Timeline RecordOnce(long pid);
vcpulse::Timeline RecordOnce(long pid) {
  auto recording = vcpulse::Recording::Attach(vcpulse::Options().Pid(pid));
  recording.Mark("work");
  return std::move(recording).Stop();
}

void Expect(const vcpulse::Timeline& timeline);
void Expect(const vcpulse::Timeline& timeline) {
  EXPECT_THAT(timeline, vcpulse::Meets("gaps <= 1%").During("work"));
  EXPECT_THAT(timeline.Share(0, vcpulse::Band::kHalted), vcpulse::SurelyAtMost(0.5));
}
