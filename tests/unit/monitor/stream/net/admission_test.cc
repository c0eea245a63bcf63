// Who may send to a collector, and who may follow whom.
#include "monitor/stream/net/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace vcpulse::stream {
namespace {

using ::testing::HasSubstr;

const CertifiedNames kPlain;

TEST(Admission, AUserOfAnotherIdMayConnectWhereAllowed) {
  const uid_t other = geteuid() + 1;
  EXPECT_FALSE(MayConnect(other, {}));
  EXPECT_FALSE(MayConnect(other, {other + 1}));
  EXPECT_TRUE(MayConnect(other, {other + 1, other}));
  EXPECT_TRUE(MayConnect(geteuid(), {}));
  EXPECT_TRUE(MayConnect(0, {}));
}

TEST(Admission, ANameIsOneOfTheCertificate) {
  const CertifiedNames names = {{"Web.Example.org", "spiffe://lab/Web"}};
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
  const auto words = [](const CertifiedNames& names) {
    return std::string(CheckName(names, "a").message());
  };
  EXPECT_THAT(words(std::vector<std::string>{}), HasSubstr("are: none"));
  EXPECT_THAT(words({{"b"}}), testing::EndsWith("are: b"));
  EXPECT_THAT(words({{"b", "c", "d"}}), testing::EndsWith("are: b and 2 more"));
}

TEST(Admission, AFollowerWithACertificateSeesItsOwnAloneUnlessAllowed) {
  const CertifiedNames names = {{"agent", "also"}};
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
