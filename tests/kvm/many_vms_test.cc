// Guests that come and go while `vcpulse record --all` watches: it never reads a wrong thread, and
// keeps no descriptor.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kvm/counters/group_opener.h"
#include "kvm/discovery/vmms.h"
#include "kvm/proc_tree.h"
#include "tests/fakes/proc_dir.h"
#include "tests/kvm/microguest_vm.h"
#include "tests/kvm/qemu_guest.h"
#include "tests/kvm/recorded_timeline.h"
#include "tests/kvm/run_program.h"

namespace vcpulse::kvm_tests {
namespace {

constexpr int kGuests = 200;
constexpr int kOfQemu = 5;  // one in so many is QEMU's, whose own threads come and go too
constexpr size_t kMostAlive = 8;
constexpr unsigned kSeed = 20261121;

// Open descriptors of a process, by what they are: "socket", "anon_inode", "file".
std::multiset<std::string> Descriptors(pid_t pid) {
  std::multiset<std::string> all;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/fd"), error)) {
    const std::string link = std::filesystem::read_symlink(entry.path(), error).string();
    all.insert(link.starts_with("/") ? link : link.substr(0, link.find(':')));
  }
  return all;
}

// Whether one of them is a file of a process that has ended, or its pidfd.
bool AnyOfTheDead(pid_t pid) {
  std::error_code error;
  const std::string base = absl::StrCat("/proc/", pid);
  for (const auto& entry : std::filesystem::directory_iterator(base + "/fd", error)) {
    const std::string link = std::filesystem::read_symlink(entry.path(), error).string();
    std::ifstream info(base + "/fdinfo/" + entry.path().filename().string());
    const std::string text((std::istreambuf_iterator<char>(info)), {});
    if (text.find("\nPid:\t-1\n") != std::string::npos) return true;
    if (!link.starts_with("/proc/") || link == "/proc/") continue;
    const std::string process = link.substr(0, link.find('/', 6));
    if (!std::filesystem::exists(process)) return true;
  }
  return false;
}

// A VM instance by PID and start time; its vCPU threads as (TID, start time) with their names.
using Identity = std::pair<pid_t, uint64_t>;
struct Seen {
  std::string name;
  std::map<Identity, int> vcpus;  // thread to index
};

Seen LookAt(const std::string& name, pid_t pid) {
  Seen seen{.name = name, .vcpus = {}};
  for (const kvm::Thread& thread : kvm::ProcTree("/").Threads(pid)) {
    const auto vcpu = kvm::ParseVcpuThreadName(thread.name);
    if (vcpu) seen.vcpus[{thread.tid, thread.stat.start_time_ticks}] = vcpu->index;
  }
  return seen;
}

class ManyVms : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoKvm(); !why.empty()) GTEST_SKIP() << why;
    std::filesystem::create_directories(folder_.Path("out"));
  }

  void StartOne() {
    // Few names, so that they come again.
    const std::string name = absl::StrCat("many-", started_ % 20);
    const int vcpus = 1 + static_cast<int>(random_() % 3);
    if (started_ % kOfQemu == 0) {
      auto guest = QemuGuest::Start({.vcpus = vcpus, .name = name, .debug_threads = true});
      ASSERT_TRUE(guest.ok()) << guest.status();
      alive_.emplace_back(*std::move(guest));
    } else {
      auto guest = MicroguestVm::Start(name, vcpus);
      ASSERT_TRUE(guest.ok()) << guest.status();
      alive_.emplace_back(*std::move(guest));
    }
    const pid_t pid = std::visit([](const auto& guest) { return guest.pid(); }, alive_.back());
    const auto stat = kvm::ProcTree("/").ProcessStat(pid);
    ASSERT_TRUE(stat.has_value());
    Seen& seen = seen_[{pid, stat->start_time_ticks}];
    // A listing of threads may lack one while others of QEMU come and go.
    ASSERT_TRUE(Eventually([&] {
      seen = LookAt(name, pid);
      return seen.vcpus.size() == static_cast<size_t>(vcpus);
    })) << name;
    ++started_;
  }

  void KillOne() {
    const size_t victim = random_() % alive_.size();
    std::swap(alive_[victim], alive_.back());
    alive_.pop_back();
  }

  fakes::ProcDir folder_;
  std::string output_ = folder_.Path("out/x.vpt");
  std::mt19937 random_{kSeed};
  std::vector<std::variant<QemuGuest, MicroguestVm>> alive_;
  std::map<Identity, Seen> seen_;
  int started_ = 0;
};

