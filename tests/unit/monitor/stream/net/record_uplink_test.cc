#include "monitor/stream/net/record_uplink.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/streamed_chunks.h"
#include "tests/fakes/temporary_folder.h"

namespace vcpulse::stream {
namespace {

using ::testing::EndsWith;

// The last line says what nobody but this process knew.
TEST(RecordUplink, LossesThatCouldNotBeToldAreSaidAtTheEnd) {
  const std::filesystem::path folder = fakes::MakeTemporaryFolder();
  RecordUplink::Options request;
  request.uplink.addresses = {{.path = folder / "nobody"}};
  request.uplink.identity = {.agent_id = "a", .host_name = "a", .boot_id = "a"};
  request.uplink.max_queue_bytes = 1;
  request.drain = absl::ZeroDuration();
  auto uplink = RecordUplink::Start(request);
  ASSERT_TRUE(uplink.ok()) << uplink.status();
  timeline::StreamId stream{};
  stream.fill(1);
  const fakes::Chunk chunk = fakes::StreamedChunks(stream, 1, 1)[0];
  const timeline::ChunkHeader header = fakes::HeaderOf(chunk);
  (*uplink)->Take(chunk);
  const std::string summary = (*uplink)->Drain();
  uplink->reset();
  const std::string records =
      std::to_string(header.last_sequence - header.first_sequence + 1) + " records";
  EXPECT_THAT(summary, EndsWith("/nobody: 0 of 1 chunk delivered, 1 lost (" + records +
                                "); the collector was not told that " + records + " are lost"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace vcpulse::stream
