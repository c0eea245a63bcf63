// The answers of the control socket: one line of JSON each.
#include "monitor/control/response.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace vcpulse::control {
namespace {

using ::testing::HasSubstr;

RecordingStatus Example() {
  return {.state = RecordingState::kPaused,
          .elapsed_ns = 12'345'678'901,
          .ticks = 123,
          .vcpu_samples = 18'446'744'073'709'551'615U,
          .gaps = 2,
          .output = "run.vpt",
          .reader = "bpf",
          .phase = "load",
          .markers = 3,
          .vms = {{.name = "web", .pid = 77, .vcpus = 4}, {.name = "db", .pid = 78, .vcpus = 1}},
          .vms_left_out = 0};
}

// Harnesses read these lines: members are added, never renamed.
TEST(ControlResponse, IsOneLineOfJson) {
  EXPECT_EQ(ResponseLine({}), "{\"ok\":true}\n");
  EXPECT_EQ(ResponseLine({.mono_ns = 17}), "{\"ok\":true,\"mono_ns\":17}\n");
  EXPECT_EQ(ResponseLine({.error = absl::FailedPreconditionError("a\nb")}),
            "{\"ok\":false,\"error\":\"a\\nb\"}\n");
  EXPECT_EQ(ResponseLine({.status = Example()}),
            R"({"ok":true,"state":"paused","elapsed_ns":12345678901,"ticks":123,)"
            R"("vcpu_samples":18446744073709551615,"gaps":2,"output":"run.vpt","phase":"load",)"
            R"("markers":3,"reader":"bpf","vms":[{"name":"web","pid":77,"vcpus":4},)"
            R"({"name":"db","pid":78,"vcpus":1}],"vms_left_out":0})"
            "\n");
  RecordingStatus unmarked = Example();
  unmarked.phase.reset();
  EXPECT_THAT(ResponseLine({.status = unmarked}), HasSubstr(R"("phase":null)"));
}

TEST(ControlResponse, IsReadAsItWasWritten) {
  RecordingStatus unmarked;
  for (const Response& response :
       {Response{}, Response{.mono_ns = -5}, Response{.status = Example()},
        Response{.status = unmarked}, Response{.error = absl::FailedPreconditionError("no")}}) {
    const auto again = ParseResponse(ResponseLine(response));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, response) << ResponseLine(response);
  }
}

TEST(ControlResponse, AnOlderRecordingSaysNoReader) {
  std::string line = ResponseLine({.status = Example()});
  const std::string member = R"("reader":"bpf",)";
  ASSERT_THAT(line, HasSubstr(member));
  line.erase(line.find(member), member.size());
  const auto response = ParseResponse(line);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status->reader, "");
  EXPECT_EQ(response->status->markers, 3u);
}

TEST(ControlResponse, WhatIsNoAnswerIsRefused) {
  for (const std::string_view line :
       {"", "x", "[]", "{}", R"({"ok":1})", R"({"ok":false})", R"({"ok":false,"error":7})",
        R"({"ok":true,"mono_ns":"7"})", R"({"ok":true,"mono_ns":1.5})", R"({"ok":true}{})",
        R"({"ok":true,"state":"asleep"})", R"({"ok":true,"state":"paused"})"}) {
    const auto response = ParseResponse(line);
    EXPECT_EQ(response.status().code(), absl::StatusCode::kInvalidArgument) << line;
  }
  std::string wrong_vm = ResponseLine({.status = Example()});
  wrong_vm.replace(wrong_vm.find("78"), 2, "\"\"");
  EXPECT_FALSE(ParseResponse(wrong_vm).ok());
}

TEST(ControlResponse, ATextThatIsNotUtf8IsStillJson) {
  RecordingStatus status = Example();
  status.vms[0].name =
      "w\xff"
      "eb";
  const auto again = ParseResponse(ResponseLine({.status = status}));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->status->vms[0].name, "w?eb");
}

TEST(ControlResponse, VmsThatDoNotFitAreCounted) {
  RecordingStatus status = Example();
  status.output = std::string(100'000, '\x01');
  status.vms.assign(300, {.name = std::string(10'000, '\x01'), .pid = 1, .vcpus = 1});
  const std::string line = ResponseLine({.status = status});
  EXPECT_LE(line.size(), kLongestAnswer_bytes);
  const auto again = ParseResponse(line);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_GT(again->status->vms.size(), 30u);
  EXPECT_EQ(again->status->vms.size() + again->status->vms_left_out, 300u);
}

}  // namespace
}  // namespace vcpulse::control
