// libvcpulse.so with real guests, through its C++ header and where needed the C API; and the
// examples of docs/examples. Without a PMU recordings are degraded: what is expected here is
// HALTED, markers and records, which need none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vcpulse.hpp>
#include <vcpulse_gtest.hpp>
#include <vector>

#include "tests/fakes/temporary_folder.h"
#include "tests/kvm/qemu_guest.h"
#include "tests/kvm/run_program.h"

namespace vcpulse::kvm_tests {
namespace {

namespace fs = std::filesystem;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::SizeIs;

class Library : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoKvm(); !why.empty()) GTEST_SKIP() << why;
    auto guest = QemuGuest::Start({.vcpus = 2, .name = "library", .debug_threads = true});
    ASSERT_TRUE(guest.ok()) << guest.status();
    guest_.emplace(*std::move(guest));
    ASSERT_TRUE(guest_->WaitForProgram(absl::Seconds(20)));
  }

  Options OfGuest() const { return std::move(Options().Pid(guest_->pid()).Interval(20ms)); }

  std::optional<QemuGuest> guest_;
};

TEST_F(Library, APhaseOfAHaltedGuestIsHalted) {
  auto recording = Recording::Attach(OfGuest());
  recording.Mark("first");
  std::this_thread::sleep_for(300ms);
  recording.Mark("second");
  std::this_thread::sleep_for(1s);
  const Timeline timeline = std::move(recording).Stop();
  EXPECT_THAT(timeline.phases(), ElementsAre("first", "second"));
  ASSERT_THAT(timeline.vms(), SizeIs(1));
  EXPECT_EQ(timeline.vms()[0].name, "library");
  EXPECT_EQ(timeline.vms()[0].pid, static_cast<uint32_t>(guest_->pid()));
  EXPECT_THAT(timeline.vms()[0].vcpus, ElementsAre(0U, 1U));
  EXPECT_THAT(timeline, Meets("vcpu=*: halted >= 50%").During("second"));
  const Bounds share = timeline.Share(1, Band::kHalted, "second");
  EXPECT_THAT(share, SurelyAtLeast(0.5));
  EXPECT_GT(share.ticks, 0U);
  EXPECT_GT(timeline.Query(0, "longest(halted)", "second").low, 0);
  EXPECT_EQ(timeline.damage(), std::nullopt);
}

