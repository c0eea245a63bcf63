#include "monitor/stream/nats/nkey.h"

#include <gtest/gtest.h>

#include <string>

namespace vcpulse::stream {
namespace {

// Made for this test, and used nowhere else.
constexpr char kSeedOfUser[] = "SUAOL4FGVQS7HGC4QNPMA6JAD233RFQCNJYVWHTQVKDJCTLBND32YRJNYU";
constexpr char kUserOfSeed[] = "UD7RCLA4BLLSJBNLNVQ47TP2JNA5VTEMN5P2AXOG2ST7QTI7I7WLENYV";
constexpr char kSeedOfAccount[] = "SAAMN7OWTIJKBYND4JOMTNPNXEJCTUEO4QZQSL2SLCWHA7K3LJ4LO5ACSY";
constexpr char kAccountOfSeed[] = "ADYZ7EUIDSESJK37FOTW4RRMTFTCMXCMMMTB6PDUZVDVZNTIAO5HI5UX";

TEST(Nkey, IsOfItsKindAlone) {
  EXPECT_TRUE(IsUserSeed(kSeedOfUser));
  EXPECT_TRUE(IsUserPublicKey(kUserOfSeed));
  for (const char* other : {kUserOfSeed, kSeedOfAccount, kAccountOfSeed, "", "S", "SU"}) {
    EXPECT_FALSE(IsUserSeed(other)) << other;
  }
  for (const char* other : {kSeedOfUser, kSeedOfAccount, kAccountOfSeed, "", "U"}) {
    EXPECT_FALSE(IsUserPublicKey(other)) << other;
  }
}

TEST(Nkey, HasEachOfItsLetters) {
  for (const std::string key : {kSeedOfUser, kUserOfSeed}) {
    for (size_t i = 0; i < key.size(); ++i) {
      std::string wrong = key;
      wrong[i] = key[i] == 'A' ? 'Q' : 'A';
      EXPECT_FALSE(IsUserSeed(wrong)) << wrong;
      EXPECT_FALSE(IsUserPublicKey(wrong)) << wrong;
      wrong[i] = '1';  // no digit of base32
      EXPECT_FALSE(IsUserSeed(wrong) || IsUserPublicKey(wrong)) << wrong;
      wrong.erase(i, 1);
      EXPECT_FALSE(IsUserSeed(wrong) || IsUserPublicKey(wrong)) << wrong;
    }
  }
}

}  // namespace
}  // namespace vcpulse::stream
