#include "monitor/report/json_report.h"

#include <cerrno>
#include <limits>

#include "boost/json.hpp"
#include "gtest/gtest.h"
#include "kvm/base/json.h"
#include "tests/unit/fixtures/hand_made_recording.h"

namespace vcpulse::report {
namespace {

namespace json = boost::json;

json::value Parse(const Report& report) { return json::parse(RenderJson(report)); }

double Number(const json::value& value, const char* pointer) {
  return value.at_pointer(pointer).to_number<double>();
}

// The names that scripts and the lab's tests assert on, with values that follow from the records.
TEST(JsonReport, HasTheDocumentedFields) {
  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001, 2002})).ok());
  recording.First(1, 1, 0, 2);
  recording.Tick(1, 1, 1, {Busy(200'000'000, kProductiveHigh), Blocked()});
  recording.Tick(1, 1, 2, {Busy(50'000'000, kSpinningLow), Blocked()});
  v1::Summary end;
  end.set_cpu_ns(4'000'000);
  end.set_end_reason("signal");
  ASSERT_TRUE(recording.Add(end).ok());
  const json::value out = Parse(WholeReport(recording.summary));

  EXPECT_EQ(out.at_pointer("/session/start"), "2026-01-02T03:04:05.250Z");
  EXPECT_EQ(out.at_pointer("/session/host_name"), "host1");
  EXPECT_EQ(out.at_pointer("/session/residency_method"), "max-frequency");
  EXPECT_TRUE(out.at_pointer("/session/tsc_hz").is_null());
  EXPECT_EQ(Number(out, "/session/max_hz"), 1e9);
  EXPECT_EQ(Number(out, "/session/interval_ms"), 100);
  EXPECT_NEAR(Number(out, "/session/duration_s"), 0.2, 1e-3);
  EXPECT_TRUE(out.at_pointer("/session/degraded_reason").is_null());
  EXPECT_EQ(Number(out, "/session/classifier/spinning_below"), 0.75);
  EXPECT_EQ(out.at_pointer("/session/end_reason"), "signal");

  EXPECT_EQ(Number(out, "/vms/0/vm"), 1);
  EXPECT_EQ(out.at_pointer("/vms/0/name"), "guest1");
  EXPECT_TRUE(out.at_pointer("/vms/0/uuid").is_null());
  EXPECT_EQ(Number(out, "/vms/0/pid"), 1001);
  EXPECT_EQ(Number(out, "/vms/0/samples"), 3);
  EXPECT_EQ(Number(out, "/vms/0/epochs/0/epoch"), 1);
  EXPECT_EQ(out.at_pointer("/vms/0/epochs/0/events/1"), "instructions");

  const json::value& busy = out.at_pointer("/vms/0/vcpus/0");
  EXPECT_EQ(Number(busy, "/index"), 0);
  EXPECT_EQ(Number(busy, "/tid"), 2001);
  EXPECT_EQ(Number(busy, "/samples"), 3);
  EXPECT_EQ(Number(busy, "/measured_s"), 0.2);
  EXPECT_EQ(Number(busy, "/share/halted"), 0);
  EXPECT_EQ(Number(busy, "/share/spinning"), 0.5);
  EXPECT_EQ(Number(busy, "/share/productive"), 0.5);
  EXPECT_EQ(Number(busy, "/share/unknown"), 0);
  EXPECT_EQ(Number(busy, "/ticks/spinning"), 1);
  EXPECT_EQ(Number(busy, "/ticks/none"), 0);
  EXPECT_EQ(Number(busy, "/rules/ipc-low"), 0.5);
  EXPECT_TRUE(busy.at_pointer("/unknown_reasons").as_object().empty());
  EXPECT_EQ(Number(busy, "/ipc/mean"), 1.25);
  EXPECT_EQ(Number(busy, "/ipc/p01"), 0.5);
  EXPECT_EQ(Number(busy, "/ipc/p99"), 2.0);
  EXPECT_EQ(Number(busy, "/ipc/ticks"), 2);
  EXPECT_EQ(Number(busy, "/ipc_by_band/spinning/p50"), 0.5);
  EXPECT_TRUE(busy.at_pointer("/ipc_by_band/unknown").is_null());
  EXPECT_EQ(Number(busy, "/residency"), 1);
  EXPECT_EQ(Number(busy, "/run_delay_share"), 0);
  EXPECT_EQ(Number(busy, "/running_share"), 1);
  EXPECT_EQ(Number(busy, "/counts/cycles"), 200e6);
  EXPECT_EQ(Number(busy, "/counts_scaled/instructions"), 250e6);
  EXPECT_EQ(Number(busy, "/counted_s/cycles"), 0.2);
  EXPECT_FALSE(busy.at_pointer("/estimated").as_bool());

  const json::value& halted = out.at_pointer("/vms/0/vcpus/1");
  EXPECT_EQ(Number(halted, "/share/halted"), 1);
  EXPECT_TRUE(halted.at_pointer("/ipc").is_null());
  EXPECT_EQ(Number(halted, "/counts/cycles"), 0);  // a valid zero
  EXPECT_TRUE(halted.at_pointer("/running_share").is_null());

  EXPECT_EQ(Number(out, "/own_cost/ticks"), 3);
  EXPECT_EQ(Number(out, "/own_cost/ticks_missed"), 0);
  EXPECT_EQ(Number(out, "/own_cost/tick_lateness_ns/max"), kLate_ns);
  EXPECT_EQ(Number(out, "/own_cost/read_ns/p50"), kRead_ns);
  EXPECT_EQ(Number(out, "/own_cost/skew_ns/p99"), 1500);
  EXPECT_EQ(Number(out, "/own_cost/cpu_s"), 0.004);
  EXPECT_NEAR(Number(out, "/own_cost/cpu_share"), 0.02, 1e-4);
  EXPECT_EQ(Number(out, "/damage/lost_records"), 0);
  EXPECT_TRUE(out.at_pointer("/damage/ended_in_order").as_bool());
  EXPECT_TRUE(out.at_pointer("/gaps").as_array().empty());
}

