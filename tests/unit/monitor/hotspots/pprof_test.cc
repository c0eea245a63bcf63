#include "monitor/hotspots/pprof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pprof_subset.pb.h"

namespace vcpulse::hotspots {
namespace {

using ::testing::ElementsAre;

pprof::Profile ProfileOf(const std::vector<VcpuHotspots>& vcpus) {
  pprof::Profile profile;
  EXPECT_TRUE(profile.ParseFromString(PprofOf(vcpus)));
  return profile;
}

// A sample as text: its frames, value and labels.
std::string TextOf(const pprof::Profile& profile, const pprof::Sample& sample) {
  const auto text = [&](int64_t place) { return profile.string_table(static_cast<int>(place)); };
  std::string out;
  for (const uint64_t id : sample.location_id()) {
    const pprof::Location& location = profile.location(static_cast<int>(id - 1));
    EXPECT_EQ(location.id(), id);
    const pprof::Function& function =
        profile.function(static_cast<int>(location.line(0).function_id() - 1));
    out += text(function.name()) + "@" + std::to_string(location.address());
  }
  out += " " + std::to_string(sample.value(0));
  for (const pprof::Label& label : sample.label()) {
    out += " " + text(label.key()) + "=" + text(label.str());
  }
  return out;
}

TEST(Pprof, HasASamplePerSpot) {
  const Spot lock{.name = "lock",
                  .mode = kvm::GuestMode::kKernel,
                  .named = true,
                  .samples = 60,
                  .address = 0x1000};
  const Spot user{.name = "0x400", .mode = kvm::GuestMode::kUser, .samples = 30, .address = 0x400};
  const pprof::Profile profile =
      ProfileOf({{.vm = "web", .vcpu = 3, .seconds = 1.5, .samples = 100, .spots = {lock, user}},
                 {.vm = "db",
                  .vcpu = 0,
                  .source = kvm::AddressSource::kKvmExit,
                  .seconds = 1,
                  .samples = 60,
                  .spots = {lock}}});
  std::vector<std::string> samples;
  for (const pprof::Sample& sample : profile.sample()) samples.push_back(TextOf(profile, sample));
  EXPECT_THAT(samples,
              ElementsAre("lock@4096 60 vm=web mode=kernel source=cycles vcpu=3",
                          "0x400@1024 30 vm=web mode=user source=cycles vcpu=3",
                          "places that were left out@0 10 vm=web mode=? source=cycles vcpu=3",
                          "lock@4096 60 vm=db mode=kernel source=kvm-exit vcpu=0"));
  EXPECT_EQ(profile.string_table(0), "");
  EXPECT_EQ(profile.location_size(), 3);  // each once
  EXPECT_EQ(profile.function_size(), 3);
  EXPECT_EQ(profile.duration_nanos(), 1'500'000'000);
  ASSERT_EQ(profile.sample_type_size(), 1);
  EXPECT_EQ(profile.string_table(static_cast<int>(profile.sample_type(0).type())), "samples");
}

TEST(Pprof, OfNothingIsEmpty) {
  const pprof::Profile profile = ProfileOf({});
  EXPECT_EQ(profile.sample_size(), 0);
  EXPECT_EQ(profile.sample_type_size(), 1);
}

}  // namespace
}  // namespace vcpulse::hotspots
