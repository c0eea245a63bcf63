#include "kvm/tracing/sample_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

namespace vcpulse::kvm {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class Ring {
 public:
  // A sample of kIpSampleType.
  Ring& Ip(uint16_t misc, uint64_t address) {
    return Add(PERF_RECORD_SAMPLE, misc, {address, 0, 0, 1});
  }
  // One of kRawSampleType, whose raw part has a size of 4 more than these 8 bytes.
  Ring& Raw(uint64_t value, uint32_t size = 12) {
    std::vector<uint64_t> words = {uint64_t{77} << 32 | 70, 1000 + value, 0, 0};  // PID 70
    std::memcpy(reinterpret_cast<uint8_t*>(words.data()) + 16, &size, 4);
    std::memcpy(reinterpret_cast<uint8_t*>(words.data()) + 20, &value, 8);
    return Add(PERF_RECORD_SAMPLE, 0, words);
  }
  Ring& Add(uint32_t type, uint16_t misc, const std::vector<uint64_t>& words) {
    const perf_event_header header{
        .type = type, .misc = misc, .size = static_cast<uint16_t>(8 + 8 * words.size())};
    const auto* head = reinterpret_cast<const uint8_t*>(&header);
    bytes.insert(bytes.end(), head, head + sizeof(header));
    const auto* body = reinterpret_cast<const uint8_t*>(words.data());
    bytes.insert(bytes.end(), body, body + 8 * words.size());
    return *this;
  }

  std::vector<uint8_t> bytes;
};

struct Read {
  bool whole = false;
  std::vector<GuestAddress> addresses;
  std::vector<uint64_t> raw;
  std::vector<std::pair<pid_t, uint64_t>> times;  // of the raw ones
  uint64_t lost = 0;
};

Read ReadOf(std::span<const uint8_t> bytes, bool is_raw) {
  Read read;
  RingRecords into;
  into.address = [&](GuestAddress address) { read.addresses.push_back(address); };
  into.raw = [&](const RawSample& sample) {
    const std::span<const uint8_t> raw = sample.record;
    read.times.push_back({sample.tid, sample.time_ns});
    uint64_t value = 0;
    if (raw.size() >= sizeof(value)) std::memcpy(&value, raw.data(), sizeof(value));
    read.raw.push_back(value);
  };
  into.lost = [&](uint64_t lost) { read.lost += lost; };
  read.whole = ReadRecords(bytes, is_raw, into);
  return read;
}

TEST(ReadRecords, TakesTheGuestsAddressesAlone) {
  Ring ring;
  ring.Ip(PERF_RECORD_MISC_GUEST_KERNEL, 1)
      .Ip(PERF_RECORD_MISC_GUEST_USER, 2)
      .Ip(PERF_RECORD_MISC_KERNEL, 3)
      .Ip(PERF_RECORD_MISC_USER, 4)
      .Add(PERF_RECORD_LOST, 0, {77, 5})
      .Add(PERF_RECORD_THROTTLE, 0, {1, 2, 3})
      .Ip(PERF_RECORD_MISC_GUEST_KERNEL | PERF_RECORD_MISC_EXACT_IP, 6);
  const Read read = ReadOf(ring.bytes, false);
  EXPECT_TRUE(read.whole);
  EXPECT_THAT(read.addresses,
              ElementsAre(GuestAddress{1, GuestMode::kKernel}, GuestAddress{2, GuestMode::kUser},
                          GuestAddress{6, GuestMode::kKernel}));
  EXPECT_EQ(read.lost, 5u);
}

TEST(ReadRecords, TakesTheRawPart) {
  const Read read = ReadOf(Ring().Raw(41).Raw(42).bytes, true);
  EXPECT_TRUE(read.whole);
  EXPECT_THAT(read.raw, ElementsAre(41, 42));
  EXPECT_THAT(read.times, ElementsAre(Pair(77, 1041), Pair(77, 1042)));
  EXPECT_FALSE(ReadOf(Ring().Raw(41, 13).bytes, true).whole);  // larger than its record
}

TEST(ReadRecords, TakesTheSwitchesOfAThread) {
  Ring ring;
  const auto words = [](uint64_t time_ns, uint64_t cpu) {
    return std::vector<uint64_t>{uint64_t{77} << 32 | 70, time_ns, cpu};
  };
  ring.Add(PERF_RECORD_SWITCH, 0, words(10, 3))
      .Add(PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT, words(20, 3))
      .Add(PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT,
           words(30, 4));
  std::vector<std::tuple<bool, bool, uint64_t, int>> seen;
  RingRecords into;
  into.switched = [&](const ThreadSwitch& it) {
    seen.emplace_back(it.is_out, it.waits, it.time_ns, it.cpu);
  };
  EXPECT_TRUE(ReadRecords(ring.bytes, true, into));
  EXPECT_THAT(seen, ElementsAre(std::tuple(false, false, 10, 3), std::tuple(true, false, 20, 3),
                                std::tuple(true, true, 30, 4)));
  EXPECT_FALSE(ReadRecords(Ring().Add(PERF_RECORD_SWITCH, 0, {1, 2}).bytes, true, into));
  EXPECT_TRUE(ReadOf(ring.bytes, true).whole);  // of nobody who asked
}

TEST(ReadRecords, NeverReadsBeyondTheBytes) {
  for (const bool is_raw : {false, true}) {
    Ring ring;
    is_raw ? ring.Raw(1) : ring.Ip(PERF_RECORD_MISC_GUEST_KERNEL, 1);
    for (size_t size = 1; size < ring.bytes.size(); ++size) {
      EXPECT_FALSE(ReadOf(std::span(ring.bytes).first(size), is_raw).whole) << size;
    }
    ring.bytes[6] = 7;  // a record shorter than its header
    ring.bytes[7] = 0;
    EXPECT_FALSE(ReadOf(ring.bytes, is_raw).whole);
  }
  EXPECT_FALSE(ReadOf(Ring().Add(PERF_RECORD_LOST, 0, {1}).bytes, false).whole);
  EXPECT_FALSE(ReadOf(Ring().Add(PERF_RECORD_SAMPLE, 4, {}).bytes, false).whole);
  EXPECT_FALSE(ReadOf(Ring().Add(PERF_RECORD_SAMPLE, 4, {1}).bytes, true).whole);
  EXPECT_TRUE(ReadOf({}, false).whole);
}

}  // namespace
}  // namespace vcpulse::kvm
