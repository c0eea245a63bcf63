#include "kvm/doctor/proof.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "kvm/base/affinity.h"
#include "kvm/base/clock.h"
#include "kvm/base/text.h"
#include "kvm/doctor/guest_counts.h"
#include "kvm/doctor/judgement.h"
#include "kvm/host.h"
#include "kvm/microguest/machine.h"

namespace vcpulse::kvm::doctor {
namespace {

using microguest::FindProgram;
using microguest::Machine;
using microguest::Program;
using microguest::Programs;
using microguest::Truth;
using microguest::Turns;
using State = Finding::State;

constexpr size_t kVcpus = 2;
constexpr absl::Duration kPatience = absl::Seconds(10);  // for one run
constexpr absl::Duration kAtMost = absl::Seconds(30);    // for all
constexpr absl::Duration kRun = absl::Milliseconds(30);  // of a program that is counted
// Of the run before it. vCPUs that wait for each other may have one CPU together, and then a turn
// takes a time slice of each.
constexpr uint64_t kFirstTurns = 2000;
constexpr uint64_t kFirstTurnsTogether = 20;
constexpr uint64_t kForEver = ~uint64_t{0};
constexpr size_t kChainBytes = 8 << 20;
constexpr absl::Duration kHostWork = absl::Milliseconds(20);
constexpr char kNotPinned[] = "this host does not let a vCPU's thread be moved to a CPU";

constexpr char kDoNotTrust[] =
    "do not trust this event here: name other ones with -e, and report it with this output";

// A machine of two vCPUs and their counters, where this host has any; each claim is a member.
class Prover {
 public:
  Prover(PerfEvents& perf, const ProofOptions& options, Machine& machine)
      : perf_(perf), options_(options), machine_(machine) {}

  std::vector<Finding> All() {
    OpenCounters();
    if (counts_ && !ProveHostWork()) {
      Add("programs", State::kUnknown, "ran programs in a guest",
          "not tried: what the host does would count in each");
      return std::move(findings_);
    }
    for (const Program& program : Programs()) {
      if (program.CountsAreKnown()) Try([&] { ProveProgram(program); });
    }
    JudgeIpcs();
    Try([&] { ProveHalt(); });
    if (counts_) {
      Try([&] { ProveClocks(); });
      Try([&] { ProveTwoReaders(); });
      Try([&] { ProvePreemption(); });
      Try([&] { ProveMigration(); });
    }
    if (left_out_) {
      Add("time", State::kUnknown, "tried each claim",
          absl::StrCat("the rest was not tried: it took more than ",
                       absl::FormatDuration(kAtMost)));
    }
    return std::move(findings_);
  }

 private:
  // A guest that hangs may hang in every claim.
  template <typename Claim>
  void Try(const Claim& claim) {
    left_out_ = left_out_ || end_.over();
    if (!left_out_) claim();
  }

  void Add(std::string_view id, State state, std::string tried, std::string answered,
           std::string fix = "") {
    findings_.push_back({.id = std::string(id),
                         .state = state,
                         .tried = std::move(tried),
                         .answered = std::move(answered),
                         .fix = std::move(fix)});
  }

  // `what` begins the answer.
  void Add(std::string_view id, const std::string& tried, const std::string& what,
           const Judgement& judgement) {
    findings_.push_back(judgement.ToFinding(id, tried, what, kDoNotTrust));
  }

  void OpenCounters() {
    const std::string tried = "opened the counters of a guest's vCPUs";
    auto opened = GuestCounts::Open(perf_, options_.root, options_.pause, machine_);
    if (!opened.ok()) {
      return Add("counters", State::kUnknown, tried,
                 absl::StrCat("nothing to prove: ", opened.status().message()));
    }
    counts_ = *std::move(opened);
    std::string answered = absl::StrCat("guest only: ", absl::StrJoin(counts_->Events(), ", "));
    if (!counts_->Counts("branches")) absl::StrAppend(&answered, "; branches are not proven");
    Add("counters", State::kOk, tried, answered);
  }

  absl::StatusOr<std::vector<Turns>> Collect(size_t vcpus) {
    std::vector<Turns> did;
    absl::Status status;
    for (size_t i = 0; i < vcpus; ++i) {
      auto one = machine_.Wait(i, std::min(kPatience, std::max(end_.left(), absl::ZeroDuration())));
      if (one.ok()) did.push_back(*one);
      status.Update(one.status());
    }
    if (!status.ok()) return status;
    return did;
  }

  // Counts go from zero from here on. Errors: of read(2).
  static absl::Status Begin(std::span<GuestCounts> readers, size_t vcpus) {
    absl::Status status;
    for (GuestCounts& reader : readers) {
      for (size_t i = 0; i < vcpus; ++i) status.Update(reader.Begin(i));
    }
    return status;
  }