// null, never 0: an event that was refused, one whose group never ran, a set without an interval.
TEST(JsonReport, HasNullForWhatWasNotCounted) {
  HandMadeRecording recording;
  recording.Begin();
  v1::VcpuSet set = recording.Set(1, 1, {2001, 2002}, {"cycles"});
  v1::AbsentEvent* absent = set.add_absent_events();
  absent->set_event("instructions");
  absent->set_error(ENOENT);
  absent->set_reason("no such event");
  ASSERT_TRUE(recording.Add(set).ok());
  recording.First(1, 1, 0, 2);
  const json::value before = Parse(WholeReport(recording.summary));
  EXPECT_TRUE(before.at_pointer("/vms/0/vcpus/0/share/halted").is_null());
  EXPECT_TRUE(before.at_pointer("/vms/0/vcpus/0/counts/cycles").is_null());
  EXPECT_TRUE(before.at_pointer("/vms/0/vcpus/0/residency").is_null());
  EXPECT_TRUE(before.at_pointer("/own_cost/cpu_s").is_null());

  recording.Tick(1, 1, 1,
                 {{.enabled_ns = 100'000'000,
                   .running_ns = 50'000'000,
                   .counts = {30'000'000},
                   .verdict = {core::Band::kUnknown, core::Rule::kNoInstructions, false}},
                  {.enabled_ns = 100'000'000,
                   .verdict = {core::Band::kUnknown, core::Rule::kNotCounted, false}}});
  const json::value out = Parse(WholeReport(recording.summary));
  const json::value& half = out.at_pointer("/vms/0/vcpus/0");
  EXPECT_TRUE(half.at_pointer("/counts/instructions").is_null());
  EXPECT_TRUE(half.at_pointer("/counts_scaled/instructions").is_null());
  EXPECT_EQ(Number(half, "/counts/cycles"), 30e6);
  EXPECT_EQ(Number(half, "/counts_scaled/cycles"), 60e6);
  EXPECT_TRUE(half.at_pointer("/estimated").as_bool());
  EXPECT_EQ(Number(half, "/running_share"), 0.5);
  EXPECT_EQ(Number(half, "/unknown_reasons/no-instructions"), 1);
  const json::value& never = out.at_pointer("/vms/0/vcpus/1");
  EXPECT_TRUE(never.at_pointer("/counts/cycles").is_null());
  EXPECT_TRUE(never.at_pointer("/residency").is_null());
  EXPECT_EQ(out.at_pointer("/vms/0/epochs/0/absent_events/0/errno_name"), "ENOENT");
  EXPECT_EQ(Number(out, "/vms/0/epochs/0/absent_events/0/errno"), ENOENT);
}

