#include "kvm/microguest/machine.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/base/signals.h"
#include "kvm/microguest/architecture.h"
#include "kvm/microguest/sandbox.h"

namespace vcpulse::kvm::microguest {
namespace {

// How long a vCPU may take to leave the guest.
constexpr absl::Duration kLeavePatience = absl::Seconds(5);

int KickSignal() { return SIGRTMIN; }

// KVM reads it at the begin of each KVM_RUN; the vCPU's thread and the one that kicks it write it.
std::atomic_ref<uint8_t> ImmediateExit(kvm_run& run) { return std::atomic_ref(run.immediate_exit); }

// A signal ends KVM_RUN only where it has a handler. Whether it has one now.
bool InstallKick() {
  static const bool installed = [] {
    struct sigaction action{};
    action.sa_handler = [](int) {};
    return sigaction(KickSignal(), &action, nullptr) == 0;
  }();
  return installed;
}

// Also where a signal comes meanwhile.
int CreateVm(int kvm_fd) {
  while (true) {
    const int fd = ioctl(kvm_fd, KVM_CREATE_VM, VmType(kvm_fd));
    if (fd >= 0 || errno != EINTR) return fd;
  }
}

absl::Status OpenFailure(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(
          "/dev/kvm may not be opened: run as root, or add your user to its group (kvm)");
    case ENOENT:
    case ENODEV:
    case ENXIO:
      return absl::NotFoundError(
          "this machine has no /dev/kvm: load KVM's module, or allow nested virtualization where "
          "this machine is a guest itself");
    default:
      return absl::ErrnoToStatus(error, "cannot open /dev/kvm");
  }
}

// KVM_INTERNAL_ERROR_EMULATION, which the header lacks on arm64.
constexpr uint32_t kCannotEmulate = 1;

std::string WhyItLeft(const kvm_run& run) {
  switch (run.exit_reason) {
    case KVM_EXIT_FAIL_ENTRY:
      return absl::StrCat("this CPU refused to enter the guest (reason 0x",
                          absl::Hex(run.fail_entry.hardware_entry_failure_reason), ")");
    case KVM_EXIT_INTERNAL_ERROR:
      return absl::StrCat("KVM gave up on the guest (internal error ", run.internal.suberror, ")");
    case KVM_EXIT_SHUTDOWN:
    case KVM_EXIT_MMIO:  // arm64: of its vectors
      return "the guest crashed";
    default:
      return absl::StrCat("the guest was left for another reason than its program's end (exit ",
                          run.exit_reason, ")");
  }
}

absl::Status HowItEnded(const kvm_run& run) {
  if (HasFinished(run)) return absl::OkStatus();
  if (run.exit_reason == KVM_EXIT_INTERNAL_ERROR && run.internal.suberror == kCannotEmulate) {
    return absl::UnimplementedError("KVM could not emulate an instruction of the guest");
  }
  return absl::InternalError(WhyItLeft(run));
}

}  // namespace

Machine::Machine(Fd kvm, Fd vm, GuestMemory memory)
    : kvm_(std::move(kvm)), vm_(std::move(vm)), memory_(std::move(memory)) {}

absl::StatusOr<std::unique_ptr<Machine>> Machine::Create(size_t vcpus,
                                                         const MachineOptions& options) {
  if (vcpus > kMostVcpus) return absl::InvalidArgumentError("too many vCPUs for a microguest");
  if (!InstallKick()) return absl::InternalError("the signal SIGRTMIN takes no handler");
  Fd kvm(open("/dev/kvm", O_RDWR | O_CLOEXEC));
  if (!kvm.valid()) return OpenFailure(errno);
  Fd vm(CreateVm(kvm.get()));
  if (!vm.valid()) return absl::ErrnoToStatus(errno, "KVM cannot make a VM");
  auto memory = GuestMemory::Create(options.data_bytes);
  if (!memory.ok()) return memory.status();
  std::unique_ptr<Machine> machine(new Machine(std::move(kvm), std::move(vm), *std::move(memory)));
  const kvm_userspace_memory_region region{
      .slot = 0,
      .guest_phys_addr = 0,
      .memory_size = machine->memory_.bytes(),
      .userspace_addr = reinterpret_cast<uint64_t>(machine->memory_.begin())};
  if (ioctl(machine->vm_.get(), KVM_SET_USER_MEMORY_REGION, &region) != 0) {
    return absl::ErrnoToStatus(errno, "KVM refused the guest's memory");
  }
  absl::Status status = PrepareVm(machine->vm_.get(), machine->memory_,
                                  options.pause_exits == PauseExits::kAsForAnyVm);
  for (size_t i = 0; i < vcpus && status.ok(); ++i) status = machine->AddVcpu(i);
  if (!status.ok()) return status;
  return machine;
}

