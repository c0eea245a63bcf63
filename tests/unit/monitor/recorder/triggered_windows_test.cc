#include "monitor/recorder/triggered_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/monitor/recorder/fake_windows.h"

namespace vcpulse::recorder {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(TriggeredWindowsTest, AWindowBeginsAfter200MsAndEndsAfterASecond) {
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[1].band = core::Band::kSpinning;
  Tick(watch, 1000);
  Tick(watch, 1199);
  EXPECT_THAT(told_.opened, IsEmpty());
  Tick(watch, 1200);
  EXPECT_THAT(told_.opened, ElementsAre(11));
  EXPECT_EQ(told_.started, 1);
  EXPECT_THAT(watch.SharingTheirPmu(kEpoch), ElementsAre(1));
  EXPECT_THAT(watch.SharingTheirPmu({1, 3}), IsEmpty());
  Tick(watch, 2199);
  EXPECT_THAT(watch.Take(), IsEmpty());
  Tick(watch, 2200);
  const std::vector<v1::HotAddresses> found = TakeFrom(watch);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].vm(), 1u);
  EXPECT_EQ(found[0].epoch(), 2u);
  EXPECT_EQ(found[0].vcpu_index(), 11u);
  EXPECT_EQ(found[0].trigger(), v1::HotAddresses::TRIGGER_SPINNING);
  EXPECT_EQ(found[0].source(), "cycles");
  EXPECT_EQ(found[0].begin_mono_ns(), 1200 * kMs_ns);
  EXPECT_EQ(found[0].mono_ns(), 2200 * kMs_ns);
  EXPECT_EQ(found[0].lost(), 5u);
  EXPECT_THAT(found[0].addresses(), ElementsAre(0x10));
  EXPECT_THAT(found[0].samples(), ElementsAre(3));
  EXPECT_EQ(told_.stopped, 1);
  EXPECT_EQ(told_.closed, 1);
  EXPECT_THAT(watch.SharingTheirPmu(kEpoch), IsEmpty());
  EXPECT_THAT(watch.Take(), IsEmpty());
}

TEST_F(TriggeredWindowsTest, APauseOfTenSecondsFollows) {
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[0].band = core::Band::kSpinning;
  for (int64_t ms = 0; ms <= 11'199; ms += 100) Tick(watch, ms);
  EXPECT_THAT(told_.opened, SizeIs(1));
  Tick(watch, 11'200);
  EXPECT_THAT(told_.opened, SizeIs(2));
}

// A change of band in between begins the time anew.
TEST_F(TriggeredWindowsTest, The200MsAreInOnePiece) {
  TriggeredWindows watch = Watch({.spinning = true});
  for (const int64_t ms : {0, 100, 200, 300, 400, 500}) {
    verdicts_[0].band = ms == 200 ? core::Band::kProductive : core::Band::kSpinning;
    Tick(watch, ms);
    EXPECT_THAT(told_.opened, SizeIs(ms < 500 ? 0 : 1)) << ms;
  }
}

TEST_F(TriggeredWindowsTest, OnlyWhatWasAskedForBeginsOne) {
  TriggeredWindows watch = Watch({.starved = true});
  verdicts_[0].band = core::Band::kSpinning;
  verdicts_[1].starved = true;
  for (const int64_t ms : {0, 100, 200, 1200}) Tick(watch, ms);
  EXPECT_THAT(told_.opened, ElementsAre(11));
  const std::vector<v1::HotAddresses> found = TakeFrom(watch);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].trigger(), v1::HotAddresses::TRIGGER_STARVED);
}

TEST_F(TriggeredWindowsTest, FourAreOpenAtMost) {
  TriggeredWindows watch = Watch({.spinning = true});
  for (core::Verdict& verdict : verdicts_) verdict.band = core::Band::kSpinning;
  for (const int64_t ms : {0, 100, 200, 300, 1199}) Tick(watch, ms);
  EXPECT_THAT(told_.opened, ElementsAre(10, 11, 12, 13));
  Tick(watch, 1200);  // the first ones end
  Tick(watch, 1300);
  EXPECT_THAT(told_.opened, ElementsAre(10, 11, 12, 13, 14, 15, 16, 17));
}

TEST_F(TriggeredWindowsTest, AWindowEndsWithItsEpoch) {
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[3].band = core::Band::kSpinning;
  for (const int64_t ms : {0, 200, 300}) Tick(watch, ms);
  watch.End({1, 1});
  EXPECT_THAT(watch.Take(), IsEmpty());
  watch.End(kEpoch);
  const std::vector<v1::HotAddresses> found = TakeFrom(watch);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].mono_ns(), 300 * kMs_ns);
  EXPECT_EQ(told_.closed, 1);
}

