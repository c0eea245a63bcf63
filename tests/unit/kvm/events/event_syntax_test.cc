#include "kvm/events/event_syntax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "kvm/events/event_modifiers.h"

namespace vcpulse::kvm {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using Kind = EventItem::Kind;

// The list, or none and a failure of the test.
std::vector<EventGroupItems> Parsed(const std::string& text) {
  auto list = ParseEventList(text);
  EXPECT_TRUE(list.ok()) << text << ": " << list.status();
  return list.ok() ? *list : std::vector<EventGroupItems>{};
}

EventItem One(const std::string& text) {
  const auto list = Parsed(text);
  if (list.size() != 1 || list[0].size() != 1) {
    ADD_FAILURE() << text << " is not one event";
    return {};
  }
  return list[0][0];
}

std::string ErrorOf(const std::string& text) {
  const auto list = ParseEventList(text);
  EXPECT_FALSE(list.ok()) << text;
  return std::string(list.status().message());
}

TEST(ParseEventList, EachEventAloneIsAGroup) {
  const auto list = Parsed("cycles,instructions");
  ASSERT_THAT(list, SizeIs(2));
  EXPECT_EQ(list[0][0].name, "cycles");
  EXPECT_EQ(list[1][0].name, "instructions");
}

TEST(ParseEventList, BracesHoldTogether) {
  const auto list = Parsed("{cycles,instructions},cs,{r3c}");
  ASSERT_THAT(list, ElementsAre(SizeIs(2), SizeIs(1), SizeIs(1)));
  EXPECT_EQ(list[0][1].text, "instructions");
  EXPECT_EQ(list[2][0].raw, 0x3cu);
}

TEST(ParseEventList, BlanksStandAround) {
  EXPECT_EQ(Parsed(" { cycles , instructions } , cpu/ event=1 , inv / "),
            Parsed("{cycles,instructions},cpu/event=1,inv/"));
}

TEST(ParseEventList, ARawNumberIsHex) {
  EXPECT_EQ(One("r1a8"),
            (EventItem{.kind = Kind::kRaw, .text = "r1a8", .name = "r1a8", .raw = 0x1a8}));
  EXPECT_EQ(One("r0x1A8").raw, 0x1a8u);
  EXPECT_EQ(One("rffffffffffffffff").raw, ~uint64_t{0});
}

// What only begins like a raw number is a name.
TEST(ParseEventList, WhatIsNotAllHexIsAName) {
  for (const char* text : {"ref-cycles", "r", "rx", "r10000000000000000", "r0x"}) {
    EXPECT_EQ(One(text).kind, Kind::kName) << text;
  }
}

TEST(ParseEventList, APmuHasTerms) {
  const EventItem item = One("cpu/event=0x3c,umask=1,inv,name=x.y/");
  EXPECT_EQ(item.kind, Kind::kPmu);
  EXPECT_EQ(item.name, "cpu");
  EXPECT_EQ(item.text, "cpu/event=0x3c,umask=1,inv,name=x.y/");
  EXPECT_THAT(item.terms, ElementsAre(EventTerm{"event", "0x3c"}, EventTerm{"umask", "1"},
                                      EventTerm{"inv", std::nullopt}, EventTerm{"name", "x.y"}));
  EXPECT_THAT(One("cpu//").terms, SizeIs(0));
}

TEST(ParseEventList, ATracepointHasASystem) {
  const EventItem item = One("kvm:kvm_exit");
  EXPECT_EQ(item.kind, Kind::kTracepoint);
  EXPECT_EQ(item.system, "kvm");
  EXPECT_EQ(item.name, "kvm_exit");
  EXPECT_EQ(item.text, "kvm:kvm_exit");
}

// The colon of a tracepoint and that of a modifier look alike.
TEST(ParseEventList, ModifiersAreNoPartOfTheEvent) {
  for (const char* text : {"cycles:G", "r3c:G", "cpu/event=1/G", "cpu/event=1/:G", "kvm:kvm_exit:G",
                           "no-such-event:G", "{cycles}:G"}) {
    const EventItem item = One(text);
    EXPECT_EQ(item.modifiers, "G") << text;
    EXPECT_THAT(item.text, Not(HasSubstr(":G"))) << text;
  }
  EXPECT_EQ(One("cycles:uGk").modifiers, "uGk");
  EXPECT_EQ(One("cycles:x").modifiers, "x") << "behind a known event it is not a tracepoint";
}

TEST(ParseEventList, AGroupsModifiersAreItsMembers) {
  const auto list = Parsed("{cycles:G,instructions}:D,branches");
  EXPECT_EQ(list[0][0].modifiers, "GD");
  EXPECT_EQ(list[0][1].modifiers, "D");
  EXPECT_EQ(list[1][0].modifiers, "");
}

TEST(ParseEventList, ErrorsPointAtTheCharacter) {
  struct Row {
    const char* text;
    const char* where;
    const char* what;
  };
  for (const Row& row : {
           Row{"", "character 1:", "an event is expected here, not the end"},
           Row{"cycles,", "character 8:", "an event is expected here, not the end"},
           Row{",cycles", "character 1:", "an event is expected here, not ','"},
           Row{"cycles,,cs", "character 8:", "an event"},
           Row{"cycles cs", "character 8:", "a comma or the end is expected here, not 'c'"},
           Row{"cycles}", "character 7:", "a comma or the end is expected here, not '}'"},
           Row{"{cycles", "character 8:", "a closing brace is expected here, not the end"},
           Row{"{}", "character 2:", "an event is expected here, not '}'"},
           Row{"{a,{b}}", "character 4:", "cannot stand inside another"},
           Row{"g{a,b}", "character 2:", "no names here"},
           Row{"{a}:", "character 5:", "a modifier is expected"},
           Row{"cycles:", "character 8:", "a modifier is expected"},
           Row{"kvm:", "character 5:", "tracepoint or a modifier"},
           Row{"cpu/", "character 5:", "a term such as event=0x3c"},
           Row{"cpu/event=/", "character 11:", "the value of event"},
           Row{"cpu/=1/", "character 5:", "a term"},
           Row{"cpu/event=1", "character 12:", "closing /"},
           Row{"cpu/event=1,/", "character 13:", "a term"},
           Row{"cycles;cs", "character 7:", "not ';'"},
       }) {
    EXPECT_THAT(ErrorOf(row.text), AllOf(HasSubstr(row.where), HasSubstr(row.what))) << row.text;
  }
}

// The message goes to a terminal: one line, nothing that a terminal obeys, not all of a long text.
TEST(ParseEventList, ErrorsAreShortAndPrintable) {
  const std::string error = ErrorOf(std::string(5000, 'a') + "\x1b[31m\n");
  EXPECT_THAT(error, AllOf(HasSubstr("\\x1b"), Not(HasSubstr("\n")), Not(HasSubstr("\x1b"))));
  EXPECT_LT(error.size(), 200u);
}

TEST(ParseEventList, MoreThanSixtyFourEventsAreRefused) {
  std::string text = "r1";
  for (int i = 2; i <= 64; ++i) text += ",r" + std::to_string(i);
  EXPECT_THAT(Parsed(text), SizeIs(64));
  EXPECT_THAT(ErrorOf(text + ",cs"), HasSubstr("more than 64 events"));
  EXPECT_THAT(ErrorOf("{" + text + ",cs}"), HasSubstr("more than 64 events"));
}

TEST(ParseEventTerms, AreThoseOfAFileInSysfs) {
  const auto terms = ParseEventTerms("event=0x0e,umask=0x01,inv,cmask=1");
  ASSERT_TRUE(terms.ok());
  EXPECT_THAT(*terms, SizeIs(4));
  EXPECT_THAT(*ParseEventTerms(""), SizeIs(0));
  EXPECT_FALSE(ParseEventTerms("event=1/").ok());
}

TEST(ParseTermValue, IsDecimalOrHex) {
  EXPECT_EQ(ParseTermValue("60"), 60u);
  EXPECT_EQ(ParseTermValue("0x3c"), 60u);
  EXPECT_EQ(ParseTermValue("0XFFFFFFFFFFFFFFFF"), ~uint64_t{0});
  for (const char* text : {"", "0x", "3c", "-1", "+1", "0x1g", "18446744073709551616", "?"}) {
    EXPECT_EQ(ParseTermValue(text), std::nullopt) << text;
  }
}

TEST(ModifierRefusal, GuestOnlyIsWhatVcpulseIs) {
  EXPECT_EQ(ModifierRefusal(""), "");
  EXPECT_EQ(ModifierRefusal("G"), "");
  EXPECT_EQ(ModifierRefusal("GG"), "");
}

TEST(ModifierRefusal, EachOtherHasItsReason) {
  struct Row {
    const char* modifiers;
    const char* reason;
  };
  for (const Row& row :
       {Row{"u", "guest's kernel"}, Row{"k", "user space"}, Row{"h", "hypervisor"},
        Row{"H", "is the host"}, Row{"p", "precise"}, Row{"ppp", "precise"}, Row{"P", "precise"},
        Row{"D", "guest's own vPMU"}, Row{"S", "samples"}, Row{"W", "fall apart"}, Row{"I", "idle"},
        Row{"e", "alone"}, Row{"b", "BPF"}, Row{"Gu", "guest's kernel"}, Row{"GH", "is the host"},
        Row{"z", "is not a modifier that vcpulse knows"}}) {
    EXPECT_THAT(ModifierRefusal(row.modifiers), AllOf(HasSubstr(row.reason), Not(HasSubstr("\n"))));
  }
}

}  // namespace
}  // namespace vcpulse::kvm
