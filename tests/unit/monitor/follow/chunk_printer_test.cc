#include "monitor/follow/chunk_printer.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitor/stream/protocol/follower_session.h"
#include "monitor/timeline/byte_source.h"
#include "monitor/timeline/chunk_scanner.h"
#include "tests/unit/fixtures/drawn_recording.h"
#include "tests/unit/fixtures/timeline_fixture.h"

namespace vcpulse::follow {
namespace {

using check::DrawnRecording;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using timeline::Bytes;

std::vector<Bytes> ChunksOf(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const std::vector<char> text{std::istreambuf_iterator<char>(in), {}};
  const Bytes bytes(text.begin(), text.end());
  const auto source = timeline::NewMemorySource(bytes);
  std::vector<timeline::Damage> damages;
  timeline::ChunkScanner scanner(source.get(), &damages);
  std::vector<Bytes> chunks;
  while (true) {
    const auto found = scanner.Next();
    if (!found.ok() || !found->has_value()) return chunks;
    EXPECT_TRUE(scanner.ReadPayload(**found)->has_value());
    chunks.emplace_back(bytes.begin() + static_cast<ptrdiff_t>((*found)->offset),
                        bytes.begin() + static_cast<ptrdiff_t>((*found)->end()));
  }
}

// A chunk without records, whatever its content is; its checksums are good.
Bytes ChunkWith(const std::string& content) {
  Bytes chunk(timeline::kChunkHeaderBytes);
  chunk.insert(chunk.end(), content.begin(), content.end());
  const auto size = static_cast<uint32_t>(content.size());
  const auto header = timeline::EncodeChunkHeader(
      {.payload_bytes = size,
       .content_bytes = size,
       .first_sequence = 41,
       .last_sequence = 40,
       .payload_crc = timeline::Crc32c(std::span(chunk).subspan(timeline::kChunkHeaderBytes))});
  std::ranges::copy(header, chunk.begin());
  return chunk;
}

// Markers, of the stream of ChunkWith.
Bytes RecordsOf(uint64_t first, uint64_t last) {
  std::vector<Bytes> chunks;
  const auto writer =
      timeline::NewChunkWriter({}, timeline::CollectInto(&chunks), {.first_sequence = first});
  for (uint64_t i = first; i <= last; ++i) {
    v1::TimelineRecord record;
    record.mutable_marker()->set_name("m");
    writer->Add(record, static_cast<int64_t>(i));
  }
  EXPECT_TRUE(writer->Flush(timeline::ClockAt(2)).ok());
  return chunks.at(0);
}

class ChunkPrinting : public ::testing::Test {
 protected:
  void SetUp() override { setenv("TZ", "UTC", 1); }

  ChunkPrinter Printer(ChunkPrinter::Format format = ChunkPrinter::Format::kText) {
    return ChunkPrinter(
        format,
        [this](std::string_view text) {
          printed_ += text;
          return status_;
        },
        [this](const std::string& line) { said_.push_back(line); });
  }

