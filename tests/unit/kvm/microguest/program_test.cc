#include "kvm/microguest/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "kvm/doctor/proof.h"
#include "kvm/microguest/guest_memory.h"

namespace vcpulse::kvm::microguest {
namespace {

using doctor::Finding;
using doctor::Proven;

#if defined(__x86_64__) || defined(__aarch64__)

TEST(Programs, HaveNamesOfTheirOwnAndCodeThatIsCopied) {
  std::set<std::string_view> names;
  std::set<size_t> entries;
  for (const Program& program : Programs()) {
    EXPECT_TRUE(names.insert(program.name).second) << program.name;
    EXPECT_EQ(FindProgram(program.name), &program);
    EXPECT_TRUE(entries.insert(EntryOf(program)).second) << program.name;
    EXPECT_LT(EntryOf(program), AllCode().size());
  }
  EXPECT_GE(names.size(), 19u);
  EXPECT_LE(AllCode().size(), kMailboxes - kCode);
  EXPECT_EQ(FindProgram("nosuch"), nullptr);
}

// Counted by hand in programs_*.S.
TEST(Programs, KnowTheirInstructions) {
#ifdef __x86_64__
  constexpr uint64_t kLoop = 3, kTicket = 24, kLook = 5;
#else
  constexpr uint64_t kLoop = 4, kTicket = 28, kLook = 6;
#endif
  EXPECT_EQ(FindProgram("loop")->Instructions({.turns = 1000}), 1000 * kLoop + 2);
  EXPECT_EQ(FindProgram("loop")->Branches({.turns = 1000}), 1000u);
  const Turns waited{.turns = 10, .looks = 7};
  EXPECT_EQ(FindProgram("ticket")->Instructions(waited), 10 * kTicket + 7 * kLook + 2);
  EXPECT_EQ(FindProgram("ticket")->Branches(waited), 10 * 2 + 7 * 2);
}

TEST(GuestMemory, ChainedDataIsOneRoundOfAllItsLines) {
  const auto memory = GuestMemory::Create();
  ASSERT_TRUE(memory.ok()) << memory.status();
  constexpr size_t kBytes = 64 << 10;
  memory->ChainData(kBytes);
  std::set<uint64_t> seen;
  uint64_t address = kData;
  while (seen.insert(address).second) {
    address = *memory->At<uint64_t>(address);
    ASSERT_TRUE(address >= kData && address < kData + kBytes && address % 64 == 0) << address;
  }
  EXPECT_EQ(address, kData);
  EXPECT_EQ(seen.size(), kBytes / 64);
}

#endif

TEST(Proof, IsNotTheLackOfADisproof) {
  const Finding good{.state = Finding::State::kOk};
  const Finding note{.state = Finding::State::kNote};
  const Finding untold{.state = Finding::State::kUnknown};
  const Finding bad{.state = Finding::State::kFail};
  const auto proven = [](std::vector<Finding> findings) { return doctor::IsProven(findings); };
  EXPECT_EQ(proven({good, note}), Proven::kYes);
  EXPECT_EQ(proven({good, untold}), Proven::kNotTold);
  EXPECT_EQ(proven({}), Proven::kNotTold);
  EXPECT_EQ(proven({untold, bad, good}), Proven::kNo);
}

}  // namespace
}  // namespace vcpulse::kvm::microguest