  std::span<GuestCounts> OneReader() { return {&*counts_, 1}; }

  // What so many vCPUs did that ran the program until `meanwhile` was over, counted from zero.
  // Errors: of a vCPU, of `meanwhile`, of read(2).
  template <typename Meanwhile>
  absl::StatusOr<std::vector<Turns>> RunCounted(std::span<GuestCounts> readers,
                                                const Program& program, size_t vcpus,
                                                const Meanwhile& meanwhile) {
    absl::Status status = Begin(readers, vcpus);
    for (size_t i = 0; i < vcpus; ++i) machine_.Start(i, program, kForEver);
    status.Update(meanwhile());
    for (size_t i = 0; i < vcpus; ++i) machine_.Stop(i);
    auto did = Collect(vcpus);
    if (!status.ok()) return status;
    return did;
  }

  static absl::Status SleepForARun() {
    absl::SleepFor(kRun);
    return absl::OkStatus();
  }

  // First a fixed number of turns: also where there are no counters, and so that what is
  // counted finds memory that was touched before.
  void ProveProgram(const Program& program) {
    if (program.name == "chase") machine_.memory().ChainData(kChainBytes);
    const std::string what(program.what);
    const std::string tried =
        absl::StrCat("ran ", what, " in a guest", program.vcpus > 1 ? " of 2 vCPUs" : "");
    const uint64_t turns = program.vcpus > 1 ? kFirstTurnsTogether : kFirstTurns;
    for (size_t i = 0; i < program.vcpus; ++i) machine_.Start(i, program, turns);
    const auto first = Collect(program.vcpus);
    if (!first.ok()) return Add(program.name, tried, "", Judgement(first.status()));
    for (const Turns& one : *first) {
      if (one.turns == turns) continue;
      return Add(program.name, State::kFail, tried,
                 absl::StrCat(what, ": the guest made ", WithThousands(one.turns), " turns of ",
                              WithThousands(turns)),
                 "this KVM does not run guests faithfully: please report it");
    }
    if (!counts_) {
      return Add(program.name, State::kNote, tried,
                 absl::StrCat(what, ": made all ", WithThousands(turns),
                              " turns; there is no counter to compare"));
    }
    const auto did = RunCounted(OneReader(), program, program.vcpus, SleepForARun);
    if (!did.ok()) return Add(program.name, tried, "", Judgement(did.status()));
    std::vector<std::string> made;
    for (const Turns& one : *did) made.push_back(WithThousands(one.turns));
    Add(program.name, tried, absl::StrCat(what, ", ", absl::StrJoin(made, " and "), " turns: "),
        Judge(OneReader(), program, *did));
  }

  // Instructions per cycle, of a program that one vCPU ran.
  void TakeIpc(const Counts& counted) {
    const auto cycles = counted.Of("cycles");
    const auto instructions = counted.Of("instructions");
    if (!cycles || !instructions || *cycles == 0 || !counted.Whole()) return;
    ipcs_.push_back(static_cast<double>(*instructions) / static_cast<double>(*cycles));
  }

  // Programs as unlike as divisions and an empty loop run at one IPC on an emulated PMU alone.
  void JudgeIpcs() {
    constexpr size_t kFewest = 3;
    constexpr double kAlike = 1.1;
    if (ipcs_.size() < kFewest) return;
    const std::string tried = "compared the instructions per cycle of the programs";
    const auto failed = [](const Finding& finding) { return finding.state == State::kFail; };
    if (std::ranges::any_of(findings_, failed)) {  // a wrong counter makes IPC meaningless
      return Add("ipc", State::kUnknown, tried, "not judged: a claim above failed");
    }
    const auto [least, most] = std::ranges::minmax(ipcs_);
    if (most > kAlike * least) {
      return Add("ipc", State::kOk, tried,
                 absl::StrFormat("programs ran at IPCs from %.2f to %.2f", least, most));
    }
    Add("ipc", State::kNote, tried,
        absl::StrFormat("every program ran at about the same IPC (%.2f): cycles are not those of a "
                        "CPU (an emulated PMU), so bands by IPC mean nothing on this host",
                        most));
  }

