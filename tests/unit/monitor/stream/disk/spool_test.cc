#include "monitor/stream/disk/spool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "tests/fakes/crashing_files.h"
#include "tests/fakes/temporary_folder.h"
#include "tests/unit/monitor/stream/protocol/chunk.h"

namespace vcpulse::stream {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const timeline::StreamId kFirst = StreamNumber(1);
const timeline::StreamId kSecond = StreamNumber(2);

class SpoolTest : public testing::Test {
 protected:
  SpoolTest() : folder_(fakes::MakeTemporaryFolder()) {}
  ~SpoolTest() override { std::filesystem::remove_all(folder_); }

  std::string directory() const { return folder_ + "/spool"; }

  std::unique_ptr<Spool> Open(uint64_t max_disk_bytes = 1u << 20,
                              uint64_t max_memory_bytes = 1u << 20, uint64_t segment_bytes = 0) {
    auto spool = Spool::Open(KernelFiles(), {.directory = directory(),
                                             .max_disk_bytes = max_disk_bytes,
                                             .max_memory_bytes = max_memory_bytes,
                                             .segment_bytes = segment_bytes});
    EXPECT_TRUE(spool.ok()) << spool.status();
    return spool.ok() ? *std::move(spool) : nullptr;
  }
  // Chunks of ten records.
  static void Add(Spool& spool, uint64_t first, uint64_t last,
                  const timeline::StreamId& stream = kFirst, size_t padding = 10) {
    for (; first <= last; first += 10) {
      const StreamChunk chunk = MakeChunk(stream, first, first + 9, padding);
      spool.Add(chunk.header, chunk.bytes);
    }
  }
  // What comes from `sequence` on: "1-10 11-30:lost(REASON_...)".
  static std::string All(Spool& spool, uint64_t sequence = 1,
                         const timeline::StreamId& stream = kFirst) {
    std::string text;
    while (const auto item = spool.At(stream, sequence)) {
      const uint64_t first =
          item->is_lost ? item->lost.first_sequence() : item->header.first_sequence;
      const uint64_t last = item->is_lost ? item->lost.last_sequence() : item->header.last_sequence;
      EXPECT_EQ(first, sequence);
      text += (text.empty() ? "" : " ") + std::to_string(first) + "-" + std::to_string(last);
      if (item->is_lost) {
        text += ":" + v1::LostRecords::Reason_Name(item->lost.reason()).substr(7);
      } else {
        const StreamChunk same = MakeChunk(stream, first, last, 10);
        EXPECT_EQ(item->header.stream_id, stream);
        if (item->bytes.size() == same.bytes.size()) {
          EXPECT_TRUE(std::ranges::equal(item->bytes, same.bytes));
        }
      }
      sequence = last + 1;
    }
    return text;
  }
  std::vector<std::string> Segments() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory())) {
      if (entry.is_regular_file() && entry.path().filename() != ".lock") {
        names.push_back(entry.path());
      }
    }
    std::ranges::sort(names);
    return names;
  }

  std::string folder_;
};

TEST_F(SpoolTest, GivesBackWhatWasAdded) {
  const auto spool = Open();
  Add(*spool, 1, 30);
  EXPECT_EQ(All(*spool), "1-10 11-20 21-30");
  EXPECT_EQ(All(*spool, 11), "11-20 21-30");
  EXPECT_EQ(spool->range(kFirst).first_sequence, 1);
  EXPECT_EQ(spool->range(kFirst).next_sequence, 31);
  EXPECT_EQ(spool->stats().chunks, 3);
  EXPECT_EQ(spool->stats().memory_bytes, 0);
  EXPECT_THAT(spool->streams(), ElementsAre(kFirst));
}

