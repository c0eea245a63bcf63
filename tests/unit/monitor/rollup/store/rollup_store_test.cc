#include "monitor/rollup/store/rollup_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <utility>

#include "absl/strings/str_split.h"
#include "monitor/stream/disk/names.h"
#include "tests/fakes/crashing_files.h"
#include "tests/fakes/temporary_folder.h"
#include "tests/unit/fixtures/live_recording.h"
#include "tests/unit/fixtures/timeline_fixture.h"

namespace vcpulse::rollup {
namespace {

namespace fs = std::filesystem;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kSecond_ns = 1'000'000'000;
constexpr char kStream[] = "20231114T221325Z-01020300000000000000000000000000";

class Store : public testing::Test {
 protected:
  Store() : folder_(fakes::MakeTemporaryFolder()), recording_(kSecond_ns, Groups::kOne) {
    recording_.Begin({.vm = 1, .epoch = 1, .vcpus = 2});
    recording_.Run(900);
    recording_.Begin({.vm = 1, .epoch = 2, .vcpus = 3});
    recording_.Run(700);
    recording_.End("duration");
    Restart();
  }
  ~Store() override { fs::remove_all(folder_); }

  // As after kill -9: all that was in memory is gone.
  void Restart() { Restart(levels_); }
  void Restart(const std::vector<StoredLevel>& levels) {
    store_ = std::make_unique<RollupStore>(
        stream::KernelFiles(),
        RollupStore::Options{.directory = folder_,
                             .levels = levels,
                             .say = [this](const std::string& line) { said_.push_back(line); }});
  }
  void Pass() { store_->Pass({.realtime_ns = now_ns_, .boottime_ns = boottime_ns_}, {}); }
  void AppendFrom(size_t first, size_t end, uint64_t file) const {
    for (size_t i = first; i < end; ++i) Append(file, chunks()[i]);
  }