// Said once per epoch, not for each vCPU and each 200 ms.
TEST_F(TriggeredWindowsTest, WhatIsRefusedIsSaidOnce) {
  told_.refused = absl::FailedPreconditionError("no source");
  TriggeredWindows watch = Watch({.spinning = true});
  for (core::Verdict& verdict : verdicts_) verdict.band = core::Band::kSpinning;
  for (int64_t ms = 0; ms < 30'000; ms += 100) Tick(watch, ms);
  EXPECT_THAT(told_.opened, SizeIs(1));
  const std::vector<v1::HotAddresses> found = TakeFrom(watch);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].source(), "");
  EXPECT_EQ(found[0].refused(), "no source");
}

// One vCPU's refusal is its own where others could be opened.
TEST_F(TriggeredWindowsTest, AfterAWindowARefusalIsOfOneVcpu) {
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[0].band = core::Band::kSpinning;
  for (const int64_t ms : {0, 200}) Tick(watch, ms);
  told_.refused = absl::NotFoundError("the thread has ended");
  verdicts_[1].band = core::Band::kSpinning;
  for (const int64_t ms : {300, 500}) Tick(watch, ms);
  EXPECT_THAT(told_.opened, ElementsAre(10, 11));
  told_.refused = absl::OkStatus();
  verdicts_[2].band = core::Band::kSpinning;
  for (const int64_t ms : {600, 800}) Tick(watch, ms);
  EXPECT_THAT(told_.opened, ElementsAre(10, 11, 12));
}

TEST_F(TriggeredWindowsTest, ASamplerThatDoesNotStartIsARefusal) {
  told_.start = absl::InternalError("starting the sampling: EINVAL");
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[0].band = core::Band::kSpinning;
  for (const int64_t ms : {0, 200, 400}) Tick(watch, ms);
  const std::vector<v1::HotAddresses> found = TakeFrom(watch);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].source(), "");
  EXPECT_THAT(found[0].refused(), HasSubstr("EINVAL"));
  EXPECT_EQ(told_.closed, 1);
}

// What was sampled until then counts, and the record says what happened.
TEST_F(TriggeredWindowsTest, AWindowEndsWhereItsSamplerFails) {
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[0].band = core::Band::kSpinning;
  for (const int64_t ms : {0, 200}) Tick(watch, ms);
  told_.collect = absl::UnavailableError("another client holds the socket");
  Tick(watch, 300);
  const std::vector<v1::HotAddresses> found = TakeFrom(watch);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].mono_ns(), 300 * kMs_ns);
  EXPECT_THAT(found[0].samples(), ElementsAre(3));
  EXPECT_EQ(found[0].refused(), "cycles: another client holds the socket");
}

// It keeps the caller waiting and stops the VM.
TEST_F(TriggeredWindowsTest, OfQmpOneIsOpenAtMost) {
  told_.source = kvm::AddressSource::kQmp;
  TriggeredWindows watch = Watch({.spinning = true});
  for (core::Verdict& verdict : verdicts_) verdict.band = core::Band::kSpinning;
  for (const int64_t ms : {0, 200, 400}) Tick(watch, ms);
  EXPECT_THAT(told_.opened, ElementsAre(10));
}

// Ticks that were kept while the output stood still: what was then says nothing of now.
TEST_F(TriggeredWindowsTest, LateTicksBeginNoWindow) {
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[0].band = core::Band::kSpinning;
  g_now_ns = 60'000 * kMs_ns;
  for (uint64_t tick = 1; tick <= 5; ++tick) {
    const auto wake_ns = static_cast<int64_t>(tick) * 100 * kMs_ns;
    watch.Observe(kEpoch, vm_, {.tick = tick, .wake_ns = wake_ns}, verdicts_);
  }
  EXPECT_THAT(told_.opened, IsEmpty());
}

TEST_F(TriggeredWindowsTest, AMissingTickBeginsTheTimeAnew) {
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[0].band = core::Band::kSpinning;
  Tick(watch, 0);
  Tick(watch, 100);
  ++tick_;
  Tick(watch, 300);
  Tick(watch, 400);
  EXPECT_THAT(told_.opened, IsEmpty());
  Tick(watch, 500);
  EXPECT_THAT(told_.opened, SizeIs(1));
}

