#include "monitor/export/parquet.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/fixtures/hand_made_recording.h"

namespace vcpulse::exporting {
namespace {

using report::HandMadeRecording;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Notes what a parquet::Writer would be given.
struct NotedValues {
  std::vector<std::string> values;

  void AddInteger(int64_t value) { values.push_back(absl::StrCat(value)); }
  void AddDouble(double value) { values.push_back(absl::StrCat("double ", value)); }
  void AddBoolean(bool value) { values.push_back(value ? "true" : "false"); }
  void AddText(std::string_view text) { values.push_back("text " + std::string(text)); }
  void AddNull() { values.push_back("null"); }
};

struct Exported {
  std::string file;
  absl::Status status;
};

Exported ExportOf(const std::vector<timeline::Entry>& entries) {
  Exported exported;
  ParquetExport exporter(
      [&exported](std::string_view bytes) {
        exported.file += bytes;
        return absl::OkStatus();
      },
      "1.2.3");
  for (const timeline::Entry& entry : entries) {
    exported.status = exporter.Add(entry);
    if (!exported.status.ok()) return exported;
  }
  exported.status = exporter.Finish();
  return exported;
}

timeline::Entry TickAt(int64_t ns, const core::Sample* previous, core::Sample& sample) {
  sample.vcpus = {{.read_begin_ns = ns, .read_end_ns = ns}};
  timeline::TickEntry tick{.vm = 1, .epoch = 1, .sample = sample};
  tick.verdicts.resize(1);
  tick.previous = previous;
  return {.sequence = 3, .record = tick};
}

TEST(ParquetSchema, HasTheTypesOfTheCells) {
  const auto schema = ParquetSchema({{"a", TableColumn::Cells::kInteger, false},
                                     {"b", TableColumn::Cells::kDecimal},
                                     {"c", TableColumn::Cells::kText},
                                     {"d", TableColumn::Cells::kBoolean}});
  ASSERT_EQ(schema.size(), 4U);
  EXPECT_EQ(schema[0].type, parquet::Type::kInt64);
  EXPECT_FALSE(schema[0].optional);
  EXPECT_EQ(schema[1].type, parquet::Type::kDouble);
  EXPECT_TRUE(schema[1].optional);
  EXPECT_EQ(schema[2].type, parquet::Type::kString);
  EXPECT_EQ(schema[3].type, parquet::Type::kBoolean);
}

TEST(ParquetRow, HandsOverEachCellWithItsType) {
  NotedValues noted;
  ParquetRow<NotedValues> row{noted};
  row.AddInteger(uint64_t{7});
  row.AddInteger(int64_t{-7});
  row.AddDecimal(2.0 / 3, 2);
  row.AddText("halted");
  row.AddBoolean(true);
  row.AddEmpty();
  row.Add({.vm = "web", .vm_number = 1, .vm_pid = 9, .epoch = 2, .vcpu = 3, .kvm_id = 0});
  EXPECT_THAT(noted.values, ElementsAre("7", "-7", "double 0.67", "text halted", "true", "null",
                                        "text web", "1", "9", "null", "2", "3", "null", "0"));
}

TEST(ParquetRow, ACountThatDoesNotFitIsNull) {
  NotedValues noted;
  ParquetRow<NotedValues> row{noted};
  constexpr auto kMost = std::numeric_limits<int64_t>::max();
  row.AddInteger(static_cast<uint64_t>(kMost));
  row.AddInteger(static_cast<uint64_t>(kMost) + 1);
  row.AddInteger(std::numeric_limits<int64_t>::min());
  EXPECT_THAT(noted.values, ElementsAre(absl::StrCat(kMost), "null", absl::StrCat(-kMost - 1)));
}

TEST(ParquetExport, WithoutARowThereIsAFileWithItsColumns) {
  const Exported exported = ExportOf({});
  ASSERT_TRUE(exported.status.ok()) << exported.status;
  EXPECT_THAT(exported.file, StartsWith("PAR1"));
  EXPECT_THAT(exported.file, EndsWith("PAR1"));
  EXPECT_THAT(exported.file, HasSubstr("starved"));
}

TEST(ParquetExport, TheMetadataSaysWhereTheRowsComeFrom) {
  v1::Session session = HandMadeRecording::Session();
  session.set_host_name("host-of-rows");
  session.mutable_classifier()->set_profile("profile-of-rows");
  session.set_agent_id("agent-of-rows");
  v1::Label& label = *session.add_labels();
  label.set_key("rack");
  label.set_value("value-of-label");
  v1::VcpuSet set = HandMadeRecording::Set(1, 1, {1});
  set.set_classifier("evidence");
  set.set_event_set("core");
  const Exported exported =
      ExportOf({{.sequence = 1, .record = session}, {.sequence = 2, .record = set}});
  ASSERT_TRUE(exported.status.ok()) << exported.status;
  for (const char* text :
       {"vcpulse version 1.2.3", "vcpulse.host_name", "host-of-rows", "vcpulse.profile",
        "profile-of-rows", "vcpulse.classifiers", "evidence", "vcpulse.event_sets", "core",
        "vcpulse.agent_id", "agent-of-rows", "vcpulse.label.rack", "value-of-label"}) {
    EXPECT_THAT(exported.file, HasSubstr(text));
  }
}

TEST(ParquetExport, AnEventAfterTheFirstRowIsRefused) {
  core::Sample before;
  core::Sample now;
  const timeline::Entry first = TickAt(1000, nullptr, before);
  const Exported exported =
      ExportOf({{.sequence = 1, .record = HandMadeRecording::Session()},
                {.sequence = 2, .record = HandMadeRecording::Set(1, 1, {1})},
                first,
                TickAt(100'001'000, &before, now),
                {.sequence = 5, .record = HandMadeRecording::Set(2, 1, {1}, {"cycles", "r1e"})}});
  EXPECT_THAT(std::string(exported.status.message()), HasSubstr("export from a file"));
}

}  // namespace
}  // namespace vcpulse::exporting
