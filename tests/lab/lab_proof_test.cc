// `vcpulse doctor --prove` on a real PMU: exact to the instruction, and not where the counters are
// broken on purpose (tests/lab/inside/broken_counters.cc).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <variant>

#include "kvm/microguest/program.h"
#include "monitor/timeline/reader.h"
#include "tests/lab/lab_timeline.h"

namespace vcpulse::lab {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

class Proof : public ::testing::TestWithParam<std::string> {
 protected:
  std::string Output(const std::string& name) const {
    return ReadText(OutputPath("proof-" + GetParam(), name));
  }

  // By id: "STATE: ANSWER". The outcome as "proven".
  std::map<std::string, std::string> Broken(const std::string& how) const {
    std::map<std::string, std::string> lines;
    std::istringstream text(Output(how + ".out"));
    for (std::string line; std::getline(text, line);) {
      lines[line.substr(0, line.find(' '))] = line.substr(line.find(' ') + 1);
    }
    return lines;
  }
};

INSTANTIATE_TEST_SUITE_P(Clock, Proof, ::testing::Values("0", "1", "2"));

// With one instruction a nanosecond cycles and instructions are the same number.
class ProofOfEvents : public Proof {};
INSTANTIATE_TEST_SUITE_P(Clock, ProofOfEvents, ::testing::Values("1", "2"));

TEST_P(Proof, IsExactToTheInstruction) {
  const boost::json::value proof = boost::json::parse(Output("proof.json"));
  EXPECT_EQ(proof.at("proven").as_string(), "yes");
  EXPECT_EQ(Output("proof.out"), "0\n");
  EXPECT_THAT(Output("proof.txt"), HasSubstr("rightly; its cycles mean nothing (see ipc)\n"));
  std::map<std::string, std::string> answered;
  for (const boost::json::value& finding : proof.at("findings").as_array()) {
    const auto text = [&](const char* key) { return std::string(finding.at(key).as_string()); };
    answered[text("id")] = text("state") + ": " + text("answered");
  }
  size_t programs = 0;
  for (const kvm::microguest::Program& program : kvm::microguest::Programs()) {
    if (!program.CountsAreKnown()) continue;
    ++programs;
    if (program.name == "vector") {
      // KVM traps a vCPU's first vector instruction after a switch, and QEMU counts it again.
      EXPECT_THAT(answered["vector"],
                  AllOf(StartsWith("ok: "), HasSubstr(" instructions expected, counted "),
                        Not(HasSubstr("(-"))));
      continue;
    }
    EXPECT_THAT(answered[std::string(program.name)],
                AllOf(StartsWith("ok: "), HasSubstr(" instructions expected, counted exactly"),
                      Not(HasSubstr("(+")), Not(HasSubstr("(-"))))
        << program.name;
  }
  EXPECT_GE(programs, 17u);
  EXPECT_EQ(answered["host-work"],
            "ok: 20 ms of work of vcpulse's own, outside the guest, counted nothing");
  EXPECT_EQ(answered["halt"], "ok: a guest that was halted for 50 ms counted nothing");
  for (const char* claim : {"two-readers", "preemption"}) {
    EXPECT_THAT(answered[claim], AllOf(StartsWith("ok: "), HasSubstr("counted exactly"),
                                       Not(HasSubstr("(+")), Not(HasSubstr("(-"))))
        << claim;
  }
  // Its clock gives every program the same number, which proves nothing of bands by IPC.
  EXPECT_THAT(answered["ipc"], StartsWith("note: every program ran at about the same IPC ("));
  // Of 1 GHz, less what of the time is not the guest's.
  EXPECT_THAT(answered["clocks"], StartsWith("ok: cycles at "));
}

// What a recording says of itself.
TEST_P(Proof, ATimelineKeepsIt) {
  EXPECT_THAT(Output("record.err"), HasSubstr("vcpulse: counters proven before the recording: "));
  std::optional<v1::CounterProof> proof;
  const auto read = timeline::ReadTimeline(
      OutputPath("proof-" + GetParam(), "proved.vpt"), [&](const timeline::Entry& entry) {
        if (const auto* session = std::get_if<v1::Session>(&entry.record)) {
          proof = session->counter_proof();
        }
        return absl::OkStatus();
      });
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_TRUE(proof);
  EXPECT_EQ(proof->outcome(), v1::CounterProof::OUTCOME_PROVEN);
  const auto loop = std::ranges::find(proof->claims(), "loop", &v1::CounterProof::Claim::id);
  ASSERT_NE(loop, proof->claims().end());
  EXPECT_EQ(loop->state(), "ok");
  EXPECT_THAT(loop->answer(), HasSubstr(" instructions expected, counted exactly"));
}

TEST_P(Proof, ACounterThatCountsTheHostTooIsFound) {
  const auto lines = Broken("host-too");
  ASSERT_THAT(lines, IsSupersetOf({Pair("proven", "no")}));
  EXPECT_THAT(lines.at("host-work"),
              AllOf(StartsWith("fail: 20 ms of work of vcpulse's own, outside the guest, counted "),
                    HasSubstr(" cycles, "), HasSubstr(" instructions")));
  EXPECT_THAT(lines, Not(Contains(Key("loop")))) << "all would fail for the same reason";
}

TEST_P(Proof, ACounterThatStaysZeroIsFound) {
  const auto lines = Broken("stuck");
  ASSERT_THAT(lines, IsSupersetOf({Pair("proven", "no")}));
  for (const char* program : {"loop", "alu", "ticket"}) {
    EXPECT_THAT(
        lines.at(program),
        AllOf(StartsWith("fail: "), HasSubstr(" instructions expected, counted 0: it stays 0")))
        << program;
  }
  EXPECT_THAT(lines.at("host-work"), StartsWith("ok: "));
}

TEST_P(ProofOfEvents, AnotherEventIsFound) {
  const auto lines = Broken("wrong-event");
  ASSERT_THAT(lines, IsSupersetOf({Pair("proven", "no")}));
  for (const char* program : {"loop", "divide", "test-and-set"}) {
    EXPECT_THAT(lines.at(program), AllOf(StartsWith("fail: "), HasSubstr(" (+"))) << program;
  }
}

}  // namespace
}  // namespace vcpulse::lab