  // All readers of what these vCPUs did.
  Judgement Judge(std::span<GuestCounts> readers, const Program& program,
                  const std::vector<Turns>& did) {
    Judgement judgement;
    for (GuestCounts& reader : readers) {
      for (size_t i = 0; i < did.size(); ++i) {
        const auto counted = reader.Since(i);
        if (!counted.ok()) return Judgement(counted.status());
        judgement.TakeTimes(*counted);
        if (did.size() == 1 && readers.size() == 1) TakeIpc(*counted);
        const std::string whose =
            absl::StrCat(readers.size() > 1 && &reader == readers.data() ? "first reader: " : "",
                         readers.size() > 1 && &reader != readers.data() ? "second reader: " : "",
                         did.size() > 1 ? absl::StrCat("vCPU ", i, ": ") : "");
        for (const auto& [event, expected] : Expected(program, did[i])) {
          const auto count = counted->Of(event);
          if (count) judgement.Compare(whose, event, expected, *count);
        }
      }
    }
    return judgement;
  }

  std::vector<std::pair<std::string, uint64_t>> Expected(const Program& program,
                                                         const Turns& did) const {
    std::vector<std::pair<std::string, uint64_t>> expected = {
        {"instructions", program.Instructions(did)}, {"branches", program.Branches(did)}};
    if (options_.pause && program.name == "pause") {
      expected.emplace_back(options_.pause->name, did.turns);
    }
    return expected;
  }

  // What the host does on a vCPU's thread must not count. Whether it does not, or that is not told.
  bool ProveHostWork() {
    const std::string id = "host-work";
    const std::string tried = "kept a vCPU's thread busy outside the guest";
    const absl::Status begun = Begin(OneReader(), 1);
    machine_.StartOnHost(0, [] { BurnCpu(kHostWork); });
    const auto waited = machine_.Wait(0, kPatience);
    const auto counted = counts_->Since(0);
    for (const absl::Status& status : {begun, waited.status(), counted.status()}) {
      if (status.ok()) continue;
      Add(id, tried, "", Judgement(status));
      return true;
    }
    Judgement judgement;
    judgement.TakeTimes(*counted);
    judgement.CompareNothing("20 ms of work of vcpulse's own, outside the guest,", *counted);
    if (!judgement.ran())
      judgement = Judgement(absl::UnavailableError("the counters were never on"));
    findings_.push_back(judgement.ToFinding(
        id, tried, "",
        "record on a host whose hypervisor, if it has one, honours guest-only counting "
        "(exclude_host): here bands would show the host's work as the guest's"));
    return findings_.back().state != State::kFail;
  }

  // Nor what a halted guest does not do.
  void ProveHalt() {
    const std::string tried = "halted a guest for 50 ms";
    machine_.Start(0, *FindProgram("halt"), kForEver);
    absl::SleepFor(absl::Milliseconds(20));
    const absl::Status begun = counts_ ? Begin(OneReader(), 1) : absl::OkStatus();
    absl::SleepFor(absl::Milliseconds(50));
    Judgement judgement;
    if (counts_) {
      const auto counted = counts_->Since(0);
      if (counted.ok()) {
        judgement.TakeTimes(*counted);
        judgement.CompareNothing("a guest that was halted for 50 ms", *counted);
      } else {
        judgement = Judgement(counted.status());
      }
    }
    machine_.Stop(0);
    const auto waited = machine_.Wait(0, kPatience);
    if (!begun.ok()) judgement = Judgement(begun);
    if (!waited.ok()) judgement = Judgement(waited.status());
    if (!counts_ && waited.ok()) return Add("halt", State::kNote, tried, "a guest halted");
    findings_.push_back(judgement.ToFinding(
        "halt", tried, "", "do not trust HALTED here, and report it with this output"));
  }

  // Cycles and reference cycles must come at rates that a clock can have.
  void ProveClocks() {
    const std::string tried = "took the rates of the clocks while a guest ran";
    const auto did = RunCounted(OneReader(), *FindProgram("loop"), 1, SleepForARun);
    const auto counted = counts_->Since(0);
    for (const absl::Status& status : {did.status(), counted.status()}) {
      if (!status.ok()) return Add("clocks", tried, "", Judgement(status));
    }
    Judgement judgement;
    judgement.TakeTimes(*counted);
    // Not of the time that passed: on a busy host the thread waits for its CPU.
    const auto running_ns = static_cast<double>(counted->running_ns);
    if (running_ns == 0) return Add("clocks", State::kUnknown, tried, "the counters were never on");
    for (const std::string event : {"cycles", "ref-cycles"}) {
      const auto count = counted->Of(event);
      if (!count) continue;
      const auto tsc_hz =
          event == "ref-cycles" ? MeasureTscHz(absl::Milliseconds(20)) : std::nullopt;
      judgement.CompareRate(event, static_cast<double>(*count) / running_ns * 1e9, tsc_hz);
    }
    Add("clocks", tried, "", judgement);
  }

