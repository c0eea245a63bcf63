#include "kvm/hotspots/guest_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <string>

#include "kvm/discovery/qmp_protocol.h"
#include "tests/fakes/qmp_server.h"
#include "tests/fakes/temporary_folder.h"

namespace vcpulse::kvm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(BytesOfDump, AreThoseOfQemusLines) {
  EXPECT_THAT(BytesOfDump("00000000000ffe05: 0xf3 0x90 0xeb 0xfc 0x00 0x01 0x02 0xff\r\n"
                          "00000000000ffe0d: 0x11\r\n"),
              ElementsAre(0xf3, 0x90, 0xeb, 0xfc, 0x00, 0x01, 0x02, 0xff, 0x11));
  EXPECT_THAT(BytesOfDump(""), IsEmpty());
  EXPECT_THAT(BytesOfDump("unknown command: 'x'"), IsEmpty());
}

TEST(BytesOfDump, EndsWhereNothingIsMapped) {
  EXPECT_THAT(BytesOfDump("ffffffff81000ff8: 0x01\r\nffffffff81001000: Cannot access memory\r\n"),
              ElementsAre(0x01));
  EXPECT_THAT(BytesOfDump("10: 0x01 0xzz 0x03\r\n"), ElementsAre(0x01));
  EXPECT_THAT(BytesOfDump("10: Cannot access memory\r\n18: 0x01\r\n"), IsEmpty());
  EXPECT_THAT(BytesOfDump("Cannot access memory at address 0x10\r\n"), IsEmpty());
}

TEST(HottestPlaces, AreApartFromEachOther) {
  AddressCounts counts;
  counts.counts = {{{.address = 0x1000}, 5},
                   {{.address = 0x1008}, 9},
                   {{.address = 0x1048}, 3},
                   {{.address = 0x2000}, 20},
                   {{.address = 0x9000}, 1}};
  EXPECT_THAT(HottestPlaces(counts, 3), ElementsAre(0x2000, 0x1008, 0x1048));
  EXPECT_THAT(HottestPlaces(counts, 1), ElementsAre(0x2000));
  EXPECT_THAT(HottestPlaces({}, 4), IsEmpty());
}

TEST(ReadGuestCode, IsThatAroundEachAddress) {
  const std::filesystem::path folder = fakes::MakeTemporaryFolder();
  fakes::QmpServer::Script script;
  script.answers["human-monitor-command"] = "{\"return\": \"1fc0: 0xf3 0x90\\r\\n\"}\n";
  fakes::QmpServer server(folder / "q", script);
  const Vm vm{.qmp_address = server.address()};
  const auto code = ReadGuestCode(vm, 1, std::array<uint64_t, 2>{0x2000, 0x10});
  ASSERT_TRUE(code.ok()) << code.status();
  ASSERT_THAT(*code, SizeIs(2));
  EXPECT_EQ((*code)[0].address, 0x1fc0u);
  EXPECT_THAT((*code)[0].bytes, ElementsAre(0xf3, 0x90));
  EXPECT_EQ((*code)[1].address, 0u);
}

TEST(QmpCode, AsksForTheBytesAsThatVcpuSeesThem) {
  QmpProtocol protocol(QmpQuestions::kCode,
                       {.vcpu = 3, .bytes = 128, .addresses = {0xffffffff81000000, 0x10}});
  ASSERT_TRUE(protocol.Receive("{\"QMP\": {}}\n{\"return\": {}}\n").ok());
  ASSERT_TRUE(protocol.Receive("{\"return\": [{\"cpu-index\": 0, \"thread-id\": 7}]}\n").ok());
  EXPECT_THAT(protocol.TakeOutput(),
              testing::EndsWith("{\"execute\": \"human-monitor-command\", \"arguments\": "
                                "{\"command-line\": \"x /128xb 0xffffffff81000000\", "
                                "\"cpu-index\": 3}}\n"));
  ASSERT_TRUE(protocol.Receive("{\"return\": \"first\"}\n").ok());
  EXPECT_THAT(protocol.TakeOutput(), HasSubstr("\"x /128xb 0x10\", \"cpu-index\": 3"));
  EXPECT_FALSE(protocol.done());
  ASSERT_TRUE(protocol.Receive("{\"return\": \"second\"}\n").ok());
  EXPECT_TRUE(protocol.done());
  EXPECT_THAT(protocol.answers().monitor_texts, ElementsAre("first", "second"));
}

TEST(ReadGuestCode, IsRefusedInWords) {
  EXPECT_THAT(std::string(ReadGuestCode({}, 0, {}).status().message()), HasSubstr("(--qmp)"));
  const Vm encrypted{.qmp_address = "unix:/none", .is_confidential = true};
  EXPECT_THAT(std::string(ReadGuestCode(encrypted, 0, {}).status().message()),
              HasSubstr("confidential guest"));
}

}  // namespace
}  // namespace vcpulse::kvm
