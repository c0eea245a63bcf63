#include "monitor/stream/nats/broker_ack.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace vcpulse::stream {
namespace {

TEST(BrokerAck, TellsWhetherTheBrokerHadTheMessage) {
  const auto fresh = ParseBrokerAck(R"({"stream":"VCPULSE","seq":7})");
  ASSERT_TRUE(fresh.ok()) << fresh.status();
  EXPECT_EQ(fresh->sequence, 7u);
  EXPECT_FALSE(fresh->was_known);
  const auto known = ParseBrokerAck(R"({"stream":"V","domain":"","seq":9,"duplicate":true})");
  ASSERT_TRUE(known.ok()) << known.status();
  EXPECT_TRUE(known->was_known);
}

TEST(BrokerAck, AnErrorHasTheBrokersWords) {
  const auto limits = ParseBrokerAck(
      R"({"error":{"code":400,"err_code":10054,"description":"message size exceeds maximum allowed"},"stream":"V","seq":0})");
  EXPECT_TRUE(absl::IsFailedPrecondition(limits.status())) << limits.status();
  EXPECT_EQ(limits.status().message(), "message size exceeds maximum allowed");
  const auto other =
      ParseBrokerAck(R"({"error":{"code":503,"err_code":10008,"description":"a\nb"}})");
  EXPECT_TRUE(absl::IsUnavailable(other.status())) << other.status();
  EXPECT_EQ(other.status().message().find('\n'), std::string::npos);
  EXPECT_EQ(ParseBrokerAck(R"({"error":{"err_code":5}})").status().message(), "error 5");
}

TEST(BrokerAck, AnErrorIsKnownByItsCode) {
  const char* answer =
      R"({"error":{"code":400,"err_code":10060,"description":"expected stream does not match"}})";
  EXPECT_TRUE(IsBrokerError(answer, 10'060));
  EXPECT_FALSE(IsBrokerError(answer, 400));
  for (const char* text : {"", "[]", R"({"err_code":10060})", R"({"error":10060})",
                           R"({"error":{"code":10060}})", R"({"stream":"V","seq":10060})"}) {
    EXPECT_FALSE(IsBrokerError(text, 10'060)) << text;
  }
}

TEST(BrokerAck, AnythingElseIsNone) {
  for (const char* text : {"", "{}", "[]", "7", R"({"stream":"V"})", R"({"seq":0})",
                           R"({"seq":-1})", R"({"seq":"7"})", R"({"seq":7)"}) {
    EXPECT_TRUE(absl::IsDataLoss(ParseBrokerAck(text).status())) << text;
  }
  EXPECT_TRUE(absl::IsDataLoss(ParseBrokerAck(std::string(100'000, ' ')).status()));
}

}  // namespace
}  // namespace vcpulse::stream