TEST_F(Library, ATemporaryRecordingGoesWithItsTimelineAndANamedOneStays) {
  std::string path;
  {
    const Timeline timeline = Recording::Attach(OfGuest()).Stop();
    path = timeline.path();
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_FALSE(fs::exists(fs::path(path).parent_path()));

  const fs::path folder = fakes::MakeTemporaryFolder();
  const std::string stopped = folder / "stopped.vpt";
  const std::string abandoned = folder / "abandoned.vpt";
  {
    Recording::Attach(OfGuest().Output(stopped)).Stop();
  }
  {
    const auto recording = Recording::Attach(OfGuest().Output(abandoned));
  }
  EXPECT_EQ(Timeline::Open(stopped).damage(), std::nullopt);
  EXPECT_EQ(Timeline::Open(abandoned).damage(), std::nullopt);  // ended in order all the same
  fs::remove_all(folder);
}

// Where BPF cannot be loaded, asking for it is an error.
TEST_F(Library, CountersAreReadAsTheOptionsSay) {
  const fs::path folder = fakes::MakeTemporaryFolder();
  for (const std::string reader : {"read", "bpf"}) {
    const std::string path = folder / (reader + ".vpt");
    try {
      Recording::Attach(OfGuest().Output(path).Reader(reader)).Stop();
    } catch (const Error& error) {
      EXPECT_EQ(reader, "bpf") << error.what();
      EXPECT_THAT(error.what(), ::testing::HasSubstr("--reader bpf: "));
      continue;
    }
    const Finished report = RunProgram(Vcpulse({"report", "--json", path}));
    EXPECT_THAT(report.out, ::testing::HasSubstr("\"reader\": \"" + reader + "\""));
  }
  fs::remove_all(folder);
}

TEST_F(Library, RecordsComeWhileRecordingAsTheFileHasThem) {
  std::vector<std::string> live;  // on a thread of the library, until it has stopped
  const auto add_to = [](std::vector<std::string>& lines) {
    return [&lines](const vcpulse_record& record) {
      lines.push_back(std::to_string(record.kind) + " " + std::to_string(record.mono_ns) + " " +
                      std::to_string(record.band) + (record.text == nullptr ? "" : record.text));
      return true;
    };
  };
  auto recording = Recording::Attach(OfGuest().OnRecord(add_to(live)));
  recording.Mark("mark");
  std::this_thread::sleep_for(300ms);
  const Timeline timeline = std::move(recording).Stop();
  std::vector<std::string> kept;
  timeline.ForEachRecord(add_to(kept));
  EXPECT_EQ(live, kept);
  EXPECT_THAT(kept, SizeIs(Ge(6U)));
}

TEST_F(Library, TwoRecordingsAtOnceKeepTheirMarksApart) {
  auto one = Recording::Attach(OfGuest());
  auto two = Recording::Attach(OfGuest().Interval(10ms));
  one.Mark("one");
  two.Mark("two");
  std::this_thread::sleep_for(300ms);
  const Timeline of_one = std::move(one).Stop();
  const Timeline of_two = std::move(two).Stop();
  EXPECT_NE(of_one.path(), of_two.path());
  EXPECT_THAT(of_one.phases(), ElementsAre("one"));
  EXPECT_THAT(of_two.phases(), ElementsAre("two"));
  EXPECT_GT(of_one.Share(0, Band::kHalted).ticks, 0U);
  EXPECT_GT(of_two.Share(0, Band::kHalted).ticks, 0U);
}

TEST_F(Library, MarksOfManyThreadsAreAllThereInTheOrderOfTheirInstants) {
  auto recording = Recording::Attach(OfGuest());
  std::vector<std::future<void>> markers;
  for (int i = 0; i < 4; ++i) {
    markers.push_back(std::async(std::launch::async, [&recording, i] {
      for (int j = 0; j < 5; ++j) recording.Mark(std::to_string(i) + "." + std::to_string(j));
    }));
  }
  for (auto& marker : markers) marker.get();
  const Timeline timeline = std::move(recording).Stop();
  EXPECT_THAT(timeline.phases(), SizeIs(20));
  int64_t last_ns = 0;
  timeline.ForEachRecord([&](const vcpulse_record& record) {
    if (record.kind != VCPULSE_KIND_MARKER) return true;
    EXPECT_GE(record.mono_ns, last_ns);
    last_ns = record.mono_ns;
    return true;
  });
}

// What a call fails with.
template <typename Call>
vcpulse_status CodeOf(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return VCPULSE_STATUS_OK;
}

TEST_F(Library, WhileItIsPausedNothingIsSampledAndNothingIsMissing) {
  auto recording = Recording::Attach(OfGuest());
  EXPECT_EQ(CodeOf([&] { recording.Resume(); }), VCPULSE_STATUS_NOT_POSSIBLE);
  recording.Pause();
  recording.Mark("paused");
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(CodeOf([&] { recording.Pause(); }), VCPULSE_STATUS_NOT_POSSIBLE);
  recording.Mark("goes on");
  recording.Resume();
  std::this_thread::sleep_for(300ms);
  const Timeline timeline = std::move(recording).Stop();
  bool paused = false;
  int ticks_while_paused = 0;
  int ticks_after = 0;
  bool resumed = false;
  timeline.ForEachRecord([&](const vcpulse_record& record) {
    const std::string text = record.text == nullptr ? "" : record.text;
    if (text == "recording-paused") paused = true;
    if (text == "recording-resumed") {
      paused = false;
      resumed = true;
    }
    if (record.kind != VCPULSE_KIND_TICK) return true;
    if (paused) ++ticks_while_paused;
    if (resumed) ++ticks_after;
    return true;
  });
  EXPECT_EQ(ticks_while_paused, 0);
  EXPECT_GT(ticks_after, 0);
  EXPECT_GT(timeline.Share(0, Band::kHalted, "goes on").ticks, 0U);
}

TEST_F(Library, AMarkNeedsANameThatCanBeRead) {
  auto recording = Recording::Attach(OfGuest());
  EXPECT_EQ(CodeOf([&] { recording.Mark(""); }), VCPULSE_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf([&] { recording.Mark("two\nlines"); }), VCPULSE_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf([&] { recording.Mark("fine"); }), VCPULSE_STATUS_OK);
  EXPECT_THAT(std::move(recording).Stop().phases(), ElementsAre("fine"));
}

TEST_F(Library, AfterTheVmHasEndedMarksAreRefusedAndStopGivesWhatThereIs) {
  auto recording = Recording::Attach(OfGuest());
  recording.Mark("before");
  std::this_thread::sleep_for(100ms);
  guest_->Kill();
  vcpulse_status refused = VCPULSE_STATUS_OK;
  EXPECT_TRUE(Eventually([&] {
    refused = CodeOf([&] { recording.Mark("after"); });
    return refused != VCPULSE_STATUS_OK;
  }));
  EXPECT_EQ(refused, VCPULSE_STATUS_ENDED);
  const Timeline timeline = std::move(recording).Stop();
  EXPECT_EQ(timeline.phases().front(), "before");
  EXPECT_EQ(timeline.damage(), std::nullopt);
}

TEST_F(Library, ItWaitsForAVmToAppear) {
  guest_->Kill();
  auto attached = std::async(std::launch::async, [] {
    return Recording::Attach(Options().Vm("comes-later").Wait(30s)).Stop().vms().at(0).name;
  });
  auto later = QemuGuest::Start({.name = "comes-later", .debug_threads = true});
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_EQ(attached.get(), "comes-later");
}

struct Steering {
  std::atomic<vcpulse_recording*> recording = nullptr;
  std::atomic<int> marked = -1;
  std::atomic<bool> stopped_nothing = false;
};

TEST_F(Library, ACallbackCannotSteerItsRecording) {
  Steering steering;
  vcpulse_options* options = vcpulse_options_new();
  vcpulse_options_set_pid(options, guest_->pid(), nullptr);
  vcpulse_options_set_interval(options, 20'000'000, nullptr);
  const auto steer = [](const vcpulse_record*, void* user) -> int {
    Steering& self = *static_cast<Steering*>(user);
    vcpulse_recording* recording = self.recording;
    if (recording == nullptr) return 0;
    self.stopped_nothing = vcpulse_recording_stop(recording, nullptr) == nullptr;
    vcpulse_recording_free(recording);
    self.marked = vcpulse_recording_mark(recording, "from a callback", nullptr);
    return 1;
  };
  vcpulse_options_on_record(options, steer, &steering, nullptr);
  vcpulse_recording* recording = vcpulse_recording_attach(options, nullptr);
  vcpulse_options_free(options);
  ASSERT_NE(recording, nullptr);
  steering.recording = recording;
  EXPECT_TRUE(Eventually([&] { return steering.marked != -1; }));
  EXPECT_EQ(steering.marked, VCPULSE_STATUS_NOT_POSSIBLE);
  EXPECT_TRUE(steering.stopped_nothing);
  vcpulse_timeline* timeline = vcpulse_recording_stop(recording, nullptr);
  EXPECT_NE(timeline, nullptr);
  EXPECT_EQ(vcpulse_timeline_phase_count(timeline), 0U);
  vcpulse_timeline_free(timeline);
}

TEST_F(Library, AnExceptionOfACallbackComesOutOfStop) {
  auto recording = Recording::Attach(OfGuest().OnRecord(
      [](const vcpulse_record&) -> bool { throw std::out_of_range("of the callback"); }));
  std::this_thread::sleep_for(200ms);
  EXPECT_THROW(std::move(recording).Stop(), std::out_of_range);
}

// One that waits for the control thread must not keep what a callback there asks for first.
TEST_F(Library, ACallbackThatMarksBesideAnotherThreadIsRefusedAtOnce) {
  std::atomic<Recording*> steered = nullptr;
  std::atomic<int> refused = 0;
  auto recording = Recording::Attach(OfGuest().Interval(1ms).OnRecord([&](const vcpulse_record&) {
    Recording* const one = steered;
    if (one != nullptr && CodeOf([&] { one->Mark("callback"); }) == VCPULSE_STATUS_NOT_POSSIBLE)
      ++refused;
    return true;
  }));
  steered = &recording;
  auto marks = std::async(std::launch::async, [&] {
    for (int i = 0; i < 300; ++i) recording.Mark("thread");
  });
  if (marks.wait_for(20s) != std::future_status::ready) {
    std::fputs("a mark and a callback wait for each other\n", stderr);
    std::_Exit(1);
  }
  EXPECT_TRUE(Eventually([&] { return refused > 0; }));
  steered = nullptr;
  EXPECT_THAT(std::move(recording).Stop().phases(), ElementsAre("thread"));
}

TEST_F(Library, StopInACallbackIsRefusedAndTheRecordingGoesOn) {
  std::atomic<Recording*> steered = nullptr;
  std::atomic<int> code = -1;
  auto recording = Recording::Attach(OfGuest().OnRecord([&](const vcpulse_record&) {
    Recording* const one = steered.exchange(nullptr);
    if (one != nullptr) code = CodeOf([&] { std::move(*one).Stop(); });
    return true;
  }));
  steered = &recording;
  EXPECT_TRUE(Eventually([&] { return code != -1; }));
  EXPECT_EQ(code, VCPULSE_STATUS_NOT_POSSIBLE);
  recording.Mark("goes on");
  EXPECT_THAT(std::move(recording).Stop().phases(), ElementsAre("goes on"));
}

TEST_F(Library, WhatWasMovedFromOrStoppedRefusesEverything) {
  auto recording = Recording::Attach(OfGuest());
  auto moved = std::move(recording);
  EXPECT_EQ(CodeOf([&] { std::move(recording).Stop(); }),
            VCPULSE_STATUS_INVALID_ARGUMENT);                                        // NOLINT
  EXPECT_EQ(CodeOf([&] { recording.Mark("x"); }), VCPULSE_STATUS_INVALID_ARGUMENT);  // NOLINT
  EXPECT_EQ(CodeOf([&] { std::move(moved).Stop(); }), VCPULSE_STATUS_OK);
  EXPECT_EQ(CodeOf([&] { std::move(moved).Stop(); }), VCPULSE_STATUS_INVALID_ARGUMENT);  // NOLINT
}

TEST_F(Library, AnotherFolderOfTheProcessLosesNoFile) {
  const fs::path before = fs::current_path();
  const fs::path folder = fakes::MakeTemporaryFolder();
  fs::create_directory(folder / "other");
  fs::current_path(folder);
  Options options = OfGuest();
  options.Output("here.vpt");
  fs::current_path(folder / "other");
  auto recording = Recording::Attach(options);
  const Timeline stopped = std::move(recording).Stop();
  EXPECT_TRUE(fs::exists(folder / "here.vpt"));
  fs::current_path(folder);
  const Timeline opened = Timeline::Open("here.vpt");
  fs::current_path(before);
  EXPECT_EQ(CodeOf([&] { stopped.Gaps(); }), VCPULSE_STATUS_OK);
  EXPECT_EQ(CodeOf([&] { opened.Gaps(); }), VCPULSE_STATUS_OK);
  fs::remove_all(folder);
}

TEST_F(Library, CountersThatAreRequiredAreReadOrTheirAbsenceIsSaid) {
  try {
    const Timeline timeline = Recording::Attach(OfGuest().RequireCounters()).Stop();
    EXPECT_EQ(timeline.no_counters_reason(), std::nullopt);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), VCPULSE_STATUS_NOT_POSSIBLE) << error.what();
  }
}