TEST(JsonReport, ListsGapsLifeCycleAndDamage) {
  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001})).ok());
  v1::Gap gap;
  gap.set_vm(1);
  gap.set_first_tick(2);
  gap.set_last_tick(3);
  gap.set_mono_ns(kStart_ns + 2 * kTick_ns);
  gap.set_reason(v1::Gap::REASON_READ_FAILED);
  gap.set_vcpu_index(0);
  gap.set_error(EIO);
  ASSERT_TRUE(recording.Add(gap).ok());
  v1::LifeCycle skipped;
  skipped.set_kind(v1::LifeCycle::KIND_VM_SKIPPED);
  skipped.set_mono_ns(kStart_ns + kTick_ns);
  skipped.set_detail("TCG");
  skipped.set_skip_reason(v1::LifeCycle::SKIP_REASON_NO_KVM);
  ASSERT_TRUE(recording.Add(skipped).ok());
  Report report = WholeReport(recording.summary);
  report.read.ended_in_order = false;
  report.read.lost_records = 3;
  report.read.lost_before_first = 1;
  report.read.told_losses = {{4, 5, v1::LostRecords::REASON_TOO_LARGE}};
  report.read.damages = {{.offset = 64, .bytes = 10, .reason = "torn"}};
  const json::value out = Parse(report);

  const json::value& seen = out.at_pointer("/vms/0/gaps/0");
  EXPECT_EQ(seen.at_pointer("/reason"), "read-failed");
  EXPECT_EQ(Number(seen, "/vcpu"), 0);
  EXPECT_EQ(seen.at_pointer("/errno_name"), "EIO");
  EXPECT_EQ(Number(seen, "/ticks"), 2);
  EXPECT_EQ(Number(seen, "/records"), 1);
  EXPECT_EQ(Number(seen, "/first_s"), 0.2);
  EXPECT_EQ(out.at_pointer("/life_cycle/0/kind"), "vm-skipped");
  EXPECT_EQ(out.at_pointer("/life_cycle/0/skip_reason"), "no-kvm");
  EXPECT_TRUE(out.at_pointer("/life_cycle/0/vm").is_null());
  EXPECT_EQ(Number(out, "/life_cycle/0/t_s"), 0.1);
  EXPECT_EQ(Number(out, "/damage/lost_records"), 3);
  EXPECT_EQ(Number(out, "/damage/lost_before_first"), 1);
  EXPECT_EQ(Number(out, "/damage/told_losses/0/first_sequence"), 4);
  EXPECT_EQ(Number(out, "/damage/told_losses/0/last_sequence"), 5);
  EXPECT_EQ(out.at_pointer("/damage/told_losses/0/reason"), "too-large");
  EXPECT_EQ(Number(out, "/damage/damaged_chunks"), 1);
  EXPECT_EQ(Number(out, "/damage/damaged_bytes"), 10);
  EXPECT_EQ(Number(out, "/damage/regions/0/offset"), 64);
  EXPECT_FALSE(out.at_pointer("/damage/ended_in_order").as_bool());
}

TEST(JsonReport, ListsMarkers) {
  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001})).ok());
  v1::Marker marker;
  marker.set_name("load");
  marker.set_mono_ns(kStart_ns + 400'000'001);
  ASSERT_TRUE(recording.Add(marker).ok());
  marker.set_name("idle");
  ASSERT_TRUE(recording.Add(marker).ok());
  const json::value out = Parse(WholeReport(recording.summary));
  EXPECT_EQ(out.at_pointer("/markers/0/name"), "load");
  EXPECT_EQ(out.at_pointer("/markers/0/t_ns").as_int64(), 400'000'001);
  EXPECT_EQ(out.at_pointer("/markers/1/name"), "idle");
  EXPECT_EQ(Number(out, "/markers_omitted"), 0);
}