  std::string PathOf(uint64_t first_sequence) const {
    return folder_ + "/spiffe=3A=2F=2Fhost1/" + kStream + "/" + stream::FileNameOf(first_sequence);
  }
  void Append(uint64_t file, const timeline::Bytes& bytes) const {
    fs::create_directories(fs::path(PathOf(file)).parent_path());
    std::ofstream(PathOf(file), std::ios::binary | std::ios::app)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  const std::vector<timeline::Bytes>& chunks() const { return recording_.chunks(); }
  static uint64_t SequenceOf(const timeline::Bytes& chunk) {
    return timeline::DecodeChunkHeader(chunk)->first_sequence;
  }

  static std::string ContentOf(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // What is stored, by path below .rollup.
  std::map<std::string, std::string> Stored() const {
    std::map<std::string, std::string> stored;
    const fs::path root = folder_ + "/.rollup";
    if (!fs::exists(root)) return stored;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      if (entry.path().extension() != ".csv") continue;
      stored[fs::relative(entry.path(), root)] = ContentOf(entry.path());
    }
    return stored;
  }
  // All stored rows of a level, in order, without the headers.
  std::string RowsOf(const std::string& level) const {
    std::string rows;
    for (const auto& [path, text] : Stored()) {
      if (path.starts_with(level + "/")) rows += text.substr(text.find('\n') + 1);
    }
    return rows;
  }
  // The rows of the whole recording as `vcpulse rollup` makes them, less those that are lost.
  std::string Expected(int64_t length_ns, const timeline::Bytes& bytes) const {
    std::string text;
    RowText out(Format::kCsv, [&text](std::string_view more) {
      text += more;
      return absl::OkStatus();
    });
    Windows windows({length_ns}, [&out](size_t, const Row& row) { return out.Add(row); });
    EXPECT_TRUE(timeline::ReadTimelineBytes(bytes, [&](const timeline::Entry& entry) {
                  return windows.Add(entry);
                }).ok());
    EXPECT_TRUE(windows.Finish().ok());
    EXPECT_TRUE(out.Finish().ok());
    return text.substr(text.find('\n') + 1);
  }
  void ExpectWhole() const {
    const timeline::Bytes whole = timeline::Concatenate(chunks());
    EXPECT_EQ(RowsOf("10s"), Expected(10 * kSecond_ns, whole));
    EXPECT_EQ(RowsOf("1m"), Expected(60 * kSecond_ns, whole));
    EXPECT_THAT(said_, IsEmpty());
  }

  using Groups = replay::LiveRecording::Groups;
  std::string folder_;
  replay::LiveRecording recording_;
  const std::vector<StoredLevel> levels_ = {{.length_ns = 10 * kSecond_ns, .name = "10s"},
                                            {.length_ns = 60 * kSecond_ns, .name = "1m"}};
  std::unique_ptr<RollupStore> store_;
  std::vector<std::string> said_;
  int64_t now_ns_ = 1'800'000'000 * kSecond_ns;
  int64_t boottime_ns_ = 5000 * kSecond_ns;
};

TEST_F(Store, AFilePerSliceOfTimeWhenItIsOver) {
  for (const timeline::Bytes& chunk : chunks()) Append(1, chunk);
  Pass();
  ExpectWhole();
  std::vector<std::string> paths;
  for (const auto& [path, text] : Stored()) paths.push_back(path);
  // 1,600 s from 22:13:25 on.
  EXPECT_THAT(paths, testing::ElementsAre("10s/date=2023-11-14/host=spiffe%3A%2F%2Fhost1/"
                                          "01020300000000000000000000000000-20231114T221000Z.csv",
                                          "10s/date=2023-11-14/host=spiffe%3A%2F%2Fhost1/"
                                          "01020300000000000000000000000000-20231114T222000Z.csv",
                                          "10s/date=2023-11-14/host=spiffe%3A%2F%2Fhost1/"
                                          "01020300000000000000000000000000-20231114T223000Z.csv",
                                          "10s/date=2023-11-14/host=spiffe%3A%2F%2Fhost1/"
                                          "01020300000000000000000000000000-20231114T224000Z.csv",
                                          "1m/date=2023-11-14/host=spiffe%3A%2F%2Fhost1/"
                                          "01020300000000000000000000000000-20231114T220000Z.csv"));
}

// Chunks come one by one, in files of several, and the process dies in between.
TEST_F(Store, WhateverIsReadWhenTheBytesAreTheSame) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    fs::remove_all(folder_);
    Restart();
    std::minstd_rand random(seed);
    uint64_t file = 1;
    std::map<std::string, std::string> before;
    for (const timeline::Bytes& chunk : chunks()) {
      if (random() % 20 == 0) file = SequenceOf(chunk);
      const size_t torn = random() % chunk.size();
      Append(file, {chunk.begin(), chunk.begin() + static_cast<ptrdiff_t>(torn)});
      if (random() % 5 == 0) Pass();
      Append(file, {chunk.begin() + static_cast<ptrdiff_t>(torn), chunk.end()});
      if (random() % 9 == 0) Restart();
      if (random() % 3 == 0) Pass();
      const auto stored = Stored();
      for (const auto& [path, text] : before) EXPECT_EQ(stored.at(path), text) << path;
      before = stored;
    }
    Pass();
    ExpectWhole();
  }
}

TEST_F(Store, RecordsThatComeLateCorrectTheirWindow) {
  const size_t late = chunks().size() / 3;
  for (size_t i = 0; i < chunks().size(); ++i) {
    if (i == late) continue;
    Append(i < late ? 1 : SequenceOf(chunks()[late + 1]), chunks()[i]);
  }
  Pass();
  const auto before = Stored();
  Append(SequenceOf(chunks()[late]), chunks()[late]);
  Pass();
  ExpectWhole();
  size_t changed = 0;
  for (const auto& [path, text] : Stored()) changed += before.at(path) != text ? 1 : 0;
  EXPECT_EQ(changed, 2u) << "of each length the file of its time";
}

TEST_F(Store, AStreamThatIsSilentIsOverUntilItGoesOn) {
  const size_t half = chunks().size() / 2;
  for (size_t i = 0; i < half; ++i) Append(1, chunks()[i]);
  Pass();
  const size_t first = Stored().size();
  now_ns_ += 7200 * kSecond_ns;
  Pass();
  EXPECT_EQ(Stored().size(), first) << "somebody set the clock";
  boottime_ns_ += 601 * kSecond_ns;
  Pass();
  EXPECT_GT(Stored().size(), first);
  for (size_t i = half; i < chunks().size(); ++i) Append(1, chunks()[i]);
  Pass();
  ExpectWhole();
}

// What was made while the beginning was there stays.
TEST_F(Store, RetentionOfTheTimelinesLeavesTheRollups) {
  const size_t half = chunks().size() / 2;
  const uint64_t second = SequenceOf(chunks()[half]);
  for (size_t i = 0; i < chunks().size(); ++i) Append(i < half ? 1 : second, chunks()[i]);
  Pass();
  fs::remove(PathOf(1));
  Pass();
  ExpectWhole();
  Restart();
  Pass();
  ExpectWhole();
}

TEST_F(Store, EachLevelIsKeptForItsTime) {
  for (const timeline::Bytes& chunk : chunks()) Append(1, chunk);
  Pass();
  std::vector<StoredLevel> levels = levels_;
  levels[0].max_age_ns = 3600 * kSecond_ns;
  RollupStore store(stream::KernelFiles(), {.directory = folder_, .levels = levels, .say = {}});
  const int64_t begin_ns = 1'700'000'000 * kSecond_ns;  // of the recording, 22:13:20
  store.RemoveOld(begin_ns + 1700 * kSecond_ns);
  EXPECT_THAT(Stored(), SizeIs(5));
  store.RemoveOld(begin_ns + 3600 * kSecond_ns + 1700 * kSecond_ns);
  EXPECT_THAT(Stored(), SizeIs(2)) << "the last 10 s file, and that of 1 m";
  store.RemoveOld(begin_ns + 7200 * kSecond_ns);
  EXPECT_THAT(Stored(), SizeIs(1));
  EXPECT_FALSE(fs::exists(folder_ + "/.rollup/10s/date=2023-11-14"));
}

TEST_F(Store, DamageCostsItsChunkAlone) {
  std::vector<timeline::Bytes> damaged = chunks();
  damaged[40][damaged[40].size() - 3] ^= 0x10;
  for (const timeline::Bytes& chunk : damaged) Append(1, chunk);
  Pass();
  const timeline::Bytes whole = timeline::Concatenate(damaged);
  EXPECT_EQ(RowsOf("10s"), Expected(10 * kSecond_ns, whole));
  EXPECT_NE(RowsOf("10s"), Expected(10 * kSecond_ns, timeline::Concatenate(chunks())));
}

// What was made of half a slice is completed, though the first half cannot be read again.
TEST_F(Store, ASilentStreamWhoseBeginningIsRemovedGoesOn) {
  const size_t third = chunks().size() / 3;
  const uint64_t second = SequenceOf(chunks()[third]);
  AppendFrom(0, third, 1);
  AppendFrom(third, 2 * third, second);
  Pass();
  boottime_ns_ += 601 * kSecond_ns;
  Pass();
  fs::remove(PathOf(1));
  AppendFrom(2 * third, chunks().size(), second);
  Pass();
  ExpectWhole();
  fs::remove(PathOf(second));
  Restart();
  Pass();
  ExpectWhole();
}

// The clock goes back by 15 minutes in a stream whose beginning is removed.
TEST_F(Store, AStepOfTheClockLosesNoRow) {
  replay::LiveRecording stepped(kSecond_ns, Groups::kOne);
  stepped.Begin({.vm = 1, .epoch = 1, .vcpus = 2});
  stepped.Run(1800);
  stepped.StepClock(-900 * kSecond_ns);
  stepped.Run(1000);
  stepped.End("duration");
  const auto& all = stepped.chunks();
  for (size_t i = 0; i < all.size(); ++i) Append(i < 60 ? 1 : SequenceOf(all[60]), all[i]);
  Pass();
  const std::string expected = Expected(10 * kSecond_ns, timeline::Concatenate(all));
  const auto sorted = [](const std::string& rows) {
    std::vector<std::string> lines = absl::StrSplit(rows, '\n');
    std::ranges::sort(lines);
    return lines;
  };
  EXPECT_EQ(sorted(RowsOf("10s")), sorted(expected));
  // Slices are written before the clock goes back, and again after.
  const auto read_slowly = [&] {
    fs::remove(PathOf(1));
    fs::remove(PathOf(SequenceOf(all[60])));
    Restart();
    for (size_t i = 60; i < all.size(); ++i) {
      Append(SequenceOf(all[60]), all[i]);
      if (i % 5 == 0) Pass();
    }
    Pass();
  };
  read_slowly();
  EXPECT_EQ(sorted(RowsOf("10s")), sorted(expected)) << "beside rows that exist";
  fs::remove_all(folder_ + "/.rollup");
  read_slowly();
  const std::vector<timeline::Bytes> rest(all.begin() + 60, all.end());
  EXPECT_EQ(sorted(RowsOf("10s")), sorted(Expected(10 * kSecond_ns, timeline::Concatenate(rest))));
}

// After a failed sync the collector cuts the file, and the agent sends the records again.
TEST_F(Store, WhatIsSentAgainCountsOnce) {
  for (const bool is_cut : {true, false}) {
    fs::remove_all(folder_);
    Restart();
    AppendFrom(0, 40, 1);
    Pass();
    if (is_cut) {
      fs::remove(PathOf(1));
      AppendFrom(0, 30, 1);
      Pass();
    }
    AppendFrom(30, chunks().size(), SequenceOf(chunks()[30]));
    Pass();
    ExpectWhole();
  }
}

// The collector cut the file, and the records did not come again.
TEST_F(Store, WhatWasCutOffIsInNoRow) {
  AppendFrom(0, 40, 1);
  Pass();
  fs::remove(PathOf(1));
  AppendFrom(0, 30, 1);
  Pass();
  boottime_ns_ += 601 * kSecond_ns;
  Pass();
  const std::vector<timeline::Bytes> left(chunks().begin(), chunks().begin() + 30);
  EXPECT_EQ(RowsOf("10s"), Expected(10 * kSecond_ns, timeline::Concatenate(left)));
}

// The slice before it is over and removed, so its folder was empty.
TEST_F(Store, ASliceThatIsNotOverIsNotRemoved) {
  AppendFrom(0, 75, 1);
  Restart({{.length_ns = 10 * kSecond_ns, .name = "10s", .max_age_ns = kSecond_ns}});
  Pass();
  store_->RemoveOld(now_ns_);
  AppendFrom(75, 90, 1);
  Pass();
  boottime_ns_ += 601 * kSecond_ns;
  Pass();
  const std::vector<timeline::Bytes> there(chunks().begin(), chunks().begin() + 90);
  const std::string whole = Expected(10 * kSecond_ns, timeline::Concatenate(there));
  const std::string rows = RowsOf("10s");
  EXPECT_THAT(whole, testing::EndsWith(rows));
  EXPECT_GT(rows.size(), whole.size() / 2);
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(Store, ATimelineThatCannotBeReadIsALoss) {
  const size_t half = chunks().size() / 2;
  const uint64_t second = SequenceOf(chunks()[half]);
  AppendFrom(half, chunks().size(), second);
  fs::create_directory(PathOf(1));
  Pass();
  const std::vector<timeline::Bytes> rest(chunks().begin() + static_cast<ptrdiff_t>(half),
                                          chunks().end());
  EXPECT_EQ(RowsOf("10s"), Expected(10 * kSecond_ns, timeline::Concatenate(rest)));
  EXPECT_THAT(said_, testing::ElementsAre(testing::HasSubstr(PathOf(1))));
  Pass();
  EXPECT_THAT(said_, SizeIs(1));
}

TEST_F(Store, ADirectoryThatCannotBeListedIsNotEmpty) {
  const size_t half = chunks().size() / 2;
  AppendFrom(0, half, 1);
  Pass();
  fs::rename(folder_, folder_ + ".away");
  Pass();
  EXPECT_THAT(said_, testing::ElementsAre(testing::HasSubstr(folder_)));
  said_.clear();
  fs::rename(folder_ + ".away", folder_);
  AppendFrom(half, chunks().size(), SequenceOf(chunks()[half]));
  fs::remove(PathOf(1));
  Pass();
  ExpectWhole();
}

// Files that grow while they are looked at.
class WatchedFiles final : public fakes::CrashingFiles {
 public:
  absl::StatusOr<size_t> ReadAt(const std::string& path, uint64_t offset,
                                std::span<uint8_t> out) override {
    ++reads_;
    return CrashingFiles::ReadAt(path, offset, out);
  }
  absl::StatusOr<uint64_t> SizeOf(const std::string& path) override {
    if (path.ends_with(".vpt") && before_size_) std::exchange(before_size_, nullptr)();
    return CrashingFiles::SizeOf(path);
  }
  void BeforeTheNextSize(std::function<void()> call) { before_size_ = std::move(call); }
  size_t reads() const { return reads_; }

 private:
  std::function<void()> before_size_;
  size_t reads_ = 0;
};

TEST_F(Store, WhatComesAsAStreamIsFoundSilentIsTaken) {
  WatchedFiles files;
  const std::string path = "/d/host1/" + std::string(kStream) + "/" + stream::FileNameOf(1);
  RollupStore store(files, {.directory = "/d", .levels = levels_, .say = {}});
  const auto put = [&](size_t count) {
    const std::vector<timeline::Bytes> some(chunks().begin(),
                                            chunks().begin() + static_cast<ptrdiff_t>(count));
    files.Put(path, timeline::Concatenate(some));
  };
  put(80);
  store.Pass({.boottime_ns = kSecond_ns}, {});
  const size_t reads = files.reads();
  store.Pass({.boottime_ns = 2 * kSecond_ns}, {});
  EXPECT_EQ(files.reads(), reads) << "nothing came";
  files.BeforeTheNextSize([&] { put(chunks().size()); });
  store.Pass({.boottime_ns = 700 * kSecond_ns}, {});
  store.Pass({.boottime_ns = 701 * kSecond_ns}, {});
  std::string rows;
  for (const std::string& each : files.Paths()) {
    if (!each.starts_with("/d/.rollup/10s/") || !each.ends_with(".csv")) continue;
    const auto bytes = files.Get(each);
    const std::string text(bytes.begin(), bytes.end());
    rows += text.substr(text.find('\n') + 1);
  }
  EXPECT_EQ(rows, Expected(10 * kSecond_ns, timeline::Concatenate(chunks())));
}

TEST(Slices, MakeUpADay) {
  const auto slice_s = [](int64_t seconds) {
    return StoredLevel{.length_ns = seconds * kSecond_ns}.SliceNs() / kSecond_ns;
  };
  EXPECT_EQ(slice_s(1), 60);
  EXPECT_EQ(slice_s(10), 600);
  EXPECT_EQ(slice_s(60), 3600);
  EXPECT_EQ(slice_s(27), 50 * 27);
  EXPECT_EQ(slice_s(1200), 43'200) << "20 hours would cross midnight";
  EXPECT_EQ(slice_s(3600), 86'400);
  EXPECT_EQ(slice_s(86'400), 86'400);
}

}  // namespace
}  // namespace vcpulse::rollup
