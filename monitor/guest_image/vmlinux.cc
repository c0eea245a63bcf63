#include "monitor/guest_image/vmlinux.h"

#include <gelf.h>
#include <libelf.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kvm/hotspots/wait_loops.h"

namespace vcpulse::guest_image {
namespace {

// Kernels have some 30 MB of code; a damaged file may claim anything.
constexpr uint64_t kMostCode = uint64_t{256} << 20;
constexpr uint64_t kMostOrc = uint64_t{64} << 20;  // Debian's have 4 MB
constexpr size_t kMostSymbols = size_t{1} << 20;
constexpr size_t kLongestName = 512;  // the kernel's own limit (KSYM_NAME_LEN)

struct CloseElf {
  void operator()(Elf* elf) const { elf_end(elf); }
};
using OwnedElf = std::unique_ptr<Elf, CloseElf>;

absl::Status NoKernel(const char* why) {
  return absl::InvalidArgumentError(absl::StrCat("not a vmlinux: ", why));
}

std::optional<kvm::Isa> IsaOf(const GElf_Ehdr& header) {
  if (header.e_machine == EM_X86_64) return kvm::Isa::kX86;
  if (header.e_machine == EM_AARCH64) return kvm::Isa::kArm64;
  return std::nullopt;
}

// Of .symtab: functions, and what has no type but lies in code, as symbols of assembly do. False
// where there are too many.
bool AddSymbols(Elf* elf, Elf_Scn* section, const GElf_Shdr& header,
                std::vector<hotspots::Symbols::Entry>& entries) {
  Elf_Data* const data = elf_getdata(section, nullptr);
  if (data == nullptr) return true;
  GElf_Sym symbol;
  for (int i = 0; gelf_getsym(data, i, &symbol) != nullptr; ++i) {
    if (entries.size() == kMostSymbols) return false;
    const auto type = GELF_ST_TYPE(symbol.st_info);
    if (symbol.st_shndx == SHN_UNDEF || type == STT_FILE || type == STT_SECTION) continue;
    const char* const name = elf_strptr(elf, header.sh_link, symbol.st_name);
    if (name == nullptr || *name == '\0' || *name == '$') continue;
    if (strnlen(name, kLongestName + 1) > kLongestName) continue;
    GElf_Shdr home;
    Elf_Scn* const of = elf_getscn(elf, symbol.st_shndx);
    const bool is_in_code =
        of != nullptr && gelf_getshdr(of, &home) != nullptr && (home.sh_flags & SHF_EXECINSTR) != 0;
    const bool is_code = type == STT_FUNC || (type == STT_NOTYPE && is_in_code);
    entries.push_back({.address = symbol.st_value, .is_code = is_code, .name = name});
  }
  return true;
}

// What a section holds, as far as `left` bytes go; nothing where it has more.
std::span<const uint8_t> BytesOf(Elf_Scn* section, const GElf_Shdr& header, uint64_t& left) {
  Elf_Data* const data = header.sh_size <= left ? elf_rawdata(section, nullptr) : nullptr;
  if (data == nullptr || data->d_buf == nullptr) return {};
  left -= data->d_size;
  return {static_cast<const uint8_t*>(data->d_buf), data->d_size};
}

// The two sections of ORC, as they are met.
struct OrcSections {
  std::span<const uint8_t> places;
  uint64_t places_address = 0;
  std::span<const uint8_t> entries;

  void Take(std::string_view name, const GElf_Shdr& header, Elf_Scn* section, uint64_t& left) {
    if (name == ".orc_unwind_ip") {
      places = BytesOf(section, header, left);
      places_address = header.sh_addr;
    } else if (name == ".orc_unwind") {
      entries = BytesOf(section, header, left);
    }
  }
};

absl::StatusOr<hotspots::GuestKernel> Parse(Elf* elf) {
  GElf_Ehdr header;
  if (elf == nullptr || elf_kind(elf) != ELF_K_ELF || gelf_getehdr(elf, &header) == nullptr) {
    return NoKernel("it is not an ELF file");
  }
  const auto isa = IsaOf(header);
  if (!isa) return NoKernel("it is of another architecture than x86-64 and arm64");
  // A kernel module or an object file has no addresses.
  if (header.e_type != ET_EXEC && header.e_type != ET_DYN) return NoKernel("it is not linked");
  if (header.e_shoff != 0 && elf_nextscn(elf, nullptr) == nullptr) {
    return NoKernel("it ends before its section table: was it copied as a whole?");
  }
  hotspots::GuestKernel kernel;
  std::vector<hotspots::Symbols::Entry> entries;
  OrcSections orc;
  size_t names = 0;
  const bool has_names = elf_getshdrstrndx(elf, &names) == 0;
  uint64_t left = kMostCode;
  uint64_t left_of_orc = kMostOrc;
  GElf_Shdr of;
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
       section = elf_nextscn(elf, section)) {
    if (gelf_getshdr(section, &of) == nullptr) continue;
    if (of.sh_type == SHT_SYMTAB && !AddSymbols(elf, section, of, entries)) {
      return NoKernel("it has more symbols than any kernel");
    }
    if (of.sh_type != SHT_PROGBITS) continue;
    if ((of.sh_flags & SHF_EXECINSTR) != 0) {
      const std::span<const uint8_t> code = BytesOf(section, of, left);
      if (code.empty()) continue;
      kernel.code.Add({.address = of.sh_addr, .bytes = {code.begin(), code.end()}, .isa = *isa});
    } else if (has_names) {
      const char* const name = elf_strptr(elf, names, of.sh_name);
      if (name != nullptr) orc.Take(name, of, section, left_of_orc);
    }
  }
  if (entries.empty()) return NoKernel("it has no symbols (stripped, or a vmlinuz)");
  kernel.symbols = hotspots::Symbols::Of(std::move(entries));
  if (*isa == kvm::Isa::kX86) {
    kernel.orc = hotspots::OrcTable::Parse(orc.places, orc.places_address, orc.entries);
  }
  return kernel;
}

bool HaveLibrary() {
  static const bool has = elf_version(EV_CURRENT) != EV_NONE;
  return has;
}

}  // namespace

absl::StatusOr<hotspots::GuestKernel> ReadVmlinux(int fd) {
  if (!HaveLibrary()) return absl::InternalError("libelf is of another version");
  const OwnedElf elf(elf_begin(fd, ELF_C_READ, nullptr));
  return Parse(elf.get());
}

absl::StatusOr<hotspots::GuestKernel> ParseVmlinux(std::span<const uint8_t> bytes) {
  if (!HaveLibrary()) return absl::InternalError("libelf is of another version");
  // elf_memory takes no const, and only reads.
  auto* const image = const_cast<char*>(reinterpret_cast<const char*>(bytes.data()));
  const OwnedElf elf(elf_memory(image, bytes.size()));
  return Parse(elf.get());
}

}  // namespace vcpulse::guest_image