// An import knows nothing of a host, and no read of it was vcpulse's own work.
TEST(JsonReport, OfAnImportHasNullForWhatWasNeverMeasured) {
  const ImportedRecording imported;
  const json::value out = Parse(WholeReport(imported.summary));
  for (const char* pointer :
       {"/session/host_name", "/session/boot_id", "/session/kernel_release", "/session/machine",
        "/session/cpu_model", "/session/online_cpus", "/session/timer_slack_ns",
        "/session/scheduling", "/vms/0/pid", "/vms/0/start_time_ticks", "/vms/0/vcpus/0/tid",
        "/own_cost/tick_lateness_ns", "/own_cost/read_ns", "/own_cost/skew_ns", "/own_cost/cpu_s",
        "/own_cost/cpu_share"}) {
    EXPECT_TRUE(out.at_pointer(pointer).is_null()) << pointer;
  }
  EXPECT_TRUE(out.at_pointer("/vms/0/vcpus/0/tids").as_array().empty());
  EXPECT_EQ(out.at_pointer("/session/residency_method"), "highest-rate");
  EXPECT_EQ(Number(out, "/own_cost/ticks"), 2);
}

// Reads without a length tell it too, where the session is lost.
TEST(JsonReport, ReadsWithoutALengthAreNoOwnCost) {
  HandMadeRecording recording;
  recording.reads_take_time = false;
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001})).ok());
  recording.First(1, 1, 0, 1);
  const json::value out = Parse(WholeReport(recording.summary));
  EXPECT_TRUE(out.at_pointer("/own_cost/read_ns").is_null());
  EXPECT_TRUE(out.at_pointer("/own_cost/tick_lateness_ns").is_null());
}

// A file whose session is lost still gives valid JSON, and a part says which part it is.
TEST(JsonReport, StandsOnItsOwnWithoutASession) {
  const Summary empty;
  EXPECT_TRUE(Parse(WholeReport(empty)).at_pointer("/session").is_null());

  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001})).ok());
  recording.First(1, 1, 30, 1);
  v1::Summary end;
  end.set_cpu_ns(1);
  ASSERT_TRUE(recording.Add(end).ok());
  Report part = WholeReport(recording.summary);
  part.start_mono_ns = kStart_ns;
  part.from_ns = 2'000'000'000;
  const json::value out = Parse(part);
  EXPECT_EQ(Number(out, "/session/from_s"), 2);
  EXPECT_TRUE(out.at_pointer("/session/to_s").is_null());
  EXPECT_NEAR(Number(out, "/session/duration_s"), 1, 1e-3);
  // The processor time is of the whole recording: no share of a part follows from it.
  EXPECT_TRUE(out.at_pointer("/own_cost/cpu_share").is_null());
}

// Numbers as people and every parser read them, and no token that JSON does not know.
TEST(JsonText, WritesPlainNumbers) {
  EXPECT_EQ(ToJsonText(json::value(0.5)), "0.5\n");
  EXPECT_EQ(ToJsonText(json::value(1.0)), "1\n");
  EXPECT_EQ(ToJsonText(json::value(18446744073709551615u)), "18446744073709551615\n");
  EXPECT_EQ(ToJsonText(json::value(std::numeric_limits<double>::quiet_NaN())), "null\n");
  EXPECT_EQ(ToJsonText(json::value(std::numeric_limits<double>::infinity())), "null\n");
}

TEST(JsonText, IndentsAndEscapes) {
  EXPECT_EQ(ToJsonText(json::object{{"a\n", json::array{1, 2}},
                                    {"b", json::array{json::object{}}},
                                    {"c", json::object{{"d", "\x1b"}}}}),
            "{\n  \"a\\n\": [1, 2],\n  \"b\": [\n    {}\n  ],\n  \"c\": {\n    \"d\": \"\\u001b\"\n"
            "  }\n}\n");
}

}  // namespace
}  // namespace vcpulse::report