TEST_F(ManyVms, NoWrongThreadIsReadAndNoDescriptorIsKept) {
  std::cout << "seed " << kSeed << "\n";
  RunningProgram record(Vcpulse({"record", "--all", "-i", "20ms", "-o", output_}));
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(output_); }));
  absl::SleepFor(absl::Milliseconds(1500));  // past its first rescan
  const auto descriptors_before = Descriptors(record.pid());

  const absl::Time begin = absl::Now();
  while (started_ < kGuests) {
    // Rather many than few alive, in any order.
    if (alive_.size() < kMostAlive && (alive_.empty() || random_() % 8 < 5)) {
      StartOne();
      if (HasFatalFailure()) return;
    } else {
      KillOne();
    }
    absl::SleepFor(absl::Milliseconds(random_() % 60));
  }
  alive_.clear();
  const absl::Duration took = absl::Now() - begin;
  ASSERT_EQ(seen_.size(), static_cast<size_t>(kGuests));

  EXPECT_TRUE(Eventually([&] { return !AnyOfTheDead(record.pid()); }));
  absl::SleepFor(absl::Milliseconds(1500));  // one rescan more
  const auto descriptors_after = Descriptors(record.pid());
  record.Signal(SIGINT);
  const Finished finished = record.Wait();
  ASSERT_EQ(finished.exit_code, 0) << finished.err;

  const Timeline timeline = ReadBack(output_);
  EXPECT_TRUE(timeline.report.damages.empty());
  std::set<Identity> recorded;
  size_t vcpus = 0;
  for (const v1::VcpuSet& set : timeline.sets) {
    const v1::VmInstance& instance = set.instance();
    if (!instance.name().starts_with("many-")) continue;
    const Identity identity = {static_cast<pid_t>(instance.pid()), instance.start_time_ticks()};
    const auto seen = seen_.find(identity);
    ASSERT_NE(seen, seen_.end()) << "PID " << instance.pid() << " was not started here";
    EXPECT_EQ(instance.name(), seen->second.name);
    recorded.insert(identity);
    for (const v1::Vcpu& vcpu : set.vcpus()) {
      ++vcpus;
      const Identity thread = {static_cast<pid_t>(vcpu.tid()), vcpu.start_time_ticks()};
      const auto found = seen->second.vcpus.find(thread);
      ASSERT_NE(found, seen->second.vcpus.end())
          << instance.name() << ": TID " << vcpu.tid() << " was not a vCPU of it";
      EXPECT_EQ(found->second, static_cast<int>(vcpu.index()));
    }
  }
  // Each VM that was found has ended too.
  std::map<uint32_t, int> open;
  for (const v1::LifeCycle& change : timeline.life_cycles) {
    if (change.vm() == 0) continue;  // one that was skipped: it has no number
    if (change.kind() == v1::LifeCycle::KIND_VM_FOUND) ++open[change.vm()];
    if (change.kind() == v1::LifeCycle::KIND_VM_ENDED) --open[change.vm()];
  }
  for (const auto& [vm, balance] : open) EXPECT_EQ(balance, 0) << "VM " << vm;
  std::cout << kGuests << " guests in " << absl::ToDoubleSeconds(took) << " s, " << recorded.size()
            << " of them recorded, " << timeline.sets.size() << " epochs, " << vcpus << " vCPUs, "
            << timeline.ticks.size() << " samples; " << descriptors_before.size()
            << " descriptors before, " << descriptors_after.size() << " after\n";
  // Runs alone (RUN_SERIAL): a guest of somebody else would change the count.
  EXPECT_EQ(descriptors_after, descriptors_before);
  EXPECT_GE(recorded.size(), static_cast<size_t>(kGuests) / 4);
}

// A recording that runs short of descriptors.
class FewDescriptors : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoKvm(); !why.empty()) GTEST_SKIP() << why;
  }

  static QemuGuest Start(const GuestOptions& options) {
    auto guest = QemuGuest::Start(options);
    if (!guest.ok()) throw std::runtime_error(guest.status().ToString());
    return *std::move(guest);
  }

  std::vector<std::string> Record(const std::string& target, const std::string& name) const {
    std::vector<std::string> all = Vcpulse({"record", "-i", "50ms", "-o", output_, target});
    if (!name.empty()) all.push_back(name);
    return all;
  }

  // What the counters and scheduler files of the vCPUs recorded now take.
  static size_t TakenByVcpus(pid_t record) {
    size_t taken = 0;
    for (const std::string& what : Descriptors(record)) {
      const bool scheduling = what.starts_with("/proc/") && what.find("/task/") != what.npos;
      taken += what == "anon_inode" || scheduling ? 1 : 0;
    }
    return taken;
  }

  // From now on it may open so many more.
  static void Spare(pid_t record, size_t more) {
    const rlim_t most = Descriptors(record).size() + more;
    const rlimit limit{.rlim_cur = most, .rlim_max = most};
    ASSERT_EQ(prlimit(record, RLIMIT_NOFILE, &limit, nullptr), 0);
  }

  Timeline Finish(RunningProgram& record) const {
    record.Signal(SIGINT);
    const Finished finished = record.Wait();
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return ReadBack(output_);
  }

  int Check(const std::string& expectation) const {
    const Finished finished = RunProgram(Vcpulse({"check", output_, "--expect", expectation}));
    EXPECT_TRUE(finished.exit_code != 2) << finished.err;
    return finished.exit_code;
  }

  fakes::ProcDir folder_;
  std::string output_ = folder_.Path("x.vpt");
};