  // The loop on so many vCPUs until `meanwhile` has disturbed it.
  template <typename Meanwhile>
  Judgement JudgeLoop(std::span<GuestCounts> readers, size_t vcpus, const Meanwhile& meanwhile) {
    const Program& program = *FindProgram("loop");
    const auto did = RunCounted(readers, program, vcpus, meanwhile);
    return did.ok() ? Judge(readers, program, *did) : Judgement(did.status());
  }

  // Another one that counts the same vCPU, such as a second vcpulse or perf.
  void ProveTwoReaders() {
    const std::string tried = "counted a vCPU twice at a time";
    auto second = GuestCounts::Open(perf_, options_.root, options_.pause, machine_);
    if (!second.ok()) return Add("two-readers", tried, "", Judgement(second.status()));
    std::vector<GuestCounts> readers;
    readers.push_back(*std::move(counts_));
    readers.push_back(*std::move(second));
    const Judgement judgement = JudgeLoop(readers, 1, SleepForARun);
    counts_ = std::move(readers.front());
    if (!judgement.whole() && judgement.ran()) {
      return Add("two-readers", State::kNote, tried,
                 "both do not fit this PMU: they take turns, and their counts are estimates");
    }
    Add("two-readers", tried, "two readers of one vCPU: ", judgement);
  }

  // Two vCPUs that take turns on one CPU.
  void ProvePreemption() {
    const std::string tried = "ran two vCPUs on one CPU";
    const std::vector<int> cpus = OwnCpus();
    bool pinned = true;
    for (size_t i = 0; i < kVcpus; ++i)
      pinned = KeepToCpus(machine_.Tid(i), {cpus.data(), 1}) && pinned;
    const Judgement judgement = JudgeLoop(OneReader(), kVcpus, [&] {
      absl::SleepFor(2 * kRun);
      return pinned ? HaveTakenTurns() : absl::UnavailableError(kNotPinned);
    });
    for (size_t i = 0; i < kVcpus; ++i) KeepToCpus(machine_.Tid(i), cpus);
    Add("preemption", tried, "two vCPUs in turn on one CPU: ", judgement);
  }

  // Both were on the CPU that they share for a while, and neither has ended: it was taken from one
  // for the other.
  absl::Status HaveTakenTurns() {
    for (size_t i = 0; i < kVcpus; ++i) {
      const auto counted = counts_->Since(i);
      if (!counted.ok()) return counted.status();
      if (absl::Nanoseconds(counted->enabled_ns) < kRun / 10) {
        return absl::UnavailableError(
            absl::StrCat("vCPU ", i, " did not get the CPU that it shared"));
      }
    }
    return absl::OkStatus();
  }

  void ProveMigration() {
    const std::string tried = "moved a vCPU from CPU to CPU while it ran";
    const std::vector<int> cpus = OwnCpus();
    if (cpus.size() < 2) {
      return Add("migration", State::kNote, tried, "not tried: there is one CPU to run on");
    }
    const pid_t tid = machine_.Tid(0);
    const Judgement judgement = JudgeLoop(OneReader(), 1, [&] {
      bool moved = true;
      for (size_t i = 0; i < 20; ++i) {
        moved = KeepToCpus(tid, {&cpus[i % cpus.size()], 1}) && moved;
        absl::SleepFor(absl::Milliseconds(1));
      }
      return moved ? absl::OkStatus() : absl::UnavailableError(kNotPinned);
    });
    KeepToCpus(tid, cpus);
    Add("migration", tried, "a vCPU moved from CPU to CPU: ", judgement);
  }

  PerfEvents& perf_;
  const ProofOptions& options_;
  Machine& machine_;
  const Deadline end_{kAtMost};
  bool left_out_ = false;
  std::optional<GuestCounts> counts_;
  std::vector<double> ipcs_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> Prove(PerfEvents& perf, const ProofOptions& options) {
  auto machine = Machine::Create(kVcpus, {.pause_exits = microguest::PauseExits::kNone});
  if (!machine.ok()) {
    return {{.id = "guest",
             .state = State::kUnknown,
             .tried = "made a guest of a few instructions",
             .answered = std::string(machine.status().message())}};
  }
  return Prover(perf, options, **machine).All();
}

std::string_view ToString(Proven proven) {
  switch (proven) {
    case Proven::kYes:
      return "yes";
    case Proven::kNo:
      return "no";
    case Proven::kNotTold:
      return "not-told";
  }
  return "";
}

Proven IsProven(std::span<const Finding> findings) {
  if (std::ranges::count(findings, State::kFail, &Finding::state) > 0) return Proven::kNo;
  const bool told = std::ranges::count(findings, State::kUnknown, &Finding::state) == 0;
  return told && !findings.empty() ? Proven::kYes : Proven::kNotTold;
}

}  // namespace vcpulse::kvm::doctor
