#include "monitor/hotspots/callers.h"

#include <cstring>
#include <optional>

#include "kvm/hotspots/address_counts.h"
#include "monitor/hotspots/orc.h"

namespace vcpulse::hotspots {
namespace {

class Walk {
 public:
  Walk(const kvm::StackLook& look, const GuestKernel& kernel) : look_(look), kernel_(kernel) {}

  std::vector<uint64_t> Take() && {
    if (look_.registers.isa == kvm::Isa::kArm64) {
      ByFrameRecords();
    } else {
      ByOrc();
    }
    return std::move(callers_);
  }

 private:
  // A word of the stack; nothing where it was not read.
  std::optional<uint64_t> WordAt(uint64_t address) const {
    const uint64_t offset = address - look_.registers.stack;
    uint64_t word = 0;
    if (offset > look_.memory.size() || look_.memory.size() - offset < sizeof(word)) {
      return std::nullopt;
    }
    std::memcpy(&word, look_.memory.data() + offset, sizeof(word));
    return word;
  }

  // Takes a return address; false where it is none, or enough were taken.
  bool Add(uint64_t address) {
    const auto symbol = kernel_.symbols.Find(address - 1);
    const bool fits = kvm::ModeOfAddress(address) == kvm::GuestMode::kKernel &&
                      (kernel_.symbols.empty() || symbol);
    if (fits) callers_.push_back(address);
    return fits && callers_.size() < kMostCallers && !(symbol && IsException(*symbol));
  }

  // Linux's entries from kernel mode (arch/arm64/kernel/entry.S, entry-common.c): up to 6.12 their
  // frame record is what was interrupted, which did not call.
  bool IsException(const Symbol& symbol) const {
    return look_.registers.isa == kvm::Isa::kArm64 && symbol.name.starts_with("el1");
  }

  // Without the signature that a kernel with pointer authentication puts above bit 47.
  static uint64_t Unsigned(uint64_t link) {
    constexpr uint64_t kKernelBit = uint64_t{1} << 55;
    constexpr uint64_t kAbove = uint64_t{0xffff} << 48;
    return (link & kKernelBit) != 0 ? link | kAbove : link;
  }

  // Whether the function at the PC has no frame record: it has called nothing, so X30 still has its
  // caller, and its frame register is that caller's.
  bool IsWithoutFrame(uint64_t link) const {
    const auto own = kernel_.symbols.Find(look_.registers.at.address);
    const auto from = kernel_.symbols.Find(link - 1);
    if (!own || !from || own->address == from->address) return false;
    const auto recorded = WordAt(look_.registers.frame + sizeof(uint64_t));
    return !recorded || Unsigned(*recorded) != link;
  }

  void ByFrameRecords() {
    const uint64_t link = Unsigned(look_.registers.link);
    if (IsWithoutFrame(link) && !Add(link)) return;
    // A record is the caller's frame register and the return address; callers' lie above.
    uint64_t frame = look_.registers.frame;
    while (true) {
      const auto next = WordAt(frame);
      const auto returns_to = WordAt(frame + sizeof(uint64_t));
      if (!next || !returns_to || !Add(Unsigned(*returns_to)) || *next <= frame) return;
      frame = *next;
    }
  }

  void ByOrc() {
    uint64_t at = look_.registers.at.address;
    uint64_t stack = look_.registers.stack;
    uint64_t frame = look_.registers.frame;
    while (true) {
      const auto says = kernel_.orc.Find(at);
      if (!says) return;
      const auto begin = BeginOf(*says, stack, frame);
      const auto returns_to = begin ? WordAt(*begin - sizeof(uint64_t)) : std::nullopt;
      if (!returns_to || *begin <= stack || !Add(*returns_to)) return;
      if (says->kept != OrcFrame::Kept::kUnchanged) {
        const uint64_t base = says->kept == OrcFrame::Kept::kBelowCaller ? *begin : frame;
        const auto kept = WordAt(base + static_cast<uint64_t>(int64_t{says->kept_offset}));
        if (!kept) return;
        frame = *kept;
      }
      stack = *begin;
      at = *returns_to - 1;  // in the call, not behind it
    }
  }

  // The stack pointer before the call.
  std::optional<uint64_t> BeginOf(const OrcFrame& says, uint64_t stack, uint64_t frame) const {
    const auto offset = static_cast<uint64_t>(int64_t{says.offset});
    switch (says.base) {
      case OrcFrame::Base::kStack:
        return stack + offset;
      case OrcFrame::Base::kFrame:
        return frame + offset;
      case OrcFrame::Base::kAtStack:
        break;
      case OrcFrame::Base::kAtFrame:
        return WordAt(frame + offset);
    }
    // Here the offset is added to what the stack pointer points to.
    const auto pointer = WordAt(stack);
    if (!pointer) return std::nullopt;
    return *pointer + offset;
  }

  const kvm::StackLook& look_;
  const GuestKernel& kernel_;
  std::vector<uint64_t> callers_;
};

}  // namespace

std::vector<uint64_t> CallersOf(const kvm::StackLook& look, const GuestKernel& kernel) {
  return Walk(look, kernel).Take();
}

}  // namespace vcpulse::hotspots