TEST_F(SpoolTest, AcknowledgedChunksGo) {
  const auto spool = Open();
  Add(*spool, 1, 30);
  spool->Acknowledge(kFirst, 20);
  EXPECT_EQ(All(*spool, 21), "21-30");
  EXPECT_EQ(All(*spool, 1), "1-20:NOT_HELD 21-30");
  spool->Acknowledge(kFirst, 30);
  EXPECT_EQ(spool->stats().disk_bytes, 0);
  EXPECT_EQ(spool->stats().chunks, 0);
  EXPECT_THAT(Segments(), IsEmpty());
  EXPECT_EQ(spool->range(kFirst).first_sequence, 31);
  Add(*spool, 31, 40);
  EXPECT_EQ(All(*spool, 31), "31-40");
}

TEST_F(SpoolTest, OutlivesItsProcess) {
  {
    const auto spool = Open();
    Add(*spool, 1, 30);
    Add(*spool, 1, 20, kSecond);
  }
  const auto spool = Open();
  EXPECT_THAT(spool->streams(), ElementsAre(kFirst, kSecond));
  EXPECT_EQ(All(*spool), "1-10 11-20 21-30");
  EXPECT_EQ(All(*spool, 1, kSecond), "1-10 11-20");
  spool->Acknowledge(kFirst, 30);
  spool->Acknowledge(kSecond, 20);
  EXPECT_THAT(spool->streams(), IsEmpty());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory()), {}), 1) << "the lock";
}

TEST_F(SpoolTest, OldestSegmentGoesWhereItIsFull) {
  constexpr uint64_t kBound = 4000;
  const auto spool = Open(kBound, 0);
  const uint64_t chunk_bytes = MakeChunk(kFirst, 1, 10).bytes.size();
  for (uint64_t first = 1; first < 1000; first += 10) {
    Add(*spool, first, first + 9);
    uint64_t on_disk = 0;
    for (const std::string& path : Segments()) on_disk += std::filesystem::file_size(path);
    EXPECT_LE(on_disk, kBound);
    EXPECT_EQ(on_disk, spool->stats().disk_bytes);
  }
  EXPECT_GT(spool->stats().disk_bytes, kBound * 3 / 4 - chunk_bytes);
  const uint64_t first = spool->range(kFirst).first_sequence;
  EXPECT_THAT(All(*spool), testing::StartsWith("1-" + std::to_string(first - 1) + ":SPOOL_FULL " +
                                               std::to_string(first) + "-"));
  EXPECT_EQ(spool->stats().lost_records, first - 1);
  EXPECT_EQ(spool->stats().lost_chunks, (first - 1) / 10);
}

TEST_F(SpoolTest, InMemoryAlone) {
  const uint64_t bytes_of_two =
      MakeChunk(kFirst, 11, 20).bytes.size() + MakeChunk(kFirst, 21, 30).bytes.size();
  auto spool = Spool::Open(KernelFiles(), {.max_memory_bytes = bytes_of_two});
  ASSERT_TRUE(spool.ok());
  Add(**spool, 1, 30);
  EXPECT_EQ(All(**spool), "1-10:SPOOL_FULL 11-20 21-30");
  EXPECT_TRUE((*spool)->disk_status().ok());
  EXPECT_EQ((*spool)->stats().memory_bytes, bytes_of_two);
}

TEST_F(SpoolTest, LossesAreToldInTheirPlace) {
  const auto spool = Open();
  Add(*spool, 1, 10);
  spool->AddLost(kFirst, LostSpan(11, 20, v1::LostRecords::REASON_AGENT_BUSY));
  spool->AddLost(kFirst, LostSpan(21, 25, v1::LostRecords::REASON_AGENT_BUSY));
  Add(*spool, 26, 35);
  EXPECT_EQ(All(*spool), "1-10 11-25:AGENT_BUSY 26-35");
  EXPECT_EQ(All(*spool, 13), "13-25:AGENT_BUSY 26-35");
  spool->Acknowledge(kFirst, 12);
  EXPECT_EQ(All(*spool, 13), "13-25:AGENT_BUSY 26-35");
}