absl::Status Machine::AddVcpu(size_t index) {
  auto vcpu = std::make_unique<Vcpu>();
  vcpu->fd = Fd(ioctl(vm_.get(), KVM_CREATE_VCPU, index));
  if (!vcpu->fd.valid()) return absl::ErrnoToStatus(errno, "KVM cannot make a vCPU");
  vcpu->statistics = Fd(ioctl(vcpu->fd.get(), KVM_GET_STATS_FD, nullptr));
  vcpu->run_bytes = static_cast<size_t>(ioctl(kvm_.get(), KVM_GET_VCPU_MMAP_SIZE, 0));
  void* const run =
      mmap(nullptr, vcpu->run_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu->fd.get(), 0);
  if (run == MAP_FAILED) return absl::ErrnoToStatus(errno, "a vCPU's state cannot be mapped");
  vcpu->run = static_cast<kvm_run*>(run);
  absl::Status status = PrepareVcpu(kvm_.get(), vm_.get(), vcpu->fd.get());
  if (!status.ok()) return status;
  try {
    vcpu->thread = std::thread(&Machine::Live, std::ref(*vcpu), index);
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no thread for a vCPU: ", error.code().message()));
  }
  Vcpu& added = *vcpus_.emplace_back(std::move(vcpu));
  std::unique_lock lock(added.mutex);
  added.changed.wait(lock, [&] { return added.done.has_value(); });
  return absl::OkStatus();
}

Machine::~Machine() {
  for (const auto& vcpu : vcpus_) {
    {
      const std::lock_guard lock(vcpu->mutex);
      vcpu->ends = true;
      Kick(*vcpu);
    }
    vcpu->changed.notify_all();
    vcpu->thread.join();
  }
}

Machine::Vcpu::~Vcpu() {
  if (run != nullptr) munmap(run, run_bytes);
}

pid_t Machine::Tid(size_t vcpu) const { return vcpus_[vcpu]->tid; }

void Machine::Live(Vcpu& vcpu, size_t index) {
  // Whatever mask its creator had, the kick comes here, and what is meant for others does not.
  const BlockedSignals blocked;
  sigset_t kick;
  sigemptyset(&kick);
  sigaddset(&kick, KickSignal());
  pthread_sigmask(SIG_UNBLOCK, &kick, nullptr);
  pthread_setname_np(pthread_self(), absl::StrCat("CPU ", index, "/KVM").c_str());
  EnterSandbox();
  std::unique_lock lock(vcpu.mutex);
  vcpu.tid = static_cast<pid_t>(syscall(SYS_gettid));
  vcpu.done = absl::OkStatus();
  vcpu.changed.notify_all();
  while (true) {
    vcpu.changed.wait(lock, [&] { return vcpu.ends || vcpu.job != nullptr; });
    if (vcpu.ends) return;
    const std::function<absl::Status()> job = std::exchange(vcpu.job, nullptr);
    lock.unlock();
    absl::Status status = job();
    lock.lock();
    vcpu.done = std::move(status);
    vcpu.changed.notify_all();
  }
}

bool Machine::IsIdle() const {
  return std::ranges::all_of(vcpus_, [](const auto& vcpu) {
    const std::lock_guard lock(vcpu->mutex);
    return vcpu->done.has_value();
  });
}

