// Who may send to a collector, and who may follow whom.
#include "monitor/stream/net/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

namespace vcpulse::stream {
namespace {

using ::testing::HasSubstr;

const Identity kPlain;

Identity Certificate(std::vector<std::string> names) {
  return {.proof = Identity::Proof::kCertificate, .names = std::move(names)};
}

TEST(Admission, AUserOfAnotherIdHasTheAgentIdsOfItsOwnAlone) {
  const uid_t other = geteuid() + 1;
  EXPECT_FALSE(IdentityOfUser(other, {}));
  EXPECT_FALSE(IdentityOfUser(other, {{other + 1, {"a"}}}));
  const auto identity = IdentityOfUser(other, {{other, {"a", "b"}}, {other + 1, {"c"}}});
  ASSERT_TRUE(identity);
  EXPECT_TRUE(CheckName(*identity, "a").ok());
  EXPECT_TRUE(CheckName(*identity, "b").ok());
  EXPECT_TRUE(absl::IsPermissionDenied(CheckName(*identity, "c")));
  EXPECT_TRUE(absl::IsPermissionDenied(CheckName(*identity, "A"))) << "another folder";
  EXPECT_THAT(std::string(CheckName(*identity, "c").message()), HasSubstr("--allow-uid"));
  EXPECT_EQ(WhomToFollow(*identity, "a", "", {}).value(), "a");
  EXPECT_EQ(WhomToFollow(*identity, "a", "b", {}).value(), "b");
  EXPECT_TRUE(absl::IsPermissionDenied(WhomToFollow(*identity, "a", "c", {}).status()));
  EXPECT_EQ(WhomToFollow(*identity, "a", "", {"a"}).value(), "");
}

TEST(Admission, RootAndTheOwnUserMayUseAnyAgentId) {
  for (const uid_t uid : {uid_t{0}, geteuid()}) {
    const auto identity = IdentityOfUser(uid, {{uid, {"a"}}});
    ASSERT_TRUE(identity);
    EXPECT_TRUE(CheckName(*identity, "any").ok());
    EXPECT_EQ(WhomToFollow(*identity, "any", "", {}).value(), "");
  }
}

TEST(Admission, ANameIsOneOfTheCertificate) {
  const Identity names = Certificate({"Web.Example.org", "spiffe://lab/Web"});
  EXPECT_TRUE(CheckName(names, "Web.Example.org").ok());
  EXPECT_TRUE(CheckName(names, "web.example.org").ok());
  EXPECT_TRUE(CheckName(names, "spiffe://lab/Web").ok());
  // Else one host could have many names, or take another's URI.
  EXPECT_TRUE(absl::IsPermissionDenied(CheckName(names, "WEB.example.org")));
  EXPECT_TRUE(absl::IsPermissionDenied(CheckName(names, "spiffe://lab/web")));
  EXPECT_TRUE(absl::IsPermissionDenied(CheckName(names, "web.example.or")));
}

TEST(Admission, OnAPlainAddressAnyNameWillDo) { EXPECT_TRUE(CheckName(kPlain, "any").ok()); }

TEST(Admission, ARefusalShowsTheNamesOfTheCertificate) {
  const auto words = [](std::vector<std::string> names) {
    return std::string(CheckName(Certificate(std::move(names)), "a").message());
  };
  EXPECT_THAT(words({}), HasSubstr("are: none"));
  EXPECT_THAT(words({"b"}), testing::EndsWith("are: b"));
  EXPECT_THAT(words({"b", "c", "d"}), testing::EndsWith("are: b and 2 more"));
}

TEST(Admission, AFollowerWithACertificateSeesItsOwnAloneUnlessAllowed) {
  const Identity names = Certificate({"agent", "also"});
  const auto whom = [&](const std::string& wanted, const std::vector<std::string>& allowed = {}) {
    return WhomToFollow(names, "agent", wanted, allowed).value_or("refused");
  };
  EXPECT_EQ(whom(""), "agent");
  EXPECT_EQ(whom("agent"), "agent");
  EXPECT_EQ(whom("also"), "also");
  EXPECT_EQ(whom("other"), "refused");
  EXPECT_EQ(whom("other", {"somebody"}), "refused");
  EXPECT_EQ(whom("other", {"somebody", "agent"}), "other");
  EXPECT_EQ(whom("", {"agent"}), "");
  EXPECT_EQ(WhomToFollow(kPlain, "agent", "", {}).value(), "");
  EXPECT_EQ(WhomToFollow(kPlain, "agent", "other", {}).value(), "other");
}

}  // namespace
}  // namespace vcpulse::stream