// However records were lost, until the collector has acknowledged that they are.
TEST_F(SpoolTest, LossesThatWereNotToldAreCounted) {
  const uint64_t bytes_of_two =
      MakeChunk(kFirst, 11, 20).bytes.size() + MakeChunk(kFirst, 21, 30).bytes.size();
  auto opened = Spool::Open(KernelFiles(), {.max_memory_bytes = bytes_of_two});
  ASSERT_TRUE(opened.ok());
  Spool& spool = **opened;
  Add(spool, 1, 30);  // the first ten find no room
  EXPECT_EQ(spool.stats().untold_records, 10);
  spool.AddLost(kFirst, LostSpan(31, 35, v1::LostRecords::REASON_AGENT_BUSY));
  spool.AddLost(kFirst, LostSpan(40, 41, v1::LostRecords::REASON_AGENT_BUSY));  // and those before
  EXPECT_EQ(spool.stats().untold_records, 10 + 11);
  spool.Acknowledge(kFirst, 4);
  EXPECT_EQ(spool.stats().untold_records, 6 + 11);
  spool.Acknowledge(kFirst, 30);
  EXPECT_EQ(spool.stats().untold_records, 11);
  spool.Acknowledge(kFirst, 33);
  EXPECT_EQ(spool.stats().untold_records, 8);
  spool.Acknowledge(kFirst, 100);
  EXPECT_EQ(spool.stats().untold_records, 0);
}

TEST_F(SpoolTest, DirectoryInUse) {
  const auto spool = Open();
  const auto second = Spool::Open(KernelFiles(), {.directory = directory()});
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status())) << second.status();
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(directory()));
}

TEST_F(SpoolTest, KnowsWhetherAllThatWasAddedIsThere) {
  const auto found_all = [this](const std::string& boot_id) {
    auto spool = Spool::Open(KernelFiles(), {.directory = directory(), .boot_id = boot_id});
    Add(**spool, (*spool)->range(kFirst).next_sequence, (*spool)->range(kFirst).next_sequence + 9);
    return (*spool)->found_all();
  };
  EXPECT_FALSE(found_all("a"));  // nothing says so
  EXPECT_TRUE(found_all("b"));   // it was closed cleanly
  std::ofstream(directory() + "/.written") << "b";
  EXPECT_TRUE(found_all("b"));  // the process was killed
  std::ofstream(directory() + "/.written") << "a";
  EXPECT_FALSE(found_all("b"));  // the machine crashed
  // And stays so until these streams are gone.
  EXPECT_FALSE(found_all("b"));
}

TEST_F(SpoolTest, MovedStreamIsGivenUnderTheNewId) {
  for (const std::string& where : {directory(), std::string()}) {
    auto spool = Spool::Open(KernelFiles(), {.directory = where});
    Add(**spool, 1, 30);
    (*spool)->Acknowledge(kFirst, 10);
    (*spool)->Move(kFirst, kSecond);
    EXPECT_THAT((*spool)->streams(), ElementsAre(kSecond));
    Add(**spool, 31, 40);
    EXPECT_EQ(All(**spool, 1, kSecond), "1-10:NOT_HELD 11-20 21-30 31-40");
    EXPECT_EQ((*spool)->stats().chunks, 3);
    EXPECT_EQ((*spool)->stats().lost_chunks, 0);
  }
}

// And what comes for its first id goes the whole way.
TEST_F(SpoolTest, StreamThatIsMovedTwiceKeepsWhatItLost) {
  const timeline::StreamId kThird = StreamNumber(3);
  const auto spool = Open();
  Add(*spool, 1, 10);
  spool->AddLost(kFirst, LostSpan(11, 20, v1::LostRecords::REASON_AGENT_BUSY));
  spool->Move(kFirst, kSecond);
  spool->Move(kSecond, kThird);
  EXPECT_THAT(spool->streams(), ElementsAre(kThird));
  Add(*spool, 21, 30);
  EXPECT_EQ(All(*spool, 1, kThird), "1-10 11-20:AGENT_BUSY 21-30");
}

