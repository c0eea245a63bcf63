// What samples of guest addresses are parsed from; the first byte says which.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "kvm/hotspots/guest_code.h"
#include "kvm/hotspots/kvm_exit_format.h"
#include "kvm/hotspots/registers_text.h"
#include "kvm/tracing/sample_records.h"
#include "kvm/tracing/tracepoint_format.h"
#include "monitor/hotspots/callers.h"
#include "monitor/hotspots/code_record.h"
#include "monitor/hotspots/orc.h"
#include "monitor/hotspots/pprof.h"
#include "monitor/hotspots/recorded_hotspots.h"
#include "monitor/hotspots/symbolize.h"
#include "monitor/hotspots/symbols.h"
#include "tests/fuzz/checks.h"

namespace {

using namespace vcpulse;
using fuzz::Check;

void CheckRecords(std::span<const uint8_t> bytes, bool is_raw) {
  size_t seen = 0;
  kvm::RingRecords into;
  into.address = [&seen](kvm::GuestAddress) { ++seen; };
  into.lost = [](uint64_t) {};
  into.raw = [&](const kvm::RawSample& sample) {
    const std::span<const uint8_t> raw = sample.record;
    ++seen;
    Check(raw.data() >= bytes.data() && raw.data() + raw.size() <= bytes.data() + bytes.size());
  };
  static_cast<void>(kvm::ReadRecords(bytes, is_raw, into));
  Check(seen <= bytes.size() / 8);
}

// The text up to a NUL is the format, the rest a record of it.
void CheckTracepoint(std::string_view text) {
  const size_t end = text.find('\0');
  const auto format = kvm::ParseTracepointFormat(text.substr(0, end));
  if (!format) return;
  const std::string_view rest = end == std::string_view::npos ? "" : text.substr(end + 1);
  const std::span record(reinterpret_cast<const uint8_t*>(rest.data()), rest.size());
  for (const auto& field : format->fields) static_cast<void>(kvm::ReadField(record, &field));
  const auto exits = kvm::KvmExitFormat::From(*format);
  if (exits) static_cast<void>(exits->AddressOf(record));
}

void CheckSymbols(std::string_view text) {
  const auto symbols = hotspots::Symbols::Parse(text);
  if (!symbols.ok()) return;
  for (const uint64_t address :
       {uint64_t{0}, uint64_t{0x1000}, uint64_t{0xffffffff81000000}, ~uint64_t{0}}) {
    const auto symbol = symbols->Find(address);
    Check(!symbol || (!symbol->name.empty() && symbol->offset <= address));
  }
}

// A record of a damaged timeline, added twice: shares are those of a whole.
void CheckRecorded(std::span<const uint8_t> bytes) {
  v1::HotAddresses hot;
  if (!hot.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  v1::HotAddresses renamed = hot;
  hotspots::GuestKernel kernel{.symbols = *hotspots::Symbols::Parse("1000 T f\nff00 T end\n")};
  kernel.code.Add({.address = 0x1000, .bytes = {0xf3, 0x90, 0xeb, 0xfc}});
  hotspots::Symbolize(kernel, renamed);
  Check(renamed.functions_size() == renamed.addresses_size());
  static_cast<void>(kernel.code.Locate(hotspots::CodeOf(renamed).pieces));
  hotspots::RecordedHotspots recorded;
  recorded.Add({.sequence = 1, .record = hot});
  recorded.Add({.sequence = 2, .record = hot});
  for (const hotspots::VcpuHotspots& vcpu : recorded.All({})) {
    uint64_t samples = 0;
    for (const hotspots::Spot& spot : vcpu.spots) samples += spot.samples;
    Check(samples <= vcpu.samples);
    Check(vcpu.idle_share.value_or(0) <= 1);
    Check(vcpu.wait_share.value_or(0) <= 1);
    static_cast<void>(hotspots::JsonOf({vcpu}));
    static_cast<void>(hotspots::TextOf({vcpu}, 3));
    static_cast<void>(hotspots::PprofOf({vcpu}));
  }
}

// Registers, as many entries of ORC as the next byte says, and the rest as a stack.
void CheckCallers(std::span<const uint8_t> bytes) {
  kvm::StackLook look{.registers = {.at = {.mode = kvm::GuestMode::kKernel}}};
  auto& registers = look.registers;
  for (uint64_t* const value :
       {&registers.at.address, &registers.stack, &registers.frame, &registers.link}) {
    if (bytes.size() < sizeof(*value)) return;
    std::memcpy(value, bytes.data(), sizeof(*value));
    bytes = bytes.subspan(sizeof(*value));
  }
  if (bytes.empty()) return;
  const size_t places = std::min<size_t>(4 * bytes[0], bytes.size() - 1);
  const size_t entries = std::min<size_t>(6 * bytes[0], bytes.size() - 1 - places);
  const uint64_t at = registers.at.address;
  hotspots::GuestKernel kernel{
      .symbols = hotspots::Symbols::Of({{at & ~uint64_t{0xff}, true, "f"},
                                        {(registers.link & ~uint64_t{0xff}) | 0x80, true, "el1_x"},
                                        {at + 0x1000, true, "end"}})};
  kernel.orc = hotspots::OrcTable::Parse(bytes.subspan(1, places), 0xffffffff82000000,
                                         bytes.subspan(1 + places, entries));
  const auto stack = bytes.subspan(1 + places + entries);
  look.memory.assign(stack.begin(), stack.end());
  for (const kvm::Isa isa : {kvm::Isa::kX86, kvm::Isa::kArm64}) {
    registers.isa = isa;
    for (const hotspots::Stack& one : hotspots::StacksOf({look, look}, kernel)) {
      Check(one.frames.size() <= hotspots::kMostCallers + 1 && one.samples == 2);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span bytes(data + 1, size - 1);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  switch (data[0] % 7) {
    case 0:
      CheckRecords(bytes, false);
      break;
    case 1:
      CheckRecords(bytes, true);
      break;
    case 2:
      CheckTracepoint(text);
      break;
    case 3:
      static_cast<void>(kvm::AddressInRegisters(text));
      static_cast<void>(kvm::StackRegistersIn(text));
      Check(kvm::BytesOfDump(text).size() <= text.size() / 4);
      break;
    case 4:
      CheckSymbols(text);
      break;
    case 5:
      CheckRecorded(bytes);
      break;
    default:
      CheckCallers(bytes);
  }
  return 0;
}
