// What the reports say of `record --prove`.

#include <string>

#include "boost/json.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitor/report/json_report.h"
#include "monitor/report/text_report.h"
#include "tests/unit/fixtures/hand_made_recording.h"

namespace vcpulse::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

void AddClaim(v1::CounterProof& proof, const std::string& id, const std::string& state) {
  v1::CounterProof::Claim& claim = *proof.add_claims();
  claim.set_id(id);
  claim.set_state(state);
  claim.set_answer("what " + id + " came to");
}

struct Shown {
  std::string text;
  boost::json::value json;
};

Shown Show(v1::CounterProof::Outcome outcome, const std::string& state) {
  v1::Session session = HandMadeRecording::Session();
  session.mutable_counter_proof()->set_outcome(outcome);
  AddClaim(*session.mutable_counter_proof(), "loop", "ok");
  for (const char* id : {"alu", "hash", "ticket"}) {
    AddClaim(*session.mutable_counter_proof(), id, state);
  }
  HandMadeRecording recording;
  EXPECT_TRUE(recording.Add(session).ok());
  const Report report = WholeReport(recording.summary);
  return {.text = RenderText(report), .json = boost::json::parse(RenderJson(report))};
}

TEST(CounterProof, IsSaidWhereItHolds) {
  const Shown shown = Show(v1::CounterProof::OUTCOME_PROVEN, "ok");
  EXPECT_THAT(shown.text, HasSubstr("\ncounters proven before the recording: 4 claims hold\n"));
  EXPECT_EQ(shown.json.at_pointer("/session/counter_proof/proven"), "yes");
  EXPECT_EQ(shown.json.at_pointer("/session/counter_proof/claims/1/answer"), "what alu came to");
}

// Where every program had one IPC, bands by IPC mean nothing: proven counters are no comfort.
TEST(CounterProof, SaysWhereCyclesMeanNothing) {
  v1::Session session = HandMadeRecording::Session();
  v1::CounterProof& proof = *session.mutable_counter_proof();
  proof.set_outcome(v1::CounterProof::OUTCOME_PROVEN);
  AddClaim(proof, "loop", "ok");
  AddClaim(proof, "ipc", "note");
  EXPECT_EQ(ProofText(proof),
            "counters proven before the recording: 1 claim holds; but what ipc came to");
  AddClaim(proof, "migration", "note");
  proof.mutable_claims(1)->set_state("ok");
  EXPECT_EQ(ProofText(proof), "counters proven before the recording: 2 claims hold");
}

TEST(CounterProof, IsTheFirstLineWhereItDoesNot) {
  const Shown failed = Show(v1::CounterProof::OUTCOME_DISPROVEN, "fail");
  EXPECT_THAT(failed.text, StartsWith("COUNTERS DISPROVEN before the recording: alu: what alu came "
                                      "to; hash: what hash came to and 1 more\n"));
  EXPECT_EQ(failed.json.at_pointer("/session/counter_proof/proven"), "no");
  const Shown unknown = Show(v1::CounterProof::OUTCOME_NOT_TOLD, "unknown");
  EXPECT_THAT(unknown.text, StartsWith("counters not proven before the recording: alu: what alu"));
  EXPECT_EQ(unknown.json.at_pointer("/session/counter_proof/proven"), "not-told");
}

TEST(CounterProof, IsNotSpokenOfWhereNobodyAsked) {
  HandMadeRecording recording;
  recording.Begin();
  const Report report = WholeReport(recording.summary);
  EXPECT_THAT(RenderText(report), Not(HasSubstr("counters")));
  EXPECT_TRUE(
      boost::json::parse(RenderJson(report)).at_pointer("/session/counter_proof").is_null());
}

}  // namespace
}  // namespace vcpulse::report