TEST_F(SpoolTest, DamagedChunkIsLostAndNeverGiven) {
  const auto spool = Open(1u << 20, 0);  // nothing is kept in memory
  Add(*spool, 1, 30);
  const uint64_t chunk_bytes = MakeChunk(kFirst, 1, 10).bytes.size();
  {
    std::fstream file(Segments().front(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(chunk_bytes + 90));
    file << "x";
  }
  EXPECT_EQ(All(*spool), "1-10 11-20:SPOOL_DAMAGED 21-30");
  EXPECT_EQ(spool->stats().lost_chunks, 1);
  EXPECT_EQ(spool->stats().lost_records, 10);
}

TEST_F(SpoolTest, DamageThatIsFoundWhenItIsOpenedCountsAsLost) {
  {
    Add(*Open(1u << 20, 1u << 20, 300), 1, 40);
  }
  ASSERT_THAT(Segments(), SizeIs(4));
  std::ofstream(Segments()[0], std::ios::binary) << "nothing of it is left";
  std::ofstream(Segments()[2], std::ios::binary) << "nor of this";
  const auto spool = Open();
  EXPECT_EQ(All(*spool), "1-10:SPOOL_DAMAGED 11-20 21-30:SPOOL_DAMAGED 31-40");
  EXPECT_EQ(spool->stats().lost_records, 20);
  EXPECT_EQ(spool->stats().lost_chunks, 2);
}

TEST_F(SpoolTest, DirectoryThatOthersMayWriteIsRefused) {
  {
    Open();
  }
  for (const auto& may :
       {std::filesystem::perms::group_write, std::filesystem::perms::others_write}) {
    std::filesystem::permissions(directory(), std::filesystem::perms::owner_all | may);
    const auto spool = Spool::Open(KernelFiles(), {.directory = directory()});
    EXPECT_TRUE(absl::IsPermissionDenied(spool.status())) << spool.status();
    EXPECT_THAT(std::string(spool.status().message()), HasSubstr("chmod go-w " + directory()));
  }
  std::filesystem::permissions(directory(), std::filesystem::perms::owner_all);
  if (geteuid() != 0 || chown(directory().c_str(), 12345, 0) != 0) GTEST_SKIP() << "needs root";
  const auto spool = Spool::Open(KernelFiles(), {.directory = directory()});
  EXPECT_THAT(std::string(spool.status().message()), HasSubstr("belongs to user 12345"));
}

// As after a crash that brought back a segment that had been removed.
TEST_F(SpoolTest, RecordsThatLieThereTwiceComeOnce) {
  {
    const auto spool = Open(1u << 20, 1u << 20, 300);
    Add(*spool, 1, 40);
  }
  ASSERT_THAT(Segments(), testing::SizeIs(4));
  const StreamChunk twice = MakeChunk(kFirst, 15, 24);
  std::ofstream(Segments()[1], std::ios::binary | std::ios::app)
      .write(reinterpret_cast<const char*>(twice.bytes.data()),
             static_cast<std::streamsize>(twice.bytes.size()));
  const StreamChunk first = MakeChunk(kFirst, 11, 20);
  std::ofstream(Segments()[2], std::ios::binary | std::ios::app)
      .write(reinterpret_cast<const char*>(first.bytes.data()),
             static_cast<std::streamsize>(first.bytes.size()));
  EXPECT_EQ(All(*Open()), "1-10 11-20 21-30 31-40");
}

TEST_F(SpoolTest, FilesOfOthersStay) {
  {
    Add(*Open(), 1, 10);
  }
  const std::string folder = std::filesystem::path(Segments().front()).parent_path();
  const auto touch = [](const std::string& path) { std::ofstream(path) << "mine"; };
  touch(directory() + "/notes");
  touch(folder + "/notes");
  std::filesystem::create_directory(directory() + "/0000000002-mine");
  const auto spool = Open();
  spool->Acknowledge(kFirst, 10);
  EXPECT_THAT(spool->streams(), IsEmpty());
  EXPECT_THAT(Segments(), testing::UnorderedElementsAre(directory() + "/notes", folder + "/notes"));
  EXPECT_TRUE(std::filesystem::exists(directory() + "/0000000002-mine"));
}

TEST_F(SpoolTest, RecordingThatIsSentOnceMoreIsNotHeldTwice) {
  const auto spool = Open();
  Add(*spool, 1, 20);
  spool->Acknowledge(kFirst, 10);
  Add(*spool, 1, 30);
  EXPECT_EQ(All(*spool, 11), "11-20 21-30");
  EXPECT_EQ(spool->stats().chunks, 2);
}

TEST_F(SpoolTest, RecoversAroundDamage) {
  {
    Add(*Open(), 1, 40);
  }
  const uint64_t chunk_bytes = MakeChunk(kFirst, 1, 10).bytes.size();
  const std::string path = Segments().front();
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(chunk_bytes + 90));
    file << "x";
  }
  const uint64_t size = std::filesystem::file_size(path);
  std::filesystem::resize_file(path, size - 1);
  const auto spool = Open();
  EXPECT_EQ(All(*spool), "1-10 11-20:SPOOL_DAMAGED 21-30");
  EXPECT_EQ(std::filesystem::file_size(path), size - MakeChunk(kFirst, 31, 40).bytes.size())
      << "the torn end is cut off";
}