constexpr size_t kThreads = 3;  // of a recording: control, tick, output

// The SigBlk line of each thread of this process that the library runs.
std::vector<uint64_t> BlockedSignalsOfLibraryThreads() {
  std::vector<uint64_t> all;
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    std::string line;
    std::getline(status, line);
    if (line.find("vcpulse-") == std::string::npos) continue;
    while (std::getline(status, line) && line.rfind("SigBlk:", 0) != 0) {
    }
    all.push_back(std::stoull(line.substr(line.find_first_of('\t') + 1), nullptr, 16));
  }
  return all;
}

// Says how many threads of the library there were when it was destroyed.
struct AtDestruction {
  size_t* threads;
  ~AtDestruction() { *threads = BlockedSignalsOfLibraryThreads().size(); }
};

TEST_F(Library, WhatIsAssignedToEndsBeforeItsCallbacksGo) {
  size_t threads = 0;
  std::optional<Recording> recording;
  {
    auto witness = std::make_shared<AtDestruction>(AtDestruction{&threads});
    recording = Recording::Attach(
        OfGuest().OnRecord([witness](const vcpulse_record&) { return witness != nullptr; }));
  }
  auto other = Recording::Attach(OfGuest());
  threads = 0;
  *recording = std::move(other);
  EXPECT_EQ(threads, kThreads) << "those of the other one";
  recording->Mark("goes on");
  EXPECT_THAT(std::move(*recording).Stop().phases(), ElementsAre("goes on"));
}

TEST_F(Library, LeavesSignalsLimitsAndOutputsToItsUser) {
  const auto handler_of = [](int signal) {
    struct sigaction action{};
    sigaction(signal, nullptr, &action);
    return action.sa_handler;
  };
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  auto recording = Recording::Attach(OfGuest());
  const std::vector<uint64_t> blocked = BlockedSignalsOfLibraryThreads();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD}) {
    EXPECT_EQ(handler_of(signal), SIG_DFL) << signal;
    for (const uint64_t mask : blocked) EXPECT_TRUE(mask >> (signal - 1) & 1) << signal;
  }
  std::move(recording).Stop();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(blocked, SizeIs(kThreads));
  rlimit after{};
  getrlimit(RLIMIT_NOFILE, &after);
  EXPECT_EQ(before.rlim_cur, after.rlim_cur);
  sigset_t own;
  pthread_sigmask(SIG_SETMASK, nullptr, &own);
  EXPECT_EQ(sigismember(&own, SIGTERM), 0);
}

}  // namespace
}  // namespace vcpulse::kvm_tests
