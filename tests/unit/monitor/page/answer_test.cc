// What `report --serve` answers, who it answers to, and the page itself as text.

#include "monitor/page/answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "boost/json.hpp"
#include "monitor/page/page.h"
#include "monitor/page/served_timeline.h"
#include "tests/unit/fixtures/drawn_recording.h"

namespace vcpulse::page {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class Answers : public ::testing::Test {
 protected:
  http::Answer Get(const std::string& target, const std::string& host = "127.0.0.1:8080") {
    return Answer({.method = "GET", .target = target, .host = host, .port = 8080}, source_);
  }

  std::vector<BinsWanted> wanted_;
  Source source_{.page = [] { return std::string("<html>"); },
                 .summary = [] { return std::string("{}"); },
                 .bins = [this](const BinsWanted& wanted,
                                const std::function<bool()>&) -> absl::StatusOr<std::string> {
                   wanted_.push_back(wanted);
                   if (wanted.bins == 13) return absl::NotFoundError("x.vpt: gone");
                   return std::string("bins");
                 }};
};

TEST_F(Answers, ThePageItsSummaryAndItsBins) {
  EXPECT_EQ(Get("/").body, "<html>");
  EXPECT_EQ(Get("/").content_type, "text/html; charset=utf-8");
  EXPECT_EQ(Get("/?x").status, 200);
  EXPECT_EQ(Get("/summary").content_type, "application/json");
  EXPECT_EQ(Get("/bins?from=-5&to=7000000000&bins=500").body, "bins");
  EXPECT_THAT(wanted_, Contains(BinsWanted{.from_ns = -5, .to_ns = 7'000'000'000, .bins = 500}));
}

TEST_F(Answers, NothingElse) {
  EXPECT_EQ(Get("/etc/passwd").status, 404);
  EXPECT_EQ(Get("").status, 404);
  EXPECT_EQ(Get("//").status, 404);
  for (const char* query : {"", "?", "?from=1&to=2", "?from=2&to=1&bins=5", "?from=1&to=1&bins=5",
                            "?from=0&to=9&bins=0", "?from=0&to=9&bins=8193", "?from=x&to=9&bins=5",
                            "?from=0&to=99999999999999999999&bins=5", "?from=0&to=9&bins=5.0",
                            "?from=0&to=9223372036854775807&bins=1", "?from&to&bins"}) {
    EXPECT_EQ(Get(std::string("/bins") + query).status, 400) << query;
  }
  EXPECT_TRUE(wanted_.empty());
  EXPECT_EQ(Get("/bins?from=0&to=9&bins=13").status, 500);
  EXPECT_THAT(Get("/bins?from=0&to=9&bins=13").body, HasSubstr("x.vpt: gone"));
}

TEST_F(Answers, ToItsOwnNamesOnly) {
  for (const char* host : {"127.0.0.1:8080", "localhost:8080", "[::1]:8080"}) {
    EXPECT_EQ(Get("/", host).status, 200) << host;
  }
  // A page of somebody else's, whose name was made to point here.
  for (const char* host : {"", "evil.example:8080", "evil.example", "127.0.0.1", "127.0.0.1:8081",
                           "localhost:8080.evil.example"}) {
    EXPECT_EQ(Get("/", host).status, 421) << host;
  }
}

TEST(ServedTimeline, FinerBinsComeFromTheFile) {
  check::DrawnRecording drawn;
  drawn.Draw("SSSSSSSSSSPPPPPPPPPPHHHHHHHHHH");
  ServedTimeline served(drawn.Finish());
  EXPECT_THAT(*served.Page(), HasSubstr("connect-src 'self'"));
  EXPECT_EQ(boost::json::parse(*served.Summary()).at("vms").at(0).at("samples").as_int64(), 31);
  const auto head = [&](const BinsWanted& wanted) {
    const std::string bins = *served.Bins(wanted);
    uint32_t length = 0;
    std::memcpy(&length, bins.data(), 4);
    return boost::json::parse(bins.substr(4, length)).at("bins");
  };
  // Half a second in at most 5 bins: of 100 ms, from the start's grid.
  const auto coarse = head({.from_ns = 950'000'000, .to_ns = 1'450'000'000, .bins = 5});
  EXPECT_EQ(coarse.at("width_ns").as_int64(), 100'000'000);
  EXPECT_EQ(coarse.at("rows").at(0).at("first").as_int64(), 9);
  EXPECT_EQ(coarse.at("rows").at(0).at("bins").as_int64(), 6);
  // Never finer than the ticks tell.
  EXPECT_EQ(head({.from_ns = 0, .to_ns = 100'000'000, .bins = 8000}).at("width_ns").as_int64(),
            25'000'000);
  EXPECT_TRUE(head({.from_ns = 50'000'000'000, .to_ns = 60'000'000'000, .bins = 5}).is_null());
}

TEST(ServedTimeline, NothingIsReadForAClientThatHasGone) {
  check::DrawnRecording drawn;
  drawn.Draw(std::string(1000, 'S'));
  ServedTimeline served(drawn.Finish());
  const BinsWanted all{.from_ns = 0, .to_ns = 100'000'000'000, .bins = 1000};
  EXPECT_TRUE(served.Bins(all, [] { return false; }).ok());
  EXPECT_TRUE(absl::IsCancelled(served.Bins(all, [] { return true; }).status()));
}

TEST(ServedTimeline, AFileThatGrowsIsReadAnew) {
  check::DrawnRecording drawn;
  drawn.Draw("SS");
  drawn.Flush();
  const std::string growing = ::testing::TempDir() + "/vcpulse_growing_" + std::to_string(getpid());
  const auto copy = [&](const std::string& from) {
    std::ofstream(growing, std::ios::binary) << std::ifstream(from, std::ios::binary).rdbuf();
  };
  check::DrawnRecording longer;
  longer.Draw("SSSSSS");
  const auto samples = [](ServedTimeline& served) {
    return boost::json::parse(*served.Summary()).at("vms").at(0).at("samples").as_int64();
  };
  copy(drawn.Finish(true));
  ServedTimeline served(growing);
  EXPECT_EQ(samples(served), 3);
  copy(longer.Finish());
  EXPECT_EQ(samples(served), 7);
  std::remove(growing.c_str());
  EXPECT_FALSE(served.Page().ok()) << "what is no longer there is not shown";
}

TEST(PageText, StandsAloneAndHoldsNoNames) {
  check::DrawnRecording drawn;
  drawn.Name(1, "</script><b>guest");
  drawn.Draw("[</script><i>]SP");
  const auto contents = Contents::Read(drawn.Finish(), {});
  ASSERT_TRUE(contents.ok()) << contents.status();
  const std::string page = RenderPage(**contents, false);
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("script-src 'nonce-01010101010101010101010101010101'"));
  EXPECT_THAT(page, HasSubstr("connect-src 'none'"));
  // All that a timeline says is in the packed data.
  EXPECT_THAT(page, Not(HasSubstr("guest")));
  EXPECT_THAT(page, Not(HasSubstr("<i>")));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
  for (const char* outside :
       {"http://", "https://", "innerHTML", "document.write", "eval(", "console."}) {
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  }
}

}  // namespace
}  // namespace vcpulse::page
