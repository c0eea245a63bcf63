#include "monitor/report/explain.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "boost/json.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/fixtures/hand_made_recording.h"
#include "tests/unit/fixtures/live_recording.h"

namespace vcpulse::report {
namespace {

using replay::LiveRecording;
using replay::LiveTick;
using ::testing::HasSubstr;

class ExplainTest : public ::testing::Test {
 protected:
  ExplainTest() : live_(100'000'000, LiveRecording::Groups::kOne, /*keeps_profile=*/true) {
    live_.Begin({.vm = 1, .epoch = 1, .vcpus = 2});
    live_.Run(60);
    live_.Begin({.vm = 1, .epoch = 2, .vcpus = 2});
    live_.Run(60);
  }

  absl::StatusOr<Explanation> Explain(const ExplainTarget& target) const {
    Explainer explainer(target);
    const auto read = timeline::ReadTimelineBytes(
        timeline::Concatenate(live_.chunks()),
        [&](const timeline::Entry& entry) { return explainer.Add(entry); });
    if (!read.ok()) return read.status();
    return explainer.Finish();
  }

  std::string ErrorOf(const ExplainTarget& target) const {
    return std::string(Explain(target).status().message());
  }

  LiveRecording live_;
};

// Whatever the tick: what is explained is the verdict that was recorded, and its reasons end in it.
TEST_F(ExplainTest, EveryTick) {
  live_.End("duration");
  size_t smoothed = 0;
  for (const LiveTick& tick : live_.ticks()) {
    const int64_t start_ns = 5'000'000'000;
    const auto found = Explain({.vcpu = 1, .at_ns = tick.sample.wake_ns - start_ns});
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(found->tick, tick.sample.tick);
    EXPECT_EQ(found->epoch, tick.epoch);
    EXPECT_EQ(found->verdict, tick.verdicts[1]);
    EXPECT_EQ(found->recorded, tick.verdicts[1]);
    const std::string text = RenderExplanation(*found);
    EXPECT_THAT(text, ::testing::Not(HasSubstr("differs")));
    if (found->verdict.band == core::Band::kNone) continue;
    EXPECT_EQ(found->reasons.raw.rule, found->verdict.raw_rule) << text;
    const bool differ = found->verdict.band != found->verdict.raw_band;
    EXPECT_EQ(text.find("two of the last three windows") != std::string::npos, differ);
    smoothed += differ ? 1 : 0;
  }
  EXPECT_GT(smoothed, 0U);
}

TEST_F(ExplainTest, TheLastVerdictWhereNoTimeIsGiven) {
  live_.End("duration");
  const auto found = Explain({.vcpu = 0});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->tick, live_.ticks().back().sample.tick);
  EXPECT_EQ(found->epoch, 2U);
}

TEST_F(ExplainTest, SaysWhatMayBeAskedFor) {
  live_.End("duration");
  EXPECT_EQ(ErrorOf({.vcpu = 7}),
            "--explain: no vCPU 7 was recorded: VM 1 \"guest1\" has vCPUs 0, 1");
  EXPECT_EQ(ErrorOf({.vcpu = 0, .vm = "web"}), "--explain: no VM 'web' here: VM 1 \"guest1\"");
  EXPECT_THAT(ErrorOf({.vcpu = 0, .at_ns = 60'000'000'000}),
              HasSubstr("at=60.0 s is after the end: there are 12.0 s"));
}

TEST_F(ExplainTest, SeveralVmsNeedAName) {
  live_.Begin({.vm = 2, .epoch = 1, .vcpus = 1});
  live_.Run(20);
  live_.End("duration");
  EXPECT_EQ(ErrorOf({.vcpu = 0}),
            "--explain: several VMs, so vm= is needed, with a name, UUID, PID or number: VM 1 "
            "\"guest1\", VM 2 \"guest2\"");
  const auto found = Explain({.vcpu = 0, .vm = "guest2"});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->vm, 2U);
}

// A VM that restarted, one without a name, and one whose name is the number of another.
class ExplainNamesTest : public ::testing::Test {
 protected:
  ExplainNamesTest() {
    Add(HandMadeRecording::Session());
    AddVm(1, "web", 1001, "aaaa");
    AddVm(2, "web", 1002, "bbbb");
    AddVm(3, "", 1003, "");
    AddVm(4, "1", 0, "");
  }

  template <typename Record>
  static void AddTo(Explainer& explainer, Record record) {
    EXPECT_TRUE(explainer.Add({.sequence = 1, .record = std::move(record)}).ok());
  }
  void Add(v1::Session session) { session_ = std::move(session); }
  void AddVm(uint32_t number, const std::string& name, uint32_t pid, const std::string& uuid) {
    v1::VcpuSet set = HandMadeRecording::Set(number, 1, {2000 + number});
    set.mutable_instance()->set_name(name);
    set.mutable_instance()->set_pid(pid);
    set.mutable_instance()->set_uuid(uuid);
    sets_.push_back(std::move(set));
  }

  absl::StatusOr<Explanation> Of(const std::optional<std::string>& vm) const {
    // A tick without a verdict, so that there is something to explain at a time.
    Explainer explainer({.vcpu = 0, .vm = vm, .at_ns = 0});
    AddTo(explainer, session_);
    for (const v1::VcpuSet& set : sets_) AddTo(explainer, set);
    for (const v1::VcpuSet& set : sets_) {
      timeline::TickEntry tick;
      tick.vm = set.vm();
      tick.epoch = 1;
      tick.sample.wake_ns = kStart_ns;
      tick.sample.vcpus.resize(1);
      AddTo(explainer, tick);
    }
    return explainer.Finish();
  }
  uint32_t NumberOf(const std::string& vm) const {
    const auto found = Of(vm);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? found->vm : 0;
  }

  v1::Session session_;
  std::vector<v1::VcpuSet> sets_;
};

TEST_F(ExplainNamesTest, OneNameOfTwoVmsIsAmbiguous) {
  EXPECT_EQ(Of("web").status().message(),
            "--explain: several VMs are 'web', so vm= is needed with a PID or number: VM 1 \"web\" "
            "(pid 1001), VM 2 \"web\" (pid 1002)");
  sets_.resize(2);
  EXPECT_THAT(std::string(Of(std::nullopt).status().message()), HasSubstr("several VMs"));
}

TEST_F(ExplainNamesTest, NameUuidPidAndNumber) {
  EXPECT_EQ(NumberOf("1001"), 1U);
  EXPECT_EQ(NumberOf("bbbb"), 2U);
  EXPECT_EQ(NumberOf("2"), 2U);
  EXPECT_EQ(NumberOf("3"), 3U);
  EXPECT_EQ(NumberOf("1003"), 3U);
  EXPECT_EQ(NumberOf("1"), 4U);  // a name goes before a number
  EXPECT_EQ(Of("0").status().message(),
            "--explain: no VM '0' here: VM 1 \"web\" (pid 1001), VM 2 \"web\" (pid 1002), VM 3 "
            "(pid 1003), VM 4 \"1\"");
  EXPECT_EQ(RenderExplanation(*Of("3")).substr(0, 38), "vCPU 0 of VM 3 (pid 1003, epoch 1) at ");
}

TEST_F(ExplainNamesTest, CountsTheSamplesThatNoSetFits) {
  Explainer explainer({.vcpu = 0});
  AddTo(explainer, session_);
  AddTo(explainer, sets_[0]);
  timeline::TickEntry tick;
  tick.vm = 1;
  tick.epoch = 1;
  tick.sample.vcpus.resize(1);
  AddTo(explainer, tick);
  EXPECT_EQ(explainer.unusable_ticks(), 0U);
  tick.epoch = 2;  // its set is lost
  AddTo(explainer, tick);
  EXPECT_EQ(explainer.unusable_ticks(), 1U);
}

// The page as a person sees it.
TEST(ExplainText, OfATightLoop) {
  Explanation e{.vm = 1,
                .vm_name = "web",
                .epoch = 2,
                .vcpu = 1,
                .at_ns = 12'300'000'000,
                .classifier = core::Classifier::kEvidence,
                .profile = "generic",
                .residency_method = "ref-cycles"};
  core::Features& f = e.features;
  f = {.interval_ns = 100'100'000,
       .enabled_share = 0.99,
       .enabled = true,
       .waiting_share = 0,
       .running_share = 1,
       .residency = 0.982,
       .cycles_counted = true,
       .instructions_counted = true};
  f.Set(core::Feature::kCycles, 2.9e8);
  f.Set(core::Feature::kIpc, 0.85);
  f.Set(core::Feature::kBranchShare, 0.3);
  f.Set(core::Feature::kBranchMisses, 0.01);
  f.Set(core::Feature::kCacheMisses, 0.004);
  e.verdict = {.band = core::Band::kSpinning,
               .rule = core::Rule::kTightLoop,
               .confidence_pct = 46,
               .raw_band = core::Band::kSpinning,
               .raw_rule = core::Rule::kTightLoop};
  e.recorded = {.band = core::Band::kProductive, .rule = core::Rule::kIpcHigh};
  e.reasons = FindReasons(f, {}, e.classifier, core::Band::kProductive);
  EXPECT_EQ(
      RenderExplanation(e),
      R"(vCPU 1 of VM web (epoch 2) at 12.300 s, window 100.1 ms: the timeline says PRODUCTIVE by rule
ipc-high; judged again now: SPINNING by rule tight-loop, confidence 0.46
differs: the timeline was judged by another version or with more of its beginning; below is why
         SPINNING by rule tight-loop
judged by: evidence, profile generic
measured: residency 98.2% (by ref-cycles), on a CPU 99.0%, waiting 0.0%, counted 100.0% of the time
          on a CPU
measured: cycles 290M, IPC 0.85, branches per instruction 0.30, branch misses per kilo-cycle 0.01,
          cache misses per kilo-cycle 0.004
not measured: spread of the last ten IPCs, share of cycles in PAUSE, L1D misses per kilo-cycle

Did it run, and was that counted?
  time on a CPU 99.0% < 2.0%: fails
  counted share of the time on a CPU 100.0% < 5.0%: fails
  residency 98.2% < 2.0%: fails
  so it ran; the rules below decide the band
Rules, first to last; the first that holds decides (>):
  short (UNKNOWN): cycles 290M < 1.00M: fails
  pause (SPINNING): skipped: share of cycles in PAUSE is not measured
  mixed (UNKNOWN): skipped: share of cycles in PAUSE is not measured
  slow-chain (PRODUCTIVE): skipped: share of cycles in PAUSE is not measured
  bare-loop (SPINNING): branch misses per kilo-cycle 0.01 < 0.05, branches per instruction 0.30 >=
                        0.10, cache misses per kilo-cycle is measured (fails), L1D misses per
                        kilo-cycle is not measured, IPC 0.85 >= 0.50, IPC 0.85 < 1.00: fails
  bare-loop (SPINNING): branch misses per kilo-cycle 0.01 < 0.05, branches per instruction 0.30 >=
                        0.10, cache misses per kilo-cycle is measured (fails), L1D misses per
                        kilo-cycle is not measured, IPC 0.85 < 0.50 (fails), share of cycles in
                        PAUSE is not measured: fails
  unclear (UNKNOWN): branch misses per kilo-cycle 0.01 < 0.10, branches per instruction 0.30 >=
                     0.10, cache misses per kilo-cycle is measured (fails), L1D misses per
                     kilo-cycle is not measured: fails
> tight-loop (SPINNING): branch misses per kilo-cycle 0.01 < 0.10, branches per instruction 0.30 >=
                         0.10, cache misses per kilo-cycle 0.004 < 0.10, L1D misses per kilo-cycle
                         is not measured, IPC 0.85 >= 0.50, IPC 0.85 < 1.00: holds
  tight-loop (SPINNING): branch misses per kilo-cycle 0.01 < 0.10, branches per instruction 0.30 >=
                         0.10, cache misses per kilo-cycle 0.004 < 0.10, L1D misses per kilo-cycle
                         is not measured, IPC 0.85 < 0.50 (fails), share of cycles in PAUSE is not
                         measured: fails
  poll-like (SPINNING): skipped: spread of the last ten IPCs is not measured
  poll-like (SPINNING): branch misses per kilo-cycle 0.01 < 0.10, branches per instruction 0.30 >=
                        0.10, cache misses per kilo-cycle 0.004 < 0.10, L1D misses per kilo-cycle is
                        not measured, IPC 0.85 >= 1.00 (fails): fails
  slow-loop (SPINNING): branches per instruction is measured (fails), share of cycles in PAUSE is
                        not measured, branch misses per kilo-cycle 0.01 < 0.05, cache misses per
                        kilo-cycle 0.004 < 0.10, L1D misses per kilo-cycle is not measured, IPC 0.85
                        < 0.35 (fails): fails
  memory-bound (PRODUCTIVE): IPC 0.85 < 0.75 (fails), cache misses per kilo-cycle 0.004 >= 0.50
                             (fails): fails
  ipc-high (PRODUCTIVE): IPC 0.85 >= 1.00: fails
  branch-misses (PRODUCTIVE): branch misses per kilo-cycle 0.01 >= 0.20: fails
  l1d-misses (PRODUCTIVE): skipped: L1D misses per kilo-cycle is not measured
  l1d-misses (PRODUCTIVE): skipped: L1D misses per kilo-cycle is not measured, share of cycles in
                           PAUSE is not measured
runner-up: poll-like (SPINNING) came nearest; what it lacks: IPC 0.85 >= 1.00
)");
  const auto json = boost::json::parse(RenderExplanationJson(e));
  EXPECT_EQ(json.at_pointer("/verdict/rule"), "tight-loop");
  EXPECT_EQ(json.at_pointer("/same_as_recorded"), false);
  EXPECT_EQ(json.at_pointer("/rules/7/outcome"), "holds");
  EXPECT_EQ(json.at_pointer("/fired"), 7);
  EXPECT_TRUE(json.at_pointer("/features/pause_share").is_null());
  EXPECT_EQ(json.at_pointer("/features/branch_misses_per_kcycle"), 0.01);
  EXPECT_EQ(json.at_pointer("/rules/7/conditions/0/feature"), "branch_misses_per_kcycle");
  EXPECT_EQ(json.at_pointer("/rules/7/conditions/0/what"), "branch misses per kilo-cycle");
  EXPECT_EQ(json.at_pointer("/presence/0/feature"), "enabled_share");
  EXPECT_TRUE(json.at_pointer("/remark").is_null());
  EXPECT_TRUE(json.at_pointer("/weak_below").is_null());
  EXPECT_EQ(json.at_pointer("/rules/1/outcome"), "skipped");
}

// What was not measured is null, and never 0.
TEST(ExplainJson, OfATickWithoutAVerdict) {
  Explanation e{.vm = 1, .vm_name = "web", .profile = "generic", .remark = "it keeps no profile"};
  e.features.interval_ns = 10'000'000;  // part of a window
  e.features.enabled_share = 0.5;
  const auto json = boost::json::parse(RenderExplanationJson(e));
  for (const char* pointer :
       {"/pid", "/window_ms", "/verdict/band", "/verdict/starved", "/recorded/starved",
        "/features/residency", "/features/enabled_share", "/features/waiting_share",
        "/features/counted_share", "/features/state", "/features/ipc", "/decided_by_presence",
        "/weak_below", "/fired"}) {
    EXPECT_TRUE(json.at_pointer(pointer).is_null()) << pointer;
  }
  EXPECT_EQ(json.at_pointer("/remark"), "it keeps no profile");
}

TEST(ExplainJson, SaysBelowWhatAVerdictIsTooWeak) {
  Explanation e{.vm = 1, .classifier = core::Classifier::kEvidence};
  e.verdict = {.band = core::Band::kUnknown,
               .rule = core::Rule::kWeak,
               .raw_band = core::Band::kUnknown,
               .raw_rule = core::Rule::kWeak};
  e.features.interval_ns = 100'000'000;
  e.reasons.raw = {core::Band::kUnknown, core::Rule::kWeak, 0.2996};
  e.reasons.weak_below = 0.3;
  const auto json = boost::json::parse(RenderExplanationJson(e));
  EXPECT_EQ(json.at_pointer("/weak_below"), 0.3);
  EXPECT_EQ(json.at_pointer("/window_ms").to_number<double>(), 100);
  EXPECT_EQ(json.at_pointer("/verdict/starved"), false);
  EXPECT_THAT(RenderExplanation(e), HasSubstr("confidence 0.2996, and below 0.3000 a verdict"));
}

// The presence and rules of a window with these features.
std::string TextOf(const core::Features& features, core::Classifier classifier) {
  Explanation e{.vm = 1, .vm_name = "web", .classifier = classifier, .profile = "generic"};
  e.features = features;
  e.reasons = FindReasons(features, {}, classifier, core::Band::kNone);
  e.verdict.band = e.verdict.raw_band = e.reasons.raw.band;
  e.verdict.rule = e.verdict.raw_rule = e.reasons.raw.rule;
  e.recorded = e.verdict;
  return RenderExplanation(e);
}

// What is printed must be true: two different numbers never look the same.
TEST(ExplainText, ASpinByTheIpcAloneIsMarked) {
  core::Features f = {.interval_ns = 100'000'000,
                      .enabled_share = 1,
                      .enabled = true,
                      .running_share = 1,
                      .residency = 1,
                      .cycles_counted = true,
                      .instructions_counted = true};
  f.Set(core::Feature::kCycles, 1e8);
  f.Set(core::Feature::kIpc, 0.5);
  EXPECT_THAT(TextOf(f, core::Classifier::kIpcBands), HasSubstr("SPINNING? by rule ipc-low"));
}

TEST(ExplainText, AtTheEdgeOfAThresholdMoreDigitsAreShown) {
  core::Features f = {.interval_ns = 100'000'000,
                      .enabled_share = 1,
                      .enabled = true,
                      .running_share = 1,
                      .residency = 0.020'004,
                      .cycles_counted = true,
                      .instructions_counted = true};
  f.Set(core::Feature::kCycles, 999'999.0);
  f.Set(core::Feature::kIpc, 0.99996);
  std::string text = TextOf(f, core::Classifier::kIpcBands);
  EXPECT_THAT(text, HasSubstr("residency 2.0004% < 2.0000%: fails"));
  EXPECT_THAT(text, HasSubstr("IPC 0.99996 >= 1.00000: fails"));

  f.Set(core::Feature::kIpc, std::nextafter(1.0, 0.0));
  EXPECT_THAT(TextOf(f, core::Classifier::kIpcBands),
              HasSubstr("IPC 0.9999999999999999 >= 1.0000000000000000: fails"));

  // Equal is equal.
  f.Set(core::Feature::kIpc, 1.0);
  f.residency = 0.02;
  text = TextOf(f, core::Classifier::kIpcBands);
  EXPECT_THAT(text, HasSubstr("residency 2.0% < 2.0%: fails"));
  EXPECT_THAT(text, HasSubstr("IPC 1.00 >= 1.00: holds"));

  f.Set(core::Feature::kBranchShare, 0.3);
  f.Set(core::Feature::kBranchMisses, 0.0996);
  f.Set(core::Feature::kCacheMisses, 0.01);
  text = TextOf(f, core::Classifier::kEvidence);
  EXPECT_THAT(text, HasSubstr("cycles 999999 < 1000000"));
  EXPECT_THAT(text, HasSubstr("per kilo-cycle 0.0996 < 0.1000"));
}

}  // namespace
}  // namespace vcpulse::report
