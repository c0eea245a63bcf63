// In what order the collector's writing thread does what it is given, and what may wait for it.
#include "monitor/stream/net/committer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "monitor/stream/net/fair_queue.h"
#include "monitor/stream/net/pending.h"
#include "tests/fakes/filling_files.h"
#include "tests/fakes/streamed_chunks.h"
#include "tests/fakes/temporary_folder.h"

namespace vcpulse::stream {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::deque<int> TakeRound(FairQueue<int>& queue, uint64_t budget, int64_t now_ns = 0) {
  return queue.TakeRound(
      budget,
      [](int job, const int* before) { return static_cast<uint64_t>(before == nullptr ? job : 1); },
      now_ns);
}

TEST(FairQueueTest, ARoundTakesAPartOfEachOwnersJobs) {
  FairQueue<int> queue;
  for (const int job : {1, 2, 3, 4, 5}) queue.Put("busy", job);
  queue.Put("calm", 100);
  EXPECT_THAT(TakeRound(queue, 2), ElementsAre(1, 2, 100));
  queue.Put("a", 101);
  EXPECT_THAT(TakeRound(queue, 5), ElementsAre(3, 4, 5, 101)) << "what costs a lot comes last";
  EXPECT_TRUE(queue.empty());
  EXPECT_THAT(TakeRound(queue, 9), IsEmpty());
}

TEST(FairQueueTest, AnOwnerThatRestsHasNoPart) {
  FairQueue<int> queue;
  EXPECT_EQ(queue.NextRound_ns(), std::nullopt);
  queue.Rest("busy", 50);
  queue.Put("busy", 1);
  EXPECT_EQ(queue.NextRound_ns(), 50);
  EXPECT_THAT(TakeRound(queue, 9, 49), IsEmpty());
  queue.Put("calm", 2);
  EXPECT_LT(*queue.NextRound_ns(), 0) << "at once";
  EXPECT_THAT(TakeRound(queue, 9, 49), ElementsAre(2));
  EXPECT_FALSE(queue.empty());
  EXPECT_THAT(TakeRound(queue, 9, 50), ElementsAre(1));
  queue.Put("busy", 3);
  EXPECT_THAT(TakeRound(queue, 9, 50), ElementsAre(3)) << "a rest is over once";
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
                           .report =
                               [this](const std::vector<Committer::Progress>& report) {
                                 const std::lock_guard lock(mutex_);
                                 for (const auto& progress : report) {
                                   if (progress.chunks.empty()) continue;
                                   reported_.push_back(progress.connection);
                                 }
                               },
                           .say = [](const std::string&) {}});
  }

  const std::filesystem::path folder_ = fakes::MakeTemporaryFolder();
  fakes::FillingFiles files_;
  std::mutex mutex_;
  std::vector<Committer::ConnectionId> reported_;
  std::unique_ptr<Committer> committer_;
};

TEST_F(CommitterTest, AnAgentThatSendsALotDoesNotHoldUpAnother) {
  const Sender busy = NewSender(1, "busy", 2000);
  const Sender calm = NewSender(2, "calm", 1);
  ASSERT_GT(busy.chunks.size(), 1000U);
  Start();
  files_.hangs = true;
  for (const Sender* sender : {&busy, &calm}) {
    committer_->Open(sender->connection, sender->stream, 1);
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

}  // namespace
}  // namespace vcpulse::stream
