// Rows: grouped, folded, sorted and filtered.
#include "monitor/top/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "monitor/top/board_loader.h"
#include "monitor/top/columns.h"
#include "tests/unit/monitor/top/top_fixture.h"

namespace vcpulse::top {
namespace {

using core::Band;
using ::testing::ElementsAre;

class RowsTest : public testing::Test {
 protected:
  // VM 1: both spin; VM 2: vCPU 0 is halted, vCPU 1 productive.
  RowsTest() {
    const Recording recording{.band = [](uint32_t vm, uint32_t vcpu, uint64_t) {
      if (vm == 1) return Band::kSpinning;
      return vcpu == 0 ? Band::kHalted : Band::kProductive;
    }};
    AddAll(store_, ChunksOf(recording));
    loader_.Want(Window::EndingAt(store_.Span()->end_ns, 20, 100'000'000));
    EXPECT_TRUE(loader_.Step(NeverStop));
  }

  std::vector<std::string> Names(const Arrangement& arrangement) {
    std::vector<std::string> names;
    for (const Row& row : MakeRows({loader_.board(), loader_.board(), loader_.board()},
                                   store_.streams(), arrangement)) {
      names.push_back(row.name);
    }
    return names;
  }

  ChunkStore store_{ChunkStore::Limits()};
  BoardLoader loader_{store_};
};

TEST_F(RowsTest, VmsWithTheirVcpus) {
  EXPECT_THAT(Names({}), ElementsAre("guest-1", "vCPU 0", "vCPU 1", "guest-2", "vCPU 0", "vCPU 1"));
  EXPECT_THAT(Names({.folds_by_default = true}), ElementsAre("guest-1", "guest-2"));
  EXPECT_THAT(Names({.folded_otherwise = {VmId{.stream = 0, .vm = 1}}}),
              ElementsAre("guest-1", "guest-2", "vCPU 0", "vCPU 1"));
}

TEST_F(RowsTest, VcpusAloneAndHosts) {
  EXPECT_THAT(Names({.grouping = Grouping::kVcpus}),
              ElementsAre("guest-1 0", "guest-1 1", "guest-2 0", "guest-2 1"));
  const auto hosts = MakeRows({loader_.board(), loader_.board(), loader_.board()}, store_.streams(),
                              {.grouping = Grouping::kHosts});
  ASSERT_EQ(hosts.size(), 1u);
  EXPECT_EQ(hosts[0].name, "host1");
  EXPECT_EQ(hosts[0].vcpus.size(), 4u);
  EXPECT_NEAR(*hosts[0].totals.Value(metric::Metric::kSpinning), 0.5, 0.01);
}

TEST_F(RowsTest, SortedWithinTheirVm) {
  const auto productive = FindColumn("productive");
  ASSERT_TRUE(productive);
  EXPECT_THAT(Names({.sort_column = productive}),
              ElementsAre("guest-2", "vCPU 1", "vCPU 0", "guest-1", "vCPU 0", "vCPU 1"));
  EXPECT_THAT(Names({.grouping = Grouping::kVcpus, .sort_column = productive}),
              ElementsAre("guest-2 1", "guest-1 0", "guest-1 1", "guest-2 0"));
  EXPECT_THAT(
      Names(
          {.grouping = Grouping::kVcpus, .sort_column = FindColumn("spinning"), .reversed = true}),
      ElementsAre("guest-2 0", "guest-2 1", "guest-1 0", "guest-1 1"));
  // Of a halted one there is none: it is the last, whichever way.
  for (const bool reversed : {false, true}) {
    EXPECT_EQ(
        Names(
            {.grouping = Grouping::kVcpus, .sort_column = FindColumn("ipc"), .reversed = reversed})
            .back(),
        "guest-2 0");
  }
  // Nothing was measured of it: the order stays.
  EXPECT_THAT(Names({.grouping = Grouping::kVcpus, .sort_column = FindColumn("exits")}),
              ElementsAre("guest-1 0", "guest-1 1", "guest-2 0", "guest-2 1"));
}

TEST_F(RowsTest, AVmIsThereWhereOneOfItsVcpusIs) {
  EXPECT_THAT(Names({.filter = *Filter::Parse("halted")}), ElementsAre("guest-2", "vCPU 0"));
  EXPECT_THAT(Names({.filter = *Filter::Parse("guest-1")}),
              ElementsAre("guest-1", "vCPU 0", "vCPU 1"));
  EXPECT_THAT(Names({.filter = *Filter::Parse("unknown")}), ElementsAre());
  // Its numbers are of all of them.
  const auto rows = MakeRows({loader_.board(), loader_.board(), loader_.board()}, store_.streams(),
                             {.filter = *Filter::Parse("halted")});
  EXPECT_EQ(rows.front().vcpus.size(), 2u);
}

TEST_F(RowsTest, NamesThatStandAlone) {
  const auto rows =
      MakeRows({loader_.board(), loader_.board(), loader_.board()}, store_.streams(), {});
  EXPECT_EQ(rows[0].full_name, "guest-1");
  EXPECT_EQ(rows[1].full_name, "guest-1 vCPU 0");
  auto two = store_.streams();
  two.push_back({.host = "host2"});
  EXPECT_EQ(MakeRows({loader_.board(), loader_.board(), loader_.board()}, two, {})[1].full_name,
            "host1 guest-1 vCPU 0");
}

TEST_F(RowsTest, ColumnsShowWhatWasMeasuredAndNothingElse) {
  const auto rows =
      MakeRows({loader_.board(), loader_.board(), loader_.board()}, store_.streams(), {});
  const auto text = [&](std::string_view column, size_t row) {
    return TextOf(Columns()[*FindColumn(column)], rows[row]);
  };
  EXPECT_EQ(text("spinning", 1), "100.0");
  EXPECT_EQ(text("halted", 1), "0.0");
  EXPECT_EQ(text("ipc", 1), "1.30");
  EXPECT_EQ(text("ipc", 4), "-");  // of halted time it is noise
  EXPECT_EQ(text("exits", 1), "-");
  EXPECT_EQ(text("cpu", 1), "-");
  EXPECT_EQ(text("hot", 1), "-");
}

TEST(ColumnsTest, EachOnceAndNoWiderThanSaid) {
  std::set<std::string_view> names;
  for (const Column& column : Columns()) {
    EXPECT_TRUE(names.insert(column.name).second);
    EXPECT_LE(column.head.size(), column.width) << column.name;
    EXPECT_FALSE(HelpOf(column).empty());
    if (column.kind == Column::Kind::kMetric) {
      EXPECT_EQ(metric::InfoOf(column.metric).key, column.name);
    }
  }
}

}  // namespace
}  // namespace vcpulse::top
