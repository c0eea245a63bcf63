// Alone in its program: it counts the bytes of every allocation.

#include <malloc.h>

#include <cstdlib>
#include <new>

#include "tests/unit/monitor/stream/protocol/fixture.h"

namespace {

size_t live_bytes = 0;
size_t moved_bytes = 0;  // taken in all

}  // namespace

void* operator new(size_t bytes) {
  void* at = std::malloc(bytes);
  if (at == nullptr) std::abort();
  live_bytes += malloc_usable_size(at);
  moved_bytes += bytes;
  return at;
}
// What std::stable_sort asks for its buffer; ASan of g++ 14 has one of its own.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return operator new(bytes); }
void operator delete(void* at) noexcept {
  if (at != nullptr) live_bytes -= malloc_usable_size(at);
  std::free(at);
}
void operator delete(void* at, size_t /*bytes*/) noexcept { operator delete(at); }

namespace vcpulse::stream {
namespace {

constexpr size_t kIdleBytes = 16u << 10;

// The head of a frame of 1 MiB, and then nothing.
TEST(StreamMemory, AnnouncedBytesTakeNone) {
  Bytes head = FrameOf(FrameType::kChunk, Bytes(kMaxFrameBytes));
  head.resize(kFrameHeadBytes);
  const size_t before = live_bytes;
  FrameReader reader(kMaxFrameBytes);
  reader.Feed(head);
  ASSERT_TRUE(reader.Next().ok());
  EXPECT_LT(live_bytes - before, 1024u);
}

// Byte by byte: what is taken and given back on the way is a few times the frame.
TEST(StreamMemory, LongFramesAreNotCopiedAgainAndAgain) {
  const Bytes frame = FrameOf(FrameType::kChunk, Bytes(kMaxFrameBytes));
  FrameReader reader(kMaxFrameBytes);
  const size_t before = moved_bytes;
  bool seen = false;
  for (const uint8_t byte : frame) {
    reader.Feed({&byte, 1});
    const auto next = reader.Next();
    ASSERT_TRUE(next.ok());
    seen = next->has_value();
  }
  EXPECT_TRUE(seen);
  EXPECT_LT(moved_bytes - before, 8 * frame.size());
}

TEST(StreamMemory, IdleConnectionGivesItsMemoryBack) {
  Bytes frames = FrameOf(static_cast<uint8_t>(77), 0, Bytes(kMaxFrameBytes));
  AppendFrame(FrameType::kChunk, ChunkOf(1, 20'000), frames);
  Bytes hello_frame;
  {
    // Fields of a later release: 60,000 bytes that nobody reads.
    std::string payload = SomeHello().SerializeAsString();
    for (int i = 0; i < 20'000; ++i) payload += "\xf8\x07\x01";
    AppendFrame(FrameType::kHello,
                std::span(reinterpret_cast<const uint8_t*>(payload.data()), payload.size()),
                hello_frame);
  }
  const auto kept_by_a_session = [&] {
    const size_t before = live_bytes;
    CollectorSession* welcomed = nullptr;
    CollectorSession session({},
                             {.hello =
                                  [&](const v1::Hello&) {
                                    welcomed->Welcome(0, "1", "h");
                                    return absl::OkStatus();
                                  }},
                             0);
    welcomed = &session;
    EXPECT_TRUE(session.Receive(hello_frame, 0).ok());
    EXPECT_TRUE(session.Receive(frames, 0).ok());
    EXPECT_EQ(session.received(), 20'000u);
    session.Ack(20'000);
    Bytes().swap(session.output());
    return live_bytes - before;
  };
  kept_by_a_session();  // what protobuf makes of the schema once is not the connection's
  EXPECT_LT(kept_by_a_session(), kIdleBytes);
}

}  // namespace
}  // namespace vcpulse::stream
