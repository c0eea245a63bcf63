#include "monitor/rollup/store/tick_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>

#include "monitor/stream/disk/names.h"
#include "monitor/timeline/chunk_header.h"
#include "tests/fakes/temporary_folder.h"
#include "tests/unit/fixtures/live_recording.h"
#include "tests/unit/fixtures/timeline_fixture.h"

// Their rows are judged by readers_test.py: here is when they are made.

namespace vcpulse::rollup {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kSecond = 1'000'000'000;

class Ticks : public testing::Test {
 protected:
  Ticks() : folder_(fakes::MakeTemporaryFolder()), recording_(kSecond, Groups::kOne) {
    recording_.Begin({.vm = 1, .epoch = 1, .vcpus = 2});
    recording_.Run(200);
    recording_.End("duration");
    fs::create_directories(Parquet());
    Restart();
  }
  ~Ticks() override { fs::remove_all(folder_); }

  void Restart(std::optional<int64_t> max_age_ns = std::nullopt) {
    store_ = std::make_unique<TickFiles>(
        stream::KernelFiles(),
        TickFiles::Options{.directory = folder_,
                           .parquet = Parquet(),
                           .max_age_ns = max_age_ns,
                           .version = "1",
                           .say = [this](const std::string& line) { said_.push_back(line); }});
  }
  void Pass(int64_t later_ns = 6 * kSecond) {
    store_->Pass({.realtime_ns = RealtimeNow_ns() + later_ns}, {});
  }

  std::string Parquet() const { return folder_ + "/.parquet"; }
  std::string PathOf(uint64_t first_sequence) const {
    return folder_ + "/a=3Ahost1/20231114T221325Z-01020300000000000000000000000000/" +
           stream::FileNameOf(first_sequence);
  }
  // Chunks from `begin` on to before `end`, at the end of a file.
  void Append(uint64_t file, size_t begin, size_t end) const {
    fs::create_directories(fs::path(PathOf(file)).parent_path());
    std::ofstream out(PathOf(file), std::ios::binary | std::ios::app);
    for (size_t i = begin; i < end; ++i) {
      const timeline::Bytes& chunk = recording_.chunks().at(i);
      out.write(reinterpret_cast<const char*>(chunk.data()),
                static_cast<std::streamsize>(chunk.size()));
    }
  }
  size_t size() const { return recording_.chunks().size(); }
  uint64_t SequenceOf(size_t chunk) const {
    return timeline::DecodeChunkHeader(recording_.chunks()[chunk])->first_sequence;
  }
  // The content of each file below the directory, by its path there.
  std::map<std::string, std::string> Made() const {
    std::map<std::string, std::string> made;
    for (const auto& entry : fs::recursive_directory_iterator(Parquet())) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      made[fs::relative(entry.path(), Parquet())] = {std::istreambuf_iterator<char>(file), {}};
    }
    return made;
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& [name, content] : Made()) names.push_back(name);
    return names;
  }
  static std::string NameOf(uint64_t first_sequence) {
    const std::string name = stream::FileNameOf(first_sequence);
    return "date=2023-11-14/host=a%3Ahost1/01020300000000000000000000000000-" +
           name.substr(0, name.find('.')) + ".parquet";
  }

  using Groups = replay::LiveRecording::Groups;
  static constexpr int64_t kSilence = 601 * kSecond;

  std::string folder_;
  replay::LiveRecording recording_;
  std::unique_ptr<TickFiles> store_;
  std::vector<std::string> said_;
};

TEST_F(Ticks, EachClosedFileHasOne) {
  const size_t half = size() / 2;
  Append(1, 0, half);
  Pass();
  EXPECT_THAT(Names(), IsEmpty()) << "it is being written";
  Append(SequenceOf(half), half, size() - 1);
  Pass();
  EXPECT_THAT(Names(), ElementsAre(NameOf(1)));
  Append(SequenceOf(half), size() - 1, size());  // the end of the recording
  Pass(0);
  EXPECT_THAT(Names(), ElementsAre(NameOf(1))) << "it may still grow";
  Pass();
  EXPECT_THAT(Names(), ElementsAre(NameOf(1), NameOf(SequenceOf(half))));
  for (const auto& [name, content] : Made()) EXPECT_TRUE(content.ends_with("PAR1")) << name;
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(Ticks, IsNotMadeAgain) {
  const size_t half = size() / 2;
  Append(1, 0, half);
  Append(SequenceOf(half), half, size());
  Pass();
  const std::string first = Parquet() + "/" + NameOf(1);
  std::ofstream(first) << "mine";
  std::ofstream(Parquet() + "/" + NameOf(SequenceOf(half))) << "mine";
  Restart();
  Pass();
  EXPECT_THAT(Made(), testing::Each(testing::Pair(testing::_, "mine")));
  fs::remove(first);
  Restart();
  Pass();
  EXPECT_TRUE(Made().at(NameOf(1)).ends_with("PAR1"));
}

TEST_F(Ticks, ASilentFileIsClosedUntilItGrows) {
  Append(1, 0, size() / 2);
  Pass(kSilence);
  const auto half = Made();
  ASSERT_THAT(half, SizeIs(1));
  const bool restarts[] = {false, true};
  for (const bool restart : restarts) {
    Append(1, size() / 2 + (restart ? 2 : 0), size() / 2 + (restart ? 4 : 2));
    if (restart) Restart();
    Pass(kSilence);
    EXPECT_NE(Made(), half) << restart;
  }
  Append(1, size() / 2 + 4, size());
  const auto before = Made();
  Append(SequenceOf(size() - 1) + 5, 0, 1);  // another file: that one is no longer the newest
  Pass();
  EXPECT_NE(Made().at(NameOf(1)), before.at(NameOf(1)));
}

TEST_F(Ticks, AKilledProcessLeavesNothingThatStays) {
  Append(1, 0, size());
  const std::string part = Parquet() + "/." + fs::path(NameOf(1)).filename().string() + ".part";
  std::ofstream(part) << "half";
  Pass();
  EXPECT_THAT(Names(), ElementsAre(NameOf(1)));
  EXPECT_TRUE(Made().begin()->second.starts_with("PAR1"));
}

TEST_F(Ticks, WhatCannotBeReadIsSaidAndPassed) {
  const size_t half = size() / 2;
  fs::create_directories(fs::path(PathOf(1)).parent_path());
  std::ofstream(PathOf(1)) << std::string(5000, 'x');
  Append(SequenceOf(half), half, size());
  Pass();
  EXPECT_THAT(Names(), ElementsAre(NameOf(SequenceOf(half))));
  EXPECT_THAT(said_, ElementsAre(HasSubstr("--parquet: ")));
  Pass();
  EXPECT_THAT(said_, SizeIs(1));
}

TEST_F(Ticks, AreKeptForTheirTime) {
  Append(1, 0, size());
  Pass();
  const int64_t day = 86'400 * kSecond;
  const int64_t next_day = 1'700'006'400 * kSecond;  // after the one of the recording
  Restart(10 * day);
  store_->RemoveOld(next_day + 10 * day - 1);
  EXPECT_THAT(Names(), SizeIs(1));
  store_->RemoveOld(next_day + 10 * day);
  EXPECT_THAT(Names(), IsEmpty());
  EXPECT_TRUE(fs::is_empty(Parquet()));
  Pass(12 * day);
  EXPECT_THAT(Names(), IsEmpty()) << "not to be removed again";
}

}  // namespace
}  // namespace vcpulse::rollup