  std::string printed_;
  std::vector<std::string> said_;
  absl::Status status_;
};

// Three chunks of one tick each, and the one with the summary.
std::string DrawThree(DrawnRecording& drawn) {
  drawn.Begin(1, {.vcpus = {0, 1}});
  drawn.Draw(std::vector<std::string>{"P", "s"});
  drawn.Flush();
  drawn.Draw(std::vector<std::string>{"H", "P"});
  drawn.Flush();
  drawn.Draw("[boot]");
  drawn.Draw(std::vector<std::string>{"u", "3"});
  drawn.Flush();
  return drawn.Finish();
}

TEST_F(ChunkPrinting, TextHasTheTimeOfDayAndTheAgent) {
  DrawnRecording drawn;
  ChunkPrinter printer = Printer();
  for (const Bytes& chunk : ChunksOf(DrawThree(drawn))) {
    ASSERT_TRUE(printer.Take({.agent = "host-a", .say_agent = true}, chunk).ok());
  }
  EXPECT_EQ(printed_,
            "host-a  03:04:05.000  guest1  --  IPC -\n"
            "host-a  03:04:05.100  guest1  #$  IPC 1.25\n"
            "host-a  03:04:05.200  guest1  .#  IPC 2.00\n"
            "host-a  03:04:05.200  marker 'boot'\n"
            "host-a  03:04:05.300  guest1  !#  IPC 1.95\n");
}

// Else nobody would know why nothing more comes of it.
TEST_F(ChunkPrinting, TheEndOfAFileIsSaid) {
  DrawnRecording drawn;
  ChunkPrinter printer = Printer();
  std::vector<std::string> said_before_the_end;
  for (const Bytes& chunk : ChunksOf(DrawThree(drawn))) {
    said_before_the_end = said_;
    ASSERT_TRUE(printer.Take({}, chunk).ok());
  }
  EXPECT_THAT(said_before_the_end, IsEmpty());
  EXPECT_THAT(said_, ElementsAre(HasSubstr("the recording has ended")));
}

// Each chunk can be the first, whatever came before it.
TEST_F(ChunkPrinting, BeginsAnywhere) {
  DrawnRecording drawn;
  const std::vector<Bytes> chunks = ChunksOf(DrawThree(drawn));
  ChunkPrinter printer = Printer();
  ASSERT_TRUE(printer.Take({.agent = "host-a"}, chunks[1]).ok());
  EXPECT_EQ(printed_, "03:04:05.200  guest1  .#  IPC 2.00\n");
}

TEST_F(ChunkPrinting, WhatIsBeforeOrWasPrintedIsNot) {
  DrawnRecording drawn;
  const std::vector<Bytes> chunks = ChunksOf(DrawThree(drawn));
  ChunkPrinter printer = Printer();
  // Session, clock, set, first sample, a tick, a tick.
  ASSERT_TRUE(printer.Take({}, chunks[0], 6).ok());
  ASSERT_TRUE(printer.Take({}, chunks[1], 6).ok());
  EXPECT_EQ(printed_, "03:04:05.200  guest1  .#  IPC 2.00\n");
  printed_.clear();
  ASSERT_TRUE(printer.Take({}, chunks[1], 6).ok());
  EXPECT_EQ(printed_, "");
}

TEST_F(ChunkPrinting, JsonRowsNameTheAgentFirst) {
  DrawnRecording drawn;
  ChunkPrinter printer = Printer(ChunkPrinter::Format::kJsonl);
  const std::vector<Bytes> chunks = ChunksOf(DrawThree(drawn));
  ASSERT_TRUE(printer.Take({.agent = "host-a"}, chunks[1]).ok());
  ASSERT_TRUE(printer.Take({}, chunks[2]).ok());
  EXPECT_THAT(printed_, HasSubstr("{\"agent\":\"host-a\",\"t_mono_ns\":"));
  EXPECT_THAT(printed_, HasSubstr("{\"agent\":null,\"t_mono_ns\":"));
  EXPECT_EQ(std::ranges::count(printed_, '\n'), 4);  // two vCPUs
  EXPECT_EQ(std::ranges::count(printed_, '{'), 4);
}

// Streams are told apart, and what an agent's name may be is safe for a terminal.
TEST_F(ChunkPrinting, StreamsOfSeveralAgents) {
  DrawnRecording drawn;
  const std::vector<Bytes> chunks = ChunksOf(DrawThree(drawn));
  ChunkPrinter printer = Printer();
  ASSERT_TRUE(printer.Take({.agent = "a", .say_agent = true}, chunks[1]).ok());
  ASSERT_TRUE(printer.Take({.agent = "b\x1b", .say_agent = true}, chunks[1]).ok());
  EXPECT_EQ(printed_,
            "a  03:04:05.200  guest1  .#  IPC 2.00\n"
            "b?  03:04:05.200  guest1  .#  IPC 2.00\n");
}

TEST_F(ChunkPrinting, LostRecordsAreALine) {
  v1::ChunkPayload payload;
  payload.mutable_lost()->set_first_sequence(12);
  payload.mutable_lost()->set_last_sequence(40);
  payload.mutable_lost()->set_reason(v1::LostRecords::REASON_SPOOL_FULL);
  Bytes chunk = ChunkWith(payload.SerializeAsString());
  ChunkPrinter printer = Printer();
  ASSERT_TRUE(printer.Take({.agent = "a", .say_agent = true}, chunk).ok());
  EXPECT_EQ(printed_, "a  lost: records 12 to 40: the agent's spool was full\n");
  // It is not compressed, so nothing but its checksum tells.
  chunk.back() ^= 1;
  EXPECT_TRUE(printer.Take({.agent = "a"}, chunk).ok());
  EXPECT_THAT(said_, ElementsAre(HasSubstr("checksum")));
}

// Whether a chunk follows or a loss.
TEST_F(ChunkPrinting, WhatALiveStreamLeavesOutWasMissed) {
  DrawnRecording drawn;
  const std::vector<Bytes> chunks = ChunksOf(DrawThree(drawn));
  ChunkPrinter printer = Printer();
  const auto take = [&](const char* agent, bool is_live, const Bytes& chunk) {
    printed_.clear();
    EXPECT_TRUE(printer.Take({.agent = agent, .say_agent = true, .is_live = is_live}, chunk).ok());
    return printed_;
  };
  take("a", true, chunks[0]);
  EXPECT_EQ(take("a", true, chunks[2]),
            "a  missed: records 6 to 6: they did not come from the collector\n"
            "a  03:04:05.200  marker 'boot'\n"
            "a  03:04:05.300  guest1  !#  IPC 1.95\n");
  EXPECT_EQ(printer.missed_records(), 1u);
  take("b", true, chunks[0]);
  EXPECT_THAT(take("b", true, chunks[1]), Not(HasSubstr("missed")));
  // A folder's damage is told otherwise.
  take("c", false, chunks[0]);
  EXPECT_THAT(take("c", false, chunks[2]), Not(HasSubstr("missed")));
  // What began while nobody looked is not known to have been missed.
  EXPECT_THAT(take("d", true, chunks[1]), Not(HasSubstr("missed")));
  // What cannot be read came.
  take("f", true, chunks[0]);
  Bytes damaged = chunks[1];
  damaged.back() ^= 1;
  take("f", true, damaged);
  EXPECT_THAT(take("f", true, chunks[2]), Not(HasSubstr("missed")));
  v1::ChunkPayload payload;
  payload.mutable_lost()->set_first_sequence(8);
  payload.mutable_lost()->set_last_sequence(9);
  const Bytes lost = ChunkWith(payload.SerializeAsString());
  take("e", true, RecordsOf(1, 5));
  EXPECT_THAT(take("e", true, lost),
              AllOf(HasSubstr("missed: records 6 to 7:"), HasSubstr("lost: records 8 to 9: ")));
  EXPECT_EQ(printer.missed_records(), 3u);
}

// From the collector's bytes on, over two connections of a follower and within one.
TEST_F(ChunkPrinting, WhatACollectorLeavesOutWasMissed) {
  ChunkPrinter printer = Printer();
  const auto follow = [&](const std::vector<Bytes>& chunks) {
    v1::Welcome welcome;
    welcome.set_major(stream::kMajor);
    welcome.set_credit_bytes(1);
    welcome.set_max_frame_bytes(stream::kMaxFrameBytes);
    v1::StreamInfo info;
    info.set_stream_id(std::string(timeline::StreamId().size(), '\0'));
    info.set_agent_id("a");
    Bytes bytes;
    stream::AppendFrame(stream::FrameType::kWelcome, welcome, bytes);
    stream::AppendFrame(stream::FrameType::kStreamInfo, info, bytes);
    for (const Bytes& chunk : chunks) {
      stream::AppendFrame(stream::FrameType::kChunk, chunk, bytes);
    }
    stream::FollowerSession session(
        {}, "",
        {.welcomed = [] {},
         .chunk =
             [&](const v1::StreamInfo& from, std::span<const uint8_t> chunk) {
               return printer.Take({.agent = from.agent_id(), .is_live = true}, chunk);
             }},
        {}, 0);
    EXPECT_TRUE(session.Receive(bytes, 0).ok());
  };
  follow({RecordsOf(1, 2), RecordsOf(5, 6)});
  EXPECT_THAT(printed_, HasSubstr("missed: records 3 to 4:"));
  follow({RecordsOf(9, 9)});
  EXPECT_THAT(printed_, HasSubstr("missed: records 7 to 8:"));
  EXPECT_EQ(printer.missed_records(), 4u);
}

TEST_F(ChunkPrinting, BesideJsonRowsWhatWasMissedIsSaid) {
  DrawnRecording drawn;
  const std::vector<Bytes> chunks = ChunksOf(DrawThree(drawn));
  ChunkPrinter printer = Printer(ChunkPrinter::Format::kJsonl);
  ASSERT_TRUE(printer.Take({.agent = "a\x1b", .is_live = true}, chunks[0]).ok());
  ASSERT_TRUE(printer.Take({.agent = "a\x1b", .is_live = true}, chunks[2]).ok());
  EXPECT_THAT(said_,
              ElementsAre("a?: missed: records 6 to 6: they did not come from the collector"));
}

// Over whichever connection, of streams that have ended too, and losses.
TEST_F(ChunkPrinting, WhatComesAgainIsPrintedOnce) {
  DrawnRecording drawn;
  std::vector<Bytes> chunks = ChunksOf(DrawThree(drawn));
  v1::ChunkPayload payload;
  payload.mutable_lost()->set_first_sequence(12);
  payload.mutable_lost()->set_last_sequence(40);
  chunks.push_back(ChunkWith(payload.SerializeAsString()));
  for (const auto format : {ChunkPrinter::Format::kText, ChunkPrinter::Format::kJsonl}) {
    ChunkPrinter printer = Printer(format);
    printed_.clear();
    for (const Bytes& chunk : chunks) {
      ASSERT_TRUE(printer.Take({.agent = "a", .is_live = true}, chunk).ok());
    }
    EXPECT_NE(printed_, "");
    printed_.clear();
    for (const Bytes& chunk : chunks) {
      ASSERT_TRUE(printer.Take({.agent = "a", .is_live = true}, chunk).ok());
    }
    EXPECT_EQ(printed_, "");
    EXPECT_EQ(printer.missed_records(), 0u);
  }
}

TEST_F(ChunkPrinting, DamageIsPassedOver) {
  DrawnRecording drawn;
  Bytes chunk = ChunksOf(DrawThree(drawn))[0];
  ChunkPrinter printer = Printer();
  EXPECT_TRUE(printer.Take({}, std::span(chunk).first(chunk.size() - 1)).ok());
  EXPECT_TRUE(printer.Take({}, std::span(chunk).first(20)).ok());
  chunk.back() ^= 1;
  EXPECT_TRUE(printer.Take({}, chunk).ok());
  EXPECT_EQ(printed_, "");
  EXPECT_EQ(printer.unreadable_chunks(), 3u);
}

// What one agent sends with good checksums and no sense in it, is told of once and keeps nobody
// else back, nor that agent.
TEST_F(ChunkPrinting, RubbishOfOneAgent) {
  DrawnRecording drawn;
  const std::vector<Bytes> chunks = ChunksOf(DrawThree(drawn));
  const Bytes rubbish = ChunkWith("\xff\xff rubbish");
  ChunkPrinter printer = Printer();
  for (const char* agent : {"a", "a", "b\x1b", "a"}) {
    EXPECT_TRUE(printer.Take({.agent = agent, .say_agent = true}, rubbish).ok());
  }
  EXPECT_TRUE(printer.Take({.agent = "a", .say_agent = true}, chunks[1]).ok());
  EXPECT_EQ(printed_, "a  03:04:05.200  guest1  .#  IPC 2.00\n");
  EXPECT_EQ(printer.unreadable_chunks(), 4u);
  const std::string why =
      ": skipped a chunk that cannot be read: the content is not a ChunkPayload message";
  EXPECT_THAT(said_, ElementsAre("warning: a" + why, "warning: b?" + why));
}

TEST_F(ChunkPrinting, AnErrorOfTheOutputIsGivenBack) {
  DrawnRecording drawn;
  status_ = absl::CancelledError("enough");
  ChunkPrinter printer = Printer();
  EXPECT_TRUE(absl::IsCancelled(printer.Take({}, ChunksOf(DrawThree(drawn))[0])));
}

}  // namespace
}  // namespace vcpulse::follow