// The new epoch needs descriptors of its own; where they are too few beside those of the old one,
// the old one is closed first. What still cannot be opened is named, and no vcpu=* passes.
TEST_F(FewDescriptors, AHotPluggedVcpuIsRecordedOrNamed) {
  for (const bool enough : {true, false}) {
    const QemuGuest guest = Start({.max_vcpus = 4,
                                   .name = "few-plug",
                                   .debug_threads = true,
                                   .qmp_unix = true,
                                   .more = {"-machine", "pc", "-cpu", "qemu64"}});
    RunningProgram record(Record("--vm", "few-plug"));
    ASSERT_TRUE(Eventually([&] { return !ReadSoFar(output_).ticks.empty(); }));
    const size_t each = TakenByVcpus(record.pid());
    ASSERT_GE(each, 2u);
    // Of both vCPUs at once, after the old set is closed; or not even then. A recording leaves some
    // free for what looks at processes.
    Spare(record.pid(), enough ? each + kvm::kSpareDescriptors + 1 : 1);
    Qmp(guest.qmp_unix(),
        R"({"execute":"device_add","arguments":{"driver":"qemu64-x86_64-cpu","id":"more",)"
        R"("socket-id":0,"core-id":2,"thread-id":0}})");
    ASSERT_THAT(QmpTids(guest.qmp_unix()), ::testing::SizeIs(2));
    ASSERT_TRUE(Eventually([&] { return ReadSoFar(output_).sets.size() >= 2; }))
        << "the old epoch goes on without the new vCPU";
    const Timeline timeline = Finish(record);
    const v1::VcpuSet& last = timeline.sets.back();
    EXPECT_EQ(last.vcpus_size() + last.unopened_vcpus_size(), 2);
    if (enough) {
      EXPECT_EQ(last.vcpus_size(), 2);
    }
    EXPECT_EQ(Check("vcpu=*: starved <= 100%"), last.vcpus_size() == 2 ? 0 : 3);
    for (const Timeline::Tick& tick : timeline.ticks) {
      if (tick.epoch == last.epoch()) continue;
      EXPECT_LE(tick.sample.wake_ns, last.mono_ns() + 100'000'000) << "of the old epoch";
    }
    std::filesystem::remove(output_);
  }
}

// It was meant, and was not recorded: nothing that could mean it passes.
TEST_F(FewDescriptors, AVmThatWasSkippedIsNoPass) {
  const QemuGuest first = Start({.name = "few-first", .debug_threads = true});
  RunningProgram record(Record("--all", ""));
  ASSERT_TRUE(Eventually([&] { return !ReadSoFar(output_).ticks.empty(); }));
  Spare(record.pid(), 1);
  QemuGuest second = Start({.name = "few-second", .debug_threads = true});
  const auto said_of_second = [this](v1::LifeCycle::Kind kind) {
    return Eventually([&] {
      return std::ranges::any_of(ReadSoFar(output_).Of(kind), [](const v1::LifeCycle& life) {
        return life.instance().name() == "few-second";
      });
    });
  };
  ASSERT_TRUE(said_of_second(v1::LifeCycle::KIND_VM_SKIPPED));
  second.Kill();
  EXPECT_TRUE(said_of_second(v1::LifeCycle::KIND_VM_ENDED));
  Finish(record);
  EXPECT_EQ(Check("gaps <= 20%"), 3);
  EXPECT_EQ(Check("vm=* vcpu=*: starved <= 100%"), 3);
  EXPECT_EQ(Check("vm=few-second vcpu=*: starved <= 100%"), 3);
  EXPECT_EQ(Check("vm=few-first vcpu=*: starved <= 100%"), 0);
}

}  // namespace
}  // namespace vcpulse::kvm_tests