void Machine::Post(size_t index, bool halts, uint64_t turns, std::function<absl::Status()> job) {
  if (IsIdle()) memory_.FreeLocks();
  Vcpu& vcpu = *vcpus_[index];
  {
    const std::lock_guard lock(vcpu.mutex);
    if (!vcpu.done) return;
    vcpu.done.reset();
    vcpu.halts = halts;
    vcpu.inside_ns = 0;
    vcpu.leaves = false;
    memory_.MailboxOf(index) = {.turns = 0, .limit = turns, .looks = 0, .spin_bits = PhaseBits()};
    vcpu.job = std::move(job);
  }
  vcpu.changed.notify_all();
}

void Machine::Start(size_t vcpu, const Program& program, uint64_t turns) {
  const uint64_t entry = kCode + EntryOf(program);
  const uint64_t mailbox = kMailboxes + vcpu * 0x1000;
  Post(vcpu, program.truth == Truth::kHalted && !program.wakes, turns,
       [&one = *vcpus_[vcpu], entry, mailbox] { return Run(one, entry, mailbox); });
}

void Machine::StartOnHost(size_t vcpu, std::function<void()> work) {
  Post(vcpu, /*halts=*/false, 0, [work = std::move(work)] {
    work();
    return absl::OkStatus();
  });
}

absl::Status Machine::Run(Vcpu& vcpu, uint64_t entry, uint64_t mailbox) {
  absl::Status status = SetRegisters(vcpu.fd.get(), entry, mailbox);
  if (!status.ok()) return status;
  ImmediateExit(*vcpu.run) = 0;
  while (!vcpu.leaves) {
    const int64_t entered_ns = MonotonicNow_ns();
    const int error = ioctl(vcpu.fd.get(), KVM_RUN, 0) != 0 ? errno : 0;
    vcpu.inside_ns += MonotonicNow_ns() - entered_ns;
    if (error == EINTR || error == EAGAIN) continue;
    if (error != 0) return absl::ErrnoToStatus(error, "KVM cannot run the guest");
    if (vcpu.run->exit_reason == KVM_EXIT_HLT) {
      std::unique_lock lock(vcpu.mutex);
      vcpu.changed.wait(lock, [&] { return vcpu.leaves.load(); });
    } else if (vcpu.run->exit_reason != KVM_EXIT_INTR) {
      absl::Status ended = HowItEnded(*vcpu.run);
      // KVM goes on behind that instruction when it is entered next: before new registers are set.
      ImmediateExit(*vcpu.run) = 1;
      ioctl(vcpu.fd.get(), KVM_RUN, 0);
      return ended;
    }
  }
  return absl::OkStatus();
}

// `leaves` is seen before KVM_RUN, `immediate_exit` at its begin, the signal within.
void Machine::Kick(Vcpu& vcpu) {
  vcpu.leaves = true;
  ImmediateExit(*vcpu.run) = 1;
  syscall(SYS_tgkill, getpid(), vcpu.tid, KickSignal());
}

void Machine::Stop(size_t vcpu) {
  Vcpu& one = *vcpus_[vcpu];
  std::atomic_ref(memory_.MailboxOf(vcpu).limit).store(0);
  if (!one.halts) return;
  {
    const std::lock_guard lock(one.mutex);
    if (!one.done) Kick(one);
  }
  one.changed.notify_all();
}

absl::StatusOr<Turns> Machine::Wait(size_t vcpu, absl::Duration patience) {
  Vcpu& one = *vcpus_[vcpu];
  std::unique_lock lock(one.mutex);
  const auto idle = [&] { return one.done.has_value(); };
  if (!one.changed.wait_for(lock, absl::ToChronoNanoseconds(patience), idle)) {
    Kick(one);
    one.changed.notify_all();
    one.changed.wait_for(lock, absl::ToChronoNanoseconds(kLeavePatience), idle);
    return absl::DeadlineExceededError(
        absl::StrCat("vCPU ", vcpu, " did not end within ", absl::FormatDuration(patience)));
  }
  if (!one.done->ok()) return *one.done;
  const Mailbox& mailbox = memory_.MailboxOf(vcpu);
  return Turns{.turns = mailbox.turns, .looks = mailbox.looks, .inside_ns = one.inside_ns};
}

}  // namespace vcpulse::kvm::microguest
