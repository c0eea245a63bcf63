// In what order the collector's writing thread does what it is given, and what may wait for it.
#include "monitor/stream/net/committer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "monitor/stream/net/fair_queue.h"
#include "monitor/stream/net/pending.h"
#include "monitor/stream/net/time_shares.h"
#include "tests/fakes/filling_files.h"
#include "tests/fakes/streamed_chunks.h"
#include "tests/fakes/temporary_folder.h"

namespace vcpulse::stream {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

std::list<int> TakeRound(FairQueue<int>& queue, FairQueue<int>::Budget budget, int64_t now_ns = 0) {
  return queue.TakeRound(
      budget,
      [](int job, const int* before) { return static_cast<uint64_t>(before == nullptr ? job : 1); },
      now_ns);
}

TEST(FairQueueTest, ARoundTakesAPartOfEachOwnersJobs) {
  FairQueue<int> queue;
  for (const int job : {1, 2, 3, 4, 5}) queue.Put("busy", job, 0);
  queue.Put("calm", 100, 0);
  EXPECT_THAT(TakeRound(queue, {.least = 2}), ElementsAre(1, 2, 100));
  queue.Put("a", 101, 0);
  EXPECT_THAT(TakeRound(queue, {.least = 5}), ElementsAre(3, 4, 5, 101))
      << "what costs a lot comes last";
  EXPECT_TRUE(queue.empty());
  EXPECT_THAT(TakeRound(queue, {.least = 9}), IsEmpty());
}

TEST(FairQueueTest, FewOwnersHaveLargerParts) {
  constexpr int64_t kActive_ns = FairQueue<int>::kActive_ns;
  FairQueue<int> queue;
  const auto put_and_take = [&queue](int64_t now_ns) {
    for (int i = 0; i < 9; ++i) queue.Put("busy", 1, now_ns);
    const size_t taken = TakeRound(queue, {.all = 8, .least = 3}, now_ns).size();
    while (!queue.empty()) TakeRound(queue, {.least = 9}, now_ns);
    return taken;
  };
  EXPECT_EQ(put_and_take(0), 8U);
  queue.Put("calm", 1, 0);
  EXPECT_EQ(put_and_take(0), 4U + 1U) << "the part of each, and what the other had";
  EXPECT_EQ(put_and_take(kActive_ns), 4U) << "the other may come again";
  queue.Put("calm", 1, kActive_ns);
  queue.Put("third", 1, kActive_ns);
  EXPECT_EQ(put_and_take(kActive_ns), 3U + 2U) << "but no less than that";
  EXPECT_EQ(put_and_take(2 * kActive_ns + 1), 8U);
}

TEST(FairQueueTest, AnOwnerThatRestsHasNoPart) {
  FairQueue<int> queue;
  EXPECT_EQ(queue.NextRound_ns(), std::nullopt);
  queue.Rest("busy", 50);
  queue.Put("busy", 1, 0);
  EXPECT_EQ(queue.NextRound_ns(), 50);
  EXPECT_THAT(TakeRound(queue, {.least = 9}, 49), IsEmpty());
  queue.Put("calm", 2, 49);
  EXPECT_LT(*queue.NextRound_ns(), 0) << "at once";
  EXPECT_THAT(TakeRound(queue, {.least = 9}, 49), ElementsAre(2));
  EXPECT_FALSE(queue.empty());
  EXPECT_THAT(TakeRound(queue, {.least = 9}, 50), ElementsAre(1));
  queue.Put("busy", 3, 50);
  EXPECT_THAT(TakeRound(queue, {.least = 9}, 50), ElementsAre(3)) << "a rest is over once";
}

constexpr int64_t kMs = 1'000'000;
static_assert(TimeShares::kAhead_ns == kMs / 2);

TEST(TimeSharesTest, WhoIsFarAheadOfItsShareWaits) {
  TimeShares times;
  EXPECT_EQ(times.Next_ns("busy", 7), 7) << "nothing is known of it";
  times.Take("busy", 2 * kMs, 100 * kMs);
  times.Take("calm", 1, 100 * kMs);
  EXPECT_EQ(times.Next_ns("busy", 100 * kMs), 103 * kMs) << "1.5 ms too many, of half of the time";
  EXPECT_EQ(times.Next_ns("busy", 102 * kMs), 103 * kMs);
  EXPECT_LE(times.Next_ns("calm", 100 * kMs), 100 * kMs);
  times.Take("busy", 2 * kMs, 102 * kMs);
  EXPECT_EQ(times.Next_ns("busy", 102 * kMs), 107 * kMs) << "it adds up, less what has passed";
  times.Take("busy", 1 * kMs, 200 * kMs);
  EXPECT_EQ(times.Next_ns("busy", 200 * kMs), 201 * kMs) << "time not taken is not saved up";
}

TEST(TimeSharesTest, AShareIsOfThoseWhoAreActiveButNoLessThanTheLeast) {
  TimeShares times;
  const auto wait_ns = [&times](int64_t now_ns) {
    times.Take("busy", 3 * kMs / 2, now_ns);
    return times.Next_ns("busy", now_ns) - now_ns;
  };
  EXPECT_EQ(wait_ns(0), kMs) << "alone it has all";
  for (size_t i = 0; i < TimeShares::kMostShares + 1; ++i) times.Take(absl::StrCat(i), 1, kMs);
  const auto most = static_cast<int64_t>(TimeShares::kMostShares);
  EXPECT_EQ(wait_ns(1000 * kMs), most * kMs);
  times.ForgetInactive(kMs + TimeShares::kActive_ns);
  EXPECT_EQ(wait_ns(kMs + TimeShares::kActive_ns), most * kMs) << "they may come again";
  times.ForgetInactive(2 * kMs + TimeShares::kActive_ns);
  EXPECT_EQ(wait_ns(4000 * kMs), kMs);
  times.Take("busy", 10'000 * kMs, 4000 * kMs);
  times.ForgetInactive(4001 * kMs + TimeShares::kActive_ns);
  EXPECT_GT(times.Next_ns("busy", 7000 * kMs), 7000 * kMs) << "who waits is not forgotten";
}

TEST(PendingTest, AnAgentMayHoldAQuarterAndAllTogetherTheWhole) {
  Pending pending(100);
  pending.Add("busy", 25);
  EXPECT_TRUE(pending.HasRoomFor("busy"));
  pending.Add("busy", 1);
  EXPECT_FALSE(pending.HasRoomFor("busy"));
  EXPECT_TRUE(pending.HasRoomFor("calm"));
  EXPECT_TRUE(pending.HasRoom());
  for (const char* other : {"a", "b", "c"}) pending.Add(other, 25);
  EXPECT_EQ(pending.total(), 101U);
  EXPECT_FALSE(pending.HasRoomFor("calm"));
  EXPECT_FALSE(pending.HasRoom());
  pending.Settle("busy", 1);
  EXPECT_TRUE(pending.HasRoomFor("busy"));
  EXPECT_TRUE(pending.HasRoomFor("calm"));
}

std::atomic<int64_t> clock_ahead_ns = 0;  // a Clock has no state of its own

class CommitterTest : public testing::Test {
 protected:
  struct Sender {
    Committer::ConnectionId connection;
    StreamKey stream;
    std::vector<fakes::Chunk> chunks;
  };

  static Sender NewSender(Committer::ConnectionId connection, const std::string& agent,
                          size_t records) {
    timeline::StreamId id{};
    id[0] = static_cast<uint8_t>(connection);
    return {connection, {agent, id}, fakes::StreamedChunks(id, records, connection, 300)};
  }

  void Write(const Sender& sender) {
    for (const fakes::Chunk& chunk : sender.chunks) {
      committer_->Write(sender.connection, sender.stream, fakes::HeaderOf(chunk),
                        std::make_shared<const std::vector<uint8_t>>(chunk));
    }
  }

  // Of each report in which something became durable: the connections.
  std::vector<Committer::ConnectionId> reported() {
    const std::lock_guard lock(mutex_);
    return reported_;
  }

  ~CommitterTest() override {
    committer_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Start() {
    committer_ = std::make_unique<Committer>(
        Committer::Options{.files = &files_,
                           .directory = folder_,
                           .retention = retention_,
                           .realtime = [] { return RealtimeNow_ns() + clock_ahead_ns; },
                           .report =
                               [this](const std::vector<Committer::Progress>& report) {
                                 const std::lock_guard lock(mutex_);
                                 for (const auto& progress : report) {
                                   if (progress.chunks.empty()) continue;
                                   reported_.push_back(progress.connection);
                                 }
                               },
                           .say =
                               [this](const std::string& line) {
                                 const std::lock_guard lock(mutex_);
                                 said_.push_back(line);
                               }});
  }

  const std::filesystem::path folder_ = fakes::MakeTemporaryFolder();
  fakes::FillingFiles files_;
  std::mutex mutex_;
  std::vector<Committer::ConnectionId> reported_;
  std::vector<std::string> said_;
  Retention retention_;
  std::unique_ptr<Committer> committer_;
};

TEST_F(CommitterTest, AnAgentThatSendsALotDoesNotHoldUpAnother) {
  const Sender busy = NewSender(1, "busy", 2000);
  const Sender calm = NewSender(2, "calm", 1);
  ASSERT_GT(busy.chunks.size(), 1000U);
  Start();
  files_.hangs = true;
  for (const Sender* sender : {&busy, &calm}) {
    committer_->Open(sender->connection, sender->stream, {});
  }
  for (Committer::ConnectionId other = 3; other < 20; ++other) {  // else its parts were larger
    committer_->Open(other, NewSender(other, absl::StrCat("other-", other), 1).stream, {});
  }
  Write(busy);
  Write(calm);
  files_.hangs = false;
  ASSERT_TRUE(committer_->Drain(std::chrono::seconds(60)));
  const auto reported = this->reported();
  const auto of_calm = std::ranges::find(reported, calm.connection);
  ASSERT_NE(of_calm, reported.end());
  EXPECT_LE(of_calm - reported.begin(), 3) << "rounds of the busy one before it";
  EXPECT_GE(reported.end() - of_calm, 4) << "and most come after it";
}

// 20 agents are active: one that always has work has a twentieth of the disk's time.
TEST_F(CommitterTest, AnAgentThatSendsALotRestsForTheShareOfTheOthers) {
  const Sender busy = NewSender(1, "busy", 1000);
  Start();
  files_.hangs = true;
  committer_->Open(busy.connection, busy.stream, {});
  for (Committer::ConnectionId other = 2; other <= 20; ++other) {
    committer_->Open(other, NewSender(other, absl::StrCat("other-", other), 1).stream, {});
  }
  files_.sync_takes_ms = 5;
  Write(busy);
  files_.hangs = false;
  const int64_t begin_ns = MonotonicNow_ns();
  const int syncs_before = files_.syncs;
  while (committer_->health().waits_ns > 0) std::this_thread::sleep_for(1ms);
  const int64_t took_ns = MonotonicNow_ns() - begin_ns;
  const int64_t worked_ns = (files_.syncs - syncs_before) * 5 * kMs;
  ASSERT_GE(worked_ns, 4 * 5 * kMs);
  EXPECT_GE(took_ns, 10 * worked_ns);
}

TEST_F(CommitterTest, AfterAJumpOfTheWallClockNoFileIsTooOld) {
  const Sender old = NewSender(1, "old", 1);
  Start();
  committer_->Open(old.connection, old.stream, {});
  Write(old);
  ASSERT_TRUE(committer_->Drain(10s));
  committer_.reset();
  const auto files = [this] {
    const auto below = std::filesystem::recursive_directory_iterator(folder_);
    return std::ranges::count_if(below, [](const auto& entry) { return entry.is_regular_file(); });
  };
  ASSERT_EQ(files(), 1);

  retention_.max_age_ns = 3600 * kNsPerSecond;
  Start();
  clock_ahead_ns = 48 * 3600 * kNsPerSecond;
  const Sender next = NewSender(2, "next", 1);
  committer_->Open(next.connection, next.stream, {});
  committer_.reset();  // it looks around after the round
  EXPECT_THAT(said_, Contains(HasSubstr("the wall clock has jumped")));
  EXPECT_EQ(files(), 1);

  clock_ahead_ns = 48 * 3600 * kNsPerSecond;
  Start();  // what it starts with is the clock that it knows
  committer_->Open(next.connection, next.stream, {});
  committer_.reset();
  EXPECT_EQ(files(), 0);
  clock_ahead_ns = 0;
}

}  // namespace
}  // namespace vcpulse::stream