// A spool of which something cannot be read when an agent starts.
const Spool::Options kUnreadable{.directory = "/spool", .segment_bytes = 300};
const timeline::StreamId kUnreadableStream = StreamNumber(1);

// Three segments of one chunk each; their paths.
std::vector<std::string> ThreeSegments(fakes::CrashingFiles& files) {
  const auto spool = Spool::Open(files, kUnreadable);
  EXPECT_TRUE(spool.ok()) << spool.status();
  for (const uint64_t first : {1, 11, 21}) {
    const StreamChunk chunk = MakeChunk(kUnreadableStream, first, first + 9);
    (*spool)->Add(chunk.header, chunk.bytes);
  }
  std::vector<std::string> paths = files.Paths();
  std::erase_if(paths, [](const std::string& path) { return !path.ends_with(".vpt"); });
  EXPECT_THAT(paths, SizeIs(3));
  return paths;
}

uint64_t ChunksIn(Spool& spool) {
  uint64_t chunks = 0;
  for (uint64_t sequence = 1;; sequence += 10) {
    const auto item = spool.At(kUnreadableStream, sequence);
    if (!item) return chunks;
    if (!item->is_lost) ++chunks;
  }
}

// A disk that fails, a server that is gone, a file that somebody else owns: it may come back.
TEST(SpoolUnreadable, NothingIsRemovedForAnErrorOfReading) {
  for (const int error : {EIO, ESTALE, ENXIO, EACCES, ENOMEM}) {
    for (const size_t which : {0, 1, 2}) {
      fakes::CrashingFiles files;
      const std::vector<std::string> paths = ThreeSegments(files);
      files.FailReadsOf(paths[which], error);
      const absl::Status status = Spool::Open(files, kUnreadable).status();
      EXPECT_FALSE(status.ok()) << "errno " << error;
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr("the spool in /spool: " + paths[which]),
                        HasSubstr("move that file away"), Not(HasSubstr("directory of its own"))));
      files.FailReadsOf(paths[which], std::nullopt);
      const auto spool = Spool::Open(files, kUnreadable);
      ASSERT_TRUE(spool.ok()) << spool.status();
      EXPECT_EQ(ChunksIn(**spool), 3) << "errno " << error << " of segment " << which;
    }
  }
}

// What was read and holds no chunk is of no use to anybody.
TEST(SpoolUnreadable, AFileThatHoldsNoChunkGoes) {
  fakes::CrashingFiles files;
  const std::vector<std::string> paths = ThreeSegments(files);
  files.Put(paths[1], std::vector<uint8_t>(100, 0));
  const auto spool = Spool::Open(files, kUnreadable);
  ASSERT_TRUE(spool.ok()) << spool.status();
  EXPECT_EQ(ChunksIn(**spool), 2);
  EXPECT_EQ(std::ranges::count(files.Paths(), paths[1]), 0);
}

}  // namespace

}  // namespace vcpulse::stream