// An epoch that changes is no reason to sample a vCPU more often.
TEST_F(TriggeredWindowsTest, ThePauseGoesOnInTheNextEpoch) {
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[0].band = core::Band::kSpinning;
  for (const int64_t ms : {0, 200}) Tick(watch, ms);
  watch.End(kEpoch);
  for (int64_t ms = 300; ms < 11'200; ms += 100) Tick(watch, ms);
  EXPECT_THAT(told_.opened, SizeIs(1));
  Tick(watch, 11'200);
  EXPECT_THAT(told_.opened, SizeIs(2));
}

// A counter of the PMU is taken by one source alone.
TEST_F(TriggeredWindowsTest, OtherSourcesTakeNoCounter) {
  told_.source = kvm::AddressSource::kKvmExit;
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[0].band = core::Band::kSpinning;
  for (const int64_t ms : {0, 200}) Tick(watch, ms);
  EXPECT_THAT(told_.opened, SizeIs(1));
  EXPECT_THAT(watch.SharingTheirPmu(kEpoch), IsEmpty());
}

TEST_F(TriggeredWindowsTest, TheAddressesWithMostSamplesAreKept) {
  told_.counts.clear();
  for (uint64_t i = 1; i <= 600; ++i) {
    told_.counts[{.address = i, .mode = kvm::GuestMode::kUser}] = i;
  }
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[0].band = core::Band::kSpinning;
  for (const int64_t ms : {0, 200, 1200}) Tick(watch, ms);
  const std::vector<v1::HotAddresses> found = TakeFrom(watch);
  ASSERT_THAT(found, SizeIs(1));
  ASSERT_EQ(found[0].addresses_size(), 512);
  EXPECT_EQ(found[0].addresses(0), 600u);
  EXPECT_EQ(found[0].samples(511), 89u);
  EXPECT_EQ(found[0].modes(0), v1::GUEST_MODE_USER);
  EXPECT_EQ(found[0].further_samples(), 88u * 89 / 2);
}

// Where it was asked for, the code of the hottest places is read when the window ends.
TEST_F(TriggeredWindowsTest, TheCodeOfTheHottestPlacesIsKept) {
  told_.counts = {{{.address = 0x1000}, 9}, {{.address = 0x1004}, 8}, {{.address = 0x2000}, 20}};
  read_code_ =
      [](const kvm::Vm& vm, int vcpu,
         std::span<const uint64_t> addresses) -> absl::StatusOr<std::vector<kvm::GuestCode>> {
    EXPECT_EQ(vm.vcpus.size(), 1u);
    EXPECT_EQ(vcpu, 10);
    EXPECT_THAT(addresses, ElementsAre(0x2000, 0x1000));
    return std::vector<kvm::GuestCode>{
        {.address = 0x1fe0, .bytes = {0xf3, 0x90}, .isa = kvm::Isa::kX86}};
  };
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[0].band = core::Band::kSpinning;
  for (const int64_t ms : {0, 200, 1200}) Tick(watch, ms);
  const std::vector<v1::HotAddresses> found = TakeFrom(watch);
  ASSERT_THAT(found, SizeIs(1));
  ASSERT_EQ(found[0].code_size(), 1);
  EXPECT_EQ(found[0].code(0).address(), 0x1fe0u);
  EXPECT_EQ(found[0].code(0).bytes(), "\xf3\x90");
  EXPECT_EQ(found[0].code(0).isa(), v1::GuestCode::ISA_X86);
  EXPECT_EQ(found[0].refused(), "");
}

TEST_F(TriggeredWindowsTest, CodeThatCannotBeReadIsSaidAndSamplesStay) {
  read_code_ = [](const kvm::Vm&, int,
                  std::span<const uint64_t>) -> absl::StatusOr<std::vector<kvm::GuestCode>> {
    return absl::UnavailableError("another client holds it");
  };
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[0].band = core::Band::kSpinning;
  for (const int64_t ms : {0, 200, 1200}) Tick(watch, ms);
  const std::vector<v1::HotAddresses> found = TakeFrom(watch);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].refused(), "");
  EXPECT_EQ(found[0].code_refused(), "another client holds it");
  EXPECT_EQ(found[0].samples(0), 3u);
}

// One that does not answer would hold up the recording each time.
TEST(PatientCodeReader, LeavesAVmInPeaceForAMinute) {
  int asked = 0;
  absl::Status status = absl::UnavailableError("held");
  const ReadCode read = PatientCodeReader(
      [&](const kvm::Vm&, int,
          std::span<const uint64_t>) -> absl::StatusOr<std::vector<kvm::GuestCode>> {
        ++asked;
        if (!status.ok()) return status;
        return std::vector<kvm::GuestCode>(1);
      },
      [] { return g_now_ns; });
  g_now_ns = 0;
  const kvm::Vm one{.pid = 1};
  EXPECT_FALSE(read(one, 0, {}).ok());
  g_now_ns = 59'000 * kMs_ns;
  EXPECT_FALSE(read(one, 0, {}).ok());
  EXPECT_EQ(asked, 1);
  EXPECT_FALSE(read({.pid = 2}, 0, {}).ok());
  EXPECT_EQ(asked, 2);
  status = absl::OkStatus();
  g_now_ns = 60'000 * kMs_ns;
  EXPECT_TRUE(read(one, 0, {}).ok());
  EXPECT_TRUE(read(one, 0, {}).ok());
  EXPECT_EQ(asked, 4);
}

}  // namespace
}  // namespace vcpulse::recorder
