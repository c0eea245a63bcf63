#include "kvm/hotspots/registers_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace vcpulse::kvm {
namespace {

// Of QEMU 7.2, cut.
constexpr char kX86Registers[] =
    "RAX=0000000000000000 RBX=0000000000000001\r\n"
    "RIP=ffffffff81c0a2ef RFL=00000246 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=1\r\n"
    "ES =0000 0000000000000000 ffffffff 00c00000\r\n"
    "CS =0010 0000000000000000 ffffffff 00a09b00 DPL=0 CS64 [-RA]\r\n";
constexpr char kRealMode[] =
    "EAX=0000aa55 EBX=00000000\r\nEIP=0000fff0 EFL=00000002 [-------] CPL=0 II=0\r\n"
    "ES =0000 00000000 0000ffff 00009300\r\nCS =f000 ffff0000 0000ffff 00009b00\r\n";
constexpr char kArmRegisters[] =
    " PC=ffff800008c0a2ec X00=0000000000000000 X01=0000000000000001\n"
    "X29=0 SP=ffff80000a00be90\nPSTATE=60000005 -ZC- EL1h     FPCR=0 \n";

TEST(AddressInRegisters, OfX86AndArm) {
  EXPECT_EQ(AddressInRegisters(kX86Registers),
            (GuestAddress{.address = 0xffffffff81c0a2ef, .mode = GuestMode::kKernel}));
  EXPECT_EQ(AddressInRegisters(kRealMode),
            (GuestAddress{.address = 0xfffffff0, .mode = GuestMode::kKernel}));
  EXPECT_EQ(AddressInRegisters(kArmRegisters),
            (GuestAddress{.address = 0xffff800008c0a2ec, .mode = GuestMode::kKernel}));
}

TEST(AddressInRegisters, TellsUserModeByItsLevel) {
  std::string x86 = kX86Registers;
  x86.replace(x86.find("CPL=0"), 5, "CPL=3");
  EXPECT_EQ(AddressInRegisters(x86)->mode, GuestMode::kUser);
  std::string arm = kArmRegisters;
  arm.replace(arm.find("EL1h"), 4, "EL0t");
  EXPECT_EQ(AddressInRegisters(arm)->mode, GuestMode::kUser);
  EXPECT_EQ(AddressInRegisters("PC=10\n")->mode, GuestMode::kUnknown);
  EXPECT_EQ(AddressInRegisters("RIP=10 RFL=2\n")->mode, GuestMode::kUnknown);
}

TEST(StackRegistersIn, OfX86AndArm) {
  const std::string x86 = std::string("RSI=0000000000000000 RBP=ffffc90000013f10 ") +
                          "RSP=ffffc90000013ee8\r\n" + kX86Registers;
  EXPECT_EQ(StackRegistersIn(x86),
            (StackRegisters{.isa = Isa::kX86,
                            .at = {.address = 0xffffffff81c0a2ef, .mode = GuestMode::kKernel},
                            .stack = 0xffffc90000013ee8,
                            .frame = 0xffffc90000013f10}));
  const std::string arm = std::string("X30=ffff800008c0a000 ") + kArmRegisters;
  EXPECT_EQ(StackRegistersIn(arm),
            (StackRegisters{.isa = Isa::kArm64,
                            .at = {.address = 0xffff800008c0a2ec, .mode = GuestMode::kKernel},
                            .stack = 0xffff80000a00be90,
                            .link = 0xffff800008c0a000}));
}

TEST(StackRegistersIn, NeedsAllOfThem) {
  EXPECT_EQ(StackRegistersIn(kX86Registers), std::nullopt);
  EXPECT_EQ(StackRegistersIn(kRealMode), std::nullopt);
  EXPECT_EQ(StackRegistersIn(kArmRegisters), std::nullopt);
  EXPECT_EQ(StackRegistersIn(""), std::nullopt);
}

TEST(IsHaltedInRegisters, IsToldOfX86) {
  EXPECT_TRUE(IsHaltedInRegisters(kX86Registers));
  EXPECT_FALSE(IsHaltedInRegisters(kRealMode));
  EXPECT_FALSE(IsHaltedInRegisters(kArmRegisters));
}

TEST(AddressInRegisters, IsNothingInOtherTexts) {
  for (const char* text : {"", "x", "RIP=", "RIP=xyz ", "XRIP=1 ", "PC", " pc 1", "EPC=1"}) {
    EXPECT_EQ(AddressInRegisters(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace vcpulse::kvm
